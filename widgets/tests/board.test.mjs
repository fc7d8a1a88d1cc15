// The board: grouped by what runs need, answered and stopped from the row, by mouse and by keys; nothing moves the focus.
import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import board, { Board } from "../board.js";
import { FakeElement, FakeModel, pass, startClock } from "./fake.mjs";

const EVIL = "<img src=x onerror=alert(1)>";
const RUN = (n) => `r-${String(n).padStart(19, "0")}`;

function row(n, need, more = {}) {
  const word = { asks: "asks you", failed: "failed", working: "running", waiting: "queued", done: "complete" }[need];
  return {
    id: RUN(n), need, word, name: `${need}-${n}`, agent: "scout", model: "m", now: "does something", elapsed_s: 5, tokens_in: 10, tokens_out: 2,
    cost: "$0.01", stopping: false, attention: "", more: 0, notebook: "a.ipynb", experiment: "", day: "2026-11-30",
    at: "14:00", began: n, tags: [], task: "the task", ...more,
  };
}
const asking = (n, asked_s, more = {}) => row(n, "asks", { asked_s, asked: `2026-11-30T10:00:${String(1000 - asked_s).padStart(4, "0")}`, question: { id: `q${n}`, text: "Which?", choices: ["yes", "no"] }, ...more });
const keyed = (rows) => Object.fromEntries(rows.map((one) => [one.id, one]));

function show(rows, more = {}) {
  const model = new FakeModel({ rows: keyed(rows), head: { taken: 3, limit: 8, hidden: 0, today: 4, sent: 1200, got: 30, cost: "$0.05" }, fresh: { seq: 0 }, token: "", ...more });
  const view = new Board(model).start();
  document.body.append(view.section);
  view.draw();
  const names = () => view.shown.map((one) => one.data.name);
  const line = (name) => [...view.rows.values()].find((one) => one.data.name === name);
  const press = (key, target = view.section) => view.section.fire("keydown", { key, target });
  return { model, view, names, line, press };
}

beforeEach(() => {
  startClock();
  document.body.replaceChildren();
  document.title = "prices.ipynb";
});

test("rows stand by need: questions oldest first, the line as it moves, all else newest first, what is done folded", () => {
  const { view, names } = show([row(1, "done"), row(2, "working"), row(3, "working"), row(4, "waiting"), row(5, "waiting"), row(6, "failed"), asking(7, 5), asking(8, 300)]);
  assert.deepEqual(names(), ["asks-8", "asks-7", "failed-6", "working-3", "working-2", "waiting-4", "waiting-5"]);
  assert.match(view.section.seen, /asks you 2 oldest first.*failed, not seen 1.*working 2.*waiting 2.*done 1 1 complete/s);
  assert.match(view.section.seen, /3 of 8 places taken.*today 4 runs · 1.2k \/ 30 tokens · \$0.05/s);
  assert.equal(document.title, "(2 ask) prices.ipynb");
  view.close();
  assert.equal(document.title, "prices.ipynb");
});

test("a question is answered by its digit, once, and the row keeps its place until the kernel says more", () => {
  const { model, view, press, line, names } = show([asking(1, 60), asking(2, 5)]);
  press("ArrowDown");
  assert.equal(FakeElement.focused, line("asks-1").box);
  press("2");
  press("2");
  assert.deepEqual(model.sent, [{ kind: "answer", run: RUN(1), question: "q1", text: "no" }]);
  model.message({ kind: "ack", to: "answer", run: RUN(1), question: "q1", text: "Answered.", ok: true, id: model.ids[0] });
  pass(0.5);
  assert.match(line("asks-1").box.seen, /Answered\./);
  model.set({ fresh: { seq: 1, rows: keyed([row(1, "working", { name: "asks-1" })]), gone: [] } });
  pass(0.5);
  assert.deepEqual(names(), ["asks-1", "asks-2"]); // the reader is in it: it stays under its heading until the focus leaves
  FakeElement.focused = null;
  view.draw();
  assert.deepEqual(names(), ["asks-2", "asks-1"]);
});

test("what is typed into a field is no key, whatever becomes of the question; a held key and an unread question answer nothing", () => {
  const { model, view, press, line } = show([asking(1, 60)]);
  press("ArrowDown");
  press("w");
  const { input } = line("asks-1").field;
  input.value = "es";
  const permission = { tool: "bash", reason: "r", for_run: [], parts: [{ name: "command", kind: "command", text: "rm -rf data", cut: 0 }] };
  const next = { id: "q2", text: "May it?", choices: [], permission };
  model.set({ fresh: { seq: 1, rows: keyed([asking(1, 1, { question: next })]), gone: [] } });
  pass(0.3);
  assert.equal(FakeElement.focused, input); // the field and the focus stay
  input.press("Enter");
  assert.deepEqual(model.sent, []);
  line("asks-1").write("");
  line("asks-1").box.focus();
  view.section.fire("keydown", { key: "1", target: view.section, repeat: true });
  model.set({ fresh: { seq: 2, rows: keyed([asking(1, 1, { question: { ...next, id: "q3" } })]), gone: [] } });
  press("1");
  assert.deepEqual(model.sent, []); // it came a moment ago
  pass(1);
  press("1");
  assert.deepEqual(model.sent, [{ kind: "answer", run: RUN(1), question: "q3", text: "once" }]);
});

test("keys that act mean the row with the focus, and no other", () => {
  const { model, press } = show([row(1, "working"), asking(2, 5)]);
  for (const key of ["s", "1", "e", "t", "Enter"]) press(key);
  assert.deepEqual(model.sent, []);
});

