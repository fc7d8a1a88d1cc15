// The view of a chain: stages, steps, the panel of one step, keys, what is spoken.
import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { FakeElement, graphOf, pass, show, showChain, startClock } from "./fake.mjs";

beforeEach(startClock);
const opened = (view) => view.model.sent.filter((message) => message.kind === "open").map((message) => message.step);

test("stages stand from left to right, and each says how far it is", () => {
  const { section, part, cells } = showChain(graphOf(3));
  const stages = section.all().filter((node) => node.className === "sa-stage");
  assert.deepEqual(stages.map((node) => node.getAttribute("aria-label")), [
    "Stage map files, complete, 1 of 1 steps done", "Stage review each, running, 0 of 3 steps done", "Stage synthesis, pending, 0 of 1 steps done",
  ]);
  assert.equal(part("sa-graph").getAttribute("role"), "list");
  assert.deepEqual(cells().map((cell) => cell.textContent), [
    "complete 0map files11 s", "running 2module_0.pygrep0:40", "running 3module_1.pygrep0:39",
    "running 4module_2.pygrep0:38", "pending 1synthesispending",
  ]);
  assert.equal(cells()[1].title, "pkg/module_0.py · scout · steps[2]"); // the shared folder is left out on the button
  assert.match(part("sa-head").seen, /review-release.*chain · 3 stages.*1 of 5 steps/);
});

test("what is paused is not done", () => {
  const graph = graphOf(3);
  for (const step of graph.steps) if (step.state === "running") step.state = "paused";
  assert.match(showChain(graph).part("sa-head").seen, /1 of 5 steps/);
});

test("what the map has no room for is counted all the same", () => {
  const many = { ...graphOf(700), counts: [193, 702] };
  many.stages[1].counts = [192, 700];
  const view = showChain(many);
  assert.match(view.part("sa-head").seen, /193 of 702 steps/);
  assert.ok(view.cells().length <= 500);
  const stage = () => view.section.all().filter((node) => node.className === "sa-stage")[1].getAttribute("aria-label");
  assert.equal(stage(), "Stage review each, running, 192 of 700 steps done");
  view.model.message({ kind: "graph", seq: 1, steps: [], stages: [[1, "running", "", [600, 700]]], counts: [601, 702] });
  assert.match(view.part("sa-head").seen, /601 of 702 steps/);
  assert.equal(stage(), "Stage review each, running, 600 of 700 steps done");
});

test("a run of one step loads nothing of it", () => {
  assert.equal(show({ graph: {} }).part("sa-graph"), undefined);
});

test("the panel follows the step at work until the reader chooses", () => {
  const view = showChain(graphOf(2));
  assert.deepEqual(opened(view), [2]);
  view.model.message({ kind: "graph", seq: 1, stages: [], steps: [{ ...graphOf(2).steps[2], state: "complete", took: 3 }] });
  assert.deepEqual(opened(view), [2, 3]);
  view.cell("map files").fire("click");
  assert.equal(view.panel().getAttribute("aria-label"), "steps[0], map files, complete");
  view.model.message({ kind: "graph", seq: 2, stages: [], steps: [{ ...graphOf(2).steps[3], state: "complete", took: 3 }] });
  assert.deepEqual(opened(view), [2, 3, 0]);
});

test("a step's text streams into its panel, and what it came to takes the place when it has ended", () => {
  const view = showChain(graphOf(1));
  view.model.message({ kind: "step", n: 2, agent: "reviewer", model: "m:x", tokens_in: 1200, tokens_out: 30, cost: "$0.01", error: "", tools: [{ name: "grep", args: "-c", state: "running", seconds: 1 }], tail: "Looking", tail_end: 7 });
  view.model.message({ kind: "step", n: 2, at: 7, fresh: " at it." });
  assert.match(view.panel().seen, /Looking at it\./);
  assert.match(view.panel().seen, /reviewer · m:x/);
  assert.match(view.panel().seen, /1\.2k \/ 30 tokens · \$0\.01/);
  view.model.message({ kind: "step", n: 7, at: 0, fresh: "of another step" });
  assert.doesNotMatch(view.panel().seen, /another/);
  view.model.message({ kind: "graph", seq: 1, stages: [], steps: [{ ...graphOf(1).steps[2], state: "complete", took: 38 }] });
  assert.deepEqual(opened(view), [2, 2]);
  view.model.message({ kind: "step", n: 2, error: "", output: "<b>The</b> answer", more: 1200, remarks: ["saved to out.md"] });
  assert.match(view.panel().seen, /<b>The<\/b> answer/);
  assert.match(view.panel().seen, /1,200 more characters: run\.steps\[2\]\.text/);
  assert.match(view.panel().seen, /saved to out\.md/);
  assert.doesNotMatch(view.panel().seen, /Looking/);
});

