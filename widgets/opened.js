// @ts-check
/**
 * A run in full, in place: why it ended, its task, where it comes from, its limits, everything it did, what it left; an
 * anywidget (AFM) module. It stands below a row, a card, a view or a step, wherever the class of its token is.
 *
 * @typedef {import("./entry.js").Entry} Entry
 * @typedef {{get(name: string): any, send(message: any): void, on(event: string, ear: (message?: any) => void): void,
 *   off(event: string, ear: (message?: any) => void): void, widget_manager?: any}} Model
 */
import { Mailbox, PermissionBlock, QuestionBlock } from "./asks.js";
import { drawNever, drawSoon } from "./beat.js";
import { ICONS_OF, clean, cut, h, hide, line, makeMeter, mark, number, put, putClass, putIcon, thousands } from "./dom.js";
import { EntryRow, Parts } from "./entry.js";
import { Place } from "./place.js";
import { standing } from "./stand.js";

const [RENEW_MS, TYPED_MS, SILENT_MS, SEARCH_MS] = [2_000, 250, 15_000, 5_000];
const READ_MS = 800; // before that nobody has read a question
const LOOKS = "looks…";
const METERS = ["deadline", "requests", "tools", "tokens", "money"];

export class Opened {
  error = h("p", "sa-error");
  errorBox = h("div", "sa-say sa-failed", this.error);
  icon = h("span");
  state = h("span");
  word = h("span", "sa-state", this.icon, this.state);
  title = h("strong", "sa-title");
  who = h("span", "sa-agent");
  spent = h("span", "sa-facts");
  task = h("p", "sa-opened-task");
  facts = h("div", "sa-opened-facts");
  lineage = h("div", "sa-lineage");
  load = h("span", "sa-note");
  questions = h("div", "sa-asks");
  meters = METERS.map((label) => makeMeter(label));
  meterBox = h("div", "sa-meters", ...this.meters.map((meter) => meter.box));
  did = h("span", "sa-count");
  search = mark(h("input"), { type: "search", placeholder: "Find in all it did", "aria-label": "Find in all it did", autocomplete: "off" });
  found = mark(h("span", "sa-count"), { role: "status" });
  before = mark(h("button", "", "‹"), { type: "button", "aria-label": "The match before" });
  after = mark(h("button", "", "›"), { type: "button", "aria-label": "The next match" });
  list = mark(h("div", "sa-did"), { role: "group", "aria-label": "What it did" });
  artifacts = h("ul", "sa-artifacts");
  answerTitle = h("strong");
  answer = new Parts((_, from) => this.send({ kind: "part", at: -1, from }));
  fault = mark(h("p", "sa-note sa-failed"), { role: "status" });
  hint = h("code");
  shut = mark(h("button", "", "Close ", mark(h("kbd", "", "esc"), { "aria-hidden": "true" })), { type: "button", "data-shut": "1" });
  link = this.lineage; // which opened the relative
  relative = new Place((request) => this.send(request), (within) => within && this.rest(this.link));
  section = mark(h("section", "sa sa-opened", h("div", "sa-opened-head", this.word, this.title, this.who, this.spent), this.errorBox, this.questions, this.task, this.facts, this.lineage, this.relative.box, this.load,
    this.meterBox, h("div", "sa-opened-bar", h("strong", "", "What it did"), this.did, h("span", "sa-finder", this.search, this.found, this.before, this.after)),
    this.list, h("div", "sa-left", h("strong", "", "Artifacts"), this.artifacts), h("div", "sa-left", this.answerTitle, this.answer.box), this.fault,
    h("div", "sa-panel-foot", this.shut, h("span", "sa-note", "as a notebook: ", this.hint))), { role: "group", tabindex: -1 });
  /** @type {Map<string, QuestionBlock | PermissionBlock>} */ blocks = new Map();
  /** @type {Map<number, EntryRow>} By the byte at which each begins. */ rows = new Map();
  /** @type {EntryRow[]} In their order. */ order = [];
  /** @type {Map<string, EntryRow>} */ byKey = new Map();
  /** @type {[number, number][]} The pieces of the events that are here. */ spans = [];
  /** @type {number[]} */ places = []; // of the matches
  match = -1;
  /** @type {EntryRow | undefined} Whose match is to be seen. */ sighted;
  wanted = -1; // the match that waits for its page
  phrase = "";
  greetedAt = -Infinity;
  sought = 0; // when a search was asked for
  next = 0; // where what is new begins
  heardAt = performance.now();
  lookedAt = performance.now();
  orphan = false;
  closed = false;
  /** @type {any} */ head = {};
  /** @type {ReturnType<typeof setTimeout> | undefined} */ typed;
  /** @type {[string, (message?: any) => void][]} */
  ears = [["msg:custom", (message) => this.receive(message)], ["comm_live_update", () => ((this.orphan = true), this.redraw())]];
  /** @param {Model} model */
  constructor(model) {
    this.model = model;
    this.mail = new Mailbox(model, () => this.redraw());
    mark(this.section, { "data-lm-suppress-shortcuts": "true" });
    const [artifacts, answer] = this.section.getElementsByClassName("sa-left");
    this.artifactBox = /** @type {HTMLElement} */ (artifacts);
    this.answerBox = /** @type {HTMLElement} */ (answer);
    this.search.addEventListener("input", () => {
      clearTimeout(this.typed);
      this.typed = setTimeout(() => this.find(), TYPED_MS);
    });
    this.before.addEventListener("click", () => this.go(this.match - 1));
    this.after.addEventListener("click", () => this.go(this.match + 1));
    this.section.addEventListener("keydown", (event) => {
      if (!this.blocks.size || performance.now() - this.greetedAt >= READ_MS || !/^[0-9]$/.test(event.key)) return;
      event.preventDefault();
      event.stopPropagation();
    }, true);
    this.section.addEventListener("keydown", (event) => this.press(event));
  }
  start() {
    for (const [event, ear] of this.ears) this.model.on(event, ear);
    const told = this.model.get("told") ?? {};
    this.hearHead(told.head ?? {});
    for (const page of Array.isArray(told.pages) ? told.pages : []) this.hearPage(page);
    this.hearMatches([]);
    this.draw();
    this.ticking = setInterval(() => this.redraw(), 1000);
    globalThis.requestAnimationFrame?.(() => this.greet());
    return this;
  }
  close() {
    for (const [event, ear] of this.ears.splice(0)) this.model.off(event, ear);
    clearInterval(this.ticking);
    clearTimeout(this.typed);
    drawNever(this);
    this.mail.close();
    this.closed = true;
  }
  /** Whoever opened it reads on in here; a digit that comes with the focus was pressed before anything was read. */
  greet() {
    this.greetedAt = performance.now();
    const root = /** @type {Document | ShadowRoot} */ (this.section.getRootNode());
    if (root.activeElement && this.section.parentNode?.parentNode?.contains(root.activeElement)) this.rest([...this.blocks.values()][0]?.box ?? this.section);
    this.section.scrollIntoView?.({ block: "nearest" });
  }
  /** The reader goes on there, or here if that is gone. @param {HTMLElement} node */
  rest(node) {
    (node.isConnected ? node : this.section).focus({ preventScroll: true });
  }
  redraw() {
    if (!this.closed) drawSoon(this);
  }
  /** @param {any} message */
  send(message) {
    try {
      this.model.send(message);
    } catch { /* the connection is closed */ }
  }

