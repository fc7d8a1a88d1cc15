import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import widget from "../run.js";
import { FakeElement, FakeModel, FakeText, pass, show, startClock } from "./fake.mjs";

beforeEach(startClock);

const STATES = ["queued", "running", "paused", "complete", "partial", "failed", "stopped", "rejected", "lost"];
const ENDED = ["complete", "partial", "failed", "stopped", "rejected", "lost"];

test("the head says what it is, who does it, how long and how much", () => {
  const { head } = show({ refusals: 0 });
  assert.match(head.seen, /^running\s*find-outliers\s*scout · anthropic:claude-sonnet\s*0:42\s*12\.4k \/ 861 tokens\s*\$0\.051$/);
});

test("numbers are short and never fake", () => {
  const tokens = (n) => show({ tokens_in: n, tokens_out: 1600 }).head.seen;
  assert.match(tokens(999), /999 \/ 1\.6k tokens/);
  assert.match(tokens(99_960), /100k \/ /);
  assert.match(tokens(141_000), /141k \/ /);
  assert.match(tokens(999_999), /1\.0M \/ /);
  const queued = show({ state: "queued", elapsed_s: 0, tokens_in: 0, tokens_out: 0, cost: "" });
  assert.doesNotMatch(queued.head.seen, /0:00|tokens|\$/);
  assert.match(show({ elapsed_s: 3725 }).head.seen, /1:02:05/);
});

test("a run without a name goes by its id", () => assert.match(show({ name: "" }).head.seen, /r-06f3k2m9/));

test("each state has its own icon and its word", () => {
  const icons = STATES.map((state) => {
    const { part, section } = show({ state });
    assert.equal(part("sa-state").seen, state);
    assert.ok(part("sa-state").className.includes(`sa-${state}`));
    assert.equal(section.getAttribute("aria-label"), `Run find-outliers, ${state}`);
    return part("sa-icon").className;
  });
  assert.equal(new Set(icons).size, STATES.length);
});

test("a state this page does not know is shown by its word and gets no class of its own", () => {
  const { part } = show({ state: 'odd" onload' });
  assert.equal(part("sa-state").seen, 'odd" onload');
  assert.equal(part("sa-state").className, "sa-state sa-queued");
  assert.equal(show({ state: "constructor" }).part("sa-state").className, "sa-state sa-queued");
});

test("refusals stand in the head, in the warning colour, only when there are some", () => {
  const view = show();
  assert.doesNotMatch(view.head.seen, /refused/);
  view.model.set({ refusals: 2 });
  assert.match(view.head.seen, /2 refused/);
  assert.equal(view.part("sa-refused").textContent, "2 refused");
});

test("elapsed time is the kernel's plus the page's own seconds while running", () => {
  const view = show();
  pass(3);
  assert.match(view.head.seen, /0:45/);
  view.model.set({ beat: 2 }); // a beat alone tells no time and must not turn the clock back
  assert.match(view.head.seen, /0:45/);
  view.model.set({ elapsed_s: 60 });
  assert.match(view.head.seen, /1:00/);
  view.model.set({ state: "paused", elapsed_s: 61 });
  pass(5);
  assert.match(view.head.seen, /1:01/);
  view.model.set({ state: "running" });
  pass(2);
  assert.match(view.head.seen, /1:03/);
});

test("the foot says how old the view is", () => {
  const view = show();
  assert.match(view.foot.seen, /updated just now/);
  pass(7);
  assert.match(view.foot.seen, /updated 7 s ago/);
  view.model.set({ beat: 2 });
  assert.match(view.foot.seen, /updated just now/);
  pass(180);
  assert.match(view.foot.seen, /updated 3 min ago/);
});

for (const state of ["queued", "running", "paused"])
  test(`a ${state} view turns stale after 15 s of silence and says where to look`, () => {
    const view = show({ state });
    pass(14);
    assert.equal(view.stale.hidden, true);
    pass(2);
    assert.equal(view.stale.hidden, false);
    assert.match(view.stale.seen, /kernel is not answering.*run itself may well go on.*%subagent_attach r-06f3k2m9/);
    assert.equal(view.part("sa-state").seen, "stale");
    assert.equal(view.section.dataset.moving, "false");
  });

