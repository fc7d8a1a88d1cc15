// @ts-check
/**
 * Where a view stands. The cell's output is plain: what was known when it was shown, and how to look again. It names a
 * token among its classes; wherever that stands on the page, the live view is put before it. So what is saved is
 * plain at any time, a page that is loaded anew has its views back as long as the kernel lives, and so has a new kernel
 * that makes a view of the same token.
 *
 * The kernel ends a view by publishing a card. A page that was loaded meanwhile knows no display ids, ipython/ipython#12215,
 * and never hears of it: it asks for the card and puts it into the notebook itself, or the view stays as it ended.
 *
 * @typedef {{section: HTMLElement, close(): void}} Standing
 * @typedef {{get(name: string): any, send(message: any): void, on(event: string, ear: (message?: any) => void): void,
 *   off(event: string, ear: (message?: any) => void): void, widget_manager?: any}} Host
 * @typedef {{"text/html"?: unknown, "text/plain"?: unknown}} Bundle
 */
const LOOK_MS = 1000;
const QUICK_MS = 100; // while a page is being put together
const QUICK_TIMES = 30;
const GRACE = 2; // looks after which a card that was published is there, if it ever comes

/** Where the outputs hold a word; null: this host does not tell. @param {any} manager @param {string} word @returns {[any, number][] | null} */
export function outputsWith(manager, word) {
  /** @type {[any, number][]} */ const found = [];
  try {
    const cells = manager.context.model.cells; // of JupyterLab and Notebook 7
    for (let i = 0; i < cells.length; i++) {
      const outputs = cells.get(i).outputs;
      for (let j = 0; j < (outputs?.length ?? 0); j++) {
        if ([outputs.get(j).data?.["text/html"]].flat().join("").includes(word)) found.push([outputs, j]);
      }
    }
  } catch {
    return null; // another host
  }
  return found;
}

/** Put a bundle into the notebook where a token stands; whether that was possible. @param {any} manager @param {string} token @param {Bundle} bundle */
export function replaceOutput(manager, token, bundle) {
  const found = outputsWith(manager, token) ?? [];
  for (const [outputs, i] of found) outputs.set(i, { output_type: "display_data", data: bundle, metadata: {} });
  return found.length > 0;
}

/** Keeps a view wherever the token of one model stands. */
class Keeper {
  /** @type {Map<Element, Standing | null>} */ places = new Map();
  looks = 0;
  late = 0; // looks in a row at which the plain output was older than what the kernel has
  gone = false; // the kernel of this model is
  /** @type {ReturnType<typeof setTimeout> | undefined} */ timer;
  hear = (/** @type {any} */ message) => this.receive(message);
  lost = () => (this.gone = true);
  /** @param {Host} model @param {(() => Standing) | null} make what makes a view; null: nothing is put before it */
  constructor(model, make) {
    this.model = model;
    this.make = make;
    this.token = String(model.get("token") ?? "");
    this.found = document.getElementsByClassName(this.token);
    model.on("msg:custom", this.hear);
    model.on("comm_live_update", this.lost);
    this.look();
  }

  look() {
    // A notebook that is closed keeps its models, and gets new ones when it is opened again: jupyterlab/jupyterlab#7144.
    if (this.model.widget_manager?.context?.isDisposed) return this.leave();
    for (const place of Array.from(this.found)) if (!this.places.has(place)) this.enter(place);
    this.late = this.isLate() ? this.late + 1 : 0;
    if (this.late > GRACE && !this.gone) {
      this.late = -8; // it is asked again after a while
      try {
        this.model.send({ kind: "card" });
      } catch { /* the connection is closed */ }
    }
    const quick = this.looks++ < QUICK_TIMES && this.found.length === 0;
    this.timer = setTimeout(() => this.look(), quick ? QUICK_MS : LOOK_MS);
  }
  /** Whether a newer output should stand here by now. */
  isLate() {
    const version = this.model.get("version");
    return version > 0 && Array.from(this.found).some((place) => !place.classList.contains(`${this.token}-${version}`));
  }
  /** @param {Element} place */
  enter(place) {
    const owner = /** @type {any} */ (place);
    if (owner.saKeeper && owner.saKeeper !== this) {
      if (this.gone || !owner.saKeeper.gone) return; // a page may have two models of one run; an old one comes not back
      owner.saKeeper.release(place);
    }
    // An output that was drawn again: the view goes along, with what was being written in it.
    const before = [...this.places.keys()].find((old) => !old.isConnected);
    if (this.gone && !before) return; // a new view of a kernel that is gone would look alive
    owner.saKeeper = this;
    const view = before ? this.places.get(before) ?? null : this.make?.() ?? null;
    if (before) this.places.delete(before);
    this.places.set(place, view);
    if (!view) return;
    for (const plain of Array.from(place.children)) /** @type {HTMLElement} */ (plain).style.display = "none";
    place.insertBefore(view.section, place.firstChild);
  }
  /** @param {Element} place */
  release(place) {
    const view = this.places.get(place);
    this.places.delete(place);
    /** @type {any} */ (place).saKeeper = undefined;
    if (!view) return;
    view.close();
    view.section.remove();
    for (const plain of Array.from(place.children)) /** @type {HTMLElement} */ (plain).style.display = "";
  }
  /** @param {any} message */
  receive(message) {
    this.gone = false;
    if (message?.kind !== "card" || typeof message.data !== "object") return;
    if (this.isLate() || this.late < 0) replaceOutput(this.model.widget_manager, this.token, message.data);
  }

  leave() {
    clearTimeout(this.timer);
    this.model.off("msg:custom", this.hear);
    this.model.off("comm_live_update", this.lost);
    const over = this.isLate(); // its end is nowhere else: it stays, though nothing is heard any more
    for (const [place, view] of [...this.places]) over ? view?.close() : this.release(place);
  }
}

/** Return what a host calls for a model that has no view of its own. @param {(new (model: any) => Standing & {start(): Standing}) | null} Kind */
export function standing(Kind) {
  return function initialize(/** @type {{model: Host}} */ { model }) {
    if (!model.get("token")) return () => {};
    const keeper = new Keeper(model, Kind && (() => new Kind(model).start()));
    return () => keeper.leave();
  };
}

/** Return what a host calls to draw a view of this kind. @param {new (model: any) => Standing & {start(): Standing}} Kind */
export function rendering(Kind) {
  /** @param {{model: Host, el: HTMLElement, signal?: AbortSignal}} context */
  return function render({ model, el, signal }) {
    const view = new Kind(model).start();
    const close = () => view.close();
    el.replaceChildren(view.section);
    signal?.addEventListener("abort", close, { once: true });
    if (signal?.aborted) close();
    return close;
  };
}