  /** @param {any} message */
  receive(message) {
    [this.heardAt, this.orphan] = [performance.now(), false];
    if (message?.kind === "head") {
      this.hearHead(message);
      if (message.page) this.hearPage(message.page);
    } else if (message?.kind === "page") this.hearPage(message);
    else if (message?.kind === "part") (message.at === -1 ? this.answer : this.rows.get(message.at))?.hear(message.parts, this.phrase), this.sight(message.at);
    else if (message?.kind === "found" && message.text === this.phrase) this.hearMatches(Array.isArray(message.places) ? message.places : []);
    else if (message?.kind === "fault") put(this.fault, line(message.text));
    else if (message?.kind === "ack") {
      this.mail.hear(message);
      this.blocks.get(String(message.question))?.hear(message);
    }
    this.redraw();
  }
  /** @param {any} head */
  hearHead(head) {
    this.head = head;
    const name = line(head.name, 120);
    mark(this.section, { "aria-label": `${name} in full, ${line(head.state, 30)}` });
    putIcon(this.icon, ICONS_OF[head.state] ?? "dashes");
    putClass(this.word, `sa-state sa-${head.state === "asks you" ? "asking" : line(head.state, 20)}`);
    put(this.state, line(head.state, 30));
    put(this.title, [name, line(head.title, 160)].filter(Boolean).join(" · "));
    put(this.who, line(head.who, 200));
    put(this.spent, line(head.spent, 60));
    put(this.error, cut(clean(head.error).trim(), 4000));
    put(this.task, cut(clean(head.task).trim(), 20_400));
    const cell = this.cellNumber(String(head.cell ?? ""));
    const facts = (Array.isArray(head.facts) ? head.facts : []).slice(0, 24);
    const said = (/** @type {any} */ value) => line(value, 600).replace(/^a cell of /, cell ? `cell ${cell} of ` : "a cell of ");
    const shown = JSON.stringify([facts, cell]);
    if (this.facts.dataset.shown !== shown) {
      this.facts.dataset.shown = shown;
      this.facts.replaceChildren(...facts.flatMap((/** @type {any} */ [label, value]) => [h("span", "sa-fact", line(label, 40)), h("span", "", said(value))]));
    }
    this.hearLineage(Array.isArray(head.lineage) ? head.lineage.slice(0, 16) : []);
    put(this.load, head.load ? `at work: ${line(head.load, 200)}` : "");
    (Array.isArray(head.meters) ? head.meters : []).slice(0, METERS.length).forEach((/** @type {any} */ meter, /** @type {number} */ i) => {
      const part = number(meter.part);
      this.meters[i].set([line(meter.text, 60), line(meter.word, 20)].filter(Boolean).join(" · "), 100 * (part ?? 0), part === null ? null : 100);
    });
    hide(this.meterBox, !head.meters?.length);
    put(this.did, line(head.did, 120));
    const files = (Array.isArray(head.artifacts) ? head.artifacts : []).slice(0, 60);
    this.artifacts.replaceChildren(...files.map((/** @type {any} */ one) => h("li", "", h("code", "", line(one.name, 160)), ` ${line(one.kind, 20)} ${line(one.size, 40)}`)));
    hide(this.artifactBox, files.length === 0);
    const shownTo = this.answer.texts.get("text")?.end ?? 0;
    if (shownTo <= (number(head.answer?.read) ?? 0)) this.answer.hear([head.answer ?? {}], this.phrase); // else more of it was asked for
    put(this.answerTitle, ["complete", "partial"].includes(head.state) ? "Answer" : "What it wrote last");
    hide(this.answerBox, !head.answer?.text);
    put(this.hint, line(head.next, 160));
    this.hearQuestions(Array.isArray(head.questions) ? head.questions.slice(0, 4) : []);
    for (const part of [this.task, this.load]) hide(part, !part.textContent);
    hide(this.errorBox, !this.error.textContent);
  }
  /** The runs it came from and that came from it; each opens below. @param {any[]} runs */
  hearLineage(runs) {
    const shown = JSON.stringify(runs);
    if (this.lineage.dataset.shown === shown) return;
    this.lineage.dataset.shown = shown;
    this.lineage.replaceChildren(...runs.map((one) => {
      const button = mark(h("button", "sa-link", line(one.name, 80)), { type: "button" });
      button.disabled = !one.run;
      button.addEventListener("click", () => {
        this.relative.close();
        this.link = button;
        this.relative.open({ run: String(one.run) });
      });
      return h("span", "", h("span", "sa-fact", `${line(one.word, 30)} `), button, ` ${line(one.state, 20)}`);
    }));
  }
  /** Where the cell stands in this notebook, counted from 1; nothing if it is in none. @param {string} id */
  cellNumber(id) {
    try {
      const cells = this.model.widget_manager.context.model.cells; // of JupyterLab and Notebook 7
      for (let i = 0; id && i < cells.length; i++) if (cells.get(i).id === id) return i + 1;
    } catch { /* another host */ }
    return 0;
  }
  /** @param {any[]} questions */
  hearQuestions(questions) {
    const open = new Map(questions.map((question) => [String(question?.id), question]));
    for (const [id, block] of this.blocks) {
      if (open.has(id)) continue;
      if (block.focused) this.rest(this.section);
      block.box.remove();
      this.blocks.delete(id);
    }
    for (const [id, question] of open) {
      if (this.blocks.has(id)) continue;
      const Kind = question.permission ? PermissionBlock : QuestionBlock;
      /** @type {QuestionBlock | PermissionBlock} */
      const block = new Kind({ ...question, id }, (text) => {
        block.asked.begin(text);
        this.mail.ask(/** @type {any} */ ({ kind: "answer", question: id, text }));
      });
      block.heed();
      this.blocks.set(id, block);
      this.questions.append(block.box);
    }
  }

