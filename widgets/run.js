// @ts-check
/**
 * The live view of one run: what it is, who does it, how long, how much, what it says now.
 *
 * An anywidget (AFM) module with no imports. The traits of the model are the truth; messages only carry text between
 * two updates of `tail`. All text is untrusted and reaches the page as text nodes only, through `clean`.
 *
 * @typedef {{name: string, args: string, state: string, seconds: number | null}} Tool
 * @typedef {{run_id: string, name: string, agent: string, model: string, state: string, elapsed_s: number,
 *   deadline_s: number | null, tokens_in: number, tokens_out: number, cost: string, tool_calls: number,
 *   tool_limit: number | null, refusals: number, tools: Tool[], tail: string, tail_end: number, note: string,
 *   error: string, reason: string, stopping: boolean, beat: number}} Traits
 * @typedef {(message?: any) => void} Ear
 * @typedef {{get<K extends keyof Traits>(name: K): Traits[K], send(message: {kind: "stop"}): void,
 *   on(event: string, ear: Ear): void, off(event: string, ear: Ear): void}} Model
 */

/** @type {(keyof Traits)[]} */
const TRAITS = [
  "run_id", "name", "agent", "model", "state", "elapsed_s", "deadline_s", "tokens_in", "tokens_out", "cost",
  "tool_calls", "tool_limit", "refusals", "tools", "tail", "tail_end", "note", "error", "reason", "stopping", "beat",
];
const STALE_MS = 15_000; // three missed beats
const ANSWER_MS = 2_000;
const KEEP = 8_000; // characters of text on the page at most ...
const KEEP_AFTER_CUT = 6_000; // ... and after a cut, so that cuts are rare

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
/** @type {Record<string, string>} */
const TOOL_ICONS = { running: "turning", complete: "check", failed: "cross", refused: "barred" };
const RING = "M6 1.6a4.4 4.4 0 1 1 0 8.8a4.4 4.4 0 1 1 0-8.8";
/** @type {Record<string, string[]>} Paths in a box of 12 by 12; run.css says how they are stroked. */
const ICONS = {
  turning: [RING, "M6 1.6a4.4 4.4 0 0 1 4.4 4.4"], clock: [RING, "M6 3.6V6l1.8 1.2"], dashes: [RING],
  check: ["M2.2 6.4 5 9.2l4.9-6"], cross: ["m3 3 6 6M9 3 3 9"], pause: ["M4 2.6v6.8M8 2.6v6.8"],
  half: [RING, "M6 1.6a4.4 4.4 0 0 1 0 8.8z"], barred: [RING, "M3 9l6-6"], square: ["M3 3h6v6H3z"],
  question: ["M3.6 4.2a2.4 2.4 0 1 1 3.4 2.2q-1 .5-1 1.4M6 10.3v.1"],
};

// Colours and cursor moves; then titles, links and device strings; then the short ones.
const SEQUENCE =
  /\x1b\[[0-?]*[ -/]*[@-~]|\x1b[\]PX^_][^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)|\x9b[0-?]*[ -/]*[@-~]|\x1b[ -/]*[0-~]/g;