test("what came of a step's acceptance and what it changed is text behind a disclosure", () => {
  const view = showChain(graphOf(1));
  const work = () => view.panel().one("sa-work");
  view.model.message({ kind: "step", n: 2, error: "", output: "done", more: 0, remarks: ["saved to out.md"], work: "" });
  assert.doesNotMatch(view.panel().seen, /Acceptance and changes/);
  view.model.message({ kind: "step", n: 2, work: "acceptance ⊘ <b>not</b> accepted\n  app.py +1 -1" });
  assert.match(view.panel().seen, /Acceptance and changes/);
  assert.match(work().textContent, /<b>not<\/b> accepted\n  app\.py \+1 -1/);
});

test("arrow keys move within a stage and between stages, and one step is in the tab order", () => {
  const view = showChain(graphOf(6)); // two columns
  const tabbable = () => view.cells().filter((cell) => cell.getAttribute("tabindex") === "0").map((cell) => cell.textContent.match(/map|synthesis|_\d/)[0]);
  const press = (key) => view.part("sa-graph").press(key);
  assert.deepEqual(tabbable(), ["map"]);
  for (const [key, at] of [["ArrowRight", "_0"], ["ArrowRight", "_1"], ["ArrowDown", "_3"], ["ArrowDown", "_5"], ["ArrowDown", "_5"],
    ["ArrowLeft", "_4"], ["ArrowUp", "_2"], ["ArrowLeft", "map"], ["ArrowLeft", "map"], ["End", "synthesis"], ["ArrowRight", "synthesis"], ["ArrowLeft", "_1"], ["Home", "map"]]) {
    const event = press(key);
    assert.deepEqual(tabbable(), [at], key);
    assert.deepEqual([event.stopped, event.prevented], [1, 1]);
    assert.match(FakeElement.focused.textContent, new RegExp(at));
  }
  assert.deepEqual([press("a").stopped, press("a").prevented], [0, 0]);
  assert.deepEqual([press("Enter").stopped, press("Enter").prevented], [1, 0]); // the button's own, not the notebook's
});

test("Enter opens a step, again or Escape closes it, and the focus comes back", () => {
  const view = showChain(graphOf(3));
  const cell = view.cell("synthesis");
  cell.fire("click");
  assert.equal(cell.getAttribute("aria-expanded"), "true");
  assert.equal(view.cell("_0").getAttribute("aria-expanded"), "false");
  view.panel().one("sa-tail").focus();
  assert.equal(view.panel().press("Escape").stopped, 1);
  assert.equal(view.panel(), undefined);
  assert.equal(FakeElement.focused, cell);
  assert.equal(cell.getAttribute("aria-expanded"), "false");
  assert.deepEqual(view.model.sent.at(-1), { kind: "close" });
  cell.fire("click");
  assert.equal(view.part("sa-graph").press("Escape").stopped, 1);
  assert.equal(view.panel(), undefined);
  assert.equal(view.part("sa-graph").press("Escape").stopped, 0); // nothing to close: the notebook's
});

test("one step is stopped and steered, and the receipts come to its panel", () => {
  const view = showChain(graphOf(2));
  const [stop] = view.buttons("Stop step");
  stop.fire("click");
  assert.deepEqual(view.model.sent.at(-1), { kind: "stop", step: 2 });
  assert.equal(stop.textContent, "Stop requested");
  view.model.message({ kind: "ack", to: "stop", step: 2, text: "Step 2 has ended already.", ok: false, more: false });
  assert.match(view.panel().seen, /Step 2 has ended already/);
  assert.equal(view.buttons("Stop run")[0].disabled, false);
  view.buttons("Steer step…")[0].fire("click");
  const input = view.panel().all().find((node) => node.tag === "input");
  input.value = "Look again";
  input.press("Enter");
  assert.deepEqual(view.model.sent.at(-1), { kind: "steer", step: 2, text: "Look again" });
  view.model.message({ kind: "ack", to: "steer", step: 2, text: "The agent was told.", ok: true, more: false });
  assert.match(view.panel().seen, /The agent was told/);
  assert.equal(view.buttons("Steer…")[0].hidden, true); // which step would be meant?
});

