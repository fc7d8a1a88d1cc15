// A sweep to watch: bar, outlook and grid; cells open their runs in place, by mouse and by keys; all text is harmless.
import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { FakeModel, startClock } from "./fake.mjs";
import sweep, { SweepFace } from "../sweep.js";

const EVIL = "<img src=x onerror=alert(1)>";
const cell = (n, more = {}) => ({ n, runs: 1, run: `r-${n}`, state: "complete", said: "complete", cost: "$0.50", final: true, score: "0.80", range: "0.70 to 0.90", bar: [0.2, 0.5, 0.8], ...more });

function picture(more = {}) {
  return {
    name: "dates", live: true, all: 6, whence: "2 found, 4 launched", metric: "right", axis: ["0.40", "1.00"], more_rows: 0, notes: [],
    counts: [["done", 3], ["failed", 1], ["at work", 1], ["waiting", 1]],
    facts: [{ strong: "about 12 min", text: "left (9 to 17)" }, { strong: "$3.59", text: "spent, $4.20 expected" }],
    row_name: "model", column_name: "tone", rows: ["a", "b"], columns: ["dry", "warm", "terse"],
    cells: [[cell(0), cell(1), cell(2, { state: "failed", said: "failed", score: undefined, range: undefined, bar: undefined })], [cell(3, { runs: 3, run: "", said: "1 of 3", final: false }), null, cell(5, { run: "", state: "pending", said: "to come" })]],
    failures: { told: [{ where: "a, terse", number: 1, why: "answered 429", run: "r-2" }], left: 0 }, ...more,
  };
}

function show(more) {
  const model = new FakeModel({ picture: picture(more), token: "", version: 0 });
  const view = new SweepFace(model).start();
  document.body.append(view.section);
  const sent = (kind) => model.sent.filter((one) => one.kind === kind);
  return { model, view, sent };
}

beforeEach(() => {
  startClock();
  document.body.replaceChildren();
});

test("counts, outlook, grid and failures are said, and the bar has the numbers", () => {
  const { view, sent } = show();
  assert.match(view.section.textContent, /at workdatessweep.*3 of 6 done.*1 failed.*1 at work.*1 waiting/s);
  assert.match(view.section.textContent, /about 12 min left \(9 to 17\)\$3.59 spent, \$4.20 expected/);
  assert.match(view.section.textContent, /a, terse: 1 failed: answered 429/);
  assert.equal(view.bar.getAttribute("aria-valuenow"), "3");
  assert.equal(view.bar.getAttribute("aria-valuemax"), "6");
  assert.deepEqual(view.cells.map((one) => one.button.getAttribute("aria-label")), [
    "a, dry, 0.80 (0.70 to 0.90), complete, $0.50", "a, warm, 0.80 (0.70 to 0.90), complete, $0.50", "a, terse, failed, $0.50",
    "b, dry, 0.80 (0.70 to 0.90), 1 of 3, $0.50", "b, terse, 0.80 (0.70 to 0.90), to come, $0.50",
  ]);
  assert.equal(sent("here").length, 1); // the plain table behind it is published less often
  view.close();
});

test("a click opens the run of a cell in full below its row, another closes it, and figures that change leave it open", () => {
  const { model, view, sent } = show();
  view.cells[0].button.fire("click");
  assert.deepEqual(sent("full").map((one) => one.run), ["r-0"]);
  assert.equal(view.cells[0].button.getAttribute("aria-expanded"), "true");
  const panel = view.panel.row;
  model.traits.picture = picture({ counts: [["done", 4]], cells: [[cell(0, { score: "0.91" }), cell(1), cell(2)], [cell(3), null, cell(5)]] });
  view.draw();
  assert.equal(view.panel.row, panel);
  assert.equal(panel.parentNode, view.lines[0].parentNode);
  assert.equal(view.cells[0].score.textContent, "0.91");
  view.cells[0].button.fire("click");
  assert.equal(panel.parentNode, null);
  assert.equal(sent("shut").length, 1);
  view.close();
});

test("a cell of several runs lists them, and one of them opens in full", () => {
  const { model, view, sent } = show();
  view.cells[3].button.fire("click");
  assert.deepEqual(sent("runs"), [{ kind: "runs", n: 3 }]);
  const run = { run: "r-3b", state: "failed", about: "case 7, repeat 2", score: "", cost: "", error: EVIL };
  model.message({ kind: "runs", n: 9, runs: [run], more: 0 });
  assert.equal(view.panel.list.childNodes.length, 0); // of a cell that was closed meanwhile
  model.message({ kind: "runs", n: 3, runs: [run, { ...run, run: "r-3c" }], more: 4 });
  const [first, second] = view.panel.list.childNodes;
  const keys = (key, target) => view.panel.cell.fire("keydown", { key, target });
  keys("ArrowRight", first);
  assert.deepEqual([first, second].map((one) => one.getAttribute("tabindex")), ["-1", "0"]);
  assert.match(view.panel.cell.textContent, /case 7, repeat 2.*… 4 more/s);
  assert.equal(first.getAttribute("aria-label"), `case 7, repeat 2, failed, ${EVIL}`);
  first.fire("click");
  second.fire("click");
  assert.deepEqual(sent("full").map((one) => one.run), ["r-3b", "r-3c"]);
  assert.deepEqual([first, second].map((one) => one.getAttribute("aria-expanded")), ["false", "true"]);
  keys("Escape", second);
  assert.equal(view.open, null);
  view.close();
});

test("arrow keys move among the cells over holes, one is in the tab order, Escape closes what is open", () => {
  const { view } = show();
  const press = (key) => view.table.fire("keydown", { key, target: view.active.button });
  const at = () => view.active.label;
  assert.equal(at(), "a, dry");
  press("ArrowDown");
  assert.equal(at(), "b, dry");
  press("ArrowRight");
  assert.equal(at(), "b, terse");
  press("ArrowUp");
  press("ArrowUp");
  assert.equal(at(), "a, terse");
  assert.deepEqual(view.cells.filter((one) => one.button.getAttribute("tabindex") === "0").map((one) => one.label), ["a, terse"]);
  view.active.button.fire("click");
  press("Escape");
  assert.equal(view.open, null);
  view.close();
});

test("a failure's button opens that run below the row of its cell", () => {
  const { view, sent } = show();
  view.failures.all().find((one) => one.tag === "button").fire("click");
  assert.deepEqual(sent("full").map((one) => one.run), ["r-2"]);
  assert.equal(view.open.label, "a, terse");
  view.close();
});

test("other rows make another grid, close what is open in it, and hostile words are text", () => {
  const { model, view, sent } = show();
  view.cells[0].button.fire("click");
  model.traits.picture = picture({ name: EVIL, rows: [EVIL], cells: [[cell(0), cell(1), cell(2)]], failures: { told: [{ where: EVIL, number: 2, why: EVIL, run: "r-1" }], left: 3 } });
  view.draw();
  assert.equal(view.open, null);
  assert.equal(sent("shut").length, 1);
  assert.equal(view.section.all().some((one) => one.tag === "img"), false);
  assert.match(view.section.textContent, /3 more runs failed/);
  model.traits.picture = { rows: 4, cells: "x", counts: null };
  view.draw();
  view.close();
});

test("what a host loads begins without a view", () => assert.equal(typeof sweep.initialize, "function"));