test("a stale view recovers by itself at a beat, a trait or a message", () => {
  const lives = [(m) => m.set({ beat: 9 }), (m) => m.set({ cost: "$1" }), (m) => m.message({ kind: "tail", at: 0, text: "x" })];
  for (const live of lives) {
    const view = show();
    pass(16);
    live(view.model);
    assert.equal(view.stale.hidden, true);
    assert.equal(view.part("sa-state").seen, "running");
    assert.equal(view.section.dataset.moving, "true");
    pass(14);
    assert.equal(view.stale.hidden, true);
  }
});

test("a stale view counts no seconds it cannot know", () => {
  const view = show();
  pass(40);
  assert.match(view.head.seen, /0:42/);
});

test("an ended view never turns stale and runs no timer", () => {
  for (const state of ENDED) {
    const view = show({ state });
    const { reads } = view.model;
    pass(60);
    assert.equal(view.model.reads, reads);
    assert.equal(view.stale.hidden, true);
  }
});

test("the stop button sends one message and says so", () => {
  const view = show();
  assert.equal(view.stop.tag, "button");
  assert.equal(view.stop.getAttribute("type"), "button");
  assert.equal(view.stop.seen, "Stop");
  view.stop.fire("click");
  view.stop.fire("click");
  assert.deepEqual(view.model.sent, [{ kind: "stop" }]);
  assert.equal(view.stop.disabled, true);
  assert.equal(view.stop.seen, "Stop requested");
  assert.equal(FakeElement.focused, view.tail, "a keyboard reader keeps the place");
});

test("without an answer in 2 s the view names the other way", () => {
  const view = show();
  view.stop.fire("click");
  pass(1.9);
  assert.doesNotMatch(view.foot.seen, /busy/);
  pass(0.1);
  assert.match(view.foot.seen, /kernel is busy; the request is sent when the cell ends — or in a terminal: subagents-nb stop r-06f3k2m9/);
  view.model.message({ kind: "ack", text: "stop recorded" });
  assert.doesNotMatch(view.foot.seen, /busy/);
  assert.match(view.foot.seen, /stop recorded/);
});

test("an ack, a recorded stop or a new state is an answer", () => {
  for (const answer of [(m) => m.message({ kind: "ack", text: "noted" }), (m) => m.set({ stopping: true }), (m) => m.set({ state: "paused" })]) {
    const view = show();
    view.stop.fire("click");
    answer(view.model);
    pass(3);
    assert.doesNotMatch(view.foot.seen, /busy/);
  }
});

test("a busy kernel that is silent for long is said to be silent, not busy", () => {
  const view = show();
  view.stop.fire("click");
  pass(16);
  assert.match(view.foot.seen, /not answering; in a terminal: subagents-nb stop r-06f3k2m9/);
});

test("a stop recorded elsewhere shows at once, and a stop taken back frees the button", () => {
  const view = show({ stopping: true });
  assert.equal(view.stop.seen, "Stop requested");
  assert.equal(view.stop.disabled, true);
  view.model.set({ stopping: false });
  assert.equal(view.stop.seen, "Stop");
  view.stop.fire("click");
  view.model.set({ stopping: true });
  assert.equal(view.stop.disabled, true);
  view.model.set({ stopping: false });
  assert.equal(view.stop.seen, "Stop");
  assert.equal(view.stop.disabled, false);
});

test("the receipt of a stop goes with the run's end, whichever of both comes first", () => {
  for (const late of [false, true]) {
    const view = show();
    view.stop.fire("click");
    const ack = () => view.model.message({ kind: "ack", to: "stop", text: "Stop requested." });
    if (!late) ack();
    view.model.set({ state: "stopped" });
    if (late) ack();
    assert.doesNotMatch(view.foot.seen, /Stop requested/);
  }
});

test("a closed connection still leads to the other way", () => {
  const view = show();
  view.model.send = () => { throw new Error("closed"); };
  view.stop.fire("click"); // nothing is thrown at the page
  pass(2);
  assert.match(view.foot.seen, /subagents-nb stop r-06f3k2m9/);
});

