// @ts-check
/**
 * A sweep to watch, before its plain table: how far it is, and a grid whose cells open their runs in full, in place; an
 * anywidget (AFM) module. The kernel sends words, and where bars go: see experiments/sweeps/sweep_picture.py.
 *
 * One cell is in the tab order, arrow keys move among the others; what is open below a row stays while the figures change.
 *
 * @typedef {{n: number, runs: number, run: string, state: string, said: string, cost: string, final: boolean, score?: string,
 *   range?: string, bar?: number[]}} CellData
 * @typedef {{run: string, state: string, about: string, score: string, cost: string, error: string}} RunData
 */
import { drawNever, drawSoon } from "./beat.js";
import { h, hide, holdsFocus, line, mark, put, putClass, putIcon, thousands } from "./dom.js";
import { Place } from "./place.js";
import { rendering, standing } from "./stand.js";

const HERE_MS = 20_000;
/** @type {Record<string, string>} */
const STATE_ICONS = {
  complete: "check", partial: "half", failed: "cross", lost: "question", rejected: "barred", running: "turning", queued: "clock",
  pending: "dashes", paused: "pause", stopped: "square", "asks you": "pause", unreadable: "question",
};
/** @type {Record<string, string>} */
const COUNT_STATES = { done: "complete", failed: "failed", "at work": "running", waiting: "queued", paused: "paused", stopped: "stopped" };

/** @param {string} state */
const tinted = (state) => `sa-${state === "asks you" ? "asking" : Object.hasOwn(STATE_ICONS, state) && state !== "pending" ? state : "queued"}`;
/** @param {unknown} list @returns {any[]} */
const listed = (list) => (Array.isArray(list) ? list : []);
/** @param {unknown} part from 0 to 1 */
const percent = (part) => `${Math.round(1000 * Math.min(1, Math.max(0, Number(part) || 0))) / 10}%`;

/** One setting: a button that opens what stands behind it. */
class SweepCell {
  score = h("b");
  range = h("span", "sa-fact");
  whole = h("i", "sa-sweep-range");
  tick = h("i", "sa-sweep-tick");
  bar = mark(h("span", "sa-sweep-axis", this.whole, this.tick), { "aria-hidden": "true" });
  icon = h("span");
  said = h("span", "sa-sweep-said");
  cost = h("span", "sa-fact");
  button = mark(h("button", "sa-sweep-cell", h("span", "sa-sweep-line", this.score, this.range), this.bar, h("span", "sa-sweep-line", this.icon, this.said, this.cost)), { type: "button", tabindex: -1, "aria-expanded": "false" });
  box = mark(h("td", "", this.button), { role: "gridcell" });
  /** @type {CellData} */ data = { n: -1, runs: 0, run: "", state: "pending", said: "", cost: "", final: false };
  /** @param {number} row @param {number} column @param {string} label */
  constructor(row, column, label) {
    this.row = row;
    this.column = column;
    this.label = label;
  }
  /** @param {CellData} data */
  set(data) {
    this.data = data;
    const [state, score, range] = [line(data.state, 20), line(data.score ?? "", 20), line(data.range ?? "", 40)];
    const bar = listed(data.bar);
    put(this.score, score);
    put(this.range, range);
    hide(this.bar, bar.length !== 3);
    if (bar.length === 3) {
      Object.assign(this.whole.style, { left: percent(bar[0]), width: percent(bar[2] - bar[0]) });
      this.tick.style.left = percent(bar[1]);
      putClass(this.bar, data.final ? "sa-sweep-axis" : "sa-sweep-axis sa-sweep-open");
    }
    putIcon(this.icon, STATE_ICONS[state] ?? "dashes");
    putClass(this.icon, `sa-sign ${tinted(state)}`);
    put(this.said, line(data.said, 60));
    putClass(this.said, ["failed", "asks you"].includes(state) ? `sa-sweep-said ${tinted(state)}` : "sa-sweep-said");
    put(this.cost, line(data.cost, 30));
    const parts = [this.label, score && `${score}${range && ` (${range})`}`, line(data.said, 60), line(data.cost, 30)];
    mark(this.button, { "aria-label": parts.filter(Boolean).join(", ") });
  }
}

