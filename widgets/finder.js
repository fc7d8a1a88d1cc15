// @ts-check
/**
 * Finds what an earlier kernel left on the page: an anywidget (AFM) module without a view. The plain output of a live run
 * names its token and its run among its classes. The kernel makes a view of that token, or sends the card of a run that
 * has ended meanwhile.
 *
 * Below each view, card and step of a run it puts a button that opens all of it.
 */
import { h, mark } from "./dom.js";
import { Place } from "./place.js";
import { outputsWith, replaceOutput } from "./stand.js";

const [SEARCH_MS, MOST] = [1000, 200];
const [RUN, BOARD, CARD, SWEEP] = ["subagents-nb-run", "subagents-nb-board", "subagents-nb-card", "subagents-nb-sweep"];
const SWEEP_HINT = "This table stands still: its kernel is gone, and its runs go on. Run this cell again: it finds them and goes on with the sweep. How they stand now: %subagent_status";

/** The buttons of this page that open a run in full, by what they stand in. */
class Openers {
  /** @type {Map<Element, Opener>} */ all = new Map();
  /** @param {import("./stand.js").Host} model */
  constructor(model) {
    this.model = model;
  }
  look() {
    for (const kind of [RUN, CARD]) {
      for (const place of Array.from(document.getElementsByClassName(kind))) {
        const run = place.className.split(" ").find((word) => /^r-[0-9a-z]{6,}$/.test(word));
        if (!run || !this.offer(place, run)) continue;
        for (const panel of Array.from(place.getElementsByClassName("sa-panel"))) this.offer(panel, run, Number(/** @type {HTMLElement} */ (panel).dataset.step));
      }
    }
    if (this.all.size > MOST) for (const [place, opener] of this.all) if (!place.isConnected && !opener.full.token) this.all.delete(place);
  }
  /** Whether it has one of ours now; a place that was drawn again takes over what was open in it. @param {Element} place @param {string} run @param {number} [step] */
  offer(place, run, step) {
    const mine = this.all.get(place);
    if (mine) return ((mine.box.style.display = ""), true); // what stands there hides what it finds
    const owner = /** @type {any} */ (place);
    if (owner.saOpener?.isConnected || outputsWith(this.model.widget_manager, run)?.length === 0) return false; // of another notebook
    const [before, opener] = [...this.all].find(([old, one]) => !old.isConnected && one.run === run && one.step === step) ?? [null, new Opener(this.model, run, step)];
    if (before) this.all.delete(before);
    this.all.set(place, opener);
    owner.saOpener = opener.box;
    place.append(opener.box);
    return true;
  }
  /** Its kernel is gone: what is open stays as it is. */
  leave() {
    for (const opener of this.all.values()) opener.button.remove();
    for (const place of this.all.keys()) /** @type {any} */ (place).saOpener = undefined;
    this.all.clear();
  }
}

class Opener {
  button = mark(h("button", "", "In full"), { type: "button", "aria-expanded": "false" });
  /** @param {import("./stand.js").Host} model @param {string} run @param {number} [step] */
  constructor(model, run, step) {
    this.run = run;
    this.step = step;
    this.full = new Place((request) => {
      try {
        model.send(request);
      } catch { /* the connection is closed: the place says what to type */ }
    }, (within) => {
      mark(this.button, { "aria-expanded": "false" });
      if (within) this.button.focus({ preventScroll: true });
    });
    this.box = h("div", "sa-more", this.button, this.full.box);
    this.button.addEventListener("click", () => {
      if (this.full.token) return this.full.close();
      mark(this.button, { "aria-expanded": "true" });
      this.full.open(step === undefined ? { run } : { run, step });
    });
  }
}

/** @param {{model: import("./stand.js").Host}} host */
function initialize({ model }) {
  const told = new Set();
  const openers = new Openers(model);
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  function look() {
    if (model.widget_manager?.context?.isDisposed) return leave();
    const [runs, boards] = [newOf(RUN), newOf(BOARD)];
    if (runs.length || boards.length) {
      const places = runs.map(([token, run]) => ({ token, run }));
      model.send({ kind: "found", places, ...(boards.length ? { boards: boards.map(([token, which]) => ({ token, which })) } : {}) });
    }
    // A sweep lives in its kernel alone, which knows what is still to be launched: the person is told what goes on with it.
    for (const place of Array.from(document.getElementsByClassName(SWEEP))) tell(place);
    openers.look();
    timer = setTimeout(look, SEARCH_MS);
  }
  /** @param {Element} place */
  function tell(place) {
    const owner = /** @type {any} */ (place);
    if (owner.saKeeper && !owner.saKeeper.gone) return void (owner.saHint?.remove(), (owner.saHint = undefined)); // it came late
    if (owner.saHint || outputsWith(model.widget_manager, place.className.split(" ")[0] ?? "")?.length === 0) return;
    place.append((owner.saHint = h("div", "sa sa-more", SWEEP_HINT)));
  }
  /** The tokens of what stands there without a kernel, each with what it is of. @param {string} kind */
  function newOf(kind) {
    const found = [];
    for (const place of Array.from(document.getElementsByClassName(kind))) {
      const keeper = /** @type {any} */ (place).saKeeper;
      const [token, , , of] = place.className.split(" ");
      if ((keeper && !keeper.gone) || told.has(token) || !of) continue;
      told.add(token);
      found.push([token, of]);
    }
    return found;
  }
  function leave() {
    clearTimeout(timer);
    openers.leave();
    model.off("msg:custom", hear);
    model.off("comm_live_update", leave);
  }
  /** @param {any} message */
  function hear(message) {
    if (message?.kind === "card" && told.has(message.token)) replaceOutput(model.widget_manager, message.token, message.data);
  }
  model.on("msg:custom", hear);
  model.on("comm_live_update", leave); // its kernel is gone; the next has its own
  timer = setTimeout(look, SEARCH_MS); // the views of this kernel come first
  return leave;
}

export default { initialize };
