// @ts-check
/**
 * The board: all runs, grouped by what they need; an anywidget (AFM) module. What needs a person comes first and never
 * moves the focus or the scroll.
 *
 * @typedef {import("./row.js").RowData} RowData
 * @typedef {{get(name: string): any, send(message: any): void, on(event: string, ear: (message?: any) => void): void,
 *   off(event: string, ear: (message?: any) => void): void, widget_manager?: any}} Model
 */
import { Mailbox } from "./asks.js";
import { drawNever, drawSoon } from "./beat.js";
import { Group, NEEDS, counted, entitle, inOrder, keys, settle, tally, whyWaiting } from "./group.js";
import { Hand } from "./hand.js";
import { ago, h, hide, line, mark, number, put, short } from "./dom.js";
import { Row } from "./row.js";
import { rendering, standing } from "./stand.js";

const GROUPINGS = ["need", "agent", "experiment", "tag", "notebook", "day"];
const STALE_MS = 15_000; // three missed beats of a kernel that runs a cell; an idle one has nothing to say

export class Board {
  /** @type {Map<string, Row>} */ rows = new Map();
  /** @type {Map<string, Group>} */ groups = new Map();
  /** @type {Set<string>} */ picked = new Set();
  /** @type {Row | null} Whose run is open in full. */ opened = null;
  at = ""; // the row that the keys mean
  by = "need";
  seq = 0;
  heardAt = performance.now();
  orphan = false; // its kernel is gone
  spokenOf = 0;
  told = ""; // what was done with all that was selected
  closed = false;
  about = h("span", "sa-agent");
  sums = h("span", "sa-facts");
  filter = mark(h("input"), { type: "search", placeholder: "Filter: a word, agent:scout, notebook:prices, failed", "aria-label": "Show the runs that hold these words" });
  by_ = GROUPINGS.map((name) => mark(h("button", "", name), { type: "button", "aria-pressed": String(name === "need"), tabindex: name === "need" ? 0 : -1 }));
  body = h("div", "sa-board-rows");
  none = h("p", "sa-note sa-board-none");
  strip = h("div", "sa-strip");
  stripText = h("b");
  stopAll = mark(h("button", "sa-danger", "Stop"), { type: "button" });
  seeAll = mark(h("button", "", "Seen"), { type: "button" });
  clear = mark(h("button", "", "Clear ", mark(h("kbd", "", "esc"), { "aria-hidden": "true" })), { type: "button" });
  age = h("span", "sa-aside");
  stale = h("p", "sa-say sa-stale");
  spoken = mark(h("p", "sa-hide"), { role: "status", "aria-live": "polite" });
  section = h("section", "sa sa-board",
    h("header", "sa-head", h("span", "sa-title", "Runs"), this.about, this.sums),
    h("div", "sa-board-bar", this.filter, mark(h("span", "sa-by", h("span", "sa-aside", "group by "), ...this.by_), { role: "group", "aria-label": "Group by" })),
    this.stale, this.body, this.none, this.strip,
    h("footer", "sa-foot", keys(["↑", "↓", "move"], ["1", "–", "4", "answer"], ["↵", "open"], ["x", "select"], ["X", "all"], ["s", "stop"], ["/", "filter"]), this.age), this.spoken);
  /** @type {[string, (message?: any) => void][]} */
  ears = [
    ["change:fresh", () => this.hearFresh()], ["change:rows", () => this.hearAll()], ["change:head", () => this.hear()], ["change:beat", () => this.hear()],
    ["msg:custom", (message) => this.receive(message)], ["comm_live_update", () => ((this.orphan = true), this.redraw())],
  ];
  /** @param {Model} model */
  constructor(model) {
    this.model = model;
    this.mail = new Mailbox(model, () => this.redraw());
    this.hand = new Hand(this.section, this.body, () => [...this.rows.values()]);
    mark(this.section, { "aria-label": "Runs" });
    this.filter.addEventListener("input", () => this.draw());
    this.by_.forEach((button, i) => button.addEventListener("click", () => this.groupBy(GROUPINGS[i])));
    this.strip.append(this.stripText, this.stopAll, this.seeAll, this.clear);
    this.stopAll.addEventListener("click", () => this.stopPicked());
    this.seeAll.addEventListener("click", () => this.seePicked());
    this.clear.addEventListener("click", () => this.clearPicked());
    this.section.addEventListener("keydown", (event) => this.press(event));
  }
  start() {
    for (const [event, ear] of this.ears) this.model.on(event, ear);
    this.hand.start();
    this.hearAll();
    this.hearFresh();
    this.draw();
    this.ticking = setInterval(() => this.redraw(), 1000);
    return this;
  }
  close() {
    for (const [event, ear] of this.ears.splice(0)) this.model.off(event, ear);
    clearInterval(this.ticking);
    drawNever(this);
    this.mail.close();
    this.closed = true;
    this.hand.close();
    entitle(this, null);
  }
  redraw() {
    if (!this.closed) drawSoon(this);
  }