const UNFINISHED = /\x1b(?:\[[0-?]*[ -/]*|[\]PX^_][^\x07\x1b\x9c]{0,200}\x1b?|[ -/]*)$|\r$/;
const HIDDEN = /[\x7f-\x9f\u200b\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|[\u{e0000}-\u{e007f}]/gu;

/**
 * Make untrusted text harmless to read: escape sequences go, other control characters and the ones that hide or
 * reorder text become one visible sign each. Newlines and tabs stay.
 * @param {unknown} text
 */
function clean(text) {
  return String(text ?? "")
    .replace(SEQUENCE, "")
    .replace(/\r\n|[\u2028\u2029]/g, "\n")
    .replace(/[\x00-\x08\x0b-\x1f]/g, (c) => String.fromCharCode(0x2400 + c.charCodeAt(0)))
    .replace(HIDDEN, "\u2426");
}

/** @param {unknown} value @returns {number | null} */
const number = (value) => (typeof value === "number" && Number.isFinite(value) ? value : null);
/** @param {number} n */
const thousands = (n) => n.toLocaleString("en-US");
/** @param {string} text @param {number} most */
const cut = (text, most) =>
  text.length > most ? `${text.slice(0, most)}… ${thousands(text.length - most)} more characters` : text;
/** One line of clean text. @param {unknown} text @param {number} [most] */
const line = (text, most = 400) => cut(clean(text).replace(/\s+/g, " ").trim(), most);

/** 861, 1.6k, 12.4k, 141k, 1.2M. @param {number} n */
function short(n) {
  if (n < 1000) return String(Math.round(n));
  const [scaled, unit] = n < 999_500 ? [n / 1000, "k"] : [n / 1e6, "M"];
  return (scaled < 99.95 ? scaled.toFixed(1) : String(Math.round(scaled))) + unit;
}

/** 0:42, 12:05, 1:00:00. @param {number} seconds */
function clock(seconds) {
  const s = Math.max(0, Math.floor(seconds));
  const [hours, minutes, rest] = [Math.floor(s / 3600), Math.floor(s / 60) % 60, String(s % 60).padStart(2, "0")];
  return hours ? `${hours}:${String(minutes).padStart(2, "0")}:${rest}` : `${minutes}:${rest}`;
}
/** @param {number} seconds */
const brief = (seconds) => (seconds < 60 ? `${seconds.toFixed(seconds < 9.95 ? 1 : 0)} s` : clock(seconds));
/** @param {number} s */
const ago = (s) => (s < 1 ? "just now" : s < 120 ? `${Math.floor(s)} s ago` : `${Math.floor(s / 60)} min ago`);

/** @template {keyof HTMLElementTagNameMap} T @param {T} tag @param {string} className @param {(Node|string)[]} kids */
function h(tag, className = "", ...kids) {
  const node = document.createElement(tag);
  if (className) node.className = className;
  node.append(...kids);
  return node;
}

/** @template {Element} E @param {E} node @param {Record<string, string | number>} attributes */
function mark(node, attributes) {
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, String(value));
  return node;
}

