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

test("a sweep that an earlier kernel left says within two seconds what goes on with it, once; one of this kernel does not", () => {
  const [old, mine, ended] = [left("ff", ""), left("gg", ""), left("hh", "")];
  old.className = "ff ff-3 subagents-nb-sweep";
  mine.className = "gg gg-1 subagents-nb-sweep";
  ended.className = "hh hh-7";
  run.initialize({ model: new FakeModel({ token: "gg", version: 0 }) });
  const of = new FakeModel();
  finder.initialize({ model: of });
  pass(2);
  assert.match(old.textContent, /Run this cell again: it finds them.*%subagent_status/);
  assert.doesNotMatch(mine.textContent, /kernel is gone/);
  assert.equal(ended.textContent, "");
  pass(3);
  assert.equal(old.textContent.match(/Run this cell again/g).length, 1);
  run.initialize({ model: new FakeModel({ token: "ff", version: 3 }) }); // its kernel lives: the page was only slow
  pass(2);
  assert.doesNotMatch(old.textContent, /kernel is gone/);
  assert.deepEqual(of.sent, []);
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

test("a view, a card and a step get a button that opens all of the run below; what is open goes along, and another notebook's is left alone", () => {
  const [view, card, other] = [left("aa", "r-1m8pv90zwzyjhftgc0n"), new FakeElement("div"), new FakeElement("div")];
  card.className = "subagents-nb-card r-2m8pv90zwzyjhftgc0n";
  other.className = "subagents-nb-card r-3m8pv90zwzyjhftgc0n";
  const panel = new FakeElement("section");
  [panel.className, panel.dataset.step] = ["sa-panel", "2"];
  view.append(panel);
  document.body.append(card, other);
  const html = `subagents-nb-run r-1m8pv90zwzyjhftgc0n r-2m8pv90zwzyjhftgc0n`;
  const of = new FakeModel();
  of.widget_manager = { context: { model: { cells: { length: 1, get: () => ({ outputs: { length: 1, get: () => ({ data: { "text/html": html } }) } }) } } } };
  finder.initialize({ model: of });
  pass(2);
  const button = (place) => place.all().find((node) => node.textContent === "In full" && node.tag === "button" && node.parentNode.parentNode === place);
  assert.equal(button(other), undefined);
  for (const place of [view, panel, card]) button(place).fire("click");
  const asked = of.sent.slice(1).map(({ token, ...rest }) => rest);
  assert.deepEqual(asked, [{ kind: "full", run: "r-1m8pv90zwzyjhftgc0n" }, { kind: "full", run: "r-1m8pv90zwzyjhftgc0n", step: 2 }, { kind: "full", run: "r-2m8pv90zwzyjhftgc0n" }]);
  const { token } = of.sent.at(-1);
  card.remove();
  const again = new FakeElement("div");
  again.className = card.className;
  document.body.append(again); // drawn again
  pass(2);
  assert.equal(again.getElementsByClassName(token).length, 1);
  button(again).fire("click");
  assert.deepEqual(of.sent.at(-1), { kind: "shut", token });
  assert.equal(button(again).getAttribute("aria-expanded"), "false");
  for (const ear of of.ears.get("comm_live_update")) ear();
  assert.equal(button(again), undefined);
});
