// @ts-check
/**
 * A comparison that can be sorted and filtered: an anywidget (AFM) module without a view. The plain table is the cell's
 * output; wherever it stands, a live one takes its place for as long as the model lives. The kernel sends words to
 * show and keys to sort by, once; nothing is asked of it, and what is saved is the plain table at any time.
 *
 * @typedef {{title: string, numeric: boolean}} Column
 * @typedef {{cells: string[], keys: (string | number | null)[], bars?: (number[] | null)[]}} Row
 * @typedef {{get: (name: string) => any, on: (event: string, ear: () => void) => void, widget_manager?: any}} Model
 */
import { h, line, mark, put } from "./dom.js";

const WORDS = new Set(["best", "better", "worse", "missing"]);
const LIVE = "sa-compare";

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

/** An interval on the axis of its column, and where zero stands on it. @param {unknown} ends */
function barOf(ends) {
  if (!Array.isArray(ends) || typeof ends[0] !== "number") return [];
  const [low, at, high, zero] = ends.map((end) => (typeof end === "number" ? 100 * Math.min(1, Math.max(0, end)) : null));
  const [whole, tick] = [h("i", "sa-bar-range"), h("i", "sa-bar-tick")];
  Object.assign(whole.style, { left: `${low}%`, width: `${Number(high) - Number(low)}%` });
  tick.style.left = `${at}%`;
  const bar = mark(h("span", "sa-bar", whole, tick), { "aria-hidden": "true" });
  if (zero !== null && zero !== undefined) {
    const line = h("i", "sa-bar-zero");
    line.style.left = `${zero}%`;
    bar.append(line);
  }
  return [bar];
}

/** Make a live table; it keeps its order and its filter to itself. @param {{columns?: Column[], rows?: Row[]}} table */
function liveTable({ columns = [], rows = [] }) {
  let at = -1;
  let down = false;
  const input = mark(h("input"), { type: "search", "aria-label": "Show the rows that hold these words", placeholder: "Filter" });
  const count = mark(h("span", "sa-count"), { role: "status" });
  const body = h("tbody");
  const heads = columns.map((column, place) => {
    const button = mark(h("button", "", line(column.title, 80)), { type: "button" });
    button.addEventListener("click", () => {
      // Figures begin with the largest, words with the first; a second click turns them.
      down = at === place ? !down : column.numeric;
      at = place;
      draw();
    });
    return mark(h("th", column.numeric ? "sa-figure" : "", button), { scope: "col", "aria-sort": "none" });
  });

  function draw() {
    const shown = filtered(at < 0 ? rows : sorted(rows, at, down), input.value);
    heads.forEach((head, place) => mark(head, { "aria-sort": place !== at ? "none" : down ? "descending" : "ascending" }));
    body.replaceChildren(
      ...shown.map((row) => h("tr", "", ...row.cells.map((text, place) => h("td", columns[place]?.numeric ? "sa-figure" : "", ...cell(text), ...barOf(row.bars?.[place]))))),
    );
    const all = rows.length === 1 ? "1 row" : `${rows.length} rows`;
    put(count, shown.length === rows.length ? all : `${shown.length} of ${all}`);
  }

  input.addEventListener("input", draw);
  draw();
  const table = mark(h("table", "", h("thead", "", h("tr", "", ...heads)), body), { "aria-label": "Comparison" });
  return h("div", `sa ${LIVE}`, h("div", "sa-top", count, input), h("div", "sa-wide", table));
}

/**
 * Put a live table wherever the plain one stands, now and later: an output is drawn again, shown a second time, or comes
 * back when its cell is scrolled into the page. Returns what puts the plain ones back.
 * @param {{model: Model}} host
 */
function initialize({ model }) {
  const token = String(model.get("token"));
  /** @type {Map<HTMLElement, HTMLElement>} Each plain table with the live one before it. */
  const standing = new Map();

  /** @param {Element} place */
  function enter(place) {
    const plain = /** @type {HTMLElement | null} */ (place.firstElementChild);
    if (!plain || place.getElementsByClassName(LIVE).length) return; // one page may have two models of a comparison
    const live = liveTable(model.get("table") ?? {});
    plain.style.display = "none";
    place.insertBefore(live, plain);
    standing.set(plain, live);
  }
  /** @param {Node} node */
  function look(node) {
    if (!("classList" in node)) return;
    const element = /** @type {Element} */ (node);
    if (element.classList.contains(token)) enter(element);
    Array.from(element.getElementsByClassName(token)).forEach(enter);
  }
  function leave() {
    observer.disconnect();
    for (const [plain, live] of standing) {
      live.remove();
      plain.style.display = "";
    }
    standing.clear();
  }
  const observer = new MutationObserver((records) => {
    // JupyterLab destroys no model of a notebook that is closed, and makes new ones when it is opened again.
    if (model.widget_manager?.context?.isDisposed) return leave();
    for (const { target, addedNodes } of records) {
      if (/** @type {Element} */ (target).classList.contains(token)) enter(/** @type {Element} */ (target));
      addedNodes.forEach(look);
    }
  });

  if (!token) return leave;
  model.on("comm_live_update", leave); // a kernel that restarts destroys no model either
  observer.observe(document.body, { childList: true, subtree: true });
  look(document.body);
  return leave;
}

export default { initialize };
