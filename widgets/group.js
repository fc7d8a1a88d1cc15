// @ts-check
/**
 * The headings of the board, the order of what stands under them, and how many ask, for the page's title.
 *
 * @typedef {import("./row.js").Row} Row
 * @typedef {import("./row.js").RowData} RowData
 */
import { h, hide, line, mark, number } from "./dom.js";

/** @type {[string, string, string][]} What a run needs, its heading, and in which order its rows stand. */
export const NEEDS = [
  ["asks", "asks you", "oldest first"], ["failed", "failed, not seen", ""], ["working", "working", ""], ["waiting", "waiting", ""], ["done", "done", ""],
];

/** Order rows: what needs a person first; questions and the line oldest first, all else newest first. @param {RowData} a @param {RowData} b */
export function inOrder(a, b) {
  const [first, second] = [a, b].map((row) => NEEDS.findIndex(([need]) => need === row.need));
  if (first !== second) return first - second;
  if (a.need === "asks" && a.asked !== b.asked) return String(a.asked) < String(b.asked) ? -1 : 1;
  if (a.need === "asks") return a.began - b.began;
  if (a.need === "done" && a.ended !== b.ended) return String(a.ended) < String(b.ended) ? 1 : -1;
  return a.need === "waiting" ? a.began - b.began : b.began - a.began;
}

export class Group {
  label = h("strong");
  count = h("b");
  aside = h("span", "sa-aside");
  button = mark(h("button", "sa-fold", this.label, " ", this.count, " ", this.aside), { type: "button", "aria-expanded": "true" });
  all = mark(h("button", "sa-all", "Select"), { type: "button", title: "Select all below: X selects all in sight" });
  list = h("ul", "sa-rows");
  box = h("section", "sa-group", h("div", "sa-heading", this.button, this.all), this.list);
  folded = false;
  /** @param {string} key @param {(group: Group) => void} pick */
  constructor(key, pick) {
    this.all.addEventListener("click", () => pick(this));
    this.fold(key === "done");
    this.button.addEventListener("click", () => this.fold(!this.folded));
  }
  /** @param {boolean} folded */
  fold(folded) {
    this.folded = folded;
    hide(this.list, folded);
    hide(this.all, folded);
    mark(this.button, { "aria-expanded": String(!folded) });
  }
}

/** Put nodes in order; those in their place are not touched, and what is no more there goes. @param {HTMLElement} box @param {HTMLElement[]} wanted */
export function settle(box, wanted) {
  const keep = new Set(wanted);
  for (const kid of Array.from(box.children)) if (!keep.has(/** @type {HTMLElement} */ (kid))) kid.remove();
  wanted.forEach((node, i) => {
    if (box.children[i] !== node) box.insertBefore(node, box.children[i] ?? null);
  });
}

/** How those that are over ended. @param {Row[]} rows */
export function tally(rows) {
  /** @type {Map<string, number>} */ const counts = new Map();
  for (const row of rows) counts.set(row.data.word, (counts.get(row.data.word) ?? 0) + 1);
  return [...counts].map(([word, count]) => `${count} ${line(word, 20)}`).join(", ");
}

/** How many stand under a heading as it says, and how many are there still, since the hand is, though it holds for them no more. @param {Row[]} rows @param {string} need */
export function counted(rows, need) {
  const count = need ? rows.filter((row) => row.data.need === need).length : rows.length;
  return [String(count), count < rows.length ? `${rows.length - count} no longer` : ""];
}

/** The keys there are, for whoever looks. @param {string[][]} all */
export function keys(...all) {
  return mark(h("span", "sa-keys", ...all.map((one) => h("span", "", ...one.slice(0, -1).map((key) => (key === "–" ? key : h("kbd", "", key))), ` ${one.at(-1)}`))), { "aria-hidden": "true" });
}

/** Who holds the places that others wait for. @param {any} head @param {Iterable<Row>} rows */
export function whyWaiting(head, rows) {
  const [taken, limit] = [number(head.taken), number(head.limit)];
  if (taken === null || limit === null || taken < limit) return "";
  const asks = [...rows].filter((row) => row.data.need === "asks").length;
  return `all ${limit} places are taken${asks ? `, ${Math.min(asks, taken)} of them by runs that ask you` : ""}; more places: max_live_runs`;
}

const TITLE = /^\(\d+ ask\) /;

/** Which runs ask, by board: they may be the same, and a page has one title. @type {Map<object, string[]>} */
const asking = /** @type {any} */ (globalThis)[Symbol.for("subagents_nb.asking")] ??= new Map();

/** Put the count of all boards into the page's title; this one's runs that ask, null when it is closed. @param {object} board @param {string[] | null} ids */
export function entitle(board, ids) {
  if (ids) asking.set(board, ids);
  else asking.delete(board);
  const count = new Set([...asking.values()].flat()).size;
  const title = `${count ? `(${count} ask) ` : ""}${(document.title ?? "").replace(TITLE, "")}`;
  if (document.title !== undefined && document.title !== title) document.title = title;
}
