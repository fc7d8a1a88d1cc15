// @ts-check
/**
 * The stages of a chain from left to right, the steps stacked within them; nodes are kept and only what differs is set.
 *
 * One step is in the tab order; arrow keys move among the others. Seconds are those of the run's own clock.
 *
 * @typedef {{n: number, name: string, agent: string, state: string, from: number | null, took: number | null,
 *   doing: string, stopping: boolean}} StepRow
 * @typedef {{title: string, kind: string, state: string, aside: string, as: string, error: string, steps: number[],
 *   counts?: [number, number]}} StageRow
 * @typedef {{seq: number, stages: StageRow[], steps: StepRow[], counts?: [number, number]}} Drawn
 */
import { brief, clock, h, line, mark, number, put, putIcon } from "./dom.js";

const MOST = 500; // steps that are drawn
const FEW = 4; // steps that stand in one column
const MANY = 12; // ... in two; beyond, three
/** @type {Record<string, string>} */
const STEP_ICONS = {
  pending: "dashes", running: "turning", complete: "check", partial: "half", failed: "cross", paused: "pause",
  stopped: "square", rejected: "barred", skipped: "dashes", lost: "question",
};
const OPEN = ["pending", "running"];

/** @param {string} state */
const known = (state) => (Object.hasOwn(STEP_ICONS, state) ? state : "pending");
/** @param {string} state */
const tint = (state) => `sa-${state === "pending" || state === "skipped" ? "queued" : known(state)}`;
/** @param {string} state */
export const isOver = (state) => !OPEN.includes(known(state));

/** Whether it has begun and is over; what is paused goes on some day. @param {string} state */
const isDone = (state) => isOver(state) && state !== "skipped" && state !== "paused";

/** How many are done, and how many there are, as the kernel counts them: the map has no room for all. @param {unknown} counts @returns {[number, number] | null} */
const counted = (counts) => (Array.isArray(counts) && counts.length === 2 && counts.every(Number.isInteger) ? [counts[0], counts[1]] : null);

/** One step: a button that opens its panel. */
class StepCell {
  icon = h("span");
  word = h("span", "sa-hide");
  number = h("span", "sa-fact"); // which `--step` wants
  name = h("span", "sa-name");
  doing = h("span", "sa-fact sa-doing");
  fact = h("span", "sa-fact");
  button = mark(h("button", "sa-step", this.icon, this.word, this.number, this.name, this.doing, this.fact), { type: "button", tabindex: -1 });
  item = mark(h("div", "", this.button), { role: "listitem" });
  whole = "";
  shared = "";
  /** @type {StepRow} */ row;
  /** @param {StepRow} row @param {(n: number) => void} toggle */
  constructor(row, toggle) {
    this.row = row;
    mark(this.button, { "aria-expanded": "false" });
    this.button.addEventListener("click", () => toggle(row.n));
  }
  /** @param {StepRow} row */
  set(row) {
    const state = known(String(row.state));
    this.row = row;
    putIcon(this.icon, STEP_ICONS[state]);
    this.icon.className = `sa-sign ${tint(state)}`;
    put(this.word, `${row.stopping ? "stopping" : state} `);
    put(this.number, `${row.n}`);
    const name = line(row.name, 80) || line(row.agent, 80) || `steps[${row.n}]`;
    this.whole = name;
    put(this.name, this.without(name));
    this.button.title = [name, line(row.agent, 80), `steps[${row.n}]`].filter((text, i, all) => all.indexOf(text) === i).join(" · ");
    this.button.dataset.state = state;
  }
  /** A name without the folder that all steps of its stage share; the whole is the button's title. @param {string} name */
  without(name) {
    return name.startsWith(this.shared) ? name.slice(this.shared.length) : name;
  }
  /** @param {string} shared */
  share(shared) {
    this.shared = shared;
    put(this.name, this.without(this.whole));
  }
  /** @param {number} elapsed of the run */
  tick(elapsed) {
    const { state, doing, took, from, stopping } = this.row;
    const since = number(from);
    const time = number(took) !== null ? brief(number(took) ?? 0) : since === null ? "" : clock(elapsed - since);
    put(this.doing, state === "complete" ? line(doing, 24) : state !== "running" ? "" : stopping ? "stopping" : line(doing, 24));
    put(this.fact, state === "running" || state === "complete" ? time : known(state));
  }
}