test("text comes as text nodes that are appended, never rewritten", () => {
  const view = show({ tail: "one ", tail_end: 4 });
  const [first] = view.part("sa-text").childNodes.filter((kid) => kid instanceof FakeText);
  view.model.message({ kind: "tail", at: 4, text: "two " });
  view.model.message({ kind: "tail", at: 8, text: "three" });
  const nodes = view.part("sa-text").childNodes.filter((kid) => kid instanceof FakeText);
  assert.deepEqual(nodes.map((node) => node.data), ["one ", "two ", "three"]);
  assert.equal(nodes[0], first);
});

test("text that is already there is not shown twice", () => {
  const view = show({ tail: "abcdef", tail_end: 6 });
  view.model.message({ kind: "tail", at: 2, text: "cdef" });
  view.model.message({ kind: "tail", at: 4, text: "efgh" });
  assert.equal(view.text(), "abcdefgh");
  view.model.set({ tail: "efghij", tail_end: 10 });
  assert.equal(view.text(), "abcdefghij");
  view.model.set({ tail: "gh", tail_end: 8 }); // late
  assert.equal(view.text(), "abcdefghij");
});

test("a gap is not papered over: text waits for the trait", () => {
  const view = show({ tail: "abc", tail_end: 3 });
  view.model.message({ kind: "tail", at: 5, text: "fgh" });
  assert.equal(view.text(), "abc");
  view.model.set({ tail: "abcdefgh", tail_end: 8 });
  assert.equal(view.text(), "abcdefgh");
  assert.equal(view.part("sa-cut").hidden, true);
  view.model.set({ tail: "xyz", tail_end: 1503 });
  assert.equal(view.text(), "xyz");
  assert.equal(view.part("sa-cut").seen, "… 1,500 earlier characters");
});

test("offsets count characters as Python does, not UTF-16 units", () => {
  const view = show({ tail: "a😀b", tail_end: 3 });
  view.model.message({ kind: "tail", at: 3, text: "😀c" });
  view.model.message({ kind: "tail", at: 4, text: "cd" });
  assert.equal(view.text(), "a😀b😀cd");
});

test("a tail and its end may arrive one after the other", () => {
  const view = show({ tail: "ab", tail_end: 2 });
  view.model.set({ tail: "abcd" });
  view.model.set({ tail_end: 4 });
  assert.equal(view.text(), "abcd");
});

test("while there is no text it says for what it waits", () => {
  const view = show({ silent: "The local model is being loaded; nothing was sent to it yet." });
  assert.equal(view.tail.dataset.silent, "The local model is being loaded; nothing was sent to it yet.");
  view.model.set({ silent: "" });
  assert.equal(view.tail.dataset.silent, "no text yet");
});

test("odd messages change nothing", () => {
  const view = show({ tail: "ab", tail_end: 2 });
  for (const odd of [null, "x", {}, { kind: "tail" }, { kind: "tail", at: "2", text: "x" }, { kind: "tail", at: NaN, text: "x" }])
    view.model.message(odd);
  assert.equal(view.text(), "ab");
});

test("an escape sequence cut in two by the stream leaves no rest", () => {
  const view = show();
  let at = 0;
  for (const text of ["red \x1b[3", "1mword\x1b", "[0m end\r", "\nnext"]) {
    view.model.message({ kind: "tail", at, text });
    at += text.length;
  }
  assert.equal(view.text(), "red word end\nnext");
});

test("at most 8000 characters stay on the page and the cut says how much is gone", () => {
  const view = show();
  for (let at = 0; at < 20_000; at += 500) {
    view.model.message({ kind: "tail", at, text: `${at}`.padEnd(500, ".") });
    const { length } = view.text();
    assert.ok(length <= 8000 && length >= Math.min(4000, at), String(length));
  }
  const shown = view.text().length;
  assert.equal(view.part("sa-cut").seen, `… ${(20_000 - shown).toLocaleString("en-US")} earlier characters`);
  assert.equal(view.part("sa-cut").hidden, false);
  assert.ok(view.part("sa-text").childNodes[0] === view.part("sa-cut"));
  assert.ok(view.text().endsWith("19500".padEnd(500, ".")));
});

test("a node whose text is the same is left alone", () => {
  const view = show();
  const [title] = view.part("sa-title").childNodes;
  view.model.set({ cost: "$0.06" });
  pass(2);
  assert.equal(view.part("sa-title").childNodes[0], title);
});

