// @ts-check
/**
 * The runs below a run: a row for each, below its parent. Rows keep their nodes, so nothing jumps while it is read.
 *
 * @typedef {{path: string, level: number, name: string, agent: string, state: string, now: string, elapsed_s: number,
 *   cost: string, share: number}} TreeRow
 */
import { clock, h, hide, line, mark, number, put, putClass, putIcon, set } from "./dom.js";

const MOST_RUNS = 64;
/** @type {Record<string, string>} */
const TREE_ICONS = {
  queued: "clock", running: "turning", asking: "pause", paused: "pause", complete: "check", partial: "half",
  failed: "cross", stopped: "square", rejected: "barred", lost: "question",
};

function makeTreeRow() {
  const [icon, word, name, agent] = [h("span", "sa-tree-icon"), h("span", "sa-hide"), h("b"), h("span", "sa-tree-agent")];
  const [now, fill, time, cost] = [h("span", "sa-tree-now"), h("i"), h("span", "sa-tree-time"), h("span", "sa-tree-cost")];
  const bar = mark(h("span", "sa-tree-share", fill), { "aria-hidden": "true" });
  const who = h("span", "sa-tree-who", icon, word, name, agent);
  const box = h("li", "", who, now, bar, time, cost);
  /** @param {Partial<TreeRow>} row */
  function show(row) {
    const state = Object.hasOwn(TREE_ICONS, String(row.state)) ? String(row.state) : "unknown";
    putIcon(icon, TREE_ICONS[state] ?? "dashes");
    putClass(icon, `sa-tree-icon sa-${state}`);
    put(word, state === "asking" ? "asks you" : state);
    put(name, line(row.name, 80));
    put(agent, row.agent === row.name ? "" : line(row.agent, 80));
    put(now, line(row.now, 240));
    putClass(now, state === "asking" ? "sa-tree-now sa-asking" : "sa-tree-now");
    put(time, (number(row.elapsed_s) ?? 0) >= 1 ? clock(number(row.elapsed_s) ?? 0) : "");
    put(cost, line(row.cost, 30));
    set(fill.style, { width: `${Math.round(100 * Math.min(1, Math.max(0, number(row.share) ?? 0)))}%` });
    set(who.style, { paddingLeft: `${18 * (Math.min(8, Math.max(1, number(row.level) ?? 1)) - 1)}px` });
  }
  return { box, show };
}

export class Tree {
  box = mark(h("ul", "sa-tree"), { "aria-label": "Runs below" });
  /** @type {Map<string, ReturnType<typeof makeTreeRow>>} */ rows = new Map();

  /** @param {unknown} given */
  draw(given) {
    const rows = (Array.isArray(given) ? given : []).slice(0, MOST_RUNS);
    const paths = new Set(rows.map((row) => String(row?.path)));
    for (const [path, row] of this.rows) {
      if (paths.has(path)) continue;
      row.box.remove();
      this.rows.delete(path);
    }
    rows.forEach((given, at) => {
      const path = String(given?.path);
      const row = this.rows.get(path) ?? makeTreeRow();
      this.rows.set(path, row);
      if (this.box.children[at] !== row.box) {
        const others = Array.from(this.box.children).filter((box) => box !== row.box);
        this.box.replaceChildren(...others.slice(0, at), row.box, ...others.slice(at));
      }
      row.show(given ?? {});
    });
    hide(this.box, rows.length === 0);
  }
}
