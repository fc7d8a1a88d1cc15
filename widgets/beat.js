// @ts-check
/**
 * One beat for all views of a page: what the kernel says is drawn at most four times a second, all views in one frame.
 *
 * Each view is a module of its own, so they meet under a symbol. A page that nobody sees gets no frames.
 *
 * @typedef {{draw(): void}} Drawn
 */
const EVERY_MS = 250;
/** @type {{due: Set<Drawn>, at: number, waits: boolean}} */
const beat = /** @type {any} */ (globalThis)[Symbol.for("subagents_nb.beat")] ??= { due: new Set(), at: 0, waits: false };

function drawAll() {
  beat.waits = false;
  beat.at = performance.now();
  const due = [...beat.due];
  beat.due.clear();
  for (const view of due) view.draw();
}

/** Draw a view with the next beat. @param {Drawn} view */
export function drawSoon(view) {
  const frame = globalThis.requestAnimationFrame;
  if (!frame) return view.draw();
  beat.due.add(view);
  if (beat.waits) return;
  beat.waits = true;
  const left = beat.at + EVERY_MS - performance.now();
  if (left <= 0) frame(drawAll);
  else setTimeout(() => frame(drawAll), left);
}

/** Draw it no more. @param {Drawn} view */
export const drawNever = (view) => beat.due.delete(view);
