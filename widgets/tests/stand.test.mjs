// Where a view stands: before a plain output that names its token; what becomes of it at the end, and in a new kernel.
import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import run from "../run.js";
import { standing } from "../stand.js";
import { FakeElement, FakeModel, pass, startClock } from "./fake.mjs";

beforeEach(() => {
  startClock();
  document.body.replaceChildren();
});

const TOKEN = "feedc0de";

/** A plain output on the page. */
function plain(version = 0, token = TOKEN) {
  const [place, words] = [new FakeElement("div"), new FakeElement("section")];
  place.className = `${token} ${token}-${version}`;
  words.append("as of 12:00");
  place.append(words);
  document.body.append(place);
  return place;
}
const model = (over = {}) => new FakeModel({ token: TOKEN, version: 0, ...over });
const view = (place) => place.childNodes.find((node) => node.classList.contains("sa"));
const asked = (of) => of.sent.filter((message) => message.kind === "card").length;

/** A notebook as JupyterLab holds it, with one output. */
function notebook(html) {
  const outputs = { items: [{ data: { "text/html": html } }], get length() { return this.items.length; } };
  outputs.get = (at) => outputs.items[at];
  outputs.set = (at, output) => (outputs.items[at] = output);
  const cells = { length: 2, get: (at) => (at ? { outputs } : {}) };
  return { manager: { context: { isDisposed: false, model: { cells } } }, outputs };
}

test("the view stands before the plain output, however late that comes, and leaves it as it was", () => {
  const of = model();
  const leave = run.initialize({ model: of });
  pass(2);
  const place = plain();
  pass(1);
  assert.match(view(place).seen, /running.*find-outliers/);
  assert.doesNotMatch(place.seen, /as of/);
  leave();
  assert.equal(view(place), undefined);
  assert.match(place.seen, /^as of 12:00$/);
  assert.equal(of.listening, 0);
});

test("an output that is drawn again takes the view along, with what was written in it", () => {
  const first = plain();
  const of = model({ questions: [{ id: "q1", text: "?", choices: [] }] });
  run.initialize({ model: of });
  const field = first.all().find((node) => node.tag === "input");
  field.value = "half an ans";
  first.remove();
  const second = plain();
  pass(1);
  assert.equal(second.all().find((node) => node.tag === "input").value, "half an ans");
  assert.equal(second.all().filter((node) => node.classList.contains("sa")).length, 1);
});

test("at the end a page that never hears of the card asks for it and puts it into the notebook", () => {
  const { manager, outputs } = notebook(`<div class="${TOKEN} ${TOKEN}-0">as of 12:00</div>`);
  const of = model({ widget_manager: manager });
  of.widget_manager = manager;
  plain();
  run.initialize({ model: of });
  pass(10);
  assert.equal(asked(of), 0);
  of.set({ state: "complete", version: 1 });
  pass(4);
  assert.equal(asked(of), 1);
  of.message({ kind: "card", data: { "text/html": "<p>complete</p>", "text/plain": "complete" } });
  assert.deepEqual(outputs.items, [{ output_type: "display_data", data: { "text/html": "<p>complete</p>", "text/plain": "complete" }, metadata: {} }]);
});

test("a card that was published comes by itself, and nothing is asked", () => {
  const of = model();
  const place = plain();
  run.initialize({ model: of });
  of.set({ state: "complete", version: 1 });
  pass(1);
  place.remove(); // the host has put the card there
  pass(30);
  assert.equal(asked(of), 0);
});

test("in a host that keeps no notebook the view stays with the end, also when the kernel lets it go", () => {
  const of = model();
  const place = plain();
  const leave = run.initialize({ model: of });
  of.set({ state: "failed", version: 1, error: "It broke." });
  pass(4);
  of.message({ kind: "card", data: { "text/html": "<p>failed</p>" } });
  assert.match(view(place).seen, /failed.*It broke/);
  leave();
  assert.match(view(place).seen, /failed.*It broke/);
});

test("a table that is published anew is asked for when an older one stands there", () => {
  const { manager, outputs } = notebook(`<div class="${TOKEN} ${TOKEN}-0">1 of 2</div>`);
  const of = model();
  of.widget_manager = manager;
  const place = plain(0);
  standing(null)({ model: of });
  of.set({ version: 1 });
  place.className = `${TOKEN} ${TOKEN}-1`;
  pass(5);
  assert.equal(asked(of), 0);
  of.set({ version: 2 });
  pass(5);
  assert.equal(asked(of), 1);
  of.message({ kind: "card", data: { "text/html": "2 of 2" } });
  assert.equal(outputs.items[0].data["text/html"], "2 of 2");
});

test("a new kernel's view takes over from one whose kernel is gone, and never from one that lives", () => {
  const place = plain();
  const [old, second, fresh] = [model(), model({ name: "second" }), model({ name: "taken-over" })];
  run.initialize({ model: old });
  run.initialize({ model: second });
  assert.match(view(place).seen, /find-outliers/);
  for (const ear of old.ears.get("comm_live_update")) ear();
  run.initialize({ model: fresh });
  pass(1);
  assert.match(view(place).seen, /taken-over|second/);
  assert.equal(place.all().filter((node) => node.classList.contains("sa")).length, 1);
});

test("a second restart is told as the first one was: the view of a kernel before does not come back", () => {
  const place = plain();
  const [first, second] = [model({ name: "of-the-first" }), model({ name: "of-the-second" })];
  const restart = (of) => [...of.ears.get("comm_live_update")].forEach((ear) => ear());
  run.initialize({ model: first });
  restart(first);
  run.initialize({ model: second });
  pass(2);
  assert.match(view(place).seen, /of-the-second/);
  restart(second);
  pass(5);
  assert.match(view(place).seen, /The kernel was restarted.*/s);
  assert.match(view(place).seen, /of-the-second/);
  place.remove(); // the cell's output is drawn again
  const again = plain();
  pass(2);
  assert.match(again.seen, /The kernel was restarted/);
});

test("a closed notebook ends the search, and a model without a token begins none", () => {
  const of = model();
  of.widget_manager = { context: { isDisposed: true } };
  plain();
  run.initialize({ model: of });
  assert.equal(of.listening, 0);
  const bare = model({ token: "" });
  run.initialize({ model: bare })();
  assert.equal(bare.listening, 0);
});