/** What is open below a row: the runs of a cell, and one of them in full. */
class SweepPanel {
  title = h("b");
  close_ = mark(h("button", "", "Close"), { type: "button" });
  list = h("div", "sa-sweep-runs");
  note = h("p", "sa-note");
  /** @type {HTMLElement | null} */ chip = null; // whose run is in full
  /** @param {(request: any) => void} ask @param {() => void} shut */
  constructor(ask, shut) {
    this.shut = shut;
    this.alone = false;
    this.full = new Place(ask, (within) => this.left(within));
    this.cell = h("td", "sa-sweep-panel", h("div", "sa-sweep-line", this.title, this.close_), this.list, this.note, this.full.box);
    this.row = h("tr", "", this.cell);
    this.close_.addEventListener("click", shut);
    this.cell.addEventListener("keydown", (event) => this.press(event));
  }
  /** @param {boolean} within */
  left(within) {
    const chip = this.chip;
    this.chip = null;
    if (chip) mark(chip, { "aria-expanded": "false" });
    if (chip && within) chip.focus();
    if (!chip && this.alone) this.shut();
  }
  /** @param {SweepCell} cell @param {number} columns */
  enter(cell, columns) {
    mark(this.cell, { colspan: columns + 1 });
    put(this.title, cell.label);
    this.list.replaceChildren();
    this.alone = Boolean(cell.data.run);
    put(this.note, this.alone || cell.data.runs > 1 ? "" : "It has no run yet.");
    if (this.alone) this.full.open({ run: cell.data.run });
    else if (cell.data.runs > 1) put(this.note, "Reading…");
  }
  leave() {
    this.alone = false;
    this.full.close();
    this.row.remove();
  }
  /** @param {RunData[]} runs @param {number} more */
  take(runs, more) {
    put(this.note, more > 0 ? `… ${thousands(more)} more: .runs has all` : runs.length ? "" : "None of its runs has begun.");
    const chips = runs.map((run, i) => this.chipOf(run, i));
    this.list.replaceChildren(...chips);
    return chips[0];
  }
  /** @param {RunData} run @param {number} i */
  chipOf(run, i) {
    const [state, icon] = [line(run.state, 20), h("span")];
    putIcon(icon, STATE_ICONS[state] ?? "dashes");
    putClass(icon, `sa-sign ${tinted(state)}`);
    const chip = mark(h("button", "sa-sweep-run", icon, h("span", "", line(run.about, 60)), h("b", "", line(run.score, 20))), { type: "button", tabindex: i ? -1 : 0, "aria-expanded": "false" });
    mark(chip, { "aria-label": [line(run.about, 60), state, line(run.score, 20), line(run.cost, 20), line(run.error, 200)].filter(Boolean).join(", ") });
    chip.title = [state, line(run.cost, 20), line(run.error, 200)].filter(Boolean).join(" · ");
    chip.addEventListener("click", () => this.toggle(chip, run.run));
    return chip;
  }
  /** @param {HTMLElement} chip @param {string} run */
  toggle(chip, run) {
    const again = this.chip === chip;
    if (this.full.token) this.full.close();
    if (again) return;
    this.chip = chip;
    mark(chip, { "aria-expanded": "true" });
    this.full.open({ run });
  }
  /** @param {KeyboardEvent} event */
  press(event) {
    if (event.altKey || event.ctrlKey || event.metaKey || event.shiftKey || event.isComposing) return;
    if (event.key === "Escape") {
      event.preventDefault();
      event.stopPropagation();
      return this.shut();
    }
    const chips = Array.from(this.list.children);
    const at = chips.indexOf(/** @type {any} */ (event.target));
    if (at < 0) return;
    if (event.key === "Enter" || event.key === " ") return event.stopPropagation(); // the button's own; not the notebook's
    const step = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1 }[event.key];
    const to = /** @type {HTMLElement | undefined} */ (step && chips[at + step]);
    if (!step) return;
    event.preventDefault();
    event.stopPropagation();
    if (!to) return;
    mark(chips[at], { tabindex: -1 });
    mark(to, { tabindex: 0 }).focus();
  }
}