/** One stage: its steps, and a heading unless it is one step by itself. */
class StageColumn {
  icon = h("span");
  title = h("b");
  count = h("span", "sa-fact");
  head = h("div", "sa-stage-head", this.icon, this.title, this.count);
  none = h("div", "sa-none");
  items = mark(h("div", "sa-items"), { role: "list" });
  box = mark(h("div", "sa-stage", this.head, this.items, this.none), { role: "listitem" });
  /** @type {StepCell[]} */ cells = [];
  columns = 1;
  state = "";
  /** @param {StageRow} stage @param {StepCell[]} cells */
  set(stage, cells) {
    const state = known(String(stage.state));
    const title = line(stage.title, 80);
    const [over, all] = counted(stage.counts) ?? [cells.filter((cell) => isDone(cell.row.state)).length, cells.length];
    const alone = stage.kind === "step" && cells.length === 1;
    const output = stage.as ? ` → ${line(stage.as, 60)}` : "";
    this.state = state;
    this.head.hidden = alone;
    putIcon(this.icon, STEP_ICONS[state]);
    this.icon.className = `sa-sign ${tint(state)}`;
    put(this.title, title);
    put(this.count, all ? `${over}/${all}` : state);
    this.head.title = [title + output, line(stage.aside, 120), line(stage.error, 300)].filter(Boolean).join("\n");
    put(this.none, stage.error ? line(stage.error, 200) : cells.length ? "" : line(stage.aside, 120));
    this.none.className = stage.error ? "sa-none sa-failed" : "sa-none";
    this.none.hidden = !this.none.textContent;
    mark(this.box, { "aria-label": `Stage ${title}, ${state}${all ? `, ${over} of ${all} steps done` : ""}` });
    this.items.hidden = cells.length === 0;
    this.columns = cells.length <= FEW ? 1 : cells.length <= MANY ? 2 : 3;
    this.items.dataset.columns = String(this.columns);
    if (cells.length !== this.cells.length || cells.some((cell, i) => cell !== this.cells[i])) {
      for (const cell of cells) if (cell.item.parentNode !== this.items) this.items.append(cell.item);
      for (const cell of this.cells) if (!cells.includes(cell)) cell.item.remove();
      this.cells = cells;
      const shared = sharedFolder(cells.map((cell) => cell.whole));
      for (const cell of cells) cell.share(shared);
    }
  }
}

/** The folder that all names begin with; nothing if there are not several. @param {string[]} names */
function sharedFolder(names) {
  let shared = names.length > 1 ? names[0].slice(0, names[0].lastIndexOf("/") + 1) : "";
  while (shared && !names.every((name) => name.startsWith(shared) && name.length > shared.length))
    shared = shared.slice(0, shared.lastIndexOf("/", shared.length - 2) + 1);
  return shared;
}

/** All stages, and which step is in the tab order. */
export class Graph {
  box = mark(h("div", "sa-graph"), { role: "list", "aria-label": "Stages of the chain" });
  /** @type {StageColumn[]} */ columns = [];
  /** @type {Map<number, StepCell>} */ cells = new Map();
  /** @type {StageRow[]} */ stages = [];
  /** @type {[number, number] | null} */ told = null;
  seq = -1;
  active = -1; // the number of the step in the tab order
  open = -1; // the number of the step whose panel is shown
  /** @param {(n: number) => void} toggle what opens and closes a step */
  constructor(toggle) {
    this.toggle = toggle;
    this.box.addEventListener("keydown", (event) => this.press(event));
    this.box.addEventListener("focusin", (event) => this.enter(event.target));
  }
  /** Take the whole; an older one than what messages brought is passed over. @param {any} drawn */
  set(drawn) {
    if (!drawn || !Array.isArray(drawn.stages) || !Array.isArray(drawn.steps) || !(drawn.seq >= this.seq)) return;
    this.seq = drawn.seq;
    this.stages = drawn.stages;
    this.told = counted(drawn.counts);
    this.keep(drawn.steps);
    this.arrange();
  }
  /** Take what changed: rows of steps, states of stages. @param {any} more */
  patch(more) {
    if (!Number.isInteger(more.seq) || more.seq <= this.seq) return;
    this.seq = more.seq;
    this.keep(Array.isArray(more.steps) ? more.steps : []);
    for (const [at, state, error, counts] of Array.isArray(more.stages) ? more.stages : [])
      if (this.stages[at]) this.stages[at] = { ...this.stages[at], state, error, counts };
    this.told = counted(more.counts) ?? this.told;
    this.arrange();
  }
  /** @param {StepRow[]} rows */
  keep(rows) {
    for (const row of rows) {
      if (!Number.isInteger(row?.n)) continue;
      const cell = this.cells.get(row.n) ?? new StepCell(row, this.toggle);
      if (!this.cells.has(row.n) && this.cells.size >= MOST) continue;
      this.cells.set(row.n, cell);
      cell.set(row);
    }
  }