test("the tool list shows the last five with icon, name, arguments and seconds", () => {
  const tool = (n) => ({ name: `tool${n}`, args: `arg ${n}`, state: "complete", seconds: n / 10 });
  const view = show({ tools: [1, 2, 3, 4, 5, 6].map(tool) });
  assert.equal(view.tools.childNodes.length, 5);
  assert.match(view.tools.childNodes[0].seen, /tool2arg 20\.2 s/);
  const [row] = view.tools.childNodes;
  assert.equal(row.one("sa-tool").title, "tool2", "a name that is cut is told whole");
  view.model.set({ tools: [2, 3, 4, 5, 7].map(tool) });
  assert.equal(view.tools.childNodes[0], row);
  assert.match(view.tools.childNodes[4].seen, /tool7/);
  view.model.set({ tools: [tool(1)] });
  assert.equal(view.tools.childNodes.length, 5, "rows keep their room, so nothing below moves");
  assert.deepEqual(view.tools.childNodes.map((li) => li.style.visibility), ["", "hidden", "hidden", "hidden", "hidden"]);
});

test("tool states are words and icons, and a running tool counts", () => {
  const states = ["running", "complete", "failed", "refused"];
  const view = show({ tools: states.map((state) => ({ name: "t", args: "a", state, seconds: state === "refused" ? null : 1 })) });
  const icons = view.tools.childNodes.map((li) => li.one("sa-icon").className);
  assert.equal(new Set(icons).size, 4);
  view.tools.childNodes.forEach((li, i) => assert.ok(li.textContent.includes(states[i])));
  assert.match(view.tools.childNodes[2].seen, /failed · 1\.0 s/);
  assert.match(view.tools.childNodes[3].seen, /refused$/);
  const before = view.tools.childNodes[0].one("sa-icon");
  pass(2);
  assert.match(view.tools.childNodes[0].seen, /3\.0 s/);
  assert.match(view.tools.childNodes[1].seen, /1\.0 s/);
  assert.equal(view.tools.childNodes[0].one("sa-icon"), before, "the same icon is not drawn again");
  assert.equal(show({ tools: null, questions: null }).tools.childNodes.length, 0);
  show({ tools: [null, 3, {}] });
});

test("meters say their limits to everyone, and nothing where no limit is known", () => {
  const view = show({ elapsed_s: 42, tool_calls: 3 });
  const [deadline, calls] = view.bars();
  assert.deepEqual(["aria-label", "aria-valuemin", "aria-valuemax", "aria-valuenow", "aria-valuetext"].map((a) => deadline.getAttribute(a)),
    ["deadline", "0", "1800", "42", "29:18 left"]);
  assert.deepEqual(["aria-valuemax", "aria-valuenow", "aria-valuetext"].map((a) => calls.getAttribute(a)), ["40", "3", "3 of 40"]);
  assert.match(view.part("sa-meters").seen, /deadline 29:18 left.*tools 3 of 40/);
  pass(10);
  assert.equal(deadline.getAttribute("aria-valuenow"), "52");
  view.model.set({ deadline_s: null, tool_limit: null });
  assert.equal(view.bars().length, 0);
  assert.equal(view.part("sa-meters").seen, "tools 3");
  view.model.set({ tool_calls: 0 });
  assert.equal(view.part("sa-meters").hidden, true);
});

test("a usage budget has a meter: what was used of what, and how much of the whole that is", () => {
  const view = show({ spend: "4,500 of 5,000 tokens", spent: 0.9 });
  assert.match(view.part("sa-meters").seen, /budget 4,500 of 5,000 tokens/);
  assert.equal(view.bars()[2].getAttribute("aria-valuenow"), "90");
  assert.ok(view.part("sa-near"));
  view.model.set({ spend: "an unknown cost of $2", spent: null });
  assert.match(view.part("sa-meters").seen, /budget an unknown cost of \$2/);
  assert.equal(view.bars().length, 2);
});

test("a meter warns near its limit and never goes beyond it", () => {
  const view = show({ elapsed_s: 1795, tool_calls: 41, tool_limit: 40 });
  assert.ok(view.part("sa-near"));
  pass(8);
  assert.match(view.part("sa-meters").seen, /deadline passed/);
  for (const bar of view.bars()) {
    assert.equal(bar.getAttribute("aria-valuenow"), bar.getAttribute("aria-valuemax"));
    assert.equal(bar.childNodes[0].style.width, "100%");
  }
  assert.equal(show({ tool_calls: 0, tool_limit: 0 }).bars()[1].childNodes[0].style.width, "100%");
});

