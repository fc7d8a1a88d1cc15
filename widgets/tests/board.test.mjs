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
  globalThis[Symbol.for("subagents_nb.asking")].clear(); // boards that other tests left
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
  assert.match(view.strip.seen, /^2 asked to stop: working-2, working-1Clear/);
  press("Escape");
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
  assert.match(view.section.seen, /no more listed/); // the reader is in it: the keys must not come to mean another
  press("e");
  assert.equal(model.sent.length, 2);
  FakeElement.focused = null;
  pass(1);
  assert.equal(view.rows.size, 1);
  pass(60);
  assert.doesNotMatch(view.section.seen, /not answering/); // an idle kernel has nothing to say
  assert.match(view.section.seen, /updated 61 s ago/); // of a host that does not tell how its kernel is
  model.widget_manager = { kernel: { status: "idle", connectionStatus: "connected" } };
  pass(60);
  assert.doesNotMatch(view.section.seen, /not answering/);
  assert.match(view.section.seen, /updated just now/);
  model.widget_manager.kernel.status = "busy"; // now it says a beat every few seconds
  pass(14);
  assert.doesNotMatch(view.section.seen, /not answering/);
  pass(3);
  assert.match(view.section.seen, /not answering/);
  model.set({ beat: 9 });
  pass(0.5);
  assert.doesNotMatch(view.section.seen, /not answering/);
  model.widget_manager.kernel.status = "dead";
  pass(1);
  assert.match(view.section.seen, /not answering/);
  pass(43);
  assert.match(view.section.seen, /updated 4\d s ago/);
});

test("what is stopped together is what is selected and in sight, and the count says so before", () => {
  const { model, view, press, line } = show([row(1, "working"), row(2, "working", { agent: "worker" }), row(3, "working", { agent: "worker" }), row(4, "done")]);
  for (const one of view.rows.values()) view.pick(one);
  view.filter.value = "agent:worker";
  view.draw();
  assert.match(view.strip.seen, /4 selected, 2 not in sight and left aloneStop 2/);
  press("s");
  assert.deepEqual(model.sent.map((one) => one.run), [RUN(3), RUN(2)]);
  assert.deepEqual([...view.picked], [RUN(1), RUN(4)]);
  view.filter.value = "";
  view.draw();
  assert.match(view.strip.seen, /2 selected, 1 not in sight and left aloneStop 1/); // what is folded is not in sight either
  assert.equal(line("working-1").box_.checked, true);
});

test("all of one agent are stopped by four actions: the filter, into the rows, select all in sight, stop", () => {
  const { model, view, press, names } = show([row(1, "working"), ...[2, 3, 4].map((n) => row(n, "working", { agent: "worker" })), row(5, "done", { agent: "worker" })]);
  press("/");
  view.filter.value = "agent:worker";
  view.filter.tagName = "INPUT";
  press("Enter", view.filter);
  assert.deepEqual(names(), ["working-4", "working-3", "working-2"]);
  press("X");
  assert.match(view.strip.seen, /3 selectedStop 3/);
  press("s");
  assert.deepEqual(model.sent.map((one) => one.run), [RUN(4), RUN(3), RUN(2)]);
  assert.match(view.strip.seen, /3 asked to stop: working-4, working-3, working-2/);
  press("X");
  press("X");
  assert.equal(view.picked.size, 0); // all were selected
  const group = [...view.groups.values()].find((one) => one.label.textContent === "working");
  group.all.fire("click");
  assert.equal(view.picked.size, 3);
});

test("the groupings are one tab stop, and arrows go through them", () => {
  const { view, press } = show([row(1, "working")]);
  const stops = () => view.by_.filter((button) => button.getAttribute("tabindex") === "0").map((button) => button.textContent);
  assert.deepEqual(stops(), ["need"]);
  press("ArrowRight", view.by_[0]);
  assert.deepEqual([view.by, stops(), FakeElement.focused], ["agent", ["agent"], view.by_[1]]);
  press("ArrowLeft", view.by_[1]);
  press("ArrowLeft", view.by_[0]);
  assert.equal(view.by, "day");
});

