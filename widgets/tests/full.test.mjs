// A run in full: a line for each thing it did, what is behind one when it is opened, search through all, pages, keys.
import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { joinedSpans, Opened } from "../opened.js";
import { FakeElement, FakeModel, pass, startClock } from "./fake.mjs";

const EVIL = "<img src=x onerror=alert(1)>";
const HEAD = {
  kind: "head", name: "price-drift", state: "failed", title: "", live: false, error: "The limit was reached.", task: "Find it.",
  facts: [["from", "a cell of a.ipynb"]], cell: "", meters: [{ label: "deadline", text: "6:12 of 30:00", part: 0.2, word: "" }, { label: "requests", text: "48 of 50", part: 0.96, word: "near" }],
  did: "3 calls", lineage: [{ word: "resumed from", run: "r-1", name: "first", state: "lost" }, { word: "started", run: "", name: "gone", state: "deleted" }],
  artifacts: [{ name: "fig1", kind: "figure", size: "2 KB" }], answer: { name: "text", text: "", from: 0, read: 0, all: 0 }, questions: [], next: "%subagent_transcript x", load: "",
};
const call = (at, more = {}) => ({ at, s: at, kind: "call", name: "grep", line: `arg${at}`, key: `c/0/${at}`, state: "complete", took: 0.5, opens: true, ...more });
const page = (from, to, entries, more = {}) => ({ kind: "page", from, to, next: to, size: to, entries, ends: [], ...more });

function show(pages, head = {}) {
  const model = new FakeModel({ told: { head: { ...HEAD, ...head }, pages }, token: "f00000000", run_id: "r-0", version: 0 });
  const view = new Opened(model).start();
  document.body.append(view.section);
  const press = (key, target = view.section) => view.section.fire("keydown", { key, target });
  return { model, view, press, lines: () => view.order.map((row) => row.data.at) };
}

beforeEach(() => {
  startClock();
  document.body.replaceChildren();
});

test("it says why it ended, its task, its limits, where it comes from and what it left", () => {
  const { view } = show([page(0, 9, [call(0)])]);
  assert.match(view.section.seen, /The limit was reached\..*Find it\..*from.*a cell of a\.ipynb.*resumed from first lost.*started gone deleted.*requests 48 of 50 · near.*3 calls.*fig1 figure 2 KB/s);
  assert.equal(view.section.getAttribute("aria-label"), "price-drift in full, failed");
  assert.equal(view.meters[1].box.className, "sa-meter sa-near");
});

test("the third call is opened by its number, and what is behind it is asked for once, and shown as text", () => {
  const { model, view, press } = show([page(0, 90, [{ at: 5, s: 1, kind: "thinking", line: "hm", chars: 2, opens: true }, call(10), call(20), call(30)])]);
  const event = press("3");
  assert.equal(event.stopped, 1);
  const third = view.rows.get(30);
  assert.equal(FakeElement.focused, third.head);
  assert.deepEqual(model.sent, [{ kind: "part", at: 30, text: "" }]);
  model.message({ kind: "part", at: 30, parts: [{ name: "arguments", text: EVIL, from: 0, read: 28, all: 28 }, { name: "result", text: "abc", from: 0, read: 3, all: 7_000_000 }] });
  assert.match(third.box.seen, /arguments<img src=x onerror=alert\(1\)>result.*abc3 of 7,000,000 characters/s);
  third.box.all().filter((node) => node.tag === "button" && node.textContent === "More").at(-1).fire("click");
  assert.deepEqual(model.sent.at(-1), { kind: "part", at: 30, name: "result", from: 3 });
  model.message({ kind: "part", at: 30, parts: [{ name: "result", text: "def", from: 3, read: 3, all: 7_000_000 }] });
  assert.match(third.box.seen, /abcdef6 of 7,000,000 characters/);
  press("ArrowUp");
  assert.equal(FakeElement.focused, view.rows.get(20).head);
});

test("a search counts folded matches too and goes from one to the next, to those that are not here as well", () => {
  const { model, view, press, lines } = show([page(0, 50, [call(0), call(10)]), page(500, 600, [call(500)])]);
  assert.match(view.list.seen, /1 KB between are not shown/);
  view.search.value = "Needle";
  view.search.fire("input");
  pass(0.5);
  assert.deepEqual(model.sent, [{ kind: "find", text: "needle" }]);
  model.message({ kind: "found", text: "other", places: [0] });
  model.message({ kind: "found", text: "needle", places: [10, 300, 500] });
  assert.equal(view.found.textContent, "3 found");
  press("Enter", view.search);
  assert.equal(view.found.textContent, "1 of 3");
  assert.equal(view.rows.get(10).box.open, true);
  press("n");
  assert.deepEqual(model.sent.at(-1), { kind: "page", at: 300 });
  model.message(page(300, 500, [call(300, { line: "a Needle here" })]));
  assert.equal(view.found.textContent, "2 of 3");
  assert.equal(view.rows.get(300).text.children[0].textContent, "Needle");
  assert.deepEqual(lines(), [0, 10, 300, 500]);
  press("N");
  press("N");
  assert.equal(view.found.textContent, "3 of 3"); // round the end
});

