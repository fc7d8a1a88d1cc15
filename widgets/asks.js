// @ts-check
/**
 * What goes from the page to the run: a request with its receipt, a field to write in, a question to answer.
 *
 * @typedef {{name: string, kind: string, text: string, cut: number, marked?: boolean}} Part one argument of a call
 * @typedef {{tool: string, asker?: string, reason: string, parts: Part[], for_run: string[]}} Permission a call that waits for a yes
 * @typedef {{id: string, text: string, choices: string[], permission?: Permission}} Question
 * @typedef {{text?: unknown, ok?: unknown, more?: unknown}} Ack
 * @typedef {boolean | "idle"} Silence whether the kernel is not answering at all, or is idle
 */
import { clean, cut, h, holdsFocus, line, mark, put } from "./dom.js";

export const ANSWER_MS = 2_000;
const MAX_CHARS = 8_000; // what the kernel takes

/** One request to the kernel: when it was made, what came of it, and the other way when nothing comes. */
export class Asked {
  wrote = "…"; // the text that was sent, for the hint
  at = Infinity; // when the kernel was asked
  heard = false; // it reacted
  text = "";
  said = h("span");
  command = h("code");
  box = h("span", "sa-said", this.said, this.command);

  begin(wrote = "…") {
    [this.at, this.heard, this.text, this.wrote] = [performance.now(), false, "", wrote];
  }
  /** The text as a shell takes it. */
  get quoted() {
    return `'${line(this.wrote, MAX_CHARS).replaceAll("'", "'\\''")}'`;
  }
  /** The kernel reacted; `over` if it has nothing more to say. @param {string} text @param {boolean} over */
  hear(text, over) {
    [this.at, this.heard, this.text] = [over ? Infinity : this.at, true, text];
  }
  end() {
    [this.at, this.heard, this.text] = [Infinity, false, ""];
  }
  get open() {
    return this.at < Infinity;
  }
  /** @param {number} now @param {boolean} live @param {Silence} stale @param {string} command */
  draw(now, live, stale, command) {
    const unanswered = live && !this.heard && now - this.at >= ANSWER_MS;
    const again = stale === "idle" && now - this.at < 2 * ANSWER_MS;
    put(this.said, !unanswered ? this.text : again ? "it did not arrive though the kernel is idle; sent another way — or in a terminal: "
      : stale === "idle" ? "it did not arrive, though the kernel is idle; in a terminal: "
      : stale ? "the kernel is not answering; in a terminal: "
      : "the kernel is busy; the request is sent when the cell ends — or in a terminal: ");
    put(this.command, unanswered ? command : "");
  }
}

/** What was sent to the kernel, until it is heard of. */
export class Mailbox {
  /** @type {Set<string>} Not heard of yet. */ open = new Set();
  /** @type {Set<ReturnType<typeof setTimeout>>} */ waiting = new Set();
  /** @param {{get(name: any): any, send(message: any): void, widget_manager?: any}} model @param {() => void} draw */
  constructor(model, draw) {
    this.model = model;
    this.draw = draw;
  }
  /** @param {{kind: string, id?: string}} asked */
  ask(asked) {
    const request = { ...asked, id: Math.random().toString(36).slice(2) };
    if (request.kind !== "open" && request.kind !== "close") this.open.add(request.id);
    this.later(() => this.askAgain(request));
    this.draw();
    try {
      this.model.send(request);
    } catch { /* the connection is closed: what asked says what to type */ }
  }
  /** @param {{id?: unknown}} ack */
  hear(ack) {
    this.open.delete(String(ack.id));
  }
  /** @param {() => void} work */
  later(work) {
    const timer = setTimeout(() => (this.waiting.delete(timer), work(), this.draw()), ANSWER_MS);
    this.waiting.add(timer);
  }
  /** As JupyterLab and Notebook 7 know it. */
  get kernel() {
    return this.model.widget_manager?.kernel;
  }
  /** @returns {false | "idle"} */
  get idle() {
    return this.kernel?.status === "idle" && "idle";
  }
  /**
   * Send what was not taken though the kernel is idle to the kernel itself, past the host's comm and its subshell, which
   * may be gone: ipython/ipykernel#1557. A request is carried out once. @param {{kind: string, id: string}} request
   */
  askAgain(request) {
    if (!this.open.delete(request.id) || !this.idle || !this.model.get("token")) return;
    this.later(() => {});
    const header = {
      msg_id: request.id, msg_type: "comm_msg", session: this.kernel.clientId, username: "", version: "5.3",
      date: "1970-01-01T00:00:00Z", subshell_id: null,
    };
    const content = { comm_id: this.model.get("token"), data: { method: "custom", content: request } };
    try {
      this.kernel.sendShellMessage({ channel: "shell", header, parent_header: {}, metadata: {}, content, buffers: [] }, false, true);
    } catch { /* the view says what to type */ }
  }
  close() {
    for (const timer of this.waiting) clearTimeout(timer);
  }
}