export class SweepFace {
  /** @type {SweepCell[]} */ cells = [];
  /** @type {HTMLElement[]} */ lines = [];
  /** @type {SweepCell | null} Which is in the tab order. */ active = null;
  /** @type {SweepCell | null} */ open = null;
  shape = "";
  closed = false;
  orphan = false; // its kernel is gone
  icon = h("span");
  word = h("span");
  title = h("span", "sa-title");
  whence = h("span", "sa-facts");
  fills = h("div", "sa-sweep-fills");
  bar = mark(h("div", "sa-sweep-bar", this.fills), { role: "progressbar", "aria-label": "Runs done", "aria-valuemin": 0 });
  counts = h("p", "sa-sweep-counts");
  facts = h("p", "sa-sweep-facts");
  body = h("tbody");
  table = mark(h("table"), { role: "grid" });
  axis = h("p", "sa-note");
  failures = h("div", "sa-sweep-failures");
  remarks = h("p", "sa-note");
  section = h("section", "sa sa-sweep",
    h("header", "sa-head", h("span", "sa-state", this.icon, this.word), this.title, h("span", "sa-agent", "sweep"), this.whence),
    h("div", "sa-body", this.bar, this.counts, this.facts, this.table, this.axis, this.failures, this.remarks),
    h("footer", "sa-foot", h("span", "sa-keys", h("kbd", "", "←↑→↓"), " cell ", h("kbd", "", "↵"), " its runs in full ", h("kbd", "", "esc"), " back"), h("span", "sa-facts", "which is best: ", h("code", "", ".compare()"))));
  /** @type {[string, (message?: any) => void][]} */
  ears = [["change:picture", () => this.redraw()], ["msg:custom", (message) => this.receive(message)], ["comm_live_update", () => ((this.orphan = true), this.redraw())]];
  /** @param {import("./stand.js").Host} model */
  constructor(model) {
    this.model = model;
    this.panel = new SweepPanel((request) => this.tell(request), () => this.shut());
    this.table.addEventListener("keydown", (event) => this.press(event));
    this.table.addEventListener("focusin", (event) => this.cells.forEach((cell) => cell.button === event.target && this.activate(cell)));
  }
  start() {
    for (const [event, ear] of this.ears) this.model.on(event, ear);
    this.draw();
    this.here();
    return this;
  }
  close() {
    for (const [event, ear] of this.ears.splice(0)) this.model.off(event, ear);
    clearTimeout(this.timer);
    drawNever(this);
    this.closed = true;
  }
  /** @param {any} request */
  tell(request) {
    try {
      this.model.send(request);
    } catch { /* the connection is closed */ }
  }
  /** Say that it stands here: the plain table behind it needs to be published anew less often. */
  here() {
    this.tell({ kind: "here" });
    this.timer = setTimeout(() => this.here(), HERE_MS);
  }
  redraw() {
    if (!this.closed) drawSoon(this);
  }

