import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { pass, show, startClock } from "./fake.mjs";

beforeEach(startClock);

const row = (path, more = {}) => ({ path, level: path.split("/").length, name: path.split("/").at(-1), agent: "worker", state: "running",
  now: "python", elapsed_s: 61, cost: "$0.10", share: 0.5, ...more });

test("a run that delegates nothing shows no tree", () => assert.equal(show({}).part("sa-tree").hidden, true));

test("a row says who it is, what it does, how long and how much, below its parent", () => {
  const { part } = show({ tree: [row("scout"), row("scout/worker", { state: "asking", now: "may it?" })] });
  const tree = part("sa-tree");
  assert.match(tree.seen, /scout\s*worker\s*python\s*1:01\s*\$0\.10\s*worker\s*may it\?/);
  assert.deepEqual(tree.children.map((one) => one.children[0].style.paddingLeft), ["0px", "18px"]);
  assert.ok(tree.children[1].children[1].className.includes("sa-asking"));
});

test("rows keep their nodes when others come, and rubbish harms nothing", () => {
  const { part, model } = show({ tree: [row("b")] });
  const [before] = part("sa-tree").children;
  model.set({ tree: [row("a"), row("b", { state: "complete" }), null, { path: 7, level: "x", share: NaN, state: "toString" }] });
  pass(1);
  const rows = part("sa-tree").children;
  assert.equal(rows[1], before);
  assert.equal(rows.length, 4);
});

test("no more than 64 rows are drawn", () => {
  const { part } = show({ tree: Array.from({ length: 90 }, (_, at) => row(`w-${at}`)) });
  assert.equal(part("sa-tree").children.length, 64);
});
