// @ts-check
/**
 * The live view of one run: what it is, who does it, how long, how much, what it says now, what it asks.
 *
 * The traits are the truth; messages carry text between two updates of `tail`, requests and receipts. All text is untrusted.
 *
 * @typedef {import("./dom.js").Tool} Tool
 * @typedef {import("./asks.js").Question} Question
 * @typedef {{run_id: string, name: string, agent: string, model: string, state: string, elapsed_s: number,
 *   deadline_s: number | null, tokens_in: number, tokens_out: number, cost: string, tool_calls: number,
 *   tool_limit: number | null, spend: string, spent: number | null, refusals: number, tools: Tool[], tail: string,
 *   tail_end: number, silent: string, note: string, reused: string,
 *   error: string, reason: string, stopping: boolean, questions: Question[], attention: string, waited_s: number,
 *   beat: number, graph: unknown, tree: unknown, fresh: {at?: unknown, text?: unknown}, token: string, version: number}} Traits
 * @typedef {{kind: "stop", step?: number} | {kind: "steer", text: string, step?: number} | {kind: "open", step: number}
 *   | {kind: "close"} | {kind: "answer", question: string, text: string}} Request
 * @typedef {(message?: any) => void} Ear
 * @typedef {{get<K extends keyof Traits>(name: K): Traits[K], send(message: Request): void,
 *   on(event: string, ear: Ear): void, off(event: string, ear: Ear): void, widget_manager?: any}} Model
 */
import { Asked, Mailbox, PermissionBlock, QuestionBlock, SteerPanel } from "./asks.js";
import { drawNever, drawSoon } from "./beat.js";
import { Tree } from "./tree.js";
import { Tail, ago, clean, clock, cut, h, hide, line, makeMeter, makeToolRow, mark, number, put, putClass, putIcon, set, short, thousands } from "./dom.js";

/** @type {(keyof Traits)[]} */
const TRAITS = [
  "run_id", "name", "agent", "model", "state", "elapsed_s", "deadline_s", "tokens_in", "tokens_out", "cost",
  "tool_calls", "tool_limit", "spend", "spent", "refusals", "tools", "tail", "tail_end", "silent", "note", "reused", "error",
  "reason", "stopping", "questions", "attention", "waited_s", "beat", "fresh", "tree",
];
const URGENT = ["state", "questions", "attention", "stopping"]; // are drawn though nobody sees the view: they may be spoken
const TELLS_TIME = ["elapsed_s", "state", "questions", "waited_s"]; // with these comes the kernel's count of seconds
const STALE_MS = 15_000; // three missed beats

/** `plain` is said when the kernel gave no reason. @type {Record<string, {icon: string, live: boolean, plain: string}>} */
const STATES = {
  queued: { icon: "clock", live: true, plain: "" },
  running: { icon: "turning", live: true, plain: "" },
  paused: { icon: "pause", live: true, plain: "" },
  complete: { icon: "check", live: false, plain: "" },
  partial: { icon: "half", live: false, plain: "The run ended early; what it had by then is kept." },
  failed: { icon: "cross", live: false, plain: "The run failed and left no reason." },
  stopped: { icon: "square", live: false, plain: "The run was stopped." },
  rejected: { icon: "barred", live: false, plain: "The run was not started." },
  lost: { icon: "question", live: false, plain: "The run was lost: its process is gone and left no last word." },
};
const UNKNOWN = { icon: "dashes", live: true, plain: "" };
const ASKS = { icon: "pause", live: true, plain: "" }; // at work, and waiting for the person

/** The pieces of the page, in reading order. */
function makePage(/** @type {SteerPanel} */ steer, /** @type {Asked} */ stopped) {
  const [icon, word, title, agent] = [h("span"), h("span"), h("span", "sa-title"), h("span", "sa-agent")];
  const [refused, elapsed, waited, tokens, cost] = [h("b", "sa-refused"), h("b"), h("span"), h("b"), h("b")];
  const [state, tokenFact] = [h("span", "sa-state", icon, word), h("span", "", tokens, " tokens")];
  const [lead, more, attach, note, reused] = [h("p"), h("p"), h("code"), h("p", "sa-note"), h("p", "sa-note")];
  const say = h("div", "sa-say", lead, more);
  const why = h("span");
  const stale = h("div", "sa-say sa-stale", h("p", "", why, " The run itself may well go on. To look: ", attach));
  const [tail, tools, tree] = [new Tail(), h("ul", "sa-tools"), new Tree()];
  const [deadline, calls, budget] = [makeMeter("deadline"), makeMeter("tools"), makeMeter("budget")];
  const meters = h("div", "sa-meters", deadline.box, calls.box, budget.box);
  const [questions, attention, stop, again] = [h("div", "sa-asks"), h("p", "sa-attention"), h("button", "sa-danger"), h("code")];
  const [againBox, age, id, spoken] = [h("span", "", "again: ", again), h("span"), h("code"), h("p", "sa-hide")];
  const facts = h("span", "sa-facts", refused, elapsed, waited, tokenFact, cost);
  const body = h("div", "sa-body", stale, say, questions, attention, tree.box, tail.box, tools, meters, note, reused, steer.box);
  const section = h("section", "sa",
    h("header", "sa-head", state, title, agent, facts), body,
    h("footer", "sa-foot", steer.button, stop, againBox, stopped.box, age, id), spoken);
  mark(stop, { type: "button" });
  mark(tools, { "aria-label": "Latest tool calls" });
  mark(spoken, { role: "status", "aria-live": "polite" });
  return { section, facts, body, state, icon, word, title, agent, refused, elapsed, waited, tokens, tokenFact, cost, lead, more, attach, why,
    note, reused, say, stale, questions, attention, tree, tail, deadline, calls, budget, tools, meters, stop, again, againBox, age, id, spoken };
}