test("the status line speaks state changes and nothing else", () => {
  const view = show();
  assert.equal(view.spoken.getAttribute("aria-live"), "polite");
  assert.equal(view.spoken.className, "sa-hide");
  view.model.message({ kind: "tail", at: 0, text: "text" });
  view.model.set({ tool_calls: 4, cost: "$2", tools: [{ name: "t", args: "", state: "running", seconds: 1 }] });
  view.model.message({ kind: "ack", text: "noted" });
  pass(5);
  assert.equal(view.spoken.textContent, "");
  view.model.set({ state: "paused" });
  assert.equal(view.spoken.textContent, "Run find-outliers is paused");
  pass(16);
  assert.equal(view.spoken.textContent, "Run find-outliers: the kernel is not answering");
  view.model.set({ beat: 2 });
  assert.equal(view.spoken.textContent, "Run find-outliers is paused");
});

test("an ended view leads with the reason, keeps its text and says how to get the result", () => {
  for (const state of ["failed", "lost", "stopped", "rejected", "partial"]) {
    const view = show({ tail: "last words", tail_end: 10 });
    view.model.set({ state, error: "The run passed its deadline.", reason: "Two files were kept." });
    assert.match(view.body.seen, /^The run passed its deadline\.Two files were kept\./, state);
    assert.ok(view.part("sa-say").className.includes(`sa-${state}`) || view.part("sa-say") === view.stale);
    assert.equal(view.text(), "last words");
    assert.equal(view.stop.hidden, true);
    assert.match(view.foot.seen, /again: subagents_nb\.attach\("find-outliers"\)/);
    assert.doesNotMatch(view.foot.seen, /updated|busy/);
    assert.equal(view.section.dataset.live, "false");
  }
});

test("without a reason an ended view still says what happened in plain words", () => {
  for (const state of ["failed", "lost", "stopped", "rejected", "partial"]) assert.match(show({ state }).body.seen, /^The run .+\./, state);
  assert.doesNotMatch(show({ state: "complete" }).body.seen, /The run/);
  assert.match(show({ state: "paused", reason: "It asks you." }).body.seen, /^It asks you\./);
});

test("a live view shows no attach line, and its note when there is one", () => {
  const view = show({ note: "local model, because no key is set" });
  assert.doesNotMatch(view.foot.seen, /again/);
  assert.match(view.body.seen, /local model, because no key is set$/);
});

test("how the launch came by the run is said in a quiet line of its own, as text, and never spoken", () => {
  const said = "reused: it was at work already (launched 2 minutes ago)";
  const view = show({ note: "local model", reused: said });
  assert.match(view.body.seen, /local modelreused: it was at work already \(launched 2 minutes ago\)$/);
  const line = view.body.all().find((node) => node.textContent === said);
  assert.equal(line.className, "sa-note");
  view.model.set({ reused: "reused: <img src=x>\u202e\n and more" });
  assert.equal(line.textContent, "reused: <img src=x>\u2426 and more");
  assert.equal(line.childNodes.length, 1);
  view.model.set({ reused: "" });
  assert.match(view.body.seen, /local model$/);
  assert.equal(view.spoken.textContent, "");
});

test("an ended run that goes on is live again", () => {
  const view = show({ state: "failed" });
  view.model.set({ state: "running" });
  assert.equal(view.stop.hidden, false);
  pass(2);
  assert.match(view.head.seen, /0:44/);
});

test("the attach line quotes the name", () => {
  assert.ok(show({ state: "complete", name: 'a"b\\' }).foot.seen.includes('subagents_nb.attach("a\\"b\\\\")'));
  assert.ok(show({ state: "complete", name: "" }).foot.seen.includes('subagents_nb.attach("r-06f3k2m9")'));
});

