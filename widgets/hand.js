// @ts-check
/**
 * The reader's hand at the rows of the board: nothing moves under it, a click means what was seen, and what is pressed
 * with a modifier is JupyterLab's.
 *
 * @typedef {import("./row.js").Row} Row
 */
import { mark } from "./dom.js";

const MOVED_MS = 400; // a click so soon after a row has moved meant another one
const HOLD_MS = 5_000; // so long after the last move of the hand the rows keep their order
const EDITS = /^([acvxyz]|Enter|Backspace|Delete|Home|End|Arrow.+)$/i; // with a modifier they are for the text that is written
const SUPPRESS = "data-lm-suppress-shortcuts"; // or JupyterLab would take x for its own

export class Hand {
  pointed = false; // the pointer is over the rows
  at = -Infinity; // when the hand last moved there
  /** @param {HTMLElement} section @param {HTMLElement} list @param {() => Row[]} rows */
  constructor(section, list, rows) {
    this.section = section;
    this.list = list;
    this.rows = rows;
    mark(section, { [SUPPRESS]: "true" });
    for (const event of ["pointerenter", "pointermove", "wheel"]) list.addEventListener(event, () => ([this.pointed, this.at] = [true, performance.now()]), { passive: true });
    list.addEventListener("pointerleave", () => (this.pointed = false));
    list.addEventListener("click", (event) => this.hearClick(event), true);
  }
  start() {
    globalThis.addEventListener?.("keydown", this.letPass, true); // before JupyterLab, which listens at the document
  }
  close() {
    globalThis.removeEventListener?.("keydown", this.letPass, true);
  }
  /** A click on what came under the pointer a moment ago meant what was there before. @param {any} event */
  hearClick(event) {
    if (!event.detail) return; // by a key
    const row = this.rows().find((one) => one.box.contains(event.target));
    if (!row || performance.now() - row.movedAt >= MOVED_MS) return;
    event.preventDefault();
    event.stopPropagation();
  }
  /** Whether the hand is at the rows: then they keep their order. */
  get held() {
    return performance.now() - this.at < HOLD_MS && (this.pointed || this.inRows);
  }
  get inRows() {
    const root = /** @type {Document | ShadowRoot} */ (this.section.getRootNode());
    return Boolean(root.activeElement) && this.list.contains(root.activeElement);
  }
  /**
   * What is pressed with a modifier is for JupyterLab, Ctrl+S above all; of what is written, all but editing. It asks for
   * the mark before the key comes to us. @param {any} event
   */
  letPass = (event) => {
    const target = /** @type {any} */ (event.target);
    if (!(event.ctrlKey || event.metaKey || event.altKey) || event.getModifierState?.("AltGraph") || !this.section.contains(target)) return;
    const tag = String(target?.tagName ?? "").toLowerCase();
    const writes = tag === "textarea" || (tag === "input" && target.type !== "checkbox");
    if (writes && EDITS.test(event.key)) return;
    this.section.removeAttribute(SUPPRESS);
    setTimeout(() => mark(this.section, { [SUPPRESS]: "true" }), 0);
  };
  /** Where each row stands in the list. */
  tops() {
    return new Map(this.rows().filter((row) => row.box.parentNode).map((row) => [row, row.box.offsetTop - this.list.scrollTop]));
  }
  /** Keep what the reader is at where it was, by scrolling; what moved nevertheless takes no click for a moment. @param {Map<Row, number>} tops @param {number} now */
  steady(tops, now) {
    const by = (/** @type {Row} */ row) => row.box.offsetTop - this.list.scrollTop - (tops.get(row) ?? NaN);
    const anchor = [...tops.keys()].find((row) => row.box.parentNode && (this.pointed ? row.pointed : row.focused));
    const off = anchor ? by(anchor) : 0;
    if (off) this.list.scrollTop += off;
    for (const row of this.rows()) if (row.box.parentNode && by(row) !== 0) row.movedAt = now;
  }
}
