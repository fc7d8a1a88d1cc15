// @ts-check
/**
 * Finds what an earlier kernel left on the page: an anywidget (AFM) module without a view. The plain output of a live run
 * names its token and its run among its classes. The kernel makes a view of that token, or sends the card of a run that
 * has ended meanwhile.
 */
import { replaceOutput } from "./stand.js";

const SEARCH_MS = 1000;
const CLASS = "subagents-nb-run";

/** @param {{model: import("./stand.js").Host}} host */
function initialize({ model }) {
  const told = new Set();
  const places = document.getElementsByClassName(CLASS);
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  function look() {
    if (model.widget_manager?.context?.isDisposed) return leave();
    const found = [];
    for (const place of Array.from(places)) {
      const keeper = /** @type {any} */ (place).saKeeper;
      const [token, , , run] = place.className.split(" ");
      if ((keeper && !keeper.gone) || told.has(token) || !run) continue;
      told.add(token);
      found.push({ token, run });
    }
    if (found.length) model.send({ kind: "found", places: found });
    timer = setTimeout(look, SEARCH_MS);
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