  hear() {
    [this.heardAt, this.orphan] = [performance.now(), false];
    this.redraw();
  }
  hearAll() {
    const rows = this.model.get("rows") ?? {};
    for (const [id, row] of Object.entries(rows)) this.take(id, row);
    for (const id of [...this.rows.keys()]) if (!Object.hasOwn(rows, id)) this.drop(id);
    this.hear();
  }
  hearFresh() {
    const fresh = this.model.get("fresh") ?? {};
    for (const [id, row] of Object.entries(fresh.rows ?? {})) this.take(id, row);
    for (const id of Array.isArray(fresh.gone) ? fresh.gone : []) this.drop(String(id));
    this.hear();
  }
  /** @param {string} id @param {any} data */
  take(id, data) {
    const row = this.rows.get(id);
    if (row) (row.gone = false, row.take(data));
    else this.rows.set(id, new Row({ ...data, id }, this));
  }
  /** @param {string} id */
  drop(id) {
    const row = this.rows.get(id);
    this.picked.delete(id);
    if (row) row.gone = true;
  }
  /** Take away what is gone, but nothing that the reader is in: its keys would mean the next row. */
  sweep() {
    for (const [id, row] of this.rows) {
      if (!row.gone || row.focused) continue;
      if (this.opened?.data.id === id) this.shut();
      row.box.remove();
      this.rows.delete(id);
    }
  }
  /** @param {any} message */
  receive(message) {
    [this.heardAt, this.orphan] = [performance.now(), false];
    const id = String(message?.run);
    if (message?.kind === "ack") {
      this.mail.hear(message);
      this.rows.get(id)?.hear(message);
    }
    this.redraw();
  }
  /** @param {any} request */
  ask(request) {
    this.mail.ask(request);
  }

  /** @param {Row} row */
  open(row) {
    const same = this.opened === row;
    this.shut();
    this.at = row.data.id;
    if (!same) {
      this.opened = row;
      row.place.open({ run: row.data.id });
    }
    this.draw();
  }
  shut() {
    this.opened?.place.close();
  }
  /** A run that was open in full is closed. @param {Row} row @param {boolean} within whether the reader was in it */
  left(row, within) {
    if (this.opened === row) this.opened = null;
    if (within) row.box.focus({ preventScroll: true });
    this.redraw();
  }
  /** @param {Row} row */
  pick(row) {
    if (!this.picked.delete(row.data.id)) this.picked.add(row.data.id);
    this.draw();
  }
  /** Select all of these, or none if they all are. @param {Row[]} rows */
  pickAll(rows) {
    const ids = rows.map((row) => row.data.id);
    const all = ids.every((id) => this.picked.has(id));
    for (const id of ids) all ? this.picked.delete(id) : this.picked.add(id);
    this.draw();
  }
  clearPicked() {
    this.told = "";
    this.picked.clear();
    this.draw();
    this.current?.box.focus({ preventScroll: true });
  }
  /** Those that are selected and in sight: what a filter or a fold hides is not meant. */
  get meant() {
    return this.shown.filter((row) => this.picked.has(row.data.id));
  }
  stopPicked() {
    this.actPicked("asked to stop", (row) => row.stop());
  }
  seePicked() {
    this.actPicked("seen", (row) => row.see());
  }
  /** @param {string} done @param {(row: Row) => boolean} act whether it was asked for */
  actPicked(done, act) {
    const { meant } = this;
    const names = meant.filter(act).map((row) => line(row.data.name, 40));
    for (const row of meant) this.picked.delete(row.data.id);
    this.told = `${names.length} ${done}${names.length ? `: ${names.slice(0, 8).join(", ")}${names.length > 8 ? ` and ${names.length - 8} more` : ""}` : ""}`;
    put(this.spoken, this.told);
    this.draw();
    this.current?.box.focus({ preventScroll: true });
  }
  /** @param {string} by */
  groupBy(by) {
    this.by = by;
    this.by_.forEach((button, i) => mark(button, { "aria-pressed": String(GROUPINGS[i] === by), tabindex: GROUPINGS[i] === by ? 0 : -1 }));
    this.draw();
  }
  get current() {
    return this.rows.get(this.at);
  }
  /** The rows in sight, in their order. */
  get shown() {
    const groups = new Map([...this.groups.values()].map((group) => [/** @type {Element} */ (group.box), group]));
    return Array.from(this.body.children, (box) => groups.get(box)).filter((group) => group !== undefined).filter((group) => !group.folded)
      .flatMap((group) => Array.from(group.list.children, (box) => [...this.rows.values()].find((row) => row.box === box))).filter((row) => row !== undefined);
  }