  /** Put in what a page brings; rows that are there stay as they are, so that nothing that was opened closes. @param {any} page */
  hearPage(page) {
    if (page?.kind !== "page") return put(this.fault, line(page?.text));
    const [from, to] = [number(page.from) ?? 0, number(page.to) ?? 0];
    for (const entry of Array.isArray(page.entries) ? page.entries : []) this.take(entry);
    for (const end of Array.isArray(page.ends) ? page.ends : []) this.byKey.get(String(end?.key))?.take(end);
    if (to > from) this.spans = joinedSpans([...this.spans, [from, to]]);
    if (to >= this.next) this.next = number(page.next) ?? to;
    this.drawGaps();
    if (this.wanted >= 0 && this.rows.has(this.places[this.wanted])) this.go(this.wanted);
    else this.wanted = -1;
  }
  /** @param {Entry} entry */
  take(entry) {
    const [at, key] = [number(entry?.at), String(entry?.key ?? "")];
    if (at === null) return;
    const before = this.rows.get(at);
    if (before) return before.take(entry);
    if (entry.kind === "steered" && this.byKey.has(key)) return this.byKey.get(key)?.take({ aside: entry.aside });
    const row = new EntryRow(entry, (request) => this.send(request));
    row.find(this.phrase);
    this.rows.set(at, row);
    if (key) this.byKey.set(key, row);
    let place = this.order.length;
    while (place > 0 && this.order[place - 1].data.at > at) place -= 1;
    this.list.insertBefore(row.box, this.order[place]?.box ?? null);
    this.order.splice(place, 0, row);
  }
  /** Say between two pieces what is not here, with what brings it. */
  drawGaps() {
    for (const old of Array.from(this.list.getElementsByClassName("sa-gap"))) old.remove();
    this.spans.slice(1).forEach(([to], i) => {
      const from = this.spans[i][1];
      const button = mark(h("button", "", "Show more of it"), { type: "button" });
      button.addEventListener("click", () => this.send({ kind: "page", at: from }));
      const gap = h("div", "sa-gap", `… ${thousands(Math.ceil((to - from) / 1024))} KB between are not shown `, button);
      this.list.insertBefore(gap, this.order.find((row) => row.data.at >= to)?.box ?? null);
    });
  }

