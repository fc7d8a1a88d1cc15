// A comparison on the page: found wherever its plain table stands, sorted, filtered, harmless, and gone with its model.
import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { FakeElement, FakeModel, deliver, observing } from "./fake.mjs";
import compare, { filtered, sorted } from "../compare.js";

const EVIL = "<img src=x onerror=alert(1)>";
const ROWS = [
  { cells: ["b", "0.5 ± 0.1"], keys: ["b", 0.5] },
  { cells: [EVIL, "missing"], keys: [EVIL, null] },
  { cells: ["a", "0.9 best"], keys: ["a", 0.9] },
];
const COLUMNS = [{ title: "model", numeric: false }, { title: "acc", numeric: true }];
const TOKEN = "subagents-nb-compare-0123456789abcdef";
const firsts = (rows) => rows.map((row) => row.cells[0]);
const of = (node, tag) => node.all().filter((one) => one.tag === tag);
const cells = (node) => of(node, "td").map((one) => one.textContent);

beforeEach(() => {
  document.body.replaceChildren();
  deliver();
});

function make(tag, className, ...kids) {
  const node = new FakeElement(tag);
  node.className = className;
  node.append(...kids);
  return node;
}

/** An output as it was saved: a frame with the plain table in it, which the token marks, and the worst cases below. */
const output = (token = TOKEN) => make("section", "", make("div", token, make("table", "", "plain")), make("table", "", "worst"));
const modelOf = (more = {}) => Object.assign(new FakeModel({ token: TOKEN, table: { columns: COLUMNS, rows: ROWS } }), more);

/** One output on the page, and a model that makes it live. */
function show(table = { columns: COLUMNS, rows: ROWS }) {
  const el = output();
  document.body.append(el);
  const model = modelOf();
  model.traits.table = table;
  const leave = compare.initialize({ model });
  return { el, model, leave, live: el.one("sa-compare") };
}

test("numbers sort as numbers, words as words, and what is missing stands last either way", () => {
  assert.deepEqual(firsts(sorted(ROWS, 1, true)), ["a", "b", EVIL]);
  assert.deepEqual(firsts(sorted(ROWS, 1, false)), ["b", "a", EVIL]);
  assert.deepEqual(firsts(sorted(ROWS, 0, false)), [EVIL, "a", "b"]);
  assert.deepEqual(firsts(sorted([{ cells: ["m10"], keys: ["m10"] }, { cells: ["m9"], keys: ["m9"] }], 0, false)), ["m9", "m10"]);
});

test("a filter keeps the rows that hold every word", () => {
  assert.deepEqual(firsts(filtered(ROWS, "BEST a")), ["a"]);
  assert.deepEqual(firsts(filtered(ROWS, " ")), firsts(ROWS));
  assert.deepEqual(filtered(ROWS, "nowhere"), []);
});

test("a click on a heading sorts and says so to a screen reader, the focus stays, and the kernel hears nothing", () => {
  const { live, model, leave } = show();
  const [name, acc] = of(live, "button");
  acc.focus();
  acc.fire("click");
  assert.deepEqual(cells(live), ["a", "0.9 best", "b", "0.5 ± 0.1", EVIL, "missing"]);
  assert.equal(acc.parentNode.getAttribute("aria-sort"), "descending");
  acc.fire("click");
  assert.equal(acc.parentNode.getAttribute("aria-sort"), "ascending");
  assert.ok(FakeElement.focused === acc && live.contains(acc));
  name.fire("click");
  assert.equal(acc.parentNode.getAttribute("aria-sort"), "none");
  assert.deepEqual(model.sent, []);
  leave();
});

test("typing filters and says how many are left", () => {
  const { live, leave } = show();
  const [input] = of(live, "input");
  assert.equal(live.one("sa-count").getAttribute("role"), "status");
  assert.equal(live.one("sa-count").textContent, "3 rows");
  input.value = "best";
  input.fire("input");
  assert.deepEqual(cells(live), ["a", "0.9 best"]);
  assert.equal(live.one("sa-count").textContent, "1 of 3 rows");
  leave();
});

test("hostile words are text, and an empty table is one too", () => {
  const { live, leave } = show();
  assert.ok(cells(live).includes(EVIL));
  assert.equal(of(live, "img").length, 0);
  leave();
  document.body.replaceChildren();
  const empty = show({});
  assert.ok(empty.live.textContent.includes("0 rows"));
  empty.leave();
});