for (const [way, end] of [["abort", (view) => view.abort.abort()], ["the returned function", (view) => view.close()]])
  test(`${way} takes away every listener and timer`, () => {
    const view = show();
    view.stop.fire("click");
    assert.ok(view.model.listening > 20);
    end(view);
    end(view);
    assert.equal(view.model.listening, 0);
    const { reads } = view.model;
    pass(30);
    assert.equal(view.model.reads, reads);
    view.stop.disabled = false;
    view.stop.fire("click"); // on a view that is on its way out: no timer goes on
    pass(3);
    const after = view.model.reads;
    pass(30);
    assert.equal(view.model.reads, after);
  });

test("it works in a host without signal, and with one that is over already", () => {
  const model = new FakeModel();
  const close = widget.render({ model, el: new FakeElement("div") });
  close();
  assert.equal(model.listening, 0);
  widget.render({ model, el: new FakeElement("div"), signal: AbortSignal.abort() });
  assert.equal(model.listening, 0);
});

const HOSTILE = [
  "<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "<svg/onload=alert(1)>", "</pre></section><h1>out</h1>",
  "<iframe srcdoc='<script>1</script>'>", "<a href=javascript:alert(1)>x</a>", "javascript:alert(1)", "&lt;b&gt;", "&#60;img&#62;",
  "<style>.sa{display:none}</style>", "<!--", "]]>", "{{constructor.constructor('1')()}}", "${alert(1)}", "`${1}`", "'\"><b>",
  "\x1b[31mred\x1b[0m", "\x1b]8;;file:///etc/passwd\x07link\x1b]8;;\x07", "\x1b]0;title\x1b\\", "\x1b[2J\x1b[H", "\x9b31m", "\x1bPq#0\x1b\\",
  "a\u202egnp.exe", "\u2066\u202dover\u2069", "zero\u200bwidth\ufeff", "tag\u{e0041}\u{e007f}", "nul\x00bell\x07back\x08", "\x7f\x85\x90",
  "line\u2028sep\u2029", "lone\rreturn",
];
const RISKY = /[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff]|[\u{e0000}-\u{e007f}]/u;
const FIELDS = ["run_id", "name", "agent", "model", "cost", "note", "reused", "error", "reason", "attention", "tail", "state"];

test("30 hostile texts in every field become harmless text", () => {
  assert.equal(HOSTILE.length, 30);
  const shape = (view) => view.section.all().map((node) => `${node.tag}.${node.className}`).join();
  for (const state of ["running", "failed"]) {
    for (const text of HOSTILE) {
      const tool = { name: text, args: text, state: "running", seconds: 1 };
      const plain = show({ state, tools: [{ ...tool, name: "t", args: "a" }], questions: [{ id: "q1", text: "?", choices: ["y", "no"] }] });
      const question = { id: "q1", text, choices: [text, "no"] };
      const bad = { tail: text, tail_end: Array.from(text).length, tools: [tool], questions: [question] };
      for (const field of FIELDS) if (!["tail", "state"].includes(field)) bad[field] = text;
      const view = show({ state, ...bad });
      for (const to of ["stop", "steer", "answer", text]) view.model.message({ kind: "ack", to, question: "q1", text, ok: text, more: text });
      view.model.message({ kind: "tail", at: bad.tail_end, text });
      assert.equal(shape(view), shape(plain), text);
      show({ ...bad, state: text });
      const places = [view.section.textContent, ...view.section.all().flatMap((node) => [node.title, ...node.attributes.values()])];
      for (const place of places) assert.doesNotMatch(place, RISKY, JSON.stringify(text));
      assert.ok(text.includes("\x1b]") || view.section.textContent.length > 60);
      assert.doesNotMatch(view.section.textContent, /\[31m|\[2J|file:/);
    }
  }
  const markup = show({ tail: HOSTILE[0], tail_end: HOSTILE[0].length, name: HOSTILE[1] });
  assert.equal(markup.text(), HOSTILE[0]);
  assert.equal(markup.part("sa-title").textContent, HOSTILE[1]);
});

test("newlines and tabs stay in the text, and very long words are cut with a count", () => {
  assert.equal(show({ tail: "a\n\tb", tail_end: 4 }).text(), "a\n\tb");
  assert.match(show({ state: "failed", error: "e".repeat(5000) }).body.seen, /e… 1,000 more characters/);
  const [row] = show({ tools: [{ name: "t", args: "z".repeat(10_000), state: "running", seconds: 1 }] }).tools.childNodes;
  assert.match(row.seen, /z… 9,600 more characters/);
});