  /** The keys mean the row that holds this node, if one does. @param {HTMLElement} node */
  mean(node) {
    for (const row of this.rows.values()) if (row.box.contains(node)) this.at = row.data.id;
  }
  /** @param {KeyboardEvent} event */
  press(event) {
    const target = /** @type {HTMLElement} */ (event.target);
    const tag = String(target?.tagName ?? "").toLowerCase();
    this.mean(target);
    if (this.body.contains(target)) this.hand.at = performance.now();
    const writing = (tag === "input" && target !== this.current?.box_) || tag === "textarea";
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    const held = event.repeat && !writing && !event.key.startsWith("Arrow"); // a key that is held answers nothing more
    if (held) {
      // it goes nowhere else either
    } else if (writing) {
      if (event.key !== "Escape" && !(target === this.filter && /^(ArrowDown|Enter)$/.test(event.key))) return;
      if (target === this.filter && event.key === "Escape") this.filter.value = "";
      this.draw();
      (this.current ?? this.shown[0])?.box.focus({ preventScroll: true });
    } else if (!this.turn(target, event.key) && !this.act(event.key, tag === "button" || tag === "summary")) return;
    event.preventDefault();
    event.stopPropagation(); // the notebook would take it for its own
  }
  /** The arrows go through the groupings, which are one tab stop. @param {any} target @param {string} key */
  turn(target, key) {
    const at = this.by_.indexOf(target), by = key === "ArrowRight" ? 1 : key === "ArrowLeft" ? -1 : 0;
    if (at < 0 || !by) return false;
    const next = (at + by + GROUPINGS.length) % GROUPINGS.length;
    this.groupBy(GROUPINGS[next]);
    this.by_[next].focus({ preventScroll: true });
    return true;
  }
  /** Carry out a key; whether it was one. @param {string} key @param {boolean} onButton */
  act(key, onButton) {
    const row = this.current?.focused ? this.current : undefined; // the keys mean the row that the reader is in
    if (key === "ArrowDown" || key === "ArrowUp") return this.move(key === "ArrowDown" ? 1 : -1);
    if (key === "/") return (this.filter.focus(), true);
    if (key === "g") return (this.groupBy(GROUPINGS[(GROUPINGS.indexOf(this.by) + 1) % GROUPINGS.length]), true);
    if (key === "Escape") return this.opened ? (this.shut(), true) : this.picked.size || this.told ? (this.clearPicked(), true) : false;
    if (key === "X") return (this.pickAll(this.shown), true);
    if (key === "s" && this.picked.size) return (this.stopPicked(), true);
    if (key === "e" && this.picked.size) return (this.seePicked(), true);
    if (!row || (key === "Enter" && onButton)) return false;
    if (key === "Enter") return (this.open(row), true);
    if (key === "x") return (this.pick(row), true);
    if (key === "s") return (row.stop(), this.draw(), true);
    if (key === "t") return (row.write("steer"), true);
    if (key === "w" && row.data.need === "asks") return (row.write("answer"), true);
    if (key === "e") return (row.see(), true);
    return /^[1-4]$/.test(key) && row.data.need === "asks" && !row.place.focused && row.choose(Number(key) - 1);
  }
  /** @param {number} by */
  move(by) {
    const shown = this.shown;
    if (shown.length === 0) return false;
    const at = shown.findIndex((row) => row.data.id === this.at);
    const next = shown[Math.max(0, Math.min(shown.length - 1, this.current?.focused ? at + by : at))];
    this.at = next.data.id;
    next.box.focus({ preventScroll: true }); // first: what has the focus is what the keys mean
    this.draw();
    next.box.scrollIntoView?.({ block: "nearest" });
    return true;
  }

