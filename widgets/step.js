// @ts-check
/**
 * The panel of one step: what it writes, calls and uses while it works; what it came to when it has ended.
 *
 * @typedef {import("./view.js").Request} Request
 * @typedef {import("./graph.js").StepRow} StepRow
 */
import { Asked, SteerPanel } from "./asks.js";
import { Tail, clean, clock, h, holdsFocus, line, makeToolRow, mark, number, put, short, thousands } from "./dom.js";
import { isOver } from "./graph.js";

const SHOWN = 24_000; // characters of an output, which the kernel has cut already

export class StepPanel {
  stopped = new Asked();
  title = h("b");
  about = h("span", "sa-agent");
  facts = h("span", "sa-facts");
  wrong = h("div", "sa-say sa-failed");
  wrongText = h("p");
  tail = new Tail();
  out = mark(h("div", "sa-out"), { role: "region", "aria-label": "Output of the step", tabindex: 0 });
  cut = h("p", "sa-note");
  tools = mark(h("ul", "sa-tools"), { "aria-label": "Latest tool calls of the step" });
  remarks = h("div", "sa-note");
  workText = mark(h("div", "sa-work"), { role: "region", "aria-label": "Acceptance and changes of the step", tabindex: 0 });
  work = h("details", "sa-note", h("summary", "", "Acceptance and changes"), this.workText);
  stop = mark(h("button", "sa-danger", "Stop step"), { type: "button" });
  /** @type {ReturnType<typeof makeToolRow>[]} */ rows = [];
  asked = false; // its output was asked for
  toolsAt = performance.now();
  /** @param {number} n @param {(request: Request) => void} ask @param {() => void} close */
  constructor(n, ask, close) {
    this.n = n;
    this.ask = ask;
    this.steer = new SteerPanel((text) => ask({ kind: "steer", step: n, text }));
    put(this.steer.button, "Steer step…");
    this.wrong.append(this.wrongText);
    this.shut = mark(h("button", "", "Close"), { type: "button" });
    this.box = h("section", "sa-panel",
      h("div", "sa-panel-head", this.title, this.about, this.facts),
      this.wrong, this.tail.box, this.out, this.cut, this.tools, this.remarks, this.work, this.steer.box,
      h("div", "sa-panel-foot", this.steer.button, this.stop, this.shut, this.stopped.box));
    mark(this.box, { role: "group", "data-step": n });
    this.stop.addEventListener("click", () => {
      this.stopped.begin();
      this.tail.box.focus({ preventScroll: true }); // the button is disabled now and would drop the focus
      ask({ kind: "stop", step: n });
    });
    this.shut.addEventListener("click", close);
    this.box.addEventListener("keydown", (event) => {
      if (event.key !== "Escape" || event.isComposing) return;
      event.stopPropagation();
      close();
    });
    for (const part of [this.wrong, this.out, this.cut, this.remarks, this.work]) part.hidden = true;
  }
  /** Ask the kernel for what it knows; apart from the constructor, since asking draws. @param {boolean} over */
  begin(over) {
    this.asked = over;
    this.ask({ kind: "open", step: this.n });
  }
  get focused() {
    return holdsFocus(this.box);
  }
  /** Take what the kernel tells of the step. @param {any} told */
  hear(told) {
    if (typeof told.silent === "string") this.tail.say(told.silent);
    if (typeof told.tail === "string" && Number.isInteger(told.tail_end)) this.tail.set(told.tail, told.tail_end);
    if (typeof told.fresh === "string" && Number.isInteger(told.at)) this.tail.add(told.at, told.fresh);
    if (Array.isArray(told.tools)) {
      this.toolsAt = performance.now();
      this.calls = told.tools.slice(-5);
      while (this.rows.length < this.calls.length) this.tools.append(this.rows[this.rows.push(makeToolRow()) - 1].row);
    }
    if ("model" in told) put(this.about, [told.agent, told.model].map((text) => line(text, 80)).filter(Boolean).join(" · "));
    const [sent, got] = [number(told.tokens_in), number(told.tokens_out)];
    if (sent !== null && got !== null) this.used = [sent + got ? `${short(sent)} / ${short(got)} tokens` : "", line(told.cost, 30)];
    if ("error" in told) put(this.wrongText, clean(told.error).trim().slice(0, 4000));
    if (typeof told.output === "string") {
      const text = clean(told.output);
      put(this.out, text.slice(0, SHOWN) || "no output");
      put(this.cut, number(told.more) ? `… ${thousands(told.more)} more characters: run.steps[${this.n}].text` : "");
    }
    if (Array.isArray(told.remarks)) this.remarks.replaceChildren(...told.remarks.slice(0, 8).map((/** @type {any} */ text) => h("p", "", line(text))));
    if (typeof told.work === "string") put(this.workText, clean(told.work).slice(0, SHOWN));
  }
  /** @param {any} ack */
  hearAck(ack) {
    if (ack.to === "steer") this.steer.hear(ack);
    else if (ack.to === "stop") this.stopped.hear(line(ack.text), ack.ok === false);
    else put(this.cut, line(ack.text));
  }
  /** @param {StepRow} row @param {number} elapsed @param {number} now @param {boolean} live @param {import("./asks.js").Silence} stale @param {string} run */
  draw(row, elapsed, now, live, stale, run) {
    const [over, works] = [isOver(row.state), row.state === "running"];
    const [took, since] = [number(row.took), number(row.from)];
    const time = took !== null ? clock(took) : since !== null ? clock(elapsed - since) : "";
    put(this.title, [row.n, line(row.name, 80)].join(" ").trim());
    put(this.facts, [row.stopping ? "stopping" : line(row.state, 20), time, ...(this.used ?? [])].filter(Boolean).join(" · "));
    mark(this.box, { "aria-label": `steps[${row.n}], ${line(row.name, 80)}, ${line(row.state, 20)}` });
    if (over && !this.asked) {
      this.asked = true;
      this.stopped.end();
      this.ask({ kind: "open", step: this.n });
    }
    this.rows.forEach((tool, i) => tool.set(this.calls?.[i] ?? null, works && stale !== true ? (now - this.toolsAt) / 1000 : 0));
    const answered = Boolean(this.out.textContent);
    this.wrong.hidden = !this.wrongText.textContent;
    this.out.hidden = !over || !answered;
    this.tail.box.hidden = over && answered;
    this.box.dataset.works = String(works);
    this.cut.hidden = !this.cut.textContent;
    this.remarks.hidden = this.remarks.textContent === "";
    this.work.hidden = !this.workText.textContent;
    const asked = this.stopped.open || Boolean(row.stopping);
    Object.assign(this.stop, { hidden: !live || over, disabled: asked });
    put(this.stop, asked ? "Stop requested" : "Stop step");
    this.stopped.draw(now, live && !over, stale, `subagents-nb stop ${run} --step ${this.n}`);
    this.steer.draw(now, live, stale, live && works && !asked, `${run} --step ${this.n}`);
    this.tail.draw();
  }
}
