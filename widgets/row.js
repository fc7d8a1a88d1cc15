// @ts-check
/**
 * One run on the board: a line, and a second one where something is to be decided. All text is untrusted.
 *
 * @typedef {import("./asks.js").Question} Question
 * @typedef {{id: string, need: string, name: string, word: string, agent: string, model: string, now: string,
 *   elapsed_s: number, tokens_in: number, tokens_out: number, cost: string, stopping: boolean,
 *   attention: string, more: number, notebook: string, experiment: string, day: string, at: string, began: number,
 *   tags: string[], tag?: string, heard?: number, task: string, question?: Question, asked?: string, asked_s?: number, ended?: string}} RowData
 * @typedef {{ask(request: any): void, open(row: Row): void, left(row: Row, within: boolean): void, pick(row: Row): void}} Owner
 */
import { Asked, makeField } from "./asks.js";
import { ICONS_OF, ago, clock, drawing, h, hide, line, mark, number, put, putClass, putIcon, set } from "./dom.js";
import { Place } from "./place.js";

const [SAMPLE_MS, SAMPLES] = [5_000, 12];
const [WIDE, HIGH] = [60, 14];
const READ_MS = 800; // before that nobody has read a question that took another's place
const SHORT = 120; // a call of at most so many characters is shown as a whole, and may be allowed from its row

/** What may be answered from the row: the choices of a question, or of a call that is in sight as a whole. @param {Question} question */
export function answersOf(question) {
  const call = question.permission;
  if (!call) return (Array.isArray(question.choices) ? question.choices : []).slice(0, 4).map((text) => [line(text, 40), String(text)]);
  return wholeCall(question) ? [["Once", "once"], ["For this run", "for this run"], ["No", "no"]] : [];
}
/** The call, if a row can show all of it. @param {Question} question */
export function wholeCall(question) {
  const parts = question.permission?.parts ?? [];
  const text = parts.length === 1 && parts[0] && !parts[0].cut ? String(parts[0].text) : "";
  return text && text.length <= SHORT && line(text, SHORT) === text ? text : "";
}

/** @param {string} label @param {string} key @param {() => void} act */
function makeButton(label, key, act, className = "") {
  const button = mark(h("button", className, label, mark(h("kbd", "", key), { "aria-hidden": "true" })), { type: "button", tabindex: -1 });
  button.addEventListener("click", act);
  return button;
}

export class Row {
  /** @type {RowData} */ data;
  asked = new Asked();
  field = makeField("", "Send");
  writes = ""; // what the field is for: steer or answer
  kind = "stop"; // what was asked last
  unsent = ["", ""]; // what was written, and for what, until the kernel has it
  questionId = "";
  group = ""; // under which heading it stands
  heardAt = performance.now();
  shownAt = -Infinity; // when its question came, if it had another one before
  movedAt = -Infinity; // when it last came to stand elsewhere, or to show other answers
  pointed = false; // the pointer is over it
  gone = false; // it is no more on the board, and waits until the reader leaves it
  /** @type {number[]} Tokens a minute. */ rates = [];
  sampled = { at: -Infinity, tokens: 0 };
  box_ = mark(h("input", "sa-pick"), { type: "checkbox", tabindex: -1 });
  icon = h("span", "sa-tree-icon");
  name = h("span", "sa-row-name");
  agent = h("span", "sa-row-agent");
  now = h("span", "sa-row-now");
  acts = h("span", "sa-acts");
  time = h("span", "sa-row-time");
  cost = h("span", "sa-row-cost");
  spark = h("span", "sa-spark");
  choices = h("span", "sa-choices");
  when = h("span", "sa-row-when");
  second = h("div", "sa-row-second", this.choices, this.field.box, this.asked.box, this.when);
  what = h("span", "sa-row-what", this.now);
  box = mark(h("li", "sa-row", this.box_, this.icon, this.name, this.agent, this.what, this.spark,
    this.time, this.cost, this.second), { tabindex: -1 });
  /** @param {RowData} data @param {Owner} owner */
  constructor(data, owner) {
    this.data = data;
    this.owner = owner;
    this.place = new Place((request) => owner.ask(request), (within) => owner.left(this, within), "sa-row-place");
    this.box.append(this.place.box);
    this.openButton = makeButton("Open", "↵", () => owner.open(this));
    this.steerButton = makeButton("Steer…", "t", () => this.write("steer"));
    this.stopButton = makeButton("Stop", "s", () => this.stop(), "sa-danger");
    this.seenButton = makeButton("Seen", "e", () => this.see());
    this.acts.append(this.openButton, this.steerButton, this.stopButton, this.seenButton);
    this.box_.addEventListener("change", () => owner.pick(this));
    this.box.addEventListener("pointerenter", () => (this.pointed = true));
    this.box.addEventListener("pointerleave", () => (this.pointed = false));
    this.field.onSend((text) => this.send(text));
    this.field.input.addEventListener("keydown", (event) => {
      if (event.key !== "Escape" || event.isComposing) return;
      event.stopPropagation();
      this.write("");
    });
    this.take(data);
    this.shownAt = this.movedAt = -Infinity;
  }
  get live() {
    return this.data.need !== "done" && this.data.need !== "failed";
  }
  /** Whether the reader is in here. */
  get focused() {
    const root = /** @type {Document | ShadowRoot} */ (this.box.getRootNode());
    return Boolean(root.activeElement) && this.box.contains(root.activeElement);
  }
  /** @param {RowData} data */
  take(data) {
    [this.data, this.heardAt] = [data, number(data.heard) ?? performance.now()];
    const question = data.question;
    if (String(question?.id ?? "") !== this.questionId) {
      this.questionId = String(question?.id ?? "");
      if (this.focused && this.choices.contains(/** @type {any} */ (this.box.getRootNode()).activeElement)) this.box.focus({ preventScroll: true }); // its button goes
      this.asked.end();
      this.unsent = ["", ""];
      const answers = question ? answersOf(question) : [];
      this.choices.replaceChildren(...answers.map(([label, text], i) => makeButton(label, String(i + 1), () => this.answer(text), "sa-choice")));
      if (question && !question.permission) this.choices.append(makeButton("Write…", "w", () => this.write("answer")));
      this.shownAt = this.movedAt = performance.now();
      if (this.writes === "answer") this.writes = "gone"; // the field and the focus stay: what is typed must not become keys
    }
    if (data.stopping || !this.live) this.asked.heard = true;
    this.sample();
  }
  /** Note how many tokens a minute went by. */
  sample() {
    const [at, tokens] = [performance.now(), this.data.tokens_in + this.data.tokens_out];
    if (at - this.sampled.at < SAMPLE_MS) return;
    if (this.sampled.at > -Infinity) this.rates.push(Math.max(0, (tokens - this.sampled.tokens) / ((at - this.sampled.at) / 60_000)));
    this.rates.splice(0, this.rates.length - SAMPLES);
    this.sampled = { at, tokens };
  }