/** One view of one model: listens, draws, counts its own seconds, and goes stale when the kernel falls silent. */
export class View {
  stopped = new Asked();
  steer = new SteerPanel((text) => this.ask({ kind: "steer", text }));
  page = makePage(this.steer, this.stopped);
  heardAt = performance.now(); // the kernel's last word
  elapsedAt = this.heardAt; // when the elapsed time was last told
  toolsAt = this.heardAt; // when the tools' seconds were last told
  news = ""; // the state last told to the reader
  pointed = false; // the reader was told that the run may need a look
  /** @type {Map<string, QuestionBlock | PermissionBlock>} */ blocks = new Map();
  /** @type {ReturnType<typeof makeToolRow>[]} */ rows = [];
  /** @type {[string, Ear][]} */ ears = TRAITS.map((name) => [`change:${name}`, () => this.hear(name)]);
  seen = true; // by the reader, as far as the browser knows
  urgent = false;
  orphan = false; // its kernel is gone
  closed = false;
  /** @type {ReturnType<typeof setInterval> | undefined} */ ticking;
  /** @param {Model} model */
  constructor(model) {
    this.model = model;
    this.mail = new Mailbox(model, () => this.draw());
    this.page.stop.addEventListener("click", () => this.askToStop());
    this.ears.push(["msg:custom", (message) => this.receive(message)]);
    this.ears.push(["comm_live_update", () => this.leaveAlone()]);
  }
  /** Listen and draw; apart from the constructor, so that a view of more kinds is whole by then. */
  start() {
    for (const [event, ear] of this.ears) this.model.on(event, ear);
    this.page.tail.set(this.model.get("tail"), this.model.get("tail_end"));
    this.stream(this.model.get("fresh"));
    this.draw();
    if (globalThis.IntersectionObserver) {
      this.watch = new IntersectionObserver(([{ isIntersecting }]) => this.turn(isIntersecting), { rootMargin: "200px" });
      this.watch.observe(this.page.section);
    }
    globalThis.requestAnimationFrame?.(() => this.greet());
    return this;
  }
  /** The node that a host puts on its page. */
  get section() {
    return this.page.section;
  }
  /** It came into sight, or went. @param {boolean} seen */
  turn(seen) {
    this.seen = seen;
    if (seen) this.redraw();
  }
  /** Draw with the next beat, if somebody sees it. */
  redraw() {
    if (this.seen || this.urgent) drawSoon(this);
  }

  close() {
    for (const [event, ear] of this.ears.splice(0)) this.model.off(event, ear);
    this.watch?.disconnect();
    drawNever(this);
    clearInterval(this.ticking);
    this.ticking = undefined;
    this.closed = true;
    this.mail.close();
  }
  /** @param {keyof Traits} name */
  hear(name) {
    this.heardAt = performance.now();
    if (TELLS_TIME.includes(name)) this.elapsedAt = this.heardAt;
    if (name === "tools") this.toolsAt = this.heardAt;
    if (name === "tail" || name === "tail_end") this.page.tail.set(this.model.get("tail"), this.model.get("tail_end"));
    if (name === "fresh") this.stream(this.model.get("fresh"));
    if (name === "stopping") this.stopped.heard = true;
    if (name === "state" || (name === "stopping" && !this.model.get("stopping"))) this.stopped.end();
    this.orphan = false;
    this.urgent ||= URGENT.includes(name);
    this.redraw();
  }
  /** @param {any} more */
  stream(more) {
    if (Number.isInteger(more?.at)) this.page.tail.add(more.at, String(more.text));
  }
  /** @param {any} message */
  receive(message) {
    this.heardAt = performance.now();
    this.orphan = false;
    if (message?.kind === "tail") this.stream(message);
    if (message?.kind === "ack") {
      this.mail.hear(message);
      if (message.to === "steer") this.steer.hear(message);
      else if (message.to === "answer") this.blocks.get(String(message.question))?.hear(message);
      else if (message.ok === false || STATES[this.model.get("state")]?.live !== false) this.stopped.hear(line(message.text), message.ok === false);
    }
    this.redraw();
  }