  draw() {
    const picture = this.model.get("picture") ?? {};
    const [counts, all] = [listed(picture.counts), Number(picture.all) || 0];
    const failed = counts.some(([word]) => word === "failed");
    const state = picture.live ? "running" : failed ? "failed" : "complete";
    putIcon(this.icon, STATE_ICONS[state]);
    putClass(this.icon, `sa-sign ${tinted(state)}`);
    put(this.word, picture.live ? "at work" : failed ? "ended, some failed" : "ended");
    put(this.title, line(picture.name, 80));
    put(this.whence, line(picture.whence, 80));
    mark(this.section, { "aria-label": `Sweep ${line(picture.name, 80)}` });
    this.drawCounts(counts, all);
    this.facts.replaceChildren(...listed(picture.facts).map((fact) => h("span", "", h("b", "", line(fact.strong, 40)), fact.strong ? " " : "", line(fact.text, 160))));
    this.arrange(picture);
    const [low, high] = listed(picture.axis);
    put(this.axis, picture.metric ? `${line(picture.metric, 60)}; bars: 95 % intervals, from ${line(low, 20)} to ${line(high, 20)}, dotted while not final` : "");
    this.drawFailures(picture.failures ?? {});
    const more = Number(picture.more_rows) ? `… ${thousands(picture.more_rows)} more rows: .frame() has all. ` : "";
    const gone = this.orphan ? "Its kernel is gone; run the cell again to open its runs here. " : "";
    put(this.remarks, gone + more + listed(picture.notes).map((note) => line(note, 400)).join(" "));
  }
  /** @param {any[]} counts @param {number} all */
  drawCounts(counts, all) {
    const done = Number(counts[0]?.[1]) || 0;
    mark(this.bar, { "aria-valuemax": all, "aria-valuenow": done, "aria-valuetext": counts.map(([word, number]) => `${number} ${word}`).join(", ") });
    const shown = counts.filter(([word]) => Object.hasOwn(COUNT_STATES, String(word)));
    this.fills.replaceChildren(...shown.map(([word, number]) => {
      const fill = h("i", `sa-fill-${COUNT_STATES[word]}`);
      fill.style.width = percent(number / all);
      return fill;
    }));
    this.counts.replaceChildren(...counts.map(([word, number], i) => {
      const icon = h("span", `sa-sign ${tinted(COUNT_STATES[word] ?? "pending")}`);
      putIcon(icon, STATE_ICONS[COUNT_STATES[word]] ?? "dashes");
      return h("span", "", icon, h("b", "", thousands(Number(number) || 0)), i ? ` ${line(word, 20)}` : ` of ${thousands(all)} done`);
    }));
  }
  /** Set the cells; the table is made anew only where its rows or columns are others. @param {any} picture */
  arrange(picture) {
    const [rows, columns, wide] = [listed(picture.rows), listed(picture.columns), line(picture.column_name, 60)];
    const cells = listed(picture.cells);
    const shape = JSON.stringify([rows, columns, cells.map((row) => listed(row).map(Boolean))]);
    if (shape !== this.shape) this.build(rows, columns, cells, line(picture.row_name, 60), wide);
    this.shape = shape;
    for (const cell of this.cells) cell.set(cells[cell.row][cell.column]);
  }
  /** @param {any[]} rows @param {any[]} columns @param {any[]} cells @param {string} down @param {string} wide */
  build(rows, columns, cells, down, wide) {
    if (this.open) this.shut();
    const corner = mark(h("th", "", wide ? `${down} ↓ ${wide} →` : down), { scope: "col" });
    const head = h("tr", "", corner, ...columns.map((name) => mark(h("th", "", wide ? line(name, 60) : "score, runs, cost"), { scope: "col" })));
    this.cells = [];
    this.lines = rows.map((name, row) => {
      const made = columns.map((column, at) => {
        if (!listed(cells[row])[at]) return mark(h("td"), { role: "gridcell" });
        const cell = new SweepCell(row, at, [line(name, 60), wide && line(column, 60)].filter(Boolean).join(", "));
        cell.button.addEventListener("click", () => this.toggle(cell));
        this.cells.push(cell);
        return cell.box;
      });
      return h("tr", "", mark(h("th", "", line(name, 60)), { scope: "row" }), ...made);
    });
    mark(this.table, { "aria-label": wide ? `${down} by ${wide}` : down });
    this.body.replaceChildren(...this.lines);
    this.table.replaceChildren(h("thead", "", head), this.body);
    this.active = null;
    if (this.cells[0]) this.activate(this.cells[0]);
  }
  /** @param {any} failures */
  drawFailures(failures) {
    const told = listed(failures.told);
    const shape = JSON.stringify(failures);
    if (this.failures.dataset.shape === shape) return; // a button in it may have the focus
    this.failures.dataset.shape = shape;
    const boxes = told.map((one) => {
      const first = mark(h("button", "", Number(one.number) > 1 ? "Open the first" : "Open it"), { type: "button", "aria-label": `Open a failed run of ${line(one.where, 120)}` });
      first.addEventListener("click", () => this.openRun(String(one.run), line(one.where, 120)));
      return h("div", "sa-say sa-failed", h("p", "", h("b", "", `${line(one.where, 120)}: `), `${thousands(Number(one.number) || 0)} failed: ${line(one.why, 300)} `), first);
    });
    const left = Number(failures.left) ? `… ${thousands(failures.left)} more runs failed. ` : "";
    const again = told.length ? [h("p", "sa-note", `${left}Failed runs are missing, not zeros. These again: .retry() or %subagent_retry`)] : [];
    this.failures.replaceChildren(...boxes, ...again);
  }

