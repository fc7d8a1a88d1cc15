// @ts-check
/**
 * What a row of the board opens in place: why it ended, the task, where it comes from, what it asks, every call, the answer.
 *
 * @typedef {{name?: unknown, args?: unknown, result?: unknown, state?: unknown, seconds?: unknown}} Call
 */
import { PermissionBlock, QuestionBlock } from "./asks.js";
import { clean, cut, h, hide, line, mark, number, put, putIcon, thousands } from "./dom.js";

const CALL_ICONS = /** @type {Record<string, string>} */ ({ running: "turning", complete: "check", failed: "cross", refused: "barred" });
const AGAIN_MS = 2_000;

export class Opened {
  error = h("p", "sa-error");
  errorBox = h("div", "sa-say sa-failed", this.error);
  task = h("p", "sa-opened-task");
  facts = h("div", "sa-opened-facts");
  questions = h("div", "sa-asks");
  search = mark(h("input"), { type: "search", placeholder: "Find in the calls", "aria-label": "Find in the calls" });
  found = mark(h("span", "sa-count"), { role: "status" });
  calls = h("div", "sa-calls");
  earlier = h("p", "sa-note");
  text = mark(h("div", "sa-out"), { role: "region", "aria-label": "Text", tabindex: 0 });
  more = h("p", "sa-note");
  shut = mark(h("button", "", "Close"), { type: "button" });
  bar = h("div", "sa-opened-bar", this.search, this.found);
  box = mark(h("section", "sa-opened", this.errorBox, this.questions, this.task, this.facts, this.bar, this.earlier, this.calls, this.text, this.more,
    h("div", "sa-panel-foot", this.shut)), { role: "group" });
  /** @type {Map<string, QuestionBlock | PermissionBlock>} */ blocks = new Map();
  /** @type {{box: HTMLElement, all: string, key: string}[]} */ rows = [];
  askedAt = -Infinity;
  stale = true; // what it shows is older than its row
  /** @param {string} run @param {(request: any) => void} ask @param {() => void} close */
  constructor(run, ask, close) {
    this.run = run;
    this.ask = ask;
    this.shut.addEventListener("click", close);
    this.search.addEventListener("input", () => this.filter());
    put(this.task, "Reading…");
    for (const part of [this.errorBox, this.bar, this.earlier, this.more, this.text]) part.hidden = true;
  }
  /** Whether the reader is in here. */
  get focused() {
    const root = /** @type {Document | ShadowRoot} */ (this.box.getRootNode());
    return Boolean(root.activeElement) && this.box.contains(root.activeElement);
  }
  /** Ask for all of it, if it may have changed. @param {number} now */
  renew(now) {
    if (!this.stale || now - this.askedAt < AGAIN_MS) return;
    [this.stale, this.askedAt] = [false, now];
    this.ask({ kind: "open", run: this.run });
  }
  /** @param {any} told */
  hear(told) {
    put(this.error, cut(clean(told.error).trim(), 4000));
    hide(this.errorBox, !this.error.textContent);
    put(this.task, cut(clean(told.task).trim(), 20_000));
    const facts = (Array.isArray(told.facts) ? told.facts : []).slice(0, 24);
    this.facts.replaceChildren(...facts.map((/** @type {any} */ [name, value]) => h("div", "", h("span", "", `${line(name, 40)} `), h("b", "", line(value, 600)))));
    this.hearQuestions(Array.isArray(told.questions) ? told.questions.slice(0, 4) : []);
    this.hearCalls(Array.isArray(told.calls) ? told.calls.slice(-200) : []);
    put(this.earlier, told.earlier ? "… earlier calls: %subagent_transcript has all" : "");
    hide(this.earlier, !told.earlier);
    put(this.text, cut(clean(told.text), 24_000));
    hide(this.text, !this.text.textContent);
    const more = number(told.more);
    put(this.more, more ? `… ${thousands(more)} more characters` : "");
    hide(this.more, !more);
  }
  /** @param {any[]} questions */
  hearQuestions(questions) {
    const open = new Map(questions.map((question) => [String(question?.id), question]));
    for (const [id, block] of this.blocks) if (!open.has(id)) (block.box.remove(), this.blocks.delete(id));
    for (const [id, question] of open) {
      if (this.blocks.has(id)) continue;
      const Kind = question.permission ? PermissionBlock : QuestionBlock;
      /** @type {QuestionBlock | PermissionBlock} */
      const block = new Kind({ ...question, id }, (text) => {
        block.asked.begin();
        this.ask({ kind: "answer", run: this.run, question: id, text });
      });
      this.blocks.set(id, block);
      this.questions.append(block.box);
    }
  }
  /** Rows that are there stay as they are, so that nothing that was opened closes. @param {Call[]} calls */
  hearCalls(calls) {
    const keys = calls.map((call) => JSON.stringify([call.name, call.args, call.state, call.result]));
    while (this.rows.length && this.rows[0].key !== keys[0] && keys.length && !keys.includes(this.rows[0].key)) this.rows.shift()?.box.remove();
    calls.forEach((call, i) => {
      if (this.rows[i]?.key === keys[i]) return;
      const made = { box: makeCall(call, i), all: keys[i].toLowerCase(), key: keys[i] };
      const before = this.rows[i];
      if (before) {
        /** @type {any} */ (made.box).open = /** @type {any} */ (before.box).open;
        this.calls.insertBefore(made.box, before.box);
        before.box.remove();
      } else this.calls.append(made.box);
      this.rows[i] = made;
    });
    for (const row of this.rows.splice(calls.length)) row.box.remove();
    hide(this.bar, calls.length < 2);
    this.filter();
  }
  filter() {
    const words = this.search.value.toLowerCase().split(/\s+/).filter(Boolean);
    let count = 0;
    for (const row of this.rows) {
      const fits = words.every((word) => row.all.includes(word));
      count += Number(fits);
      hide(row.box, !fits);
    }
    put(this.found, words.length ? `${count} of ${this.rows.length} calls` : `${this.rows.length} calls`);
  }
  /** @param {any} ack */
  hearAck(ack) {
    this.blocks.get(String(ack.question))?.hear(ack);
  }
  /** @param {number} now @param {boolean} live @param {import("./asks.js").Silence} stale */
  draw(now, live, stale) {
    for (const block of this.blocks.values()) block.draw(now, live, stale, this.run);
    if (stale !== true) this.renew(now);
  }
}

/** @param {Call} call @param {number} i */
function makeCall(call, i) {
  const state = Object.hasOwn(CALL_ICONS, String(call.state)) ? String(call.state) : "unknown";
  const [icon, seconds] = [h("span", `sa-tree-icon sa-${state}`), number(call.seconds)];
  putIcon(icon, CALL_ICONS[state] ?? "dashes");
  const head = h("summary", "", icon, h("span", "sa-hide", ` ${state} `), mark(h("span", "sa-no", String(i + 1)), { "aria-hidden": "true" }),
    h("span", "sa-tool", line(call.name, 60)), h("code", "", line(call.args, 160)), h("span", "sa-row-time", seconds === null ? "" : `${seconds.toFixed(1)} s`));
  return h("details", "sa-call", head, h("pre", "sa-part", cut(clean(call.args), 2000)), h("pre", "sa-part", cut(clean(call.result), 2000) || "no result yet"));
}
