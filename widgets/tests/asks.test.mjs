// What the page sends to the run: answers and steering. HOSTILE texts of a question are in run.test.mjs.
import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { FakeElement, pass, show, startClock } from "./fake.mjs";

beforeEach(startClock);

const ASKED = { id: "q1", text: "Keep the old name as an alias?", choices: ["yes", "no"] };
const SECOND = { id: "q2", text: "Delete the file?", choices: [] };
const asking = (over = {}) => show({ questions: [ASKED], ...over });
const ack = (to, text, more = {}) => ({ kind: "ack", to, text, ok: true, more: false, ...more });
const input = (node) => node.all().find((one) => one.tag === "input");
const write = (field, text) => Object.assign(field, { value: text });

test("a run that asks says so by word, icon and colour, and shows question, choices and a field with its label", () => {
  const view = asking();
  assert.equal(view.part("sa-state").seen, "asks you");
  assert.equal(view.part("sa-state").className, "sa-state sa-asking");
  assert.ok(view.part("sa-icon-pause"));
  assert.equal(view.section.getAttribute("aria-label"), "Run find-outliers, asks you");
  const [box] = view.questions();
  assert.equal(box.seen, "Keep the old name as an alias?yesnoYour answerAnswer");
  assert.equal(box.getAttribute("aria-label"), "Question: Keep the old name as an alias?");
  assert.equal(input(box).parentNode.tag, "label");
  for (const button of box.all().filter((node) => node.tag === "button")) assert.equal(button.getAttribute("type"), "button");
});

test("a question that was not open at first is spoken with its text, and so is the next", () => {
  const view = show();
  view.model.set({ questions: [ASKED] });
  assert.equal(view.spoken.textContent, "Run find-outliers asks you: Keep the old name as an alias?");
  view.model.set({ questions: [ASKED, SECOND] });
  assert.equal(view.spoken.textContent, "Run find-outliers asks you: Delete the file?");
  view.model.set({ questions: [] });
  assert.equal(view.spoken.textContent, "Run find-outliers is running");
});

test("a question that was open before the view stood on the page is spoken once it does", () => {
  const frames = [];
  globalThis.requestAnimationFrame = (work) => frames.push(work);
  try {
    const view = asking();
    assert.equal(view.spoken.textContent, "", "a live region that comes with its text is not read");
    frames.shift()();
    assert.equal(view.spoken.textContent, "Run find-outliers asks you: Keep the old name as an alias?");
    const quiet = show();
    frames.shift()();
    assert.equal(quiet.spoken.textContent, "");
  } finally {
    delete globalThis.requestAnimationFrame;
  }
});

test("a choice is one press, and Enter in the field is an answer", () => {
  const view = asking();
  view.buttons("no")[0].fire("click");
  assert.deepEqual(view.model.sent, [{ kind: "answer", question: "q1", text: "no" }]);
  const other = asking();
  const field = input(other.questions()[0]);
  write(field, "  only for a year ");
  const event = field.press("Enter");
  assert.deepEqual(other.model.sent, [{ kind: "answer", question: "q1", text: "  only for a year " }]);
  assert.deepEqual([event.stopped, event.prevented], [1, 1]);
  const third = asking();
  write(input(third.questions()[0]), "maybe");
  third.buttons("Answer")[0].fire("click");
  assert.deepEqual(third.model.sent, [{ kind: "answer", question: "q1", text: "maybe" }]);
});

test("an empty answer, an unfinished character and other keys send nothing and stay the host's", () => {
  const view = asking();
  const field = input(view.questions()[0]);
  field.press("Enter");
  write(field, "に");
  for (const event of [field.press("Enter", { isComposing: true }), field.press("Enter", { shiftKey: true }), field.press("Escape"), field.press("a")])
    assert.deepEqual([event.stopped, event.prevented], [0, 0]);
  assert.deepEqual(view.model.sent, []);
});

test("an answer is sent once, keeps the reader's place, and is confirmed", () => {
  const view = asking();
  view.buttons("yes")[0].fire("click");
  view.buttons("yes")[0].fire("click");
  view.buttons("no")[0].fire("click");
  input(view.questions()[0]).press("Enter");
  assert.equal(view.model.sent.length, 1);
  assert.equal(FakeElement.focused, input(view.questions()[0]), "a disabled button would drop the focus");
  view.model.message(ack("answer", "Answered.", { question: "q1" }));
  assert.match(view.questions()[0].seen, /Answered\.$/);
  assert.equal(view.buttons("no")[0].disabled, true, "it is answered");
  view.model.set({ questions: [] });
  assert.deepEqual(view.questions(), []);
  assert.equal(FakeElement.focused, view.tail, "the reader was in it");
  assert.equal(view.part("sa-state").seen, "running");
});