test("the live table takes the place of the plain one alone, and leaves it as it was", () => {
  const { el, leave } = show();
  assert.equal(el.seen.includes("plain"), false);
  assert.ok(el.seen.endsWith("worst"));
  leave();
  assert.equal(el.seen, "plainworst");
  assert.equal(el.one("sa-compare"), undefined);
  assert.equal(observing(), 0);
  leave(); // a host may say it twice
  assert.equal(el.seen, "plainworst");
});

test("it is found however it comes: before the model, after it, shown twice, drawn again; what is another's is not", () => {
  const [early, other] = [output(), output("subagents-nb-compare-another")];
  document.body.append(early, other);
  const leave = compare.initialize({ model: modelOf() });
  const [twice, late] = [output(), make("div", "", output())];
  document.body.append(make("div", "jp-OutputArea", twice));
  document.body.append(late);
  deliver();
  const again = output();
  late.replaceChildren(again);
  deliver();
  for (const el of [early, twice, again]) assert.equal(el.getElementsByClassName("sa-compare").length, 1);
  assert.equal(other.one("sa-compare"), undefined);

  // Each has an order of its own.
  of(early, "button")[1].fire("click");
  assert.notDeepEqual(cells(early), cells(twice));
  leave();
  for (const el of [early, twice, again]) assert.equal(el.seen, "plainworst");
  document.body.append(output());
  deliver();
  assert.equal(document.body.one("sa-compare"), undefined);
});

test("one that is out of the page and back keeps its order, and is plain again if the model went meanwhile", () => {
  const { el, live, leave } = show();
  of(live, "button")[1].fire("click");
  el.remove();
  document.body.append(el);
  deliver();
  assert.deepEqual(el.getElementsByClassName("sa-compare"), [live]);
  assert.equal(of(live, "th")[1].getAttribute("aria-sort"), "descending");
  el.remove();
  leave();
  document.body.append(el);
  deliver();
  assert.equal(el.seen, "plainworst");
});

test("a second model of one comparison waits for the first to go", () => {
  const { el, leave } = show();
  const leaveSecond = compare.initialize({ model: modelOf() });
  deliver();
  assert.equal(el.getElementsByClassName("sa-compare").length, 1);
  leave();
  deliver();
  assert.equal(el.getElementsByClassName("sa-compare").length, 1);
  leaveSecond();
  assert.equal(el.seen, "plainworst");
});

test("a kernel that restarts and a notebook that is closed leave the plain table, though no model is destroyed", () => {
  const { el, model } = show();
  for (const ear of model.ears.get("comm_live_update")) ear();
  assert.equal(el.seen, "plainworst");
  assert.equal(observing(), 0);

  const closed = modelOf({ widget_manager: { context: { isDisposed: false } } });
  compare.initialize({ model: closed });
  assert.ok(el.one("sa-compare"));
  closed.widget_manager.context.isDisposed = true;
  document.body.append(output());
  deliver();
  assert.equal(document.body.one("sa-compare"), undefined);
  assert.equal(observing(), 0);
});

test("an output without a table, and a model without a token, change nothing", () => {
  document.body.append(make("div", TOKEN));
  compare.initialize({ model: modelOf() })();
  const model = modelOf();
  model.traits.token = "";
  document.body.append(output(""));
  compare.initialize({ model })();
  assert.equal(document.body.one("sa-compare"), undefined);
});

test("an interval is a bar on its column's axis, with a line at zero for differences, and nothing for a screen reader", () => {
  const rows = [{ cells: ["a", "+0.1"], keys: ["a", 0.1], bars: [null, [0.25, 0.5, 0.75, 0.125]] }, { cells: ["b", "1"], keys: ["b", 1], bars: [null, [0, 9, 1, null]] }];
  const { live, leave } = show({ columns: COLUMNS, rows });
  const bars = live.all().filter((one) => one.className === "sa-bar");
  assert.equal(bars.length, 2);
  assert.deepEqual(bars[0].childNodes.map((one) => [one.className, one.style.left, one.style.width]), [
    ["sa-bar-range", "25%", "50%"], ["sa-bar-tick", "50%", undefined], ["sa-bar-zero", "12.5%", undefined],
  ]);
  assert.equal(bars[1].childNodes.length, 2);
  assert.equal(bars[1].childNodes[1].style.left, "100%");
  assert.equal(bars[0].getAttribute("aria-hidden"), "true");
  assert.deepEqual(cells(live), ["a", "+0.1", "b", "1"]);
  leave();
});
