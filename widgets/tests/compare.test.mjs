// A comparison on the page: sorted, filtered, harmless, and gone when the page is saved.
import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeElement } from "./fake.mjs";
import compare, { filtered, sorted } from "../compare.js";

const EVIL = "<img src=x onerror=alert(1)>";
const ROWS = [
  { cells: ["b", "0.5 ± 0.1"], keys: ["b", 0.5] },
  { cells: [EVIL, "missing"], keys: [EVIL, null] },
  { cells: ["a", "0.9 best"], keys: ["a", 0.9] },
];
const COLUMNS = [{ title: "model", numeric: false }, { title: "acc", numeric: true }];
const firsts = (rows) => rows.map((row) => row.cells[0]);

function show(table = { columns: COLUMNS, rows: ROWS, remarks: [EVIL] }) {
  const el = new FakeElement("div");
  const sent = [];
  const ears = new Map();
  const before = globalThis.document;
  globalThis.document = { ...before, createElement: before.createElement, createElementNS: before.createElementNS, createTextNode: before.createTextNode,
    addEventListener: (type, ear) => ears.set(type, ear), removeEventListener: (type) => ears.delete(type) };
  const leave = compare.render({ model: { get: () => table, send: (message) => sent.push(message) }, el });
  const all = el.all();
  const of = (tag) => all.filter((node) => node.tag === tag);
  const body = () => el.all().filter((node) => node.tag === "td").map((node) => node.textContent);
  return { el, sent, ears, leave, of, body };
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

test("a click on a heading sorts, says so to a screen reader, and tells the kernel the order", () => {
  const view = show();
  const [model, acc] = view.of("button");
  acc.fire("click");
  assert.deepEqual(view.body(), ["a", "0.9 best", "b", "0.5 ± 0.1", EVIL, "missing"]);
  assert.equal(acc.parentNode.getAttribute("aria-sort"), "descending");
  acc.fire("click");
  assert.equal(acc.parentNode.getAttribute("aria-sort"), "ascending");
  model.fire("click");
  assert.equal(acc.parentNode.getAttribute("aria-sort"), "none");
  assert.deepEqual(view.sent[0], { kind: "order", order: [2, 0, 1] });
});

test("typing filters and says how many are left", () => {
  const view = show();
  const [input] = view.of("input");
  input.value = "best";
  input.fire("input");
  assert.deepEqual(view.body(), ["a", "0.9 best"]);
  assert.ok(view.el.textContent.includes("1 of 3 groups"));
});

test("hostile words are text, and an empty table is one too", () => {
  const view = show();
  assert.ok(view.body().includes(EVIL));
  assert.equal(view.of("img").length, 0);
  assert.ok(show({}).el.textContent.includes("0 groups"));
});

test("saving asks the kernel for the plain table, and leaving takes the ear away", () => {
  const view = show();
  view.ears.get("keydown")({ ctrlKey: true, key: "s" });
  assert.deepEqual(view.sent, [{ kind: "leave" }]);
  view.leave();
  assert.equal(view.ears.size, 0);
});