test("an unanswered request for one step names the command for it", () => {
  const view = showChain(graphOf(1));
  view.buttons("Stop step")[0].fire("click");
  pass(3);
  assert.match(view.panel().seen, /subagents-nb stop r-06f3k2m9 --step 2/);
});

test("nodes are kept: an update of one step changes that one alone", () => {
  const view = showChain(graphOf(64));
  const before = view.cells();
  const names = before.map((cell) => cell.one("sa-name").childNodes[0]);
  view.model.message({ kind: "graph", seq: 1, stages: [[1, "running", ""]], steps: [{ ...graphOf(64).steps[9], state: "failed", took: 4 }] });
  const after = view.cells();
  assert.equal(after.length, 66);
  assert.ok(after.every((cell, i) => cell === before[i]));
  assert.ok(after.every((cell, i) => cell.one("sa-name").childNodes[0] === names[i]));
  assert.match(view.cell("_7.py").textContent, /failed/);
});

test("a graph that grows keeps what it had, and one that is older than a message is passed over", () => {
  const view = showChain({ ...graphOf(0), stages: graphOf(0).stages.map((stage) => ({ ...stage })) });
  assert.match(view.part("sa-graph").seen, /for each of found/);
  const [first] = view.cells();
  view.model.set({ graph: { ...graphOf(3), seq: 1 } });
  assert.equal(view.cells()[0], first);
  assert.equal(view.cells().length, 5);
  view.model.message({ kind: "graph", seq: 2, stages: [], steps: [{ ...graphOf(3).steps[2], state: "failed" }] });
  view.model.set({ graph: { ...graphOf(3), seq: 1 } });
  assert.match(view.cell("_0").textContent, /failed/);
});

test("a chain says how the launch came by it, below its stages", () => {
  const seen = showChain(graphOf(1), { reused: "Launched anew: data.csv changed since scout-ab12." }).part("sa-body").seen;
  assert.match(seen, /synthesis.*Launched anew: data\.csv changed since scout-ab12\.$/);
});

test("the end of a stage is spoken, and what its steps do is not", () => {
  const view = showChain(graphOf(3));
  assert.equal(view.spoken.textContent, "");
  view.model.message({ kind: "graph", seq: 1, stages: [], steps: [{ ...graphOf(3).steps[2], state: "complete", took: 3 }] });
  assert.equal(view.spoken.textContent, "");
  view.model.message({ kind: "graph", seq: 2, stages: [[1, "partial", ""]], steps: [] });
  assert.equal(view.spoken.textContent, "Stage review each is partial");
});

test("a stage that could not begin says why", () => {
  const view = showChain(graphOf(0));
  view.model.message({ kind: "graph", seq: 1, stages: [[1, "failed", "there are 200 items, more than max_items (100)"]], steps: [] });
  assert.match(view.part("sa-graph").seen, /there are 200 items/);
});

test("nonsense from the kernel and hostile names do no harm", () => {
  for (const graph of [null, 7, {}, { seq: 0, stages: [], steps: [] }, { seq: 0, stages: [{}], steps: [{ n: "x" }, null] }]) showChain(graph);
  const graph = graphOf(1);
  Object.assign(graph.steps[2], { name: "<img src=x>\u202e\x1b[31m", state: "constructor", doing: "\x00" });
  const view = showChain(graph);
  for (const message of [{ kind: "graph" }, { kind: "graph", seq: 1, steps: 3, stages: [[99, "x"]] }, { kind: "step" }, { kind: "ack", step: 5, to: "x" }])
    view.model.message(message);
  assert.match(view.part("sa-graph").seen, /<img src=x>/);
  assert.doesNotMatch(view.part("sa-graph").seen, /[\u202e\x1b\x00]/);
});

test("stop of the whole run keeps the focus on the graph", () => {
  const view = showChain(graphOf(1));
  view.buttons("Stop run")[0].fire("click");
  assert.deepEqual(view.model.sent.at(-1), { kind: "stop" });
  assert.equal(FakeElement.focused, view.cells()[0]);
});

test("closing takes every listener away", () => {
  const view = showChain(graphOf(1));
  view.close();
  assert.equal(view.model.listening, 0);
});