  stop() {
    if (!this.live || this.data.stopping || this.asked.open) return false;
    this.begin("stop");
    this.owner.ask({ kind: "stop", run: this.data.id });
    return true;
  }
  /** @param {string} kind @param {string} [text] */
  begin(kind, text) {
    this.kind = kind;
    this.asked.begin(text);
  }
  see() {
    if (this.data.need !== "failed") return false;
    this.owner.ask({ kind: "seen", run: this.data.id });
    return true;
  }
  /** @param {string} text */
  answer(text) {
    if (!this.questionId || this.asked.open) return;
    this.box.focus({ preventScroll: true }); // the button is disabled now and would drop the focus
    this.begin("answer", text);
    this.owner.ask({ kind: "answer", run: this.data.id, question: this.questionId, text });
  }
  /** Answer by the number of a choice. @param {number} i */
  choose(i) {
    const answers = this.data.question ? answersOf(this.data.question) : [];
    if (performance.now() - this.shownAt < READ_MS) return true; // nobody has read it yet
    if (answers[i]) this.answer(answers[i][1]);
    return Boolean(answers[i]);
  }
  /** Open the field, or close it. @param {string} what */
  write(what) {
    const within = this.focused;
    if (what === "steer" && !this.live) return;
    if (what !== this.writes) this.field.input.value = this.unsent[0] === what ? this.unsent[1] : "";
    this.writes = what;
    mark(this.field.input, { placeholder: what === "steer" ? "Say to the agent" : "Your answer", "aria-label": what === "steer" ? "Say to the agent" : "Your answer" });
    hide(this.field.box, !what);
    hide(this.second, false);
    if (what) this.field.input.focus({ preventScroll: true });
    else if (within) this.box.focus({ preventScroll: true });
  }
  /** @param {string} text */
  send(text) {
    const what = this.writes;
    if (what === "gone" || this.asked.open) return;
    this.unsent = [what, text];
    this.write("");
    if (what === "answer") return this.answer(text);
    this.begin("steer", text);
    this.owner.ask({ kind: "steer", run: this.data.id, text });
  }
  /** @param {import("./asks.js").Ack} ack */
  hear(ack) {
    if (ack.ok !== false) this.unsent = ["", ""];
    this.asked.hear(line(ack.text), ack.more !== true);
  }
  /** Whether a row holds all these words somewhere. @param {string[]} words */
  fits(words) {
    const d = this.data;
    const all = [d.name, d.agent, d.now, d.word, d.need, d.notebook, d.experiment, d.day, d.task, d.model, ...(d.tags ?? [])].join(" ").toLowerCase();
    /** @type {Record<string, unknown>} */ const parts = { agent: d.agent, notebook: d.notebook, experiment: d.experiment, state: `${d.word} ${d.need}`, day: d.day, tag: (d.tags ?? []).join(" ") };
    return words.every((word) => {
      const at = word.indexOf(":");
      const part = at > 0 ? parts[word.slice(0, at)] : undefined;
      return part === undefined ? all.includes(word) : String(part).toLowerCase().includes(word.slice(at + 1));
    });
  }
  /** @param {number} now @param {import("./asks.js").Silence} stale @param {boolean} picked @param {boolean} current */
  draw(now, stale, picked, current) {
    const d = this.data, since = (now - this.heardAt) / 1000;
    const moving = d.word === "running" && stale !== true;
    const asks = d.need === "asks";
    putIcon(this.icon, ICONS_OF[d.word] ?? "dashes");
    putClass(this.icon, `sa-tree-icon sa-${asks ? "asking" : line(d.word, 20)}`);
    set(this.icon.style, { rotate: moving && !globalThis.matchMedia?.("(prefers-reduced-motion: reduce)").matches ? `${Math.floor(now / 250) % 8 * 45}deg` : "" });
    put(this.name, line(d.name, 80));
    set(this.name, { title: line(d.task, 200) });
    put(this.agent, line(d.agent, 60));
    const call = d.question ? wholeCall(d.question) : "";
    const asker = line(d.question?.permission?.asker, 120);
    const what = call ? `${asker ? `${asker}: ` : ""}may it call ${line(d.question?.permission?.tool, 60)}: ${call}` : line(d.now, 200);
    put(this.now, [what, d.more ? `and ${d.more} more` : "", !asks && !what.startsWith(line(d.attention, 120)) ? line(d.attention, 120) : ""].filter(Boolean).join(" · "));
    set(this.now, { title: this.now.textContent });
    if (this.writes === "gone") mark(this.field.input, { placeholder: "That question is closed", "aria-label": "That question is closed" });
    const elapsed = (number(d.elapsed_s) ?? 0) + (moving ? since : 0);
    put(this.time, elapsed >= 1 ? clock(elapsed) : "");
    put(this.cost, line(d.cost, 20));
    put(this.when, this.gone ? "no more listed" : asks ? `asked ${ago((number(d.asked_s) ?? 0) + since)}` : d.need === "failed" ? line(d.at, 10) : "");
    this.drawSpark();
    const below = asks || d.need === "failed"; // else the buttons appear in the line, when it is pointed at
    if (this.acts.parentNode !== (below ? this.second : this.what)) below ? this.second.insertBefore(this.acts, this.field.box) : this.what.append(this.acts);
    const requested = Boolean(d.stopping) || (this.asked.open && this.live && !asks);
    hide(this.steerButton, d.word !== "running");
    hide(this.stopButton, !this.live);
    set(this.stopButton, { disabled: requested });
    hide(this.seenButton, d.need !== "failed");
    for (const button of /** @type {HTMLButtonElement[]} */ (Array.from(this.choices.children))) button.disabled = this.asked.open;
    if (!this.writes) hide(this.field.box, true);
    hide(this.choices, !asks);
    const id = line(d.id, 60);
    this.asked.draw(now, this.live, stale, `subagents-nb ${this.kind} ${id}${this.kind === "stop" ? "" : `${this.kind === "answer" ? ` --question ${line(this.questionId, 80)}` : ""} -- ${this.asked.quoted}`}`);
    hide(this.second, !(asks || d.need === "failed" || this.writes || this.asked.box.textContent));
    set(this.box_, { checked: picked });
    mark(this.box_, { "aria-label": `Select ${line(d.name, 80)}` });
    set(this.box.dataset, { need: d.need, picked: String(picked) });
    mark(this.box, { tabindex: current ? 0 : -1, "aria-label": `${line(d.name, 80)}, ${line(d.word, 20)}, ${line(d.agent, 60)}: ${line(what, 400)}` });
    const inside = current ? 0 : -1;
    for (const button of [this.openButton, this.steerButton, this.stopButton, this.seenButton, ...Array.from(this.choices.children)]) mark(button, { tabindex: inside });
    mark(this.box_, { tabindex: inside });
  }
  drawSpark() {
    if (this.rates.length < 2 || !this.rates.some((rate) => rate > 0)) return;
    const most = Math.max(...this.rates, 1);
    const step = WIDE / (SAMPLES - 1);
    const points = this.rates.map((rate, i) => `${(i * step).toFixed(1)},${(HIGH - 1 - (rate / most) * (HIGH - 2)).toFixed(1)}`).join(" L");
    if (this.spark.dataset.points === points) return;
    this.spark.dataset.points = points;
    this.spark.replaceChildren(drawing("sa-line", `0 0 ${WIDE} ${HIGH}`, `M${points}`));
    set(this.spark, { title: `${Math.round(this.rates[this.rates.length - 1]).toLocaleString("en-US")} tokens a minute` });
  }
}