  arrange() {
    this.stages.forEach((stage, i) => {
      const column = this.columns[i] ?? new StageColumn();
      if (!this.columns[i]) this.box.append((this.columns[i] = column).box);
      const cells = (Array.isArray(stage.steps) ? stage.steps : []).map((n) => this.cells.get(n));
      column.set(stage, /** @type {StepCell[]} */ (cells.filter(Boolean)));
    });
    if (!this.cells.has(this.active)) this.activate(this.columns.flatMap((column) => column.cells)[0]?.row.n ?? -1);
  }
  /** @param {number} elapsed of the run */
  tick(elapsed) {
    for (const cell of this.cells.values()) cell.tick(elapsed);
  }
  /** @param {number} n */
  row(n) {
    return this.cells.get(n)?.row ?? null;
  }
  /** The first step at work in the order of the stages. */
  get working() {
    return this.columns.flatMap((column) => column.cells).find((cell) => cell.row.state === "running")?.row.n ?? -1;
  }
  /** How many steps are done, and how many there are. */
  get counts() {
    if (this.told) return this.told;
    const cells = [...this.cells.values()];
    return [cells.filter((cell) => isDone(cell.row.state)).length, cells.length];
  }
  /** Say which step's panel is shown. @param {number} n */
  expand(n) {
    for (const [which, step] of [[this.open, "false"], [n, "true"]])
      if (this.cells.has(Number(which))) mark(/** @type {StepCell} */ (this.cells.get(Number(which))).button, { "aria-expanded": step });
    this.open = n;
  }
  /** Scroll the stages so that a step can be seen; the page stays where it is. @param {number} n */
  reveal(n) {
    const [cell, column] = [this.cells.get(n), this.columns.find((one) => one.cells.some((other) => other.row.n === n))];
    if (!cell || !column) return;
    const [items, box] = [column.items, column.box];
    const top = cell.item.offsetTop - items.offsetTop;
    if (top < items.scrollTop || top + cell.item.offsetHeight > items.scrollTop + items.clientHeight) items.scrollTop = top - 70;
    const left = box.offsetLeft + cell.item.offsetLeft;
    if (left < this.box.scrollLeft || left + cell.item.offsetWidth > this.box.scrollLeft + this.box.clientWidth) this.box.scrollLeft = left - 40;
  }
  /** @param {number} n @param {boolean} [focus] */
  activate(n, focus = false) {
    const [before, cell] = [this.cells.get(this.active), this.cells.get(n)];
    if (before) mark(before.button, { tabindex: -1 });
    this.active = cell ? n : -1;
    if (cell) mark(cell.button, { tabindex: 0 });
    if (cell && focus) cell.button.focus();
  }
  /** @param {EventTarget | null} target */
  enter(target) {
    for (const [n, cell] of this.cells) if (cell.button === target && n !== this.active) this.activate(n);
  }
  /** @param {KeyboardEvent} event */
  press(event) {
    if (event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
    if (event.key === "Enter" || event.key === " ") return event.stopPropagation(); // the button's own; not the notebook's
    const to = this.neighbour(event.key);
    if (to === null) return;
    event.preventDefault();
    event.stopPropagation();
    this.activate(to, true);
  }
  /** The step that a key leads to; null if it is no key of ours. @param {string} key */
  neighbour(key) {
    if (!["ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight", "Home", "End"].includes(key)) return null;
    const columns = this.columns.filter((column) => column.cells.length);
    const at = columns.findIndex((column) => column.cells.some((cell) => cell.row.n === this.active));
    if (at < 0) return this.active;
    const { cells, columns: wide } = columns[at];
    const i = cells.findIndex((cell) => cell.row.n === this.active);
    const row = Math.floor(i / wide);
    /** @param {number} where @param {boolean} last */
    const beside = (where, last) => {
      const next = columns[where];
      if (!next) return this.active;
      const first = row * next.columns;
      return next.cells[Math.min(first + (last ? next.columns - 1 : 0), next.cells.length - 1)].row.n;
    };
    if (key === "ArrowDown") return cells[i + wide]?.row.n ?? this.active;
    if (key === "ArrowUp") return cells[i - wide]?.row.n ?? this.active;
    if (key === "ArrowRight") return i % wide < wide - 1 && cells[i + 1] ? cells[i + 1].row.n : beside(at + 1, false);
    if (key === "ArrowLeft") return i % wide > 0 ? cells[i - 1].row.n : beside(at - 1, true);
    return (key === "Home" ? columns[0] : columns[columns.length - 1]).cells[0].row.n;
  }
}
