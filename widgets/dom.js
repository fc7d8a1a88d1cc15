// @ts-check
/**
 * The pieces a view is made of: text made harmless, figures, icons, the streamed text, meters, rows of tools.
 *
 * Joined with the other modules into one text, which is what a host loads; see notebook/page/assets.py. All text is untrusted
 * and reaches the page as text nodes only, through `clean`.
 *
 * @typedef {{name: string, args: string, state: string, seconds: number | null}} Tool
 */

const KEEP = 8_000; // characters of text on the page at most ...
const KEEP_AFTER_CUT = 6_000; // ... and after a cut, so that cuts are rare
/** @type {Record<string, string>} */
const TOOL_ICONS = { running: "turning", complete: "check", failed: "cross", refused: "barred" };
const RING = "M6 1.6a4.4 4.4 0 1 1 0 8.8a4.4 4.4 0 1 1 0-8.8";
/** @type {Record<string, string[]>} Paths in a box of 12 by 12; run.css says how they are stroked. */
const ICONS = {
  turning: [RING, "M6 1.6a4.4 4.4 0 0 1 4.4 4.4"], clock: [RING, "M6 3.6V6l1.8 1.2"], dashes: [RING],
  check: ["M2.2 6.4 5 9.2l4.9-6"], cross: ["m3 3 6 6M9 3 3 9"], pause: ["M4 2.6v6.8M8 2.6v6.8"],
  half: [RING, "M6 1.6a4.4 4.4 0 0 1 0 8.8z"], barred: [RING, "M3 9l6-6"], square: ["M3 3h6v6H3z"],
  question: ["M3.6 4.2a2.4 2.4 0 1 1 3.4 2.2q-1 .5-1 1.4M6 10.3v.1"],
};

/** @type {Record<string, string>} By the state of a run. */
export const ICONS_OF = {
  queued: "clock", running: "turning", "asks you": "pause", paused: "pause", complete: "check", partial: "half",
  failed: "cross", stopped: "square", rejected: "barred", lost: "question",
};

// Colours and cursor moves; then titles, links and device strings; then the short ones.
const SEQUENCE =
  /\x1b\[[0-?]*[ -/]*[@-~]|\x1b[\]PX^_][^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)|\x9b[0-?]*[ -/]*[@-~]|\x1b[ -/]*[0-~]/g;