test("an answer that somebody else gave first is said, and another may be tried", () => {
  const view = asking();
  view.buttons("yes")[0].fire("click");
  view.model.message(ack("answer", "Run r-06f3k2m9 has no open question q1; it may have been answered already.", { question: "q1", ok: false }));
  assert.match(view.questions()[0].seen, /may have been answered already/);
  assert.equal(view.buttons("yes")[0].disabled, false);
});

test("without an answer of the kernel in 2 s the view names the other way", () => {
  const view = asking();
  view.buttons("yes")[0].fire("click");
  pass(1.9);
  assert.doesNotMatch(view.body.seen, /busy/);
  pass(0.1);
  assert.match(view.questions()[0].seen, /kernel is busy.*or in a terminal: subagents-nb answer r-06f3k2m9 --question q1 -- '[^']+'$/);
});

test("what is being written survives everything but the end of its question", () => {
  const view = asking();
  const field = input(view.questions()[0]);
  write(field, "half an ans");
  field.focus();
  view.model.set({ questions: [{ ...ASKED }, SECOND], cost: "$1" });
  view.model.message({ kind: "tail", at: 0, text: "text" });
  pass(20);
  view.model.set({ beat: 2 });
  assert.equal(input(view.questions()[0]), field);
  assert.equal(field.value, "half an ans");
  assert.equal(FakeElement.focused, field);
  assert.equal(view.questions().length, 2);
  view.model.set({ questions: [SECOND] });
  assert.match(view.questions()[0].seen, /^Delete the file\?Your answer/, "no choices, no empty row");
});

test("several questions are answered each for itself", () => {
  const view = asking({ questions: [ASKED, SECOND] });
  const [first, second] = view.questions();
  write(input(second), "no, keep it");
  input(second).press("Enter");
  assert.deepEqual(view.model.sent, [{ kind: "answer", question: "q2", text: "no, keep it" }]);
  view.model.message(ack("answer", "Answered.", { question: "q2" }));
  assert.doesNotMatch(first.seen, /Answered/);
  assert.match(second.seen, /Answered/);
  view.model.message(ack("answer", "odd", { question: "constructor" }));
});

test("only a live run asks", () => {
  for (const state of ["paused", "complete", "failed", "queued"]) {
    const view = asking({ state });
    assert.equal(view.questions().length, 0);
    assert.equal(view.part("sa-state").seen, state);
  }
});

test("while it asks, the time that counts stands still and the wait is told", () => {
  const view = asking({ elapsed_s: 42, waited_s: 0.2 });
  assert.match(view.head.seen, /0:42(?!.*waited)/);
  pass(40);
  view.model.set({ beat: 2 });
  assert.match(view.head.seen, /0:42waited 0:40/);
  view.model.set({ questions: [], waited_s: 41 });
  pass(2);
  assert.match(view.head.seen, /0:44waited 0:41/);
});

test("why a run may need a look stands on the page and is spoken once", () => {
  const view = show();
  view.model.set({ attention: "Nothing was heard for 61 s." });
  assert.equal(view.part("sa-attention").seen, "Nothing was heard for 61 s.");
  assert.equal(view.spoken.textContent, "Run find-outliers: Nothing was heard for 61 s.");
  view.spoken.textContent = "";
  view.model.set({ attention: "Nothing was heard for 66 s." });
  assert.equal(view.part("sa-attention").seen, "Nothing was heard for 66 s.");
  assert.equal(view.spoken.textContent, "");
  view.model.set({ attention: "" });
  view.model.set({ attention: "The tool bash is at work for 4 min." });
  assert.equal(view.spoken.textContent, "Run find-outliers: The tool bash is at work for 4 min.");
});

test("a run that waits for its turn says what it waits for", () => {
  const view = show({ state: "queued", reason: "It waits for a free place.", elapsed_s: 0 });
  assert.equal(view.part("sa-state").seen, "queued");
  assert.match(view.body.seen, /^It waits for a free place\./);
});

const opened = (over = {}) => {
  const view = show(over);
  view.buttons("Steer…")[0].fire("click");
  return { ...view, panel: view.part("sa-steer"), field: input(view.part("sa-steer")), steer: view.buttons("Steer…")[0] };
};

