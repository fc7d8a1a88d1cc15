// What an earlier kernel left on the page is found, once, and a card of a run that has ended takes its place.
import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import finder from "../finder.js";
import run from "../run.js";
import { FakeElement, FakeModel, pass, startClock } from "./fake.mjs";

beforeEach(() => {
  startClock();
  document.body.replaceChildren();
});

function left(token, id) {
  const place = new FakeElement("div");
  place.className = `${token} ${token}-0 subagents-nb-run ${id}`;
  document.body.append(place);
  return place;
}

test("places without a live view are told once; those of this kernel are not", () => {
  left("aa", "r-1");
  left("bb", "r-2");
  run.initialize({ model: new FakeModel({ token: "bb", version: 0 }) });
  const of = new FakeModel();
  const leave = finder.initialize({ model: of });
  pass(5);
  assert.deepEqual(of.sent, [{ kind: "found", places: [{ token: "aa", run: "r-1" }] }]);
  left("cc", "r-3");
  pass(2);
  assert.deepEqual(of.sent[1], { kind: "found", places: [{ token: "cc", run: "r-3" }] });
  for (const ear of of.ears.get("comm_live_update")) ear(); // its kernel is gone: nothing can be sent any more
  assert.equal(of.listening, 0);
  leave();
  left("dd", "r-4");
  pass(5);
  assert.equal(of.sent.length, 2);
});

test("a board that an earlier kernel left is told, with what it lists", () => {
  const place = left("ee", "");
  place.className = "ee ee-3 subagents-nb-board e30";
  const of = new FakeModel();
  finder.initialize({ model: of });
  pass(2);
  assert.deepEqual(of.sent, [{ kind: "found", places: [], boards: [{ token: "ee", which: "e30" }] }]);
});

test("a place whose kernel is gone is told, and the card of an ended run is put there", () => {
  const outputs = { length: 1, item: { data: { "text/html": '<div class="aa aa-0">' } }, get() { return this.item; }, set(_, one) { this.item = one; } };
  left("aa", "r-1");
  const old = new FakeModel({ token: "aa", version: 0 });
  run.initialize({ model: old });
  for (const ear of old.ears.get("comm_live_update")) ear();
  const of = new FakeModel();
  of.widget_manager = { context: { model: { cells: { length: 1, get: () => ({ outputs }) } } } };
  finder.initialize({ model: of });
  pass(2);
  assert.equal(of.sent.length, 1);
  of.message({ kind: "card", token: "zz", data: { "text/html": "stranger" } });
  assert.match(outputs.item.data["text/html"], /aa-0/);
  of.message({ kind: "card", token: "aa", data: { "text/html": "the card" } });
  assert.equal(outputs.item.data["text/html"], "the card");
});