  find() {
    const phrase = this.search.value.trim().toLowerCase();
    if (phrase === this.phrase) return;
    this.phrase = phrase;
    for (const row of this.order) row.find(phrase);
    this.answer.find(phrase);
    this.hearMatches([]);
    if (!phrase) return;
    put(this.found, LOOKS);
    this.sought = performance.now();
    this.send({ kind: "find", text: phrase });
  }
  /** @param {number[]} places */
  hearMatches(places) {
    [this.places, this.match, this.wanted] = [places.filter((at) => number(at) !== null), -1, -1];
    this.drawMatches();
  }
  drawMatches() {
    const count = this.places.length;
    put(this.found, !this.phrase ? "" : this.match < 0 ? `${thousands(count)} found` : `${this.match + 1} of ${thousands(count)}`);
    for (const button of [this.before, this.after]) hide(button, count === 0);
  }
  /** Go to a match, round the end; one that is not here is asked for. @param {number} i */
  go(i) {
    const count = this.places.length;
    if (!count) return;
    this.match = ((i % count) + count) % count;
    this.drawMatches();
    const at = this.places[this.match], row = this.rows.get(at);
    if (!row) {
      this.wanted = this.match;
      return this.send({ kind: "page", at });
    }
    this.wanted = -1;
    this.sighted = row;
    this.openRow(row, false);
  }
  /** What lies behind a match has come: the match itself comes into sight. @param {unknown} at */
  sight(at) {
    if (this.sighted?.data.at !== at) return;
    const [found] = Array.from(this.sighted?.parts.box.getElementsByTagName("mark") ?? []);
    this.sighted = undefined;
    found?.scrollIntoView?.({ block: "nearest" });
  }
  /** @param {EntryRow} row @param {boolean} focus */
  openRow(row, focus) {
    if (row.opens) /** @type {any} */ (row.box).open = true;
    row.show();
    if (focus) row.head.focus({ preventScroll: true });
    row.box.scrollIntoView?.({ block: "nearest" });
  }