  draw() {
    const now = performance.now();
    const stale = this.orphan || this.silent(now);
    const words = this.filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    const root = /** @type {Document | ShadowRoot} */ (this.section.getRootNode());
    const had = /** @type {HTMLElement | null} */ (root.activeElement);
    const within = had && this.section.contains(had) ? had : null;
    if (within) this.mean(within);
    this.sweep();
    const shown = [...this.rows.values()].filter((row) => row.fits(words)).sort((a, b) => inOrder(a.data, b.data));
    const tops = this.hand.tops();
    this.place(shown);
    this.at = shown.some((row) => row.data.id === this.at) ? this.at : shown[0]?.data.id ?? "";
    for (const row of shown) row.draw(now, stale || this.mail.idle, this.picked.has(row.data.id), row.data.id === this.at);
    if (within && root.activeElement !== within && within.isConnected) within.focus({ preventScroll: true });
    this.hand.steady(tops, now);
    this.drawFrame(shown, stale, now, words.length > 0);
  }
  /** Whether the kernel says nothing though it should. @param {number} now */
  silent(now) {
    const kernel = this.mail.kernel;
    if (!kernel) return false; // this host does not tell: how old the board is stands below it
    if (kernel.connectionStatus && kernel.connectionStatus !== "connected") return now - this.heardAt >= STALE_MS;
    if (kernel.status === "dead") return true;
    if (kernel.status !== "busy") this.busyAt = now;
    return now - Math.max(this.heardAt, this.busyAt) >= STALE_MS;
  }
  busyAt = -Infinity; // when the kernel was last seen idle
  /** Put the rows under their headings; one that the reader is in stays where it is, and all do while the hand is there. @param {Row[]} shown */
  place(shown) {
    const { held } = this.hand;
    /** @type {Map<string, Row[]>} */ const under = new Map(this.by === "need" ? NEEDS.map(([need]) => [need, []]) : []);
    for (const row of shown) {
      const key = String(this.by === "need" ? row.data.need : /** @type {any} */ (row.data)[this.by] || "none");
      const known = `${this.by}:${key}`;
      const stays = (held || row.focused || row === this.opened) && row.box.parentNode && row.group.startsWith(`${this.by}:`) && this.groups.has(row.group) ? row.group : known;
      row.group = stays;
      const name = stays.slice(this.by.length + 1);
      under.set(name, [...(under.get(name) ?? []), row]);
    }
    const order = [...under].filter(([, rows]) => rows.length);
    const boxes = order.map(([name, rows]) => {
      const key = `${this.by}:${name}`;
      const group = this.groups.get(key) ?? new Group(this.by === "need" ? name : "", (one) => this.pickAll(this.shown.filter((row) => one.list.contains(row.box))));
      this.groups.set(key, group);
      const [, label, aside] = NEEDS.find(([need]) => this.by === "need" && need === name) ?? ["", name, ""];
      put(group.label, line(label, 80));
      const [count, left] = counted(rows, this.by === "need" ? name : "");
      put(group.count, count);
      const more = this.by !== "need" ? "" : name === "done" ? tally(rows) : name === "waiting" ? whyWaiting(this.model.get("head") ?? {}, this.rows.values()) : aside;
      put(group.aside, [more, left].filter(Boolean).join(" · "));
      mark(group.box, { "data-need": this.by === "need" ? name : "" });
      mark(group.list, { "aria-label": line(label, 80) });
      let boxes = rows.map((row) => /** @type {HTMLElement} */ (row.box));
      const stood = /** @type {HTMLElement[]} */ (Array.from(group.list.children));
      if (held) boxes = [...stood.filter((box) => boxes.includes(box)), ...boxes.filter((box) => !stood.includes(box))];
      const reader = rows.find((row) => row.focused)?.box;
      const at = reader ? stood.indexOf(reader) : -1;
      if (!held && reader && at >= 0) boxes.splice(at, 0, ...boxes.splice(boxes.indexOf(reader), 1));
      settle(group.list, boxes);
      return group.box;
    });
    settle(this.body, boxes);
  }
  /** @param {Row[]} shown @param {boolean} stale @param {number} now @param {boolean} filtered */
  drawFrame(shown, stale, now, filtered) {
    const head = this.model.get("head") ?? {};
    const [taken, limit, hidden] = [number(head.taken), number(head.limit), number(head.hidden)];
    put(this.about, [limit === null ? "" : `${taken ?? 0} of ${limit} places taken`, filtered ? `${shown.length} of ${this.rows.size} shown` : "",
      hidden ? `${hidden.toLocaleString("en-US")} ended ones not listed` : ""].filter(Boolean).join(" · "));
    const tokens = (number(head.sent) ?? 0) + (number(head.got) ?? 0);
    const sums = [`today ${number(head.today) ?? 0} ${head.today === 1 ? "run" : "runs"}`, tokens ? `${short(number(head.sent) ?? 0)} / ${short(number(head.got) ?? 0)} tokens` : "", line(head.cost, 20)];
    put(this.sums, sums.filter(Boolean).join(" · "));
    put(this.none, this.rows.size === 0 ? "No run to show." : shown.length === 0 ? "No run holds these words." : "");
    hide(this.none, !this.none.textContent);
    const { meant } = this;
    const [live, unseen, unmeant] = [meant.filter((row) => row.live).length, meant.filter((row) => row.data.need === "failed").length, this.picked.size - meant.length];
    const few = this.picked.size > 0;
    hide(this.strip, !few && !this.told);
    put(this.stripText, [this.told, few ? `${this.picked.size} selected${unmeant ? `, ${unmeant} not in sight and left alone` : ""}` : ""].filter(Boolean).join(" · "));
    hide(this.stopAll, !few);
    put(this.stopAll, `Stop ${live}`);
    put(this.seeAll, `Seen ${unseen}`);
    this.stopAll.disabled = live === 0;
    hide(this.seeAll, unseen === 0);
    put(this.stale, !stale ? "" : this.orphan ? "The kernel was restarted, so this board stands still. It goes on once %load_ext subagents_nb was run."
      : "The notebook's kernel is not answering, so this board is old.");
    hide(this.stale, !stale);
    put(this.age, `updated ${ago((now - Math.max(this.heardAt, this.orphan ? 0 : this.busyAt)) / 1000)}`); // idle: it would have said
    const ids = [...this.rows.values()].filter((row) => row.data.need === "asks" && !row.gone).map((row) => row.data.id);
    const asks = ids.length;
    entitle(this, this.orphan ? [] : ids); // what a kernel that is gone has said is no news
    if (asks !== this.spokenOf) put(this.spoken, asks ? `${asks} ${asks === 1 ? "run asks" : "runs ask"} you` : "No run asks you any more");
    this.spokenOf = asks;
  }
}

const stand = standing(Board);

/** A view that is made later begins with `rows`: they are kept up to date though no view is there. @param {{model: Model}} host */
function initialize(host) {
  const { model } = host;
  const keep = () => {
    const [fresh, rows] = [model.get("fresh") ?? {}, model.get("rows") ?? {}];
    for (const row of Object.values(fresh.rows ?? {})) row.heard = performance.now(); // its ages are of now
    Object.assign(rows, fresh.rows ?? {});
    for (const id of fresh.gone ?? []) delete rows[id];
  };
  model.on("change:fresh", keep);
  const leave = stand(host);
  return () => (model.off("change:fresh", keep), leave());
}

export default { initialize, render: rendering(Board) };