  /** Open one run, below the row of its cell. @param {string} run @param {string} where */
  openRun(run, where) {
    const cell = this.cells.find((one) => one.label === where);
    if (!cell) return;
    if (this.open) this.shut();
    this.enter({ ...cell.data, run }, cell);
    this.panel.cell.scrollIntoView?.({ block: "nearest" });
  }
  /** @param {SweepCell} cell */
  toggle(cell) {
    const again = this.open === cell;
    if (this.open) this.shut();
    this.activate(cell);
    if (!again) this.enter(cell.data, cell);
    else cell.button.focus({ preventScroll: true });
  }
  /** @param {CellData} data @param {SweepCell} cell */
  enter(data, cell) {
    this.open = cell;
    mark(cell.button, { "aria-expanded": "true" });
    this.body.insertBefore(this.panel.row, this.lines[cell.row + 1] ?? null);
    const shown = Object.assign(Object.create(SweepCell.prototype), { label: cell.label, data });
    this.panel.enter(shown, listed(this.model.get("picture")?.columns).length);
    if (!data.run && data.runs > 1) this.tell({ kind: "runs", n: data.n });
  }
  shut() {
    const cell = this.open;
    if (!cell) return;
    this.open = null;
    const within = holdsFocus(this.panel.row);
    this.panel.leave();
    mark(cell.button, { "aria-expanded": "false" });
    if (within) cell.button.focus({ preventScroll: true });
  }
  /** @param {any} message */
  receive(message) {
    const open = this.open;
    if (message?.kind !== "runs" || !open || message.n !== open.data.n) return;
    const first = this.panel.take(listed(message.runs), Number(message.more) || 0);
    if (first && holdsFocus(open.box)) first.focus(); // who asked for them goes on among them
  }
  /** @param {SweepCell} cell */
  activate(cell) {
    if (this.active) mark(this.active.button, { tabindex: -1 });
    this.active = cell;
    mark(cell.button, { tabindex: 0 });
  }
  /** @param {KeyboardEvent} event */
  press(event) {
    if (event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
    const at = this.cells.find((cell) => cell.button === event.target);
    if (!at) return;
    if (event.key === "Enter" || event.key === " ") return event.stopPropagation(); // the button's own; not the notebook's
    if (event.key === "Escape" && this.open) {
      event.stopPropagation();
      return this.shut();
    }
    const by = /** @type {Record<string, [number, number]>} */ ({ ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] })[event.key];
    if (!by) return;
    event.preventDefault();
    event.stopPropagation();
    let [row, column] = [at.row + by[0], at.column + by[1]];
    for (; row >= 0 && column >= 0 && row < this.lines.length && column < 100; row += by[0], column += by[1]) {
      const to = this.cells.find((cell) => cell.row === row && cell.column === column);
      if (to) return void (this.activate(to), to.button.focus());
    }
  }
}

export default { initialize: standing(SweepFace), render: rendering(SweepFace) };