test("a view that is made later has what came meanwhile", () => {
  const model = new FakeModel({ token: "feedc0de", version: 0, rows: keyed([row(1, "working")]), head: {}, fresh: {} });
  const leave = board.initialize({ model });
  model.set({ fresh: { seq: 1, rows: keyed([row(1, "done"), row(2, "working")]), gone: [] } });
  model.set({ fresh: { seq: 2, rows: {}, gone: [RUN(1)] } });
  assert.deepEqual(Object.keys(model.get("rows")), [RUN(2)]);
  leave();
});

test("a call is allowed from its row only if the row shows all of it", () => {
  const call = (text, cut = 0) => ({ id: "p", text: "May it run this?", choices: [], permission: { tool: "bash", reason: "r", for_run: [], parts: [{ name: "command", kind: "command", text, cut }] } });
  const { line } = show([asking(1, 9, { question: call("git status") }), asking(2, 8, { question: call("x".repeat(300)) }), asking(3, 7, { question: call("git log", 5) }), asking(4, 6, { question: call("ls\nrm -r /") })]);
  const labels = (name) => line(name).choices.children.map((button) => button.textContent);
  assert.deepEqual(labels("asks-1"), ["Once1", "For this run2", "No3"]);
  assert.match(line("asks-1").box.seen, /may it call bash: git status/);
  for (const name of ["asks-2", "asks-3", "asks-4"]) assert.deepEqual(labels(name), []);
});

test("runs are selected and stopped together; those that are over are not", () => {
  const { model, view, press } = show([row(1, "working"), row(2, "working"), row(3, "failed")]);
  for (let i = 0; i < 3; i++) {
    press("ArrowDown");
    press("x");
  }
  assert.match(view.strip.seen, /3 selectedStop 2/);
  press("s");
  assert.deepEqual(model.sent, [{ kind: "stop", run: RUN(2) }, { kind: "stop", run: RUN(1) }]);
  assert.equal(view.strip.hidden, true);
});

test("a row is opened in place: the kernel makes the view where the class stands, and Escape or Close ends it", () => {
  const { model, view, press, line } = show([row(1, "failed"), row(2, "failed")]);
  press("ArrowDown");
  press("Enter");
  const { place } = line("failed-2");
  const [{ token }] = model.sent;
  assert.deepEqual(model.sent, [{ kind: "full", run: RUN(2), token }]);
  assert.match(token, /^f[0-9a-f]{8,32}$/);
  assert.deepEqual(document.body.getElementsByClassName(token), [place.box]);
  press("Escape");
  assert.deepEqual(model.sent.at(-1), { kind: "shut", token });
  assert.deepEqual([view.opened, place.box.className, place.box.childNodes.length], [null, "sa-row-place", 0]);
  line("failed-2").openButton.fire("click");
  line("failed-1").openButton.fire("click"); // one at a time
  assert.deepEqual(model.sent.slice(2).map((one) => one.kind), ["full", "shut", "full"]);
  assert.equal(view.opened, line("failed-1"));
  const inside = line("failed-1").place.box.all().at(-1);
  inside.focus();
  const ended = line("failed-1").place.box.fire("click", { target: { dataset: { shut: "1" } } });
  assert.equal(ended.stopped, 1);
  assert.equal(FakeElement.focused, line("failed-1").box);
});

test("words filter, by part too, and the count is told; other groupings keep the rows", () => {
  const { view, names } = show([row(1, "working"), row(2, "working", { agent: "worker", name: "mend" }), row(3, "failed", { notebook: "b.ipynb" })]);
  view.filter.value = "agent:worker";
  view.draw();
  assert.deepEqual(names(), ["mend"]);
  assert.match(view.section.seen, /1 of 3 shown/);
  view.filter.value = "nowhere";
  view.draw();
  assert.match(view.section.seen, /No run holds these words/);
  view.filter.value = "";
  view.groupBy("notebook");
  assert.match(view.section.seen, /b\.ipynb 1.*a\.ipynb 2/s);
});

test("what is seen goes, what is gone goes, and a kernel that falls silent is told", () => {
  const { model, view, press } = show([row(1, "failed"), row(2, "done")]);
  press("ArrowDown");
  press("e");
  assert.deepEqual(model.sent, [{ kind: "seen", run: RUN(1) }]);
  model.set({ fresh: { seq: 1, rows: {}, gone: [RUN(1)] } });
  pass(0.5);
  assert.equal(view.rows.size, 1);
  pass(16);
  assert.match(view.section.seen, /not answering/);
  model.set({ beat: 9 });
  pass(0.5);
  assert.doesNotMatch(view.section.seen, /not answering/);
});

test("writing in a field is no key of the board; Enter sends it", () => {
  const { model, view, line, press } = show([row(1, "working")]);
  press("ArrowDown");
  press("t");
  const { input } = line("working-1").field;
  assert.equal(FakeElement.focused, input);
  assert.equal(press("s", { tagName: "INPUT" }).stopped, 0);
  input.value = "hurry";
  input.press("Enter");
  assert.deepEqual(model.sent, [{ kind: "steer", run: RUN(1), text: "hurry" }]);
  view.close();
});

test("it stands before the plain table that names its token", () => {
  const place = new FakeElement("div");
  place.className = "feedc0de feedc0de-0";
  place.append(new FakeElement("section"));
  document.body.append(place);
  const model = new FakeModel({ token: "feedc0de", version: 0, rows: keyed([row(1, "working")]), head: {}, fresh: {} });
  const leave = board.initialize({ model });
  assert.match(place.seen, /working-1/);
  leave();
  assert.equal(model.listening, 0);
});