/** A line to write in, with its label and its button. @param {string} label @param {string} action */
export function makeField(label, action) {
  const input = mark(h("input"), { type: "text", maxlength: MAX_CHARS, autocomplete: "off", spellcheck: "true" });
  const button = mark(h("button", "", action), { type: "button" });
  const box = h("div", "sa-field", h("label", "", h("span", "", label), input), button);
  /** What is done with the text. @type {(text: string) => void} */
  let send = () => {};
  const submit = () => {
    if (!input.value.trim() || input.readOnly) return;
    input.focus({ preventScroll: true }); // the button is disabled now and would drop the focus
    send(input.value);
  };
  button.addEventListener("click", submit);
  input.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.isComposing || event.shiftKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    event.stopPropagation(); // the notebook would take it for its own: jupyterlab/jupyterlab#1630
    submit();
  });
  /** A closed field keeps its focus and its text. @param {boolean} closed */
  function close(closed) {
    [input.readOnly, button.disabled] = [closed, closed];
  }
  return { box, input, button, close, onSend: (/** @type {typeof send} */ act) => (send = act) };
}

/** What is asked, whatever the answer may be. */
class Block {
  asked = new Asked();
  done = false;
  box = h("div");
  /** @param {Ack} ack */
  hear(ack) {
    this.done = ack.ok !== false;
    this.asked.hear(line(ack.text), true);
  }
  get focused() {
    return holdsFocus(this.box);
  }
  heed() {} // it takes keys anywhere, or nowhere
}

/** A question with its choices, a field for any other answer, and what became of the answer. */
export class QuestionBlock extends Block {
  field = makeField("Your answer", "Answer");
  /** @param {Question} question @param {(text: string) => void} send */
  constructor(question, send) {
    super();
    this.id = String(question.id);
    this.text = cut(clean(question.text).trim(), 4000);
    const given = (Array.isArray(question.choices) ? question.choices : []).slice(0, 12).map(String);
    this.choices = given.map((choice) => mark(h("button", "sa-choice", line(choice, 200)), { type: "button" }));
    this.choose = (/** @type {number} */ i) => {
      this.field.input.focus({ preventScroll: true });
      send(given[i]);
    };
    this.choices.forEach((button, i) => button.addEventListener("click", () => this.choose(i)));
    this.field.onSend(send);
    const choices = h("div", "sa-choices", ...this.choices);
    choices.hidden = given.length === 0;
    this.box = h("div", "sa-question", h("p", "", this.text), choices, this.field.box, this.asked.box);
    mark(this.box, { role: "group", "aria-label": `Question: ${line(this.text, 200)}` });
  }
  /** Take keys, where all else does too. */
  heed() {
    this.choices.slice(0, 9).forEach((button, i) => mark(button, { "data-key": i + 1 }));
    mark(this.box, { tabindex: 0 });
    this.box.addEventListener("keydown", (event) => this.press(event));
  }
  /** 1 to 9 are the choices where nobody is writing; w writes. @param {KeyboardEvent} event */
  press(event) {
    const i = Number(event.key) - 1, choice = this.choices[i];
    if (event.target === this.field.input || event.ctrlKey || event.metaKey || event.altKey || !(choice || event.key === "w")) return;
    event.preventDefault();
    event.stopPropagation(); // the notebook would take it for its own
    if (event.key === "w") this.field.input.focus({ preventScroll: true });
    else if (!choice.disabled && !event.repeat) this.choose(i);
  }
  /** @param {number} now @param {boolean} live @param {Silence} stale @param {string} run */
  draw(now, live, stale, run) {
    const closed = this.asked.open || this.done || !live;
    this.field.close(closed);
    for (const button of this.choices) button.disabled = closed;
    this.asked.draw(now, live, stale, `subagents-nb answer ${run} --question ${line(this.id, 80)} -- ${this.asked.quoted}`);
  }
}