/** Set text only where it differs: an unchanged node costs nothing. @param {HTMLElement} node @param {string} text */
function put(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

/** Show an icon; the same icon again leaves its motion undisturbed. @param {HTMLElement} box @param {string} name */
function putIcon(box, name) {
  if (box.dataset.icon === name) return;
  box.dataset.icon = name;
  const space = "http://www.w3.org/2000/svg"; // a name, never fetched
  const svg = document.createElementNS(space, "svg");
  mark(svg, { viewBox: "0 0 12 12", "aria-hidden": "true", class: `sa-icon sa-icon-${name}` });
  svg.append(...ICONS[name].map((d) => mark(document.createElementNS(space, "path"), { d })));
  box.replaceChildren(svg);
}

/** The streamed text: a window on [start, end) of all characters, counted in code points as Python counts them. */
class Tail {
  start = 0;
  end = 0;
  /** @type {string[]} */ points = [];
  /** @type {Text[]} */ nodes = [];
  held = ""; // an escape sequence whose end has not come yet
  follows = true; // the reader is at the bottom
  cut = h("div", "sa-cut");
  caret = h("i", "sa-caret");
  box = h("div", "sa-tail", this.cut, this.caret);

  constructor() {
    const box = this.box;
    mark(box, { role: "region", "aria-label": "Text so far", tabindex: 0 }); // the keyboard can scroll it
    this.rewrite();
    box.addEventListener("scroll", () => (this.follows = box.scrollHeight - box.scrollTop - box.clientHeight < 24));
  }
  /** Take the trait: `text` ends at `end`; after a gap it replaces all. @param {string} text @param {number} end */
  set(text, end) {
    const at = end - Array.from(text).length;
    if (at > this.end) {
      [this.points, this.end] = [[], at];
      this.rewrite();
    }
    this.add(at, text);
  }
  /** Append what is new in `text`; beyond a gap it waits for the trait. @param {number} at @param {string} text */
  add(at, text) {
    const points = Array.from(text);
    if (at > this.end || at + points.length <= this.end) return;
    const fresh = points.slice(this.end - at);
    this.points = this.points.concat(fresh);
    this.end += fresh.length;
    if (this.points.length <= KEEP) this.write(fresh.join(""));
    else this.rewrite();
    this.keepEnd();
  }
  /** @param {string} text */
  write(text) {
    const all = this.held + text;
    this.held = UNFINISHED.exec(all)?.[0] ?? "";
    const shown = clean(all.slice(0, all.length - this.held.length));
    if (shown) this.nodes.push(this.box.insertBefore(document.createTextNode(shown), this.caret));
    this.box.dataset.empty = String(this.nodes.length === 0);
  }

  rewrite() {
    const below = this.box.scrollHeight - this.box.scrollTop; // the reader's place, measured from the end
    for (const node of this.nodes.splice(0)) node.remove();
    this.points = this.points.slice(-KEEP_AFTER_CUT);
    this.start = this.end - this.points.length;
    this.held = "";
    this.cut.hidden = this.start === 0;
    put(this.cut, `… ${thousands(this.start)} earlier characters`);
    this.write(this.points.join(""));
    if (!this.follows) this.box.scrollTop = this.box.scrollHeight - below;
  }

  keepEnd() {
    if (this.follows) this.box.scrollTop = this.box.scrollHeight;
  }
}

/** A measure against a limit; without a limit there is no bar, only the number. @param {string} label */
function makeMeter(label) {
  const [value, fill] = [h("b"), h("i")];
  const bar = mark(h("div", "", fill), { role: "progressbar", "aria-label": label, "aria-valuemin": 0 });
  const box = h("div", "sa-meter", `${label} `, value);
  /** @param {string} text @param {number} now @param {number | null} limit */
  function set(text, now, limit) {
    const part = limit === null ? 0 : limit > 0 ? Math.min(1, now / limit) : 1;
    box.hidden = text === "";
    box.className = part >= 0.8 ? "sa-meter sa-near" : "sa-meter";
    put(value, text);
    if (limit === null) return bar.remove();
    fill.style.width = `${Math.round(part * 1000) / 10}%`;
    mark(bar, { "aria-valuemax": limit, "aria-valuenow": Math.min(limit, Math.floor(now)), "aria-valuetext": text });
    if (!bar.parentNode) box.append(bar);
  }
  return { box, set };
}

/** One row of the tool list; `more` is how long ago the kernel told the seconds. */
function makeToolRow() {
  const [icon, word, name, args, time] = [h("span"), h("span", "sa-hide"), h("span", "sa-tool"), h("code"), h("span")];
  const row = h("li", "", h("span", "", icon, word), name, args, time);
  /** @param {Partial<Tool> | null} tool @param {number} more */
  function set(tool, more) {
    row.style.visibility = tool ? "" : "hidden";
    const state = Object.hasOwn(TOOL_ICONS, String(tool?.state)) ? String(tool?.state) : "unknown";
    const seconds = number(tool?.seconds);
    const took = seconds === null ? "" : brief(seconds + (state === "running" ? more : 0));
    const bad = state === "failed" || state === "refused" ? state : "";
    putIcon(icon, TOOL_ICONS[state] ?? "dashes");
    icon.className = `sa-${state}`;
    put(word, bad ? "" : state);
    put(name, line(tool?.name, 80));
    put(args, line(tool?.args));
    args.title = args.textContent ?? "";
    put(time, [bad, took].filter(Boolean).join(" · "));
    time.className = bad && `sa-${bad}`;
  }
  return { row, set };
}

/** The pieces of the page, in reading order. */
function makePage() {
  const [icon, word, title, agent] = [h("span"), h("span"), h("span", "sa-title"), h("span", "sa-agent")];
  const [refused, elapsed, tokens, cost] = [h("b", "sa-refused"), h("b"), h("b"), h("b")];
  const [state, tokenFact] = [h("span", "sa-state", icon, word), h("span", "", tokens, " tokens")];
  const [lead, more, attach, note] = [h("p"), h("p"), h("code"), h("p", "sa-note")];
  const say = h("div", "sa-say", lead, more);
  const stale = h("div", "sa-say sa-stale", h("p", "", "The notebook's kernel is not answering, so this view is old. ",
    "The run itself may well go on. To look: ", attach));
  const [tail, deadline, calls, tools] = [new Tail(), makeMeter("deadline"), makeMeter("tools"), h("ul", "sa-tools")];
  const meters = h("div", "sa-meters", deadline.box, calls.box);
  const [stop, said, command, again] = [h("button", "sa-danger"), h("span"), h("code"), h("code")];
  const [againBox, age, id, spoken] = [h("span", "", "again: ", again), h("span"), h("code"), h("p", "sa-hide")];
  const section = h("section", "sa",
    h("header", "sa-head", state, title, agent, h("span", "sa-facts", refused, elapsed, tokenFact, cost)),
    h("div", "sa-body", stale, say, tail.box, tools, meters, note),
    h("footer", "sa-foot", stop, againBox, h("span", "sa-said", said, command), age, id), spoken);
  mark(stop, { type: "button" });
  mark(tools, { "aria-label": "Latest tool calls" });
  mark(spoken, { role: "status", "aria-live": "polite" });
  return { section, state, icon, word, title, agent, refused, elapsed, tokens, tokenFact, cost, lead, more, attach,
    note, say, stale, tail, deadline, calls, tools, meters, stop, said, command, again, againBox, age, id, spoken };
}

/** One view of one model: listens, draws, counts its own seconds, and goes stale when the kernel falls silent. */
class View {
  page = makePage();
  heardAt = performance.now(); // the kernel's last word
  elapsedAt = this.heardAt; // when the elapsed time was last told
  toolsAt = this.heardAt; // when the tools' seconds were last told
  news = ""; // the state last told to the reader
  askedAt = Infinity; // when the stop button was pressed
  answered = false; // the kernel reacted to that
  ack = "";
  /** @type {ReturnType<typeof makeToolRow>[]} */ rows = [];
  /** @type {[string, Ear][]} */ ears = TRAITS.map((name) => [`change:${name}`, () => this.hear(name)]);
  /** @type {ReturnType<typeof setTimeout> | undefined} */ waiting;
  /** @type {ReturnType<typeof setInterval> | undefined} */ ticking;
  /** @param {Model} model */
  constructor(model) {
    this.model = model;
    this.page.stop.addEventListener("click", () => this.askToStop());
    this.ears.push(["msg:custom", (message) => this.receive(message)]);
    for (const [event, ear] of this.ears) model.on(event, ear);
    this.hear("tail");
  }

  close() {
    for (const [event, ear] of this.ears.splice(0)) this.model.off(event, ear);
    clearInterval(this.ticking);
    clearTimeout(this.waiting);
  }
  /** @param {keyof Traits} name */
  hear(name) {
    this.heardAt = performance.now();
    if (name === "elapsed_s" || name === "state") this.elapsedAt = this.heardAt;
    if (name === "tools") this.toolsAt = this.heardAt;
    if (name === "tail" || name === "tail_end") this.page.tail.set(this.model.get("tail"), this.model.get("tail_end"));
    if (name === "state" || name === "stopping") this.answered = true;
    const over = name === "state" || (name === "stopping" && !this.model.get("stopping"));
    if (over) [this.askedAt, this.ack] = [Infinity, ""];
    this.draw();
  }
  /** @param {any} message */
  receive(message) {
    this.heardAt = performance.now();
    if (message?.kind === "tail" && Number.isInteger(message.at)) this.page.tail.add(message.at, String(message.text));
    if (message?.kind === "ack") [this.answered, this.ack] = [true, line(message.text)];
    this.draw();
  }

  askToStop() {
    [this.askedAt, this.answered, this.ack] = [performance.now(), false, ""];
    this.waiting = setTimeout(() => this.draw(), ANSWER_MS);
    this.draw();
    this.page.tail.box.focus({ preventScroll: true }); // the button is disabled now and would drop the focus
    this.model.send({ kind: "stop" }); // last: it throws when the connection is closed
  }

  draw() {
    const [now, name] = [performance.now(), String(this.model.get("state"))];
    const state = Object.hasOwn(STATES, name) ? STATES[name] : UNKNOWN;
    const stale = state.live && now - this.heardAt >= STALE_MS;
    const until = stale ? this.heardAt : now; // what came after the last word is not known
    const counts = name === "running" ? 0.001 : 0;
    const elapsed = this.model.get("elapsed_s") + (until - this.elapsedAt) * counts;
    this.drawHead(state, stale ? "stale" : state === UNKNOWN ? line(name, 20) : name, elapsed);
    this.drawBody(state, stale, elapsed, (until - this.toolsAt) * counts);
    this.drawFoot(state, stale, now);
    Object.assign(this.page.section.dataset, { live: String(state.live), moving: String(counts > 0 && !stale) });
    this.page.tail.keepEnd();
    if (state.live) this.ticking ??= setInterval(() => this.draw(), 1000);
    else this.ticking = void clearInterval(this.ticking);
  }
  /** @param {typeof UNKNOWN} state @param {string} word @param {number} elapsed */
  drawHead(state, word, elapsed) {
    const [p, m] = [this.page, this.model];
    const title = line(m.get("name"), 120) || line(m.get("run_id"), 60);
    const [refused, sent, got] = [m.get("refusals"), m.get("tokens_in"), m.get("tokens_out")];
    putIcon(p.icon, word === "stale" ? "dashes" : state.icon);
    p.state.className = `sa-state sa-${state === UNKNOWN ? "queued" : word}`;
    put(p.word, word);
    put(p.title, title);
    put(p.agent, [line(m.get("agent"), 80), line(m.get("model"), 120)].filter(Boolean).join(" · "));
    put(p.refused, refused ? `${thousands(refused)} refused` : "");
    put(p.elapsed, elapsed <= 0 && state !== STATES.running ? "" : clock(elapsed));
    put(p.tokens, `${short(sent)} / ${short(got)}`);
    const exact = `${thousands(sent)} tokens in, ${thousands(got)} out`;
    Object.assign(p.tokenFact, { title: exact, hidden: sent + got === 0 });
    put(p.cost, line(m.get("cost"), 30));
    const news = word === "stale" ? `Run ${title}: the kernel is not answering` : `Run ${title} is ${word}`;
    if (this.news && this.news !== news) put(p.spoken, news);
    this.news = news;
    p.section.setAttribute("aria-label", `Run ${title}, ${word}`);
  }
  /** @param {typeof UNKNOWN} state @param {boolean} stale @param {number} elapsed @param {number} more */
  drawBody(state, stale, elapsed, more) {
    const [p, m] = [this.page, this.model];
    const said = [m.get("error"), m.get("reason")].map((text) => cut(clean(text).trim(), 4000)).filter(Boolean);
    put(p.lead, said[0] ?? state.plain);
    put(p.more, said[1] ?? "");
    p.say.hidden = !p.lead.textContent;
    p.say.className = p.state.className.replace("sa-state", "sa-say");
    p.stale.hidden = !stale;
    put(p.attach, `%subagent_attach ${line(m.get("run_id"), 60)}`);
    const tools = m.get("tools");
    const calls = (Array.isArray(tools) ? tools : []).slice(-5);
    while (this.rows.length < calls.length) p.tools.append(this.rows[this.rows.push(makeToolRow()) - 1].row);
    this.rows.forEach((row, i) => row.set(calls[i] ?? null, more)); // rows never go away: nothing below moves up
    const [limit, most, count] = [number(m.get("deadline_s")), number(m.get("tool_limit")), m.get("tool_calls")];
    const left = (limit ?? 0) - elapsed;
    p.deadline.set(limit === null || !state.live ? "" : left > 0 ? `${clock(left)} left` : "passed", elapsed, limit);
    p.calls.set(most !== null ? `${count} of ${most}` : count ? String(count) : "", count, most);
    p.meters.hidden = p.deadline.box.hidden && p.calls.box.hidden;
    put(p.note, line(m.get("note")));
  }
  /** @param {typeof UNKNOWN} state @param {boolean} stale @param {number} now */
  drawFoot(state, stale, now) {
    const [p, id] = [this.page, line(this.model.get("run_id"), 60)];
    const asked = this.askedAt < Infinity || Boolean(this.model.get("stopping"));
    const unanswered = state.live && !this.answered && now - this.askedAt >= ANSWER_MS;
    Object.assign(p.stop, { hidden: !state.live, disabled: asked });
    put(p.stop, asked ? "Stop requested" : "Stop");
    put(p.said, !unanswered ? this.ack : stale ? "the kernel is not answering; in a terminal: "
      : "the kernel is busy; the request is sent when the cell ends — or in a terminal: ");
    put(p.command, unanswered ? `subagents-nb stop ${id}` : "");
    p.againBox.hidden = state.live;
    put(p.again, `subagents_nb.attach(${JSON.stringify(line(this.model.get("name"), 120) || id)})`);
    put(p.age, state.live ? `updated ${ago((now - this.heardAt) / 1000)}` : "");
    put(p.id, id);
  }
}

/** @param {{model: Model, el: HTMLElement, signal?: AbortSignal}} context */
function render({ model, el, signal }) {
  const view = new View(model);
  const close = () => view.close();
  el.replaceChildren(view.page.section);
  globalThis.requestAnimationFrame?.(() => view.page.tail.keepEnd());
  signal?.addEventListener("abort", close, { once: true });
  if (signal?.aborted) close();
  return close;
}

export default { render };