test("while it works it is looked at anew; what ends a call changes its line, and what was opened stays open", () => {
  const { model, view } = show([page(0, 90, [call(0, { state: "running", took: null })], { next: 80 })], { live: true, state: "running" });
  const row = view.rows.get(0);
  row.box.open = true;
  row.box.fire("toggle");
  pass(3);
  assert.deepEqual(model.sent.slice(0, 2), [{ kind: "part", at: 0, text: "" }, { kind: "look", at: 80 }]);
  model.message({ ...HEAD, live: false, page: page(80, 120, [call(90)], { ends: [{ key: "c/0/0", state: "failed", took: 2 }] }) });
  assert.equal(view.rows.get(0), row);
  assert.match(row.box.seen, /failed · 2\.0 s/);
  assert.deepEqual(model.sent.at(-1), { kind: "part", at: 0, text: "" }); // its result is there now
  assert.equal(view.list.getElementsByClassName("sa-gap").length, 0);
  const asked = model.sent.length;
  pass(10);
  assert.equal(model.sent.length, asked); // it has ended
});

test("a relative opens below, and closing it closes nothing around it", () => {
  const { model, view } = show([page(0, 9, [])]);
  const [link, gone] = view.lineage.all().filter((node) => node.tag === "button");
  assert.equal(gone.disabled, true);
  link.fire("click");
  const { token } = model.sent[0];
  assert.deepEqual(model.sent, [{ kind: "full", run: "r-1", token }]);
  assert.equal(view.relative.box.fire("keydown", { key: "Escape" }).stopped, 1);
  assert.deepEqual(model.sent.at(-1), { kind: "shut", token });
});

test("a question is answered in it, and keys that are written are no keys", () => {
  const { model, view, press } = show([page(0, 9, [call(0)])], { live: true, questions: [{ id: "q1", text: "Which?", choices: ["a"] }] });
  view.blocks.get("q1").choices[0].fire("click");
  assert.deepEqual(model.sent, [{ kind: "answer", question: "q1", text: "a" }]);
  const { input } = view.blocks.get("q1").field;
  input.tagName = "INPUT";
  assert.equal(press("1", input).stopped, 0);
});

test("its head says which run it is", () => {
  const { view } = show([page(0, 9, [])], { who: "analyst · test:m", spent: "6:12 · $0.60", title: "Step 2 · draw" });
  assert.match(view.section.seen, /^failedprice-drift · Step 2 · drawanalyst · test:m6:12 · \$0\.60The limit/);
});

test("who opens a question is in it, and its keys are the ones it shows; after the answer the focus stays in the view", () => {
  const questions = [{ id: "q1", text: "Which?", choices: ["a", "b"] }];
  const { model, view, press } = show([page(0, 9, [call(0)])], { live: true, questions });
  const [row, place] = [new FakeElement("li"), new FakeElement("div")];
  document.body.append(row);
  row.append(place);
  place.append(view.section);
  row.focus();
  view.greet();
  const block = view.blocks.get("q1");
  assert.equal(FakeElement.focused, block.box);
  assert.ok(view.section.press("2", { target: block.box }).stopped); // nobody has read it yet
  pass(1);
  assert.equal(view.section.press("2", { target: block.box }).prevented, 0); // the block's own
  assert.deepEqual(block.choices.map((one) => one.getAttribute("data-key")), ["1", "2"]);
  block.box.press("2");
  assert.deepEqual(model.sent, [{ kind: "answer", question: "q1", text: "b" }]);
  block.choices[1].focus();
  model.message({ ...HEAD, live: true });
  assert.equal(FakeElement.focused, view.section);
});

test("who closes a relative is at the link that opened it", () => {
  const { view } = show([page(0, 9, [])]);
  const [link] = view.lineage.all().filter((node) => node.tag === "button");
  link.fire("click");
  view.relative.box.firstChild.focus();
  view.relative.close();
  assert.equal(FakeElement.focused, link);
});

test("a search that nobody answers says so", () => {
  const { view } = show([page(0, 9, [call(0)])]);
  view.search.value = "needle";
  view.search.fire("input");
  pass(1);
  assert.equal(view.found.textContent, "looks…");
  pass(6);
  assert.match(view.found.textContent, /not answering/);
});

test("a match behind a line comes into sight when it has arrived", () => {
  const { model, view, press } = show([page(0, 50, [call(0)])]);
  view.search.value = "needle";
  view.search.fire("input");
  pass(1);
  model.message({ kind: "found", text: "needle", places: [0] });
  press("n");
  const seen = [];
  FakeElement.prototype.scrollIntoView = function () { seen.push(this.tag); };
  model.message({ kind: "part", at: 0, parts: [{ name: "result", text: "far below a needle", from: 0, read: 18, all: 18 }] });
  delete FakeElement.prototype.scrollIntoView;
  assert.deepEqual(seen, ["mark"]);
});

test("pieces that touch are one", () => assert.deepEqual(joinedSpans([[50, 60], [0, 10], [10, 20], [55, 58]]), [[0, 20], [50, 60]]));