const SIGNS = /** @type {Record<string, string>} */ ({ removed: "−", added: "+" });
const FEW_ROWS = 11; // as many as are seen at once
const MAIN = ["command", "code", "added"]; // what a person would change of a call
/** The five answers: what a button says, and what it sends; a field asks for the rest. */
const ANSWERS = /** @type {[string, string][]} */ ([
  ["Once", "once"], ["For this run", "for this run"], ["With other arguments…", ""], ["No, and why…", "no"], ["Stop the run", "stop"],
]);

/** Whether a call may be made: the call as a person reads it, why it is asked about, and the five answers by 1 to 5. */
export class PermissionBlock extends Block {
  /** @param {Question} question @param {(text: string) => void} send */
  constructor(question, send) {
    super();
    const asked = /** @type {Permission} */ (question.permission);
    this.id = String(question.id);
    this.text = line(question.text, 200);
    const parts = (Array.isArray(asked.parts) ? asked.parts : []).slice(0, 12);
    this.main = parts.find((part) => MAIN.includes(part.kind) && !part.cut && !part.marked);
    this.buttons = ANSWERS.map(([label], i) => mark(h("button", i === 4 ? "sa-danger" : "", label, mark(h("kbd", "", String(i + 1)), { "aria-hidden": "true" })), { type: "button" }));
    if (!this.main) mark(this.buttons[2], { title: "in a cell: run.answer('with {…}')" });
    const given = (Array.isArray(asked.for_run) ? asked.for_run : []).slice(0, 6).map((one) => line(one, 160));
    const covers = h("p", "sa-covers", h("strong", "", "For this run: "), `${given.join(" · ") || line(asked.tool, 80)}, until it ends.`);
    this.edit = mark(h("textarea"), { rows: 4, maxlength: MAX_CHARS, spellcheck: "false" });
    this.why = makeField("No, and why: the run goes on with your words", "Send no");
    const change = mark(h("button", "", "Run it with these"), { type: "button" });
    this.editBox = h("div", "sa-edit", h("label", "", h("span", "", `Other arguments: ${line(this.main?.name, 60)}`), this.edit), change);
    this.editBox.hidden = this.why.box.hidden = true;
    this.edit.value = clean(this.main?.text);
    change.addEventListener("click", () => {
      this.edit.focus({ preventScroll: true });
      if (this.main && !this.closed) send(`with ${JSON.stringify({ [this.main.name]: this.edit.value })}`);
    });
    this.why.onSend((text) => send(`no: ${text}`));
    this.change = change;
    this.send = send;
    this.buttons.forEach((button, i) => button.addEventListener("click", () => this.choose(i)));
    this.box = h("div", "sa-question sa-permit", h("p", "", h("strong", "", this.text)), ...parts.flatMap(shownPart),
      h("p", "sa-why", `Asked because ${line(asked.reason, 600)}.`), h("div", "sa-choices", ...this.buttons), covers,
      this.editBox, this.why.box, this.asked.box);
    mark(this.box, { role: "group", tabindex: "0", "aria-label": `Question: ${this.text}` });
    this.box.addEventListener("keydown", (event) => this.press(event));
  }
  /** 1 to 5 answer where nobody is writing; Escape closes what is written in. @param {KeyboardEvent} event */
  press(event) {
    const writing = event.target === this.edit || event.target === this.why.input;
    if (writing && event.key === "Escape" && !event.isComposing) {
      event.stopPropagation(); // the notebook would take it for its own
      this.buttons[this.editBox.hidden ? 3 : 2].focus({ preventScroll: true });
      this.editBox.hidden = this.why.box.hidden = true;
    }
    if (writing || event.repeat || event.ctrlKey || event.metaKey || event.altKey || !/^[1-5]$/.test(event.key)) return;
    event.preventDefault();
    event.stopPropagation(); // the notebook would take it for its own
    this.choose(Number(event.key) - 1);
  }
  /** @param {number} i */
  choose(i) {
    if (this.closed || this.buttons[i].disabled) return;
    if (i === 2 || i === 3) {
      const [open, other] = i === 2 ? [this.editBox, this.why.box] : [this.why.box, this.editBox];
      [open.hidden, other.hidden] = [false, true];
      (i === 2 ? this.edit : this.why.input).focus();
      return;
    }
    this.box.focus({ preventScroll: true }); // the button is disabled now and would drop the focus
    this.send(ANSWERS[i][1]);
  }
  closed = false;
  /** @param {number} now @param {boolean} live @param {Silence} stale @param {string} run */
  draw(now, live, stale, run) {
    this.closed = this.asked.open || this.done || !live;
    this.why.close(this.closed);
    this.edit.readOnly = this.change.disabled = this.closed;
    this.buttons.forEach((button, i) => (button.disabled = this.closed || (i === 2 && !this.main)));
    this.asked.draw(now, live, stale, `subagents-nb answer ${run} --question ${line(this.id, 80)} -- ${this.asked.quoted}`);
  }
}