test("steering opens a line with its label, and Escape closes it again", () => {
  const { panel, field, steer } = opened();
  assert.equal(panel.seen, "Say to the agentSend");
  assert.equal(steer.getAttribute("aria-expanded"), "true");
  assert.equal(FakeElement.focused, field);
  write(field, "half");
  const event = field.press("Escape");
  assert.equal(event.stopped, 1);
  assert.equal(panel.hidden, true);
  assert.equal(steer.getAttribute("aria-expanded"), "false");
  assert.equal(FakeElement.focused, steer);
  steer.fire("click");
  assert.equal(field.value, "half", "what was written is still there");
  steer.fire("click");
  assert.equal(panel.hidden, true);
});

test("Enter sends; the receipt comes in two words", () => {
  const { model, panel, field } = opened();
  write(field, "look at region too");
  field.press("Enter");
  field.press("Enter");
  assert.deepEqual(model.sent, [{ kind: "steer", text: "look at region too" }]);
  assert.equal(field.value, "");
  assert.equal(field.readOnly, true);
  model.message(ack("steer", "Sent; waiting for the receipt.", { more: true }));
  pass(3);
  assert.match(panel.seen, /waiting for the receipt\.$/);
  assert.equal(field.readOnly, true);
  model.message(ack("steer", "The agent was told."));
  assert.match(panel.seen, /The agent was told\.$/);
  assert.equal(field.readOnly, false);
  write(field, "and quantity");
  field.press("Enter");
  assert.equal(model.sent.length, 2);
});

test("what could not be delivered comes back into the field, unless the next is being written", () => {
  const { model, field } = opened();
  write(field, "look");
  field.press("Enter");
  model.message(ack("steer", "too late", { ok: false }));
  assert.equal(field.value, "look");
  field.press("Enter");
  write(field, "something else");
  model.message(ack("steer", "too late", { ok: false }));
  assert.equal(field.value, "something else");
});

test("a kernel that does not hear a steer leads to the other way", () => {
  const { panel, field } = opened();
  write(field, "look");
  field.press("Enter");
  pass(2);
  assert.match(panel.seen, /kernel is busy.*subagents-nb steer r-06f3k2m9 -- '[^']+'$/);
});

test("only a run at work can be steered", () => {
  for (const state of ["queued", "paused", "complete", "lost"]) assert.equal(show({ state }).buttons("Steer…")[0].hidden, true, state);
  assert.equal(asking().buttons("Steer…")[0].hidden, false);
  const { model, panel, steer } = opened();
  model.set({ stopping: true });
  assert.equal(steer.hidden, true);
  assert.equal(panel.hidden, true);
});

test("keys are listened to in the fields alone", () => {
  const { section } = asking();
  for (const node of section.all())
    for (const event of node.ears.keys()) assert.ok(["click", "scroll"].includes(event) || node.tag === "input", `${node.tag} ${event}`);
});

test("a refused stop frees the button and says why", () => {
  const view = show();
  view.stop.fire("click");
  view.model.message(ack("stop", "Run find-outliers is complete already; there is nothing to stop.", { ok: false }));
  assert.equal(view.stop.seen, "Stop");
  assert.match(view.foot.seen, /nothing to stop/);
});

test("what an idle kernel did not take is sent to it another way, and then the view says so", () => {
  const view = asking({ token: "feedc0de" });
  const sent = [];
  view.model.widget_manager = { kernel: { status: "idle", clientId: "me", sendShellMessage: (message) => sent.push(message) } };
  view.buttons("no")[0].fire("click");
  pass(1.9);
  assert.equal(sent.length, 0);
  pass(0.2);
  assert.deepEqual(sent[0].content, { comm_id: "feedc0de", data: { method: "custom", content: { kind: "answer", question: "q1", text: "no", id: view.model.ids[0] } } });
  assert.equal(sent[0].header.subshell_id, null);
  assert.match(view.questions()[0].seen, /did not arrive though the kernel is idle; sent another way/);
  pass(2);
  assert.equal(sent.length, 1);
  assert.match(view.questions()[0].seen, /did not arrive, though the kernel is idle; in a terminal: subagents-nb answer/);
  view.model.message({ ...ack("answer", "Answered."), question: "q1" });
  assert.doesNotMatch(view.questions()[0].seen, /did not arrive/);
});

test("a busy kernel is not asked twice, nor one that has taken it", () => {
  for (const [status, taken] of [["busy", false], ["idle", true]]) {
    const view = asking({ token: "feedc0de" });
    const sent = [];
    view.model.widget_manager = { kernel: { status, clientId: "me", sendShellMessage: (message) => sent.push(message) } };
    view.buttons("no")[0].fire("click");
    if (taken) view.model.message({ ...ack("answer", "Answered."), question: "q1", id: view.model.ids[0] });
    pass(5);
    assert.equal(sent.length, 0);
  }
});