test("a kernel that is gone throws nothing at the page: what was asked says what to type, and what was written is kept", () => {
  const { model, view, press, line } = show([asking(1, 60), row(2, "failed")]);
  model.send = () => { throw new Error("Cannot send"); };
  for (const ear of [...model.ears.get("comm_live_update")]) ear();
  line("failed-2").openButton.fire("click");
  assert.match(line("failed-2").box.seen, /Reading…/);
  pass(5);
  assert.match(line("failed-2").box.seen, new RegExp(`not answering. In a terminal: subagents-nb status ${RUN(2)}`));
  press("Escape");
  line("asks-1").box.focus();
  press("w", line("asks-1").box);
  const { input } = line("asks-1").field;
  input.value = "it's the second";
  input.press("Enter");
  pass(3);
  assert.match(line("asks-1").box.seen, /not answering; in a terminal: subagents-nb answer r-0+1 --question q1 -- 'it'\\''s the second'/);
  press("w", line("asks-1").box);
  assert.equal(input.value, "it's the second");
});

test("what ended last stands first among what is done", () => {
  const at = (n, hour) => row(n, "done", { ended: `2026-11-30T${hour}:00:00Z` });
  const { view, names } = show([at(1, 12), at(2, 10), at(3, 11)]);
  view.groups.get("need:done").fold(false);
  assert.deepEqual(names(), ["done-1", "done-3", "done-2"]);
});

test("a row says once what its run does", () => {
  const said = "Nothing was heard for 9 min.";
  const { line } = show([row(1, "working", { now: said, attention: said }), row(2, "working", { now: "stopping", attention: said })]);
  assert.equal(line("working-1").now.textContent, said);
  assert.equal(line("working-2").now.textContent, `stopping · ${said}`);
});

test("a failure that is read in place keeps its place when it counts as seen", () => {
  const { model, view, line } = show([row(1, "failed"), row(2, "working")]);
  line("failed-1").openButton.fire("click");
  FakeElement.focused = null;
  model.set({ fresh: { seq: 1, rows: keyed([row(1, "done", { name: "failed-1" })]), gone: [] } });
  pass(1);
  assert.equal(view.shown[0], line("failed-1"));
  view.shut();
  pass(1);
  assert.equal(view.shown.includes(line("failed-1")), false); // done is folded
});

test("a heading counts what it says, also while the hand keeps other rows below it", () => {
  const { model, view, line } = show([asking(1, 60), asking(2, 5)], { head: { taken: 1, limit: 8, today: 1 } });
  assert.match(view.section.seen, /today 1 run(?!s)/);
  line("asks-1").box.focus();
  model.set({ fresh: { seq: 1, rows: keyed([row(1, "done", { name: "asks-1" })]), gone: [] } });
  pass(1);
  assert.match(view.section.seen, /asks you 1 oldest first · 1 no longer/);
  line("asks-2").box.focus();
  pass(6);
  assert.match(view.section.seen, /asks you 1 oldest first(?! ·)/);
});

test("several failures are seen together", () => {
  const { model, view, press } = show([row(1, "failed"), row(2, "failed"), row(3, "working")]);
  for (const one of view.rows.values()) view.pick(one);
  view.draw();
  assert.match(view.strip.seen, /Stop 1Seen 2/);
  press("e");
  assert.deepEqual(model.sent, [{ kind: "seen", run: RUN(2) }, { kind: "seen", run: RUN(1) }]);
});

test("while the hand is at the rows they keep their order, and what comes stands below; afterwards they move", () => {
  const { model, view, names } = show([row(1, "working"), row(2, "working"), row(3, "waiting")]);
  view.body.fire("pointermove");
  model.set({ fresh: { seq: 1, rows: keyed([row(4, "working"), asking(1, 5, { name: "working-1" })]), gone: [] } });
  pass(0.5);
  assert.deepEqual(names(), ["working-2", "working-1", "working-4", "waiting-3"]);
  view.body.fire("pointerleave");
  pass(1);
  assert.deepEqual(names(), ["working-1", "working-4", "working-2", "waiting-3"]);
  view.body.fire("pointermove");
  model.set({ fresh: { seq: 2, rows: keyed([row(1, "done", { name: "working-1" })]), gone: [] } });
  pass(1);
  assert.deepEqual(names(), ["working-1", "working-4", "working-2", "waiting-3"]);
  pass(6); // a pointer that lies there for ever holds nothing
  assert.deepEqual(names(), ["working-4", "working-2", "waiting-3"]);
});

test("a click on a row that came under the pointer a moment ago is dropped; the list scrolls so that few do", () => {
  const { model, view, line } = show([row(1, "working"), row(2, "working")]);
  const click = (name) => view.body.fire("click", { target: line(name).stopButton, detail: 1 });
  pass(1);
  assert.equal(click("working-1").stopped, 0);
  model.set({ fresh: { seq: 1, rows: keyed([asking(3, 5)]), gone: [] } });
  view.draw();
  assert.equal(click("working-1").stopped, 1);
  assert.equal(view.body.fire("click", { target: line("working-1").stopButton, detail: 0 }).stopped, 0); // by a key
  pass(0.5);
  assert.equal(click("working-1").stopped, 0);
  line("working-2").box.fire("pointerenter");
  view.body.fire("pointerenter");
  model.set({ fresh: { seq: 2, rows: keyed([asking(4, 9)]), gone: [] } });
  view.draw();
  assert.equal(view.body.scrollTop, 28);
  assert.equal(click("working-2").stopped, 0); // it stands where it stood
  model.set({ fresh: { seq: 3, rows: keyed([asking(3, 1, { question: { id: "q9", text: "And?", choices: ["all", "none"] } })]), gone: [] } });
  assert.equal(click("asks-3").stopped, 1); // other answers stand there now
});

test("two boards have one count in the title, each run once; one whose kernel is gone counts nothing", () => {
  const [first, second] = [show([asking(1, 5), asking(2, 5)]), show([asking(2, 5), asking(3, 5)])];
  assert.equal(document.title, "(3 ask) prices.ipynb");
  first.view.draw();
  assert.equal(document.title, "(3 ask) prices.ipynb");
  for (const ear of first.model.ears.get("comm_live_update")) ear();
  first.view.draw();
  assert.equal(document.title, "(2 ask) prices.ipynb");
  assert.match(first.view.section.seen, /goes on once %load_ext subagents_nb/);
  first.view.close();
  second.view.close();
  assert.equal(document.title, "prices.ipynb");
});

test("what is pressed with a modifier reaches JupyterLab; what is typed, edited or pressed alone does not", () => {
  const { view, line } = show([row(1, "working")]);
  const MARK = "data-lm-suppress-shortcuts";
  const reaches = (key, target, more = { ctrlKey: true }) => {
    view.hand.letPass({ key, target, ...more });
    const open = view.section.getAttribute(MARK) === null;
    pass(0.1);
    assert.equal(view.section.getAttribute(MARK), "true"); // it is asked for at once, and stands again afterwards
    return open;
  };
  const [box, input] = [line("working-1").box, Object.assign(line("working-1").field.input, { tagName: "INPUT", type: "text" })];
  assert.ok(reaches("s", box));
  assert.ok(reaches("s", input, { metaKey: true }));
  assert.ok(reaches("c", box));
  assert.ok(!reaches("c", input));
  assert.ok(!reaches("Enter", input));
  assert.ok(!reaches("s", box, {}));
  assert.ok(!reaches("@", input, { ctrlKey: true, altKey: true, getModifierState: () => true }));
  assert.ok(!reaches("s", document.body));
});

test("a call of a run below names it", () => {
  const permission = { tool: "bash", asker: "scout-1", reason: "r", for_run: [], parts: [{ name: "command", kind: "command", text: "ls", cut: 0 }] };
  const { line } = show([asking(1, 5, { question: { id: "scout-1/q", text: "May it?", choices: [], permission } })]);
  assert.match(line("asks-1").box.seen, /scout-1: may it call bash: ls/);
});

test("runs are grouped by tag, and those that wait say who holds the places", () => {
  const { model, view } = show([row(1, "working", { tag: "night" }), row(2, "waiting"), asking(3, 5)]);
  assert.doesNotMatch(view.section.seen, /places are taken,/);
  model.set({ head: { taken: 8, limit: 8 } });
  view.draw();
  assert.match(view.section.seen, /all 8 places are taken, 1 of them by runs that ask you; more places: max_live_runs/);
  view.groupBy("tag");
  assert.match(view.section.seen, /none 2.*night 1/s);
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
