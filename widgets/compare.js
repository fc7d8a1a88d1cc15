// @ts-check
/**
 * A comparison that can be sorted and filtered: an anywidget (AFM) module. The kernel sends words to show and keys to
 * sort by, once; nothing is asked of it afterwards but to leave the plain table behind when the page is saved.
 *
 * @typedef {{title: string, numeric: boolean}} Column
 * @typedef {{cells: string[], keys: (string | number | null)[]}} Row
 */
import { h, line, mark, put } from "./dom.js";

const WORDS = new Set(["best", "better", "worse", "unclear", "missing", "baseline"]);

/** Order by one column: numbers before words, what is missing last either way. @param {Row[]} rows @param {number} at @param {boolean} down */
export function sorted(rows, at, down) {
  const rank = (/** @type {unknown} */ key) => (typeof key === "number" ? 0 : typeof key === "string" ? 1 : 2);
  const turn = down ? -1 : 1;
  return rows.map((row, place) => ({ row, place, key: row.keys[at] })).sort((a, b) => {
    const [first, second] = [rank(a.key), rank(b.key)];
    if (first === 2 || second === 2 || first !== second) return first - second || a.place - b.place;
    if (typeof a.key === "number" && typeof b.key === "number") return turn * (a.key - b.key) || a.place - b.place;
    return turn * String(a.key).localeCompare(String(b.key), "en", { numeric: true }) || a.place - b.place;
  }).map((one) => one.row);
}

/** Keep the rows that hold every word somewhere. @param {Row[]} rows @param {string} words */
export function filtered(rows, words) {
  const wanted = words.toLowerCase().split(/\s+/).filter(Boolean);
  return rows.filter((row) => wanted.every((word) => row.cells.some((cell) => cell.toLowerCase().includes(word))));
}

/** @param {string} text */
function cell(text) {
  const shown = line(text, 200);
  const word = shown.slice(shown.lastIndexOf(" ") + 1);
  if (!WORDS.has(word)) return [shown];
  return [shown.slice(0, shown.length - word.length), h("b", `sa-word sa-${word}`, word)];
}

/** @param {{model: any, el: HTMLElement}} host */
function render({ model, el }) {
  /** @type {{columns: Column[], rows: Row[], remarks: string[]}} */
  const { columns = [], rows = [], remarks = [] } = model.get("table") ?? {};
  let at = -1;
  let down = false;
  const input = mark(h("input"), { type: "search", "aria-label": "Show the rows that hold these words", placeholder: "Filter" });
  const count = mark(h("span", "sa-count"), { role: "status" });
  const body = h("tbody");
  const heads = columns.map((column, place) => {
    const button = mark(h("button", "", line(column.title, 80)), { type: "button" });
    const head = mark(h("th", column.numeric ? "sa-figure" : "", button), { scope: "col", "aria-sort": "none" });
    button.addEventListener("click", () => {
      // Figures begin with the largest, words with the first; a second click turns them.
      down = at === place ? !down : column.numeric;
      at = place;
      draw();
      model.send({ kind: "order", order: order().map((row) => rows.indexOf(row)) });
    });
    return head;
  });
  const order = () => (at < 0 ? rows : sorted(rows, at, down));

  function draw() {
    const shown = filtered(order(), input.value);
    heads.forEach((head, place) => mark(head, { "aria-sort": place !== at ? "none" : down ? "descending" : "ascending" }));
    body.replaceChildren(
      ...shown.map((row) => h("tr", "", ...row.cells.map((text, place) => h("td", columns[place]?.numeric ? "sa-figure" : "", ...cell(text))))),
    );
    put(count, shown.length === rows.length ? `${rows.length} groups` : `${shown.length} of ${rows.length} groups`);
  }

  input.addEventListener("input", draw);
  // A notebook keeps what stands there when it is saved; without a kernel this view would be an empty box.
  /** @param {KeyboardEvent} event */
  const saving = (event) => {
    if ((event.ctrlKey || event.metaKey) && event.key === "s") model.send({ kind: "leave" });
  };
  document.addEventListener("keydown", saving, true);
  const table = h("table", "", h("thead", "", h("tr", "", ...heads)), body);
  mark(table, { "aria-label": "Comparison" });
  const top = h("div", "sa-top", h("b", "", "Comparison"), count, input);
  const section = h("section", "sa sa-compare", top, h("div", "sa-wide", table), ...remarks.map((remark) => h("p", "sa-remark", line(remark, 400))));
  el.append(mark(section, { "aria-label": "Comparison" }));
  draw();
  return () => document.removeEventListener("keydown", saving, true);
}

export default { render };