const CALL = {
  id: "q7", text: "May it run this?", choices: [],
  permission: {
    tool: "bash", reason: "no rule (worker.md) allows `rm x`", for_run: ["rm x"],
    parts: [{ name: "command", kind: "command", text: "ls\nrm <b>x</b>", cut: 0 }],
  },
};
const permit = (over = {}) => show({ questions: [{ ...CALL, permission: { ...CALL.permission, ...over } }] });
const sent = (view) => view.model.sent.map(({ text }) => text);
const press = (view, label) => view.buttons(label)[0].fire("click");

test("a call that waits for a yes is shown as a person reads it, with why and with five answers", () => {
  const [box] = permit().questions();
  assert.ok(box.seen.startsWith("May it run this?1ls2rm <b>x</b>Asked because no rule (worker.md) allows `rm x`."));
  assert.ok(box.seen.includes("For this run: rm x, until it ends."));
  assert.equal(box.all().some((node) => node.tag === "b"), false, "what a model writes is text");
  assert.equal(box.getAttribute("aria-label"), "Question: May it run this?");
  const edit = permit({ tool: "edit", parts: [{ name: "path", kind: "path", text: "a.py", cut: 0 },
    { name: "old_text", kind: "removed", text: "one", cut: 0 }, { name: "new_text", kind: "added", text: "two\nthree", cut: 7 }] });
  assert.ok(edit.questions()[0].seen.includes("path a.py−one+two+three7 more characters are not shown: see run.questions, or subagents-nb status"));
});

test("a long call says how long it is beside what scrolls, for who sees no scrollbar", () => {
  const text = Array.from({ length: 400 }, (_, i) => `line ${i}`).join("\n");
  const [box] = permit({ tool: "write", parts: [{ name: "content", kind: "added", text, cut: 9000 }] }).questions();
  const [part] = box.getElementsByClassName("sa-part"), [said] = box.getElementsByClassName("sa-cut");
  assert.equal(part.tag, "div", "a host has styles of its own for pre");
  assert.equal(part.contains(said), false);
  assert.match(said.seen, /^400 lines, scroll to read them · 9,000 more characters are not shown/);
  assert.deepEqual([part.getAttribute("tabindex"), part.getAttribute("aria-label")], ["0", "content"]);
  const [few] = permit().questions()[0].getElementsByClassName("sa-part");
  assert.deepEqual([few.getAttribute("tabindex"), permit().questions()[0].getElementsByClassName("sa-cut").length], [null, 0]);
});

test("Escape closes what is written in, and the numbers answer again", () => {
  for (const [key, label] of [["3", "With other arguments…3"], ["4", "No, and why…4"]]) {
    const view = permit(), [box] = view.questions();
    box.press(key);
    const target = key === "3" ? box.all().find((node) => node.tag === "textarea") : input(box);
    target.value = "half a thought";
    assert.equal(box.press("5", { target }).prevented, 0, "it is written, not pressed");
    assert.equal(box.press("Escape", { target, isComposing: true }).stopped, 0);
    assert.equal(box.press("Escape", { target }).stopped, 1);
    assert.equal(FakeElement.focused, view.buttons(label)[0]);
    assert.deepEqual(sent(view), []);
    box.press(key);
    assert.equal(target.value, "half a thought", "what was written stays");
  }
});

test("each of the five answers is a press, or its number where nobody writes", () => {
  for (const [label, answer, key] of [["Once1", "once", "1"], ["For this run2", "for this run", "2"], ["Stop the run5", "stop", "5"]]) {
    const view = permit();
    press(view, label);
    assert.deepEqual(sent(view), [answer]);
    const keyed = permit();
    const event = keyed.questions()[0].press(key);
    assert.deepEqual([sent(keyed), event.prevented, event.stopped], [[answer], 1, 1]);
  }
  const no = permit();
  no.questions()[0].press("4");
  write(input(no.questions()[0]), "not on a Friday").press("Enter");
  assert.deepEqual(sent(no), ["no: not on a Friday"]);
  const other = permit();
  other.questions()[0].press("3");
  const area = other.questions()[0].all().find((node) => node.tag === "textarea");
  assert.equal(area.value, "ls\nrm <b>x</b>");
  write(area, "ls");
  press(other, "Run it with these");
  assert.deepEqual(sent(other), ['with {"command":"ls"}']);
});

test("an answer is sent once, and what was cut can not be changed", () => {
  const view = permit({ parts: [{ name: "command", kind: "command", text: "ls", cut: 3 }] });
  const change = view.buttons("With other arguments…3")[0];
  assert.equal(change.disabled, true);
  view.questions()[0].press("3");
  press(view, "Once1");
  view.questions()[0].press("2");
  assert.deepEqual(sent(view), ["once"]);
});
