// @ts-check
/**
 * One thing that a run did: a line, and below it, when it is opened, what was given and what came. All text is untrusted.
 *
 * @typedef {{at: number, s?: unknown, kind?: unknown, name?: unknown, line?: unknown, step?: unknown, key?: unknown, state?: unknown,
 *   took?: unknown, aside?: unknown, chars?: unknown, opens?: unknown}} Entry
 * @typedef {{name?: unknown, text?: unknown, from?: unknown, read?: unknown, all?: unknown}} Part
 */
import { brief, clean, clock, h, hide, line, mark, number, put, putClass, putIcon, thousands } from "./dom.js";

const CALL_ICONS = /** @type {Record<string, string>} */ ({ running: "turning", complete: "check", failed: "cross", refused: "barred" });
const WORDS = /** @type {Record<string, string>} */ ({ thinking: "thinks", text: "writes", asked: "asks", steered: "you say" });
const MOST_MARKS = 400;

/** Put a text into a node, with each place that holds a phrase marked. @param {HTMLElement} node @param {string} text @param {string} phrase */
export function fill(node, text, phrase) {
  const low = phrase ? text.toLowerCase() : "";
  if (!low.includes(phrase) || !phrase || low.length !== text.length) return node.firstElementChild ? node.replaceChildren(text) : put(node, text);
  const kids = [];
  let at = 0;
  for (let hit = low.indexOf(phrase); hit >= 0 && kids.length < MOST_MARKS; hit = low.indexOf(phrase, at)) {
    kids.push(text.slice(at, hit), h("mark", "", text.slice(hit, hit + phrase.length)));
    at = hit + phrase.length;
  }
  node.replaceChildren(...kids, text.slice(at));
}

/** Windows of the texts behind an entry, with what leads to the rest of each. */
export class Parts {
  box = h("div", "sa-parts");
  /** @type {Map<string, {pre: HTMLElement, note: HTMLElement, from: number, end: number, text: string}>} */ texts = new Map();
  /** @param {(name: string, from: number) => void} ask */
  constructor(ask) {
    this.ask = ask;
  }
  /** @param {unknown} given @param {string} phrase */
  hear(given, phrase) {
    for (const part of /** @type {Part[]} */ (Array.isArray(given) ? given : []).slice(0, 4)) {
      const [name, from, all] = [line(part.name, 40), number(part.from) ?? 0, number(part.all) ?? 0];
      const one = this.texts.get(name) ?? this.make(name, String(part.name ?? ""));
      const text = clean(part.text);
      if (from && from === one.end) one.text += text;
      else [one.text, one.from] = [text, from];
      one.end = from + (number(part.read) ?? 0);
      const left = one.from ? `${thousands(one.from)} characters before` : "";
      put(/** @type {HTMLElement} */ (one.note.firstElementChild), [left, one.end < all ? `${thousands(one.end - one.from)} of ${thousands(all)} characters` : ""].filter(Boolean).join(" · "));
      const [first, more] = /** @type {HTMLElement[]} */ (Array.from(one.note.children)).slice(1);
      hide(first, one.from === 0);
      hide(more, one.end >= all);
      hide(one.note, one.from === 0 && one.end >= all);
      fill(one.pre, one.text, phrase);
    }
  }
  /** @param {string} name @param {string} asked */
  make(name, asked) {
    const pre = mark(h("pre", "sa-part"), { tabindex: 0, role: "group", "aria-label": name || "text" });
    const [first, more] = ["From the beginning", "More"].map((text) => mark(h("button", "", text), { type: "button" }));
    const one = { pre, note: h("p", "sa-cut", h("span"), first, more), from: 0, end: 0, text: "" };
    first.addEventListener("click", () => this.ask(asked, 0));
    more.addEventListener("click", () => this.ask(asked, one.end));
    this.texts.set(name, one);
    this.box.append(h("div", "sa-behind", h("span", "sa-fact", name), h("div", "", pre, one.note)));
    return one;
  }
  /** @param {string} phrase */
  find(phrase) {
    for (const one of this.texts.values()) fill(one.pre, one.text, phrase);
  }
}

export class EntryRow {
  icon = h("span", "sa-sign");
  word = h("span", "sa-hide");
  name = h("span", "sa-tool");
  aside = h("span", "sa-aside");
  time = h("span", "sa-row-time");
  asked = false; // what lies behind it was asked for
  phrase = "";
  /** @param {Entry} data @param {(request: any) => void} ask */
  constructor(data, ask) {
    this.ask = ask;
    this.opens = Boolean(data.opens);
    this.text = h(data.kind === "call" ? "code" : "span", "sa-did-text");
    this.head = h(this.opens ? "summary" : "div", "sa-did-line", this.time, this.icon, this.word, this.name, this.text, this.aside);
    this.parts = new Parts((name, from) => ask({ kind: "part", at: data.at, name, from }));
    this.box = this.opens ? h("details", "sa-call", this.head, this.parts.box) : h("div", "sa-call", this.head);
    if (!this.opens) mark(this.head, { tabindex: -1 });
    this.box.addEventListener("toggle", () => this.show());
    this.take(data);
  }
  get isCall() {
    return this.data.kind === "call";
  }
  /** @param {Partial<Entry>} data */
  take(data) {
    this.data = /** @type {Entry} */ ({ .../** @type {any} */ (this).data, ...data });
    const d = this.data, kind = String(d.kind), took = number(d.took), chars = number(d.chars);
    const state = this.isCall ? (Object.hasOwn(CALL_ICONS, String(d.state)) ? String(d.state) : "unknown") : "";
    putIcon(this.icon, this.isCall ? CALL_ICONS[state] ?? "dashes" : kind === "asked" ? "question" : kind === "steered" ? "half" : "dashes");
    putClass(this.icon, `sa-sign sa-${state || "unknown"}`);
    put(this.word, state ? ` ${state} ` : " ");
    put(this.time, clock(number(d.s) ?? 0));
    put(this.name, WORDS[kind] ?? line(d.name, 60));
    const bad = state === "failed" ? "failed" : "";
    put(this.aside, [line(d.aside, 160), bad, took === null ? "" : brief(took), chars ? `${thousands(chars)} characters` : ""].filter(Boolean).join(" · "));
    putClass(this.aside, `sa-aside${state === "refused" ? " sa-refused" : bad ? " sa-failed" : ""}`);
    this.find(this.phrase);
    if (this.asked && /** @type {any} */ (this.box).open) this.show(true);
  }
  /** Ask for what lies behind it, once, or again where there may be more. */
  show(again = false) {
    if (!(/** @type {any} */ (this.box).open) || (this.asked && !again)) return;
    this.asked = true;
    this.ask({ kind: "part", at: this.data.at, text: this.phrase });
  }
  /** @param {unknown} parts @param {string} phrase */
  hear(parts, phrase) {
    this.parts.hear(parts, phrase);
    if (!this.parts.texts.size) this.parts.box.replaceChildren(h("p", "sa-note", "Nothing of it was kept."));
  }
  /** @param {string} phrase */
  find(phrase) {
    this.phrase = phrase;
    fill(this.text, line(this.data.line, 240), phrase);
    this.parts.find(phrase);
  }
}