const UNFINISHED = /\x1b(?:\[[0-?]*[ -/]*|[\]PX^_][^\x07\x1b\x9c]{0,200}\x1b?|[ -/]*)$|\r$/;
const HIDDEN = /[\x7f-\x9f\u200b\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|[\u{e0000}-\u{e007f}]/gu;

/**
 * Make untrusted text harmless to read: escape sequences go, other control characters and the ones that hide or
 * reorder text become one visible sign each. Newlines and tabs stay.
 * @param {unknown} text
 */
export function clean(text) {
  return String(text ?? "")
    .replace(SEQUENCE, "")
    .replace(/\r\n|[\u2028\u2029]/g, "\n")
    .replace(/[\x00-\x08\x0b-\x1f]/g, (c) => String.fromCharCode(0x2400 + c.charCodeAt(0)))
    .replace(HIDDEN, "\u2426");
}

/** @param {unknown} value @returns {number | null} */
export const number = (value) => (typeof value === "number" && Number.isFinite(value) ? value : null);
/** @param {number} n */
export const thousands = (n) => n.toLocaleString("en-US");
/** @param {string} text @param {number} most */
export const cut = (text, most) =>
  text.length > most ? `${text.slice(0, most)}… ${thousands(text.length - most)} more characters` : text;
/** One line of clean text. @param {unknown} text @param {number} [most] */
export const line = (text, most = 400) => cut(clean(text).replace(/\s+/g, " ").trim(), most);

/** 861, 1.6k, 12.4k, 141k, 1.2M. @param {number} n */
export function short(n) {
  if (n < 1000) return String(Math.round(n));
  const [scaled, unit] = n < 999_500 ? [n / 1000, "k"] : [n / 1e6, "M"];
  return (scaled < 99.95 ? scaled.toFixed(1) : String(Math.round(scaled))) + unit;
}

/** 0:42, 12:05, 1:00:00. @param {number} seconds */
export function clock(seconds) {
  const s = Math.max(0, Math.floor(seconds));
  const [hours, minutes, rest] = [Math.floor(s / 3600), Math.floor(s / 60) % 60, String(s % 60).padStart(2, "0")];
  return hours ? `${hours}:${String(minutes).padStart(2, "0")}:${rest}` : `${minutes}:${rest}`;
}
/** @param {number} seconds */
export const brief = (seconds) => (seconds < 60 ? `${seconds.toFixed(seconds < 9.95 ? 1 : 0)} s` : clock(seconds));
/** @param {number} s */
export const ago = (s) => (s < 1 ? "just now" : s < 120 ? `${Math.floor(s)} s ago` : `${Math.floor(s / 60)} min ago`);

/** @template {keyof HTMLElementTagNameMap} T @param {T} tag @param {string} className @param {(Node|string)[]} kids */
export function h(tag, className = "", ...kids) {
  const node = document.createElement(tag);
  if (className) node.className = className;
  node.append(...kids);
  return node;
}

/** @template {Element} E @param {E} node @param {Record<string, string | number>} attributes */
export function mark(node, attributes) {
  for (const [name, value] of Object.entries(attributes)) if (node.getAttribute(name) !== String(value)) node.setAttribute(name, String(value));
  return node;
}

/** @param {HTMLElement} node @param {string} name */
export function putClass(node, name) {
  if (node.className !== name) node.className = name;
}

/** Set what differs. @param {any} target @param {Record<string, unknown>} values */
export function set(target, values) {
  for (const [name, value] of Object.entries(values)) if (target[name] !== value) target[name] = value;
}

/** @param {HTMLElement} node @param {boolean} hidden */
export function hide(node, hidden) {
  if (node.hidden !== hidden) node.hidden = hidden;
}

/** Whether the reader is in here. @param {HTMLElement} box */
export function holdsFocus(box) {
  const root = /** @type {Document | ShadowRoot} */ (box.getRootNode());
  return Boolean(root.activeElement) && box.contains(root.activeElement);
}

/** Set text only where it differs: an unchanged node costs nothing. @param {HTMLElement} node @param {string} text */
export function put(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

/** Show an icon; the same icon again leaves its motion undisturbed. @param {HTMLElement} box @param {string} name */
export function putIcon(box, name) {
  if (box.dataset.icon === name) return;
  box.dataset.icon = name;
  box.replaceChildren(drawing(`sa-icon-${name}`, "0 0 12 12", ...ICONS[name]));
}

/** Lines in a box; run.css says how they are stroked. @param {string} className @param {string} viewBox @param {string[]} paths */
export function drawing(className, viewBox, ...paths) {
  const space = "http://www.w3.org/2000/svg"; // a name, never fetched
  const svg = mark(document.createElementNS(space, "svg"), { viewBox, "aria-hidden": "true", class: `sa-icon ${className}` });
  svg.append(...paths.map((d) => mark(document.createElementNS(space, "path"), { d })));
  return svg;
}

/**
 * The streamed text: a window on [start, end) of all characters, counted in code points as Python counts them.
 *
 * Its box is laid out from the bottom (run.css), so that the browser itself follows the end, through every change of
 * size, and leaves a reader who scrolled up alone.
 */
export class Tail {
  start = 0;
  end = 0;
  /** @type {string[]} */ points = [];
  /** @type {Text[]} */ nodes = [];
  fresh = ""; // not on the page yet
  held = ""; // an escape sequence whose end has not come yet
  cut = h("div", "sa-cut");
  caret = h("i", "sa-caret");
  text = h("div", "sa-text", this.cut, this.caret);
  box = h("div", "sa-tail", this.text);

  constructor() {
    mark(this.box, { role: "region", "aria-label": "Text so far", tabindex: 0 }); // the keyboard can scroll it
    this.rewrite();
    this.say("");
  }
  /** Take the trait: `text` ends at `end`; after a gap it replaces all. @param {string} text @param {number} end */
  set(text, end) {
    const at = end - Array.from(text).length;
    if (at > this.end) {
      [this.points, this.end] = [[], at];
      this.rewrite();
    }
    this.add(at, text);
  }
  /** Append what is new in `text`; beyond a gap it waits for the trait. @param {number} at @param {string} text */
  add(at, text) {
    const points = Array.from(text);
    if (at > this.end || at + points.length <= this.end) return;
    const fresh = points.slice(this.end - at);
    this.points.push(...fresh);
    this.end += fresh.length;
    this.fresh += fresh.join("");
  }
  /** Say why there is nothing yet. @param {unknown} why */
  say(why) {
    set(this.box.dataset, { silent: line(why, 160) || "no text yet" });
  }
  /** Bring what was added onto the page. */
  draw() {
    if (this.points.length > KEEP) return this.rewrite();
    const all = this.held + this.fresh;
    this.fresh = "";
    this.held = UNFINISHED.exec(all)?.[0] ?? "";
    const shown = clean(all.slice(0, all.length - this.held.length));
    if (shown) this.nodes.push(this.text.insertBefore(document.createTextNode(shown), this.caret));
    if (this.box.dataset.empty !== String(this.nodes.length === 0)) this.box.dataset.empty = String(this.nodes.length === 0);
  }

  rewrite() {
    for (const node of this.nodes.splice(0)) node.remove();
    this.points = this.points.slice(-KEEP_AFTER_CUT);
    this.start = this.end - this.points.length;
    this.held = "";
    this.fresh = this.points.join("");
    this.cut.hidden = this.start === 0;
    put(this.cut, `… ${thousands(this.start)} earlier characters`);
    this.draw();
  }
}

/** A measure against a limit; without a limit there is no bar, only the number. @param {string} label */
export function makeMeter(label) {
  const [value, fill] = [h("b"), h("i")];
  const bar = mark(h("div", "", fill), { role: "progressbar", "aria-label": label, "aria-valuemin": 0 });
  const box = h("div", "sa-meter", `${label} `, value);
  /** @param {string} text @param {number} now @param {number | null} limit */
  function set(text, now, limit) {
    const part = limit === null ? 0 : limit > 0 ? Math.min(1, now / limit) : 1;
    hide(box, text === "");
    putClass(box, part >= 0.8 ? "sa-meter sa-near" : "sa-meter");
    put(value, text);
    if (limit === null) return bar.remove();
    const width = `${Math.round(part * 1000) / 10}%`;
    if (fill.style.width !== width) fill.style.width = width;
    mark(bar, { "aria-valuemax": limit, "aria-valuenow": Math.min(limit, Math.floor(now)), "aria-valuetext": text });
    if (!bar.parentNode) box.append(bar);
  }
  return { box, set };
}

/** One row of the tool list; `more` is how long ago the kernel told the seconds. */
export function makeToolRow() {
  const [icon, word, name, args, time] = [h("span"), h("span", "sa-hide"), h("span", "sa-tool"), h("code"), h("span")];
  const row = h("li", "", h("span", "", icon, word), name, args, time);
  /** @param {Partial<Tool> | null} tool @param {number} more */
  function set(tool, more) {
    const visibility = tool ? "" : "hidden";
    if (row.style.visibility !== visibility) row.style.visibility = visibility;
    const state = Object.hasOwn(TOOL_ICONS, String(tool?.state)) ? String(tool?.state) : "unknown";
    const seconds = number(tool?.seconds);
    const took = seconds === null ? "" : brief(seconds + (state === "running" ? more : 0));
    const bad = state === "failed" || state === "refused" ? state : "";
    putIcon(icon, TOOL_ICONS[state] ?? "dashes");
    putClass(icon, `sa-${state}`);
    put(word, bad ? "" : state);
    put(name, line(tool?.name, 80));
    if (name.title !== name.textContent) name.title = name.textContent ?? "";
    put(args, line(tool?.args));
    if (args.title !== args.textContent) args.title = args.textContent ?? "";
    put(time, [bad, took].filter(Boolean).join(" · "));
    putClass(time, bad && `sa-${bad}`);
  }
  return { row, set };
}
