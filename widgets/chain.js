// @ts-check
/** The live view of a chain: an anywidget (AFM) module. The run's view, with its stages and the panel of one step. */
import { h, line, put } from "./dom.js";
import { Graph, isOver } from "./graph.js";
import { rendering, standing } from "./stand.js";
import { StepPanel } from "./step.js";
import { View } from "./view.js";

class ChainView extends View {
  graph = new Graph((n) => this.toggle(n));
  place = h("div");
  steps = h("b");
  fact = h("span", "", this.steps, " steps");
  follows = true; // the panel shows the step at work, until the reader chooses one or closes it
  /** @type {StepPanel | null} */ panel = null;
  /** @type {Map<string, string>} */ told = new Map();
  elapsed = 0;
  /** @param {import("./view.js").Model} model */
  constructor(model) {
    super(model);
    this.ears.push(["change:graph", () => this.hearGraph()]);
    const p = this.page;
    p.facts.insertBefore(this.fact, p.tokenFact);
    p.body.insertBefore(this.graph.box, p.tail.box);
    p.body.insertBefore(this.place, p.tail.box);
    for (const part of [p.tail.box, p.tools]) part.remove(); // each step has its own
    this.graph.box.addEventListener("keydown", (event) => {
      if (event.key !== "Escape" || !this.panel) return;
      event.stopPropagation();
      this.closePanel();
    });
  }
  start() {
    this.graph.set(this.model.get("graph"));
    return super.start();
  }

  greet() {
    super.greet();
    if (this.panel) this.graph.reveal(this.panel.n); // before, nothing had a size
  }

  hearGraph() {
    this.heardAt = performance.now();
    this.graph.set(this.model.get("graph"));
    this.redraw();
  }
  /** @param {any} message */
  receive(message) {
    if (message?.kind === "graph") this.graph.patch(message);
    else if (message?.kind === "step" && message.n === this.panel?.n) this.panel?.hear(message);
    else if (message?.kind === "ack" && Number.isInteger(message.step)) {
      if (message.step === this.panel?.n) this.panel?.hearAck(message);
    } else return super.receive(message);
    this.heardAt = performance.now();
    this.orphan = false;
    this.redraw();
  }
  /** The reader opens a step, or closes the open one. @param {number} n */
  toggle(n) {
    this.follows = false;
    if (this.panel?.n === n) return this.closePanel();
    this.graph.activate(n);
    this.show(n);
    this.draw();
  }
  /** @param {number} n */
  show(n) {
    this.panel?.box.remove();
    this.panel = new StepPanel(n, (request) => this.ask(request), () => this.closePanel());
    this.place.append(this.panel.box);
    this.graph.expand(n);
    this.graph.reveal(n);
    this.panel.begin(isOver(this.graph.row(n)?.state ?? ""));
  }

  closePanel() {
    const panel = this.panel;
    if (!panel) return;
    const within = panel.focused;
    this.follows = false;
    panel.box.remove();
    this.panel = null;
    this.graph.expand(-1);
    if (within) this.graph.activate(panel.n, true);
    this.ask({ kind: "close" });
  }
  /** Show the step at work, if the reader leaves it to the view. */
  follow() {
    const open = this.panel ? this.graph.row(this.panel.n) : null;
    const next = this.graph.working;
    if (this.follows && next >= 0 && (!open || isOver(open.state)) && !this.panel?.focused) this.show(next);
  }
  /** Where the focus goes when what had it goes away. */
  get rest() {
    return this.graph.cells.get(this.graph.active)?.button ?? super.rest;
  }
  /** @param {any} state @param {string} word @param {number} elapsed @param {number} waited */
  drawHead(state, word, elapsed, waited) {
    const [over, all] = this.graph.counts;
    put(this.steps, `${over} of ${all}`);
    this.fact.hidden = all === 0;
    this.elapsed = elapsed;
    super.drawHead(state, word, elapsed, waited);
  }
  /** @param {any} state @param {boolean} stale @param {number} elapsed @param {number} more */
  drawBody(state, stale, elapsed, more) {
    super.drawBody(state, stale, elapsed, more);
    this.follow();
    this.graph.tick(elapsed);
    this.newsOfStages();
  }
  /** @param {any} state @param {import("./asks.js").Silence} stale @param {number} now */
  drawFoot(state, stale, now) {
    super.drawFoot(state, stale, now);
    const [p, id] = [this.page, line(this.model.get("run_id"), 60)];
    this.steer.button.hidden = true; // which step would be meant?
    this.steer.box.hidden = true;
    if (p.stop.textContent === "Stop") put(p.stop, "Stop run");
    const row = this.panel ? this.graph.row(this.panel.n) : null;
    if (this.panel && row) this.panel.draw(row, this.elapsed, now, state.live, stale, id);
  }
  /** Speak when a stage is over; what each step does is not spoken. */
  newsOfStages() {
    for (const [i, column] of this.graph.columns.entries()) {
      const [key, before] = [String(i), this.told.get(String(i))];
      if (before !== undefined && before !== column.state && isOver(column.state))
        put(this.page.spoken, `Stage ${column.title.textContent} is ${column.state}`);
      this.told.set(key, column.state);
    }
  }
}

export default { initialize: standing(ChainView), render: rendering(ChainView) };