/** One argument: a path in a line, code with its numbers, what goes and what comes with its signs. @param {Part} part */
function shownPart(part) {
  const text = clean(part.text), kind = String(part.kind);
  if (kind === "path" || (kind === "text" && !part.cut && text.length <= 200 && !text.includes("\n"))) {
    return [h("p", "sa-arg", h("span", "", `${line(part.name, 60)} `), h("code", "", text))];
  }
  const sign = SIGNS[kind];
  const rows = text.replace(/\n$/, "").split("\n").map((row, i) =>
    h("div", "", mark(h("span", "sa-no", sign ?? String(i + 1)), { "aria-hidden": "true" }), h("span", "", row)));
  const box = mark(h("div", `sa-part sa-${sign ? kind : "code"}`, ...rows), { role: "group", "aria-label": line(part.name, 60) });
  // Where scrollbars hide, only words say that there is more than is seen.
  const far = rows.length > FEW_ROWS ? `${rows.length} lines, scroll to read them` : "", cut = Number(part.cut);
  const more = cut > 0 ? `${cut.toLocaleString("en-US")} more characters are not shown: see run.questions, or subagents-nb status` : "";
  if (far) mark(box, { tabindex: "0" });
  return far || more ? [box, h("p", "sa-cut", [far, more].filter(Boolean).join(" · "))] : [box];
}

/** The line to steer with: a button opens it, Escape closes it, Enter sends. */
export class SteerPanel {
  asked = new Asked();
  field = makeField("Say to the agent", "Send");
  button = mark(h("button", "", "Steer…"), { type: "button", "aria-expanded": "false" });
  box = h("div", "sa-steer", this.field.box, this.asked.box);
  sent = ""; // comes back into the field when it could not be delivered
  /** @param {(text: string) => void} send */
  constructor(send) {
    this.box.hidden = true;
    this.button.addEventListener("click", () => this.show(this.box.hidden));
    this.field.input.addEventListener("keydown", (event) => {
      if (event.key !== "Escape" || event.isComposing) return;
      event.stopPropagation();
      this.show(false);
    });
    this.field.onSend((text) => {
      this.asked.begin(text);
      [this.sent, this.field.input.value] = [text, ""];
      send(text);
    });
  }
  /** Open or close it; the focus goes along. @param {boolean} open */
  show(open) {
    const within = !this.box.hidden;
    this.box.hidden = !open;
    mark(this.button, { "aria-expanded": String(open) });
    if (open) this.field.input.focus();
    else if (within) this.button.focus({ preventScroll: true });
  }
  /** @param {Ack} ack */
  hear(ack) {
    this.asked.hear(line(ack.text), ack.more !== true);
    if (ack.ok === false && !this.field.input.value) this.field.input.value = this.sent;
  }
  /** @param {number} now @param {boolean} live @param {Silence} stale @param {boolean} works @param {string} run */
  draw(now, live, stale, works, run) {
    this.button.hidden = !works;
    if (!works) this.box.hidden = true;
    if (!works) mark(this.button, { "aria-expanded": "false" });
    this.field.close(this.asked.open);
    this.asked.draw(now, live, stale, `subagents-nb steer ${run} -- ${this.asked.quoted}`);
  }
}
