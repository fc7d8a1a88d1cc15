// @ts-check
/** Where a run is opened in full, in place: the kernel makes the view of it, which finds its place by the class. */
import { h, holdsFocus, put } from "./dom.js";

const ANSWER_S = 4;

export class Place {
  token = "";
  /** @param {(request: any) => void} ask @param {(within: boolean) => void} after it was closed, by a reader in it or not @param {string} [base] */
  constructor(ask, after, base = "sa-place") {
    this.ask = ask;
    this.after = after;
    this.base = base;
    this.box = h("div", base);
    this.box.addEventListener("keydown", (event) => event.key === "Escape" && !event.isComposing && this.end(event));
    this.box.addEventListener("click", (event) => /** @type {any} */ (event.target)?.dataset?.shut && this.end(event));
  }
  /** Whether the reader is in here. */
  get focused() {
    return holdsFocus(this.box);
  }
  /** @param {Event} event */
  end(event) {
    event.preventDefault?.();
    event.stopPropagation(); // it closes this one, and none around it
    this.close();
  }
  /** @param {{run: string, step?: number}} asked */
  open(asked) {
    this.token = `f${Math.random().toString(16).slice(2, 12).padEnd(10, "0")}`;
    this.box.className = `${this.base} ${this.token}`;
    const [note, { token }] = [h("p", "sa-note", "Reading…"), this];
    this.box.append(note);
    // The view is put before it, and hides it.
    setTimeout(() => token === this.token && put(note, `The kernel is not answering. In a terminal: subagents-nb status ${asked.run}`), ANSWER_S * 1000);
    this.ask({ kind: "full", token: this.token, ...asked });
  }
  close() {
    if (!this.token) return;
    const { token, focused } = this;
    this.token = "";
    this.box.className = this.base;
    this.box.replaceChildren();
    this.after(focused);
    this.ask({ kind: "shut", token });
  }
}
