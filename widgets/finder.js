// @ts-check
/**
 * Finds what an earlier kernel left on the page: an anywidget (AFM) module without a view. The plain output of a live run
 * names its token and its run among its classes. The kernel makes a view of that token, or sends the card of a run that
 * has ended meanwhile.
 */
import { replaceOutput } from "./stand.js";

const SEARCH_MS = 1000;
const [RUN, BOARD] = ["subagents-nb-run", "subagents-nb-board"];

/** @param {{model: import("./stand.js").Host}} host */
function initialize({ model }) {
  const told = new Set();
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  function look() {
    if (model.widget_manager?.context?.isDisposed) return leave();
    const [runs, boards] = [newOf(RUN), newOf(BOARD)];
    if (runs.length || boards.length) {
      const places = runs.map(([token, run]) => ({ token, run }));
      model.send({ kind: "found", places, ...(boards.length ? { boards: boards.map(([token, which]) => ({ token, which })) } : {}) });
    }
    timer = setTimeout(look, SEARCH_MS);
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