  /** @param {KeyboardEvent} event */
  press(event) {
    const target = /** @type {HTMLElement} */ (event.target), tag = String(target?.tagName ?? "").toLowerCase();
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || this.relative.box.contains(target)) return;
    if (target === this.search) {
      if (event.key !== "Enter") return;
      this.find();
      this.go(this.match + (event.shiftKey ? -1 : 1));
    } else if (tag === "input" || tag === "textarea" || !this.act(event.key)) return;
    event.preventDefault();
    event.stopPropagation(); // the board and the notebook would take it for their own
  }
  /** Carry out a key; whether it was one. @param {string} key */
  act(key) {
    if (key === "/") return (this.search.focus(), true);
    if ((key === "n" || key === "N") && this.places.length) return (this.go(this.match + (key === "n" ? 1 : -1)), true);
    if (key === "ArrowDown" || key === "ArrowUp") return this.move(key === "ArrowDown" ? 1 : -1);
    const call = /^[1-9]$/.test(key) ? this.order.filter((row) => row.isCall)[Number(key) - 1] : undefined;
    if (call) this.openRow(call, true);
    return Boolean(call);
  }
  /** @param {number} by */
  move(by) {
    const root = /** @type {Document | ShadowRoot} */ (this.section.getRootNode());
    if (root.activeElement?.tagName?.toLowerCase() === "pre") return false; // it scrolls
    const at = this.order.findIndex((row) => row.box.contains(root.activeElement));
    const next = this.order[at < 0 ? 0 : Math.max(0, Math.min(this.order.length - 1, at + by))];
    next?.head.focus({ preventScroll: true });
    next?.box.scrollIntoView?.({ block: "nearest" });
    return Boolean(next);
  }

  draw() {
    const now = performance.now(), live = Boolean(this.head.live);
    const silent = this.orphan || (live && now - this.heardAt >= SILENT_MS);
    for (const block of this.blocks.values()) block.draw(now, live, silent || this.mail.idle, line(this.model.get("run_id"), 60));
    if (silent) put(this.fault, this.orphan ? "The kernel was restarted, so this stands still. Once %load_ext subagents_nb was run, close it and open it again." : "The notebook's kernel is not answering, so this is old.");
    else if (this.fault.textContent?.startsWith("The notebook's kernel")) put(this.fault, "");
    hide(this.fault, !this.fault.textContent);
    if (this.found.textContent === LOOKS && (this.orphan || now - this.sought >= SEARCH_MS)) put(this.found, "the kernel is not answering");
    if (!live || this.orphan || now - this.lookedAt < RENEW_MS || !this.section.isConnected) return;
    this.lookedAt = now;
    this.send({ kind: "look", at: this.next });
  }
}

/** Pieces in their order, those that touch made one. @param {[number, number][]} spans */
export function joinedSpans(spans) {
  /** @type {[number, number][]} */ const joined = [];
  for (const [from, to] of spans.sort((a, b) => a[0] - b[0])) {
    const last = joined.at(-1);
    if (last && from <= last[1]) last[1] = Math.max(last[1], to);
    else joined.push([from, to]);
  }
  return joined;
}

export default { initialize: standing(Opened) };