  /** The kernel was restarted; a new one may take the view over. */
  leaveAlone() {
    [this.orphan, this.urgent] = [true, true];
    this.redraw();
  }

  /** Where the focus goes when what had it goes away. @returns {HTMLElement} */
  get rest() {
    return this.page.tail.box;
  }

  askToStop() {
    this.stopped.begin();
    this.rest.focus({ preventScroll: true }); // the button is disabled now and would drop the focus
    this.ask({ kind: "stop" });
  }
  /** @param {QuestionBlock | PermissionBlock} block @param {string} text */
  answer(block, text) {
    block.asked.begin(text);
    this.ask({ kind: "answer", question: block.id, text });
  }
  /** @param {Request} asked */
  ask(asked) {
    this.mail.ask(asked);
  }

  draw() {
    const [now, name] = [performance.now(), String(this.model.get("state"))];
    const asking = this.drawQuestions(name === "running");
    const known = Object.hasOwn(STATES, name) ? STATES[name] : UNKNOWN;
    const state = asking ? ASKS : known;
    const stale = state.live && (this.orphan || now - this.heardAt >= STALE_MS);
    const until = stale ? this.heardAt : now; // what came after the last word is not known
    const counts = name === "running" && !asking ? 0.001 : 0;
    const elapsed = this.model.get("elapsed_s") + (until - this.elapsedAt) * counts;
    const waited = this.model.get("waited_s") + (asking ? (until - this.elapsedAt) * 0.001 : 0);
    const word = stale ? "stale" : asking ? "asks you" : state === UNKNOWN ? line(name, 20) : name;
    this.drawHead(state, word, elapsed, waited);
    this.drawBody(state, stale, elapsed, (until - this.toolsAt) * counts);
    this.drawFoot(state, stale || this.mail.idle, now);
    this.urgent = false;
    const moving = counts > 0 && !stale;
    set(this.page.section.dataset, { live: String(state.live), moving: String(moving) });
    this.turnIcon(moving, now);
    this.page.tail.say(this.model.get("silent"));
    this.page.tail.draw();
    if (state.live && !this.closed) this.ticking ??= setInterval(() => this.redraw(), 1000);
    else this.ticking = void clearInterval(this.ticking);
  }
  /** Turn the sign of work by a notch each time that something is drawn anyway. @param {boolean} moving @param {number} now */
  turnIcon(moving, now) {
    const still = !moving || globalThis.matchMedia?.("(prefers-reduced-motion: reduce)").matches;
    set(this.page.icon.style, { rotate: still ? "" : `${Math.floor(now / 250) % 8 * 45}deg` });
  }
  /** @param {typeof UNKNOWN} state @param {string} word @param {number} elapsed @param {number} waited */
  drawHead(state, word, elapsed, waited) {
    const [p, m] = [this.page, this.model];
    const title = line(m.get("name"), 120) || line(m.get("run_id"), 60);
    const [refused, sent, got] = [m.get("refusals"), m.get("tokens_in"), m.get("tokens_out")];
    putIcon(p.icon, word === "stale" ? "dashes" : state.icon);
    putClass(p.state, `sa-state sa-${state === UNKNOWN ? "queued" : word === "asks you" ? "asking" : word}`);
    put(p.word, word);
    put(p.title, title);
    put(p.agent, [line(m.get("agent"), 80), line(m.get("model"), 120)].filter(Boolean).join(" · "));
    put(p.refused, refused ? `${thousands(refused)} refused` : "");
    put(p.elapsed, elapsed <= 0 && state !== STATES.running ? "" : clock(elapsed));
    put(p.waited, waited >= 1 ? `waited ${clock(waited)}` : "");
    put(p.tokens, `${short(sent)} / ${short(got)}`);
    const exact = `${thousands(sent)} tokens in, ${thousands(got)} out`;
    set(p.tokenFact, { title: exact, hidden: sent + got === 0 });
    put(p.cost, line(m.get("cost"), 30));
    this.tell(title, word);
    mark(p.section, { "aria-label": `Run ${title}, ${word}` });
  }
  /** Speak what is new: the state, the latest question, once that the run may need a look. @param {string} title @param {string} word */
  tell(title, word) {
    const asked = word === "asks you" ? `: ${line([...this.blocks.values()].at(-1)?.text, 200)}` : "";
    const news = word === "stale" ? `Run ${title}: the kernel ${this.orphan ? "was restarted" : "is not answering"}`
      : `Run ${title} ${asked ? word : `is ${word}`}${asked}`;
    if (this.news && this.news !== news) put(this.page.spoken, news);
    this.news = news;
    const pointed = Boolean(this.model.get("attention"));
    if (pointed && !this.pointed) put(this.page.spoken, `Run ${title}: ${line(this.model.get("attention"))}`);
    this.pointed = pointed;
  }
  /** The view stands on the page now: a question that was open before is news too. What was in it before is not spoken. */
  greet() {
    if (this.blocks.size) put(this.page.spoken, this.news);
  }
  /** Show the open questions; an answer that is being written stays as it is. @param {boolean} live */
  drawQuestions(live) {
    const given = this.model.get("questions");
    const open = new Map((live && Array.isArray(given) ? given : []).map((question) => [String(question?.id), question]));
    for (const [id, block] of this.blocks) {
      if (open.has(id)) continue;
      const focused = block.focused;
      block.box.remove();
      this.blocks.delete(id);
      if (focused) this.rest.focus({ preventScroll: true });
    }
    for (const [id, question] of open) {
      if (this.blocks.has(id)) continue;
      const Kind = question.permission ? PermissionBlock : QuestionBlock;
      /** @type {QuestionBlock | PermissionBlock} */
      const block = new Kind({ ...question, id }, (text) => this.answer(block, text));
      this.blocks.set(id, block);
      this.page.questions.append(block.box);
    }
    return this.blocks.size > 0;
  }
  /** @param {typeof UNKNOWN} state @param {boolean} stale @param {number} elapsed @param {number} more */
  drawBody(state, stale, elapsed, more) {
    const [p, m] = [this.page, this.model];
    const said = [m.get("error"), m.get("reason")].map((text) => cut(clean(text).trim(), 4000)).filter(Boolean);
    put(p.lead, said[0] ?? state.plain);
    put(p.more, said[1] ?? "");
    hide(p.say, !p.lead.textContent);
    putClass(p.say, p.state.className.replace("sa-state", "sa-say"));
    hide(p.stale, !stale);
    put(p.why, this.orphan ? "The kernel was restarted, so this view stands still. It goes on once %load_ext subagents_nb was run."
      : "The notebook's kernel is not answering, so this view is old.");
    put(p.attach, `%subagent_attach ${line(m.get("run_id"), 60)}`);
    hide(p.questions, state !== ASKS);
    put(p.attention, state.live ? line(m.get("attention")) : "");
    p.tree.draw(m.get("tree"));
    const tools = m.get("tools");
    const calls = (Array.isArray(tools) ? tools : []).slice(-5);
    while (this.rows.length < calls.length) p.tools.append(this.rows[this.rows.push(makeToolRow()) - 1].row);
    this.rows.forEach((row, i) => row.set(calls[i] ?? null, more)); // rows never go away: nothing below moves up
    const [limit, most, count] = [number(m.get("deadline_s")), number(m.get("tool_limit")), m.get("tool_calls")];
    const left = (limit ?? 0) - elapsed;
    p.deadline.set(limit === null || !state.live ? "" : left > 0 ? `${clock(left)} left` : "passed", elapsed, limit);
    p.calls.set(most !== null ? `${count} of ${most}` : count ? String(count) : "", count, most);
    const spent = number(m.get("spent"));
    p.budget.set(line(m.get("spend")), 100 * (spent ?? 0), spent === null ? null : 100);
    hide(p.meters, p.deadline.box.hidden && p.calls.box.hidden && p.budget.box.hidden);
    put(p.note, line(m.get("note")));
    put(p.reused, line(m.get("reused")));
  }
  /** @param {typeof UNKNOWN} state @param {import("./asks.js").Silence} stale @param {number} now */
  drawFoot(state, stale, now) {
    const [p, m, id] = [this.page, this.model, line(this.model.get("run_id"), 60)];
    const asked = this.stopped.open || Boolean(m.get("stopping"));
    set(p.stop, { hidden: !state.live, disabled: asked });
    put(p.stop, asked ? "Stop requested" : "Stop");
    this.stopped.draw(now, state.live, stale, `subagents-nb stop ${id}`);
    this.steer.draw(now, state.live, stale, (state === STATES.running || state === ASKS) && !asked, id);
    for (const block of this.blocks.values()) block.draw(now, state.live, stale, id);
    hide(p.againBox, state.live);
    put(p.again, `subagents_nb.attach(${JSON.stringify(line(m.get("name"), 120) || id)})`);
    put(p.age, state.live ? `updated ${ago((now - this.heardAt) / 1000)}` : "");
    put(p.id, id);
  }
}
