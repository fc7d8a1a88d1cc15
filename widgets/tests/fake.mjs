// Just enough of a page, a model and a clock to test the views without a browser. Ways to parse HTML throw.
import { mock } from "node:test";
import chain from "../chain.js";
import run from "../run.js";

class FakeNode {
  parentNode = null;
  remove() {
    if (!this.parentNode) return;
    const kids = this.parentNode.childNodes;
    kids.splice(kids.indexOf(this), 1);
    tell(this.parentNode, []);
    this.parentNode = null;
  }
}

const observers = new Set();

/** Tell who observes the page that something below it changed. */
function tell(target, addedNodes) {
  let top = target;
  while (top.parentNode) top = top.parentNode;
  if (top !== globalThis.document?.body) return;
  for (const observer of observers) observer.records.push({ target, addedNodes });
}

globalThis.MutationObserver = class {
  records = [];
  constructor(ear) {
    this.ear = ear;
  }
  observe() {
    observers.add(this);
  }
  disconnect() {
    observers.delete(this);
    this.records = [];
  }
};
/** How many observe the page. */
export const observing = () => observers.size;
/** Deliver what changed on the page, until nothing changes any more, as a browser does after each task. */
export function deliver() {
  for (let rounds = 0; [...observers].some((one) => one.records.length); rounds++) {
    if (rounds > 100) throw new Error("those who observe the page never come to rest");
    for (const one of [...observers]) if (one.records.length) one.ear(one.records.splice(0));
  }
}

export class FakeText extends FakeNode {
  constructor(text) {
    super();
    this.data = String(text);
  }
  get textContent() {
    return this.data;
  }
}

export class FakeElement extends FakeNode {
  childNodes = [];
  attributes = new Map();
  ears = new Map();
  dataset = {};
  style = {};
  hidden = false;
  disabled = false;
  readOnly = false;
  value = "";
  className = "";
  title = "";
  scrollHeight = 0;
  clientHeight = 0;
  scrollTop = 0;

  constructor(tag) {
    super();
    this.tag = tag;
  }
  append(...kids) {
    for (const kid of kids) this.insertBefore(kid instanceof FakeNode ? kid : new FakeText(kid), null);
  }
  insertBefore(kid, before) {
    kid.remove();
    kid.parentNode = this;
    this.childNodes.splice(before ? this.childNodes.indexOf(before) : this.childNodes.length, 0, kid);
    tell(this, [kid]);
    return kid;
  }
  replaceChildren(...kids) {
    for (const kid of [...this.childNodes]) kid.remove();
    this.append(...kids);
  }
  get textContent() {
    return this.childNodes.map((kid) => kid.textContent).join("");
  }
  set textContent(text) {
    this.replaceChildren(...(text === "" ? [] : [new FakeText(text)]));
  }
  setAttribute(name, value) {
    this.attributes.set(name, String(value));
    if (name === "class") this.className = String(value);
  }
  removeAttribute(name) {
    this.attributes.delete(name);
  }
  /** As if a list item were 28 px high and all else nothing. */
  get offsetTop() {
    let top = this;
    while (top.parentNode) top = top.parentNode;
    return 28 * top.all().filter((node) => node.tag === "li").indexOf(this);
  }
  getAttribute(name) {
    return this.attributes.get(name) ?? null;
  }
  addEventListener(event, ear) {
    this.ears.set(event, [...(this.ears.get(event) ?? []), ear]);
  }
  /** Let something happen here; return the event, which counts what was done with it. */
  fire(type, more = {}) {
    const event = { type, stopped: 0, prevented: 0, stopPropagation: () => event.stopped++, preventDefault: () => event.prevented++, ...more };
    if (!this.disabled) for (const ear of this.ears.get(type) ?? []) ear(event);
    return event;
  }
  press(key, more = {}) {
    return this.fire("keydown", { key, ...more });
  }
  contains(node) {
    return this.all().includes(node);
  }
  get classList() {
    return { contains: (name) => this.className.split(" ").includes(name) };
  }
  getElementsByClassName(name) {
    return this.all().slice(1).filter((node) => node.classList.contains(name));
  }
  getElementsByTagName(name) {
    return this.all().slice(1).filter((node) => node.tag === name);
  }
  /** Live, as a browser's. */
  get isConnected() {
    let top = this;
    while (top.parentNode) top = top.parentNode;
    return top === document.body;
  }
  get children() {
    return this.childNodes.filter((kid) => kid instanceof FakeElement);
  }
  get firstChild() {
    return this.childNodes[0] ?? null;
  }
  get firstElementChild() {
    return this.childNodes.find((kid) => kid instanceof FakeElement) ?? null;
  }
  getRootNode() {
    return { activeElement: FakeElement.focused ?? null };
  }
  focus() {
    FakeElement.focused = this;
  }
  set innerHTML(_) {
    throw new Error("innerHTML");
  }
  set outerHTML(_) {
    throw new Error("outerHTML");
  }
  insertAdjacentHTML() {
    throw new Error("insertAdjacentHTML");
  }

  /** Every element below, this one first. */
  all() {
    return [this, ...this.childNodes.flatMap((kid) => (kid instanceof FakeElement ? kid.all() : []))];
  }
  one(className) {
    return this.all().find((node) => node.className.split(" ").includes(className));
  }
  /** What a reader sees: text outside of hidden elements. */
  get seen() {
    if (this.hidden || this.style.display === "none" || this.className === "sa-hide") return "";
    return this.childNodes.map((kid) => (kid instanceof FakeElement ? kid.seen : kid.data)).join("");
  }
}

globalThis.document = {
  body: new FakeElement("body"),
  getElementsByClassName: (name) => ({
    get length() { return document.body.getElementsByClassName(name).length; },
    [Symbol.iterator]: () => document.body.getElementsByClassName(name)[Symbol.iterator](),
  }),
  createElement: (tag) => new FakeElement(tag),
  createElementNS: (_, tag) => new FakeElement(tag),
  createTextNode: (text) => new FakeText(text),
};

const DEFAULTS = {
  run_id: "r-06f3k2m9", name: "find-outliers", agent: "scout", model: "anthropic:claude-sonnet", state: "running",
  elapsed_s: 42, deadline_s: 1800, tokens_in: 12_400, tokens_out: 861, cost: "$0.051", tool_calls: 3, tool_limit: 40, spend: "", spent: null,
  refusals: 0, tools: [], tail: "", tail_end: 0, note: "", error: "", reason: "", stopping: false, questions: [], attention: "", waited_s: 0, beat: 1, graph: {},
};

export class FakeModel {
  ears = new Map();
  sent = [];
  ids = [];
  reads = 0;
  constructor(over) {
    this.traits = { ...DEFAULTS, ...over };
  }
  get(name) {
    this.reads += 1;
    return this.traits[name];
  }
  on(event, ear) {
    this.ears.set(event, [...(this.ears.get(event) ?? []), ear]);
  }
  off(event, ear) {
    this.ears.set(event, (this.ears.get(event) ?? []).filter((other) => other !== ear));
  }
  send({ id, ...message }) {
    if (id) this.ids.push(id);
    this.sent.push(message);
  }
  /** As the host does it: all traits first, then one event for each that changed. */
  set(over) {
    const changed = Object.keys(over).filter((name) => this.traits[name] !== over[name]);
    Object.assign(this.traits, over);
    for (const name of changed) for (const ear of this.ears.get(`change:${name}`) ?? []) ear();
  }
  message(content) {
    for (const ear of this.ears.get("msg:custom") ?? []) ear(content, []);
  }
  get listening() {
    return [...this.ears.values()].flat().length;
  }
}

let now = 0;
/** Start the fake clock; call before each test. */
export function startClock() {
  mock.timers.reset();
  mock.restoreAll();
  now = 1_000_000;
  FakeElement.focused = null;
  mock.method(performance, "now", () => now);
  mock.timers.enable({ apis: ["setTimeout", "setInterval"] });
}
/** Let seconds pass, timers included. */
export function pass(seconds) {
  for (let i = 0; i < Math.round(seconds * 10); i++) {
    now += 100;
    mock.timers.tick(100);
  }
}

/** Render a run and name the parts the tests look at. */
export function show(over = {}, widget = run) {
  const model = new FakeModel(over);
  const el = new FakeElement("div");
  const abort = new AbortController();
  const close = widget.render({ model, el, signal: abort.signal });
  const [section] = el.childNodes;
  const part = (name) => section.one(name);
  return {
    model, el, abort, close, section, part,
    head: part("sa-head"), body: part("sa-body"), foot: part("sa-foot"), tail: part("sa-tail"), stop: part("sa-danger"),
    stale: part("sa-stale"), tools: part("sa-tools"), spoken: section.all().find((node) => node.getAttribute("role") === "status"),
    buttons: (name) => section.all().filter((node) => node.tag === "button" && node.textContent === name),
    questions: () => section.all().filter((node) => node.getAttribute("role") === "group"),
    bars: () => section.all().filter((node) => node.getAttribute("role") === "progressbar"),
    text: () => part("sa-text").childNodes.filter((kid) => kid instanceof FakeText).map((kid) => kid.data).join(""),
  };
}

/** A chain: a scout, a fan-out of so many, a summary. @param {number} items @param {string[]} states of the steps */
export function graphOf(items, states = []) {
  const steps = Array.from({ length: items + 2 }, (_, n) => ({
    n, name: n === 0 ? "map files" : n === 1 ? "synthesis" : `pkg/module_${n - 2}.py`, agent: "scout",
    state: states[n] ?? (n === 0 ? "complete" : n === 1 ? "pending" : "running"), from: n === 1 ? null : n,
    took: n === 0 ? 11 : null, doing: n > 1 ? "grep" : "", stopping: false,
  }));
  const stages = [
    { title: "map files", kind: "step", state: "complete", aside: "", as: "found", error: "", steps: [0] },
    { title: "review each", kind: "expand", state: "running", aside: "for each of found", as: "reviews", error: "", steps: steps.slice(2).map((row) => row.n) },
    { title: "synthesis", kind: "step", state: "pending", aside: "", as: "", error: "", steps: [1] },
  ];
  return { seq: 0, stages, steps };
}

/** Render a chain. */
export function showChain(graph, over = {}) {
  const shown = show({ name: "review-release", agent: "chain", model: "3 stages", deadline_s: null, tool_limit: null, ...over, graph }, chain);
  const cells = () => shown.section.all().filter((node) => node.className === "sa-step");
  const cell = (name) => cells().find((node) => node.textContent.includes(name));
  return { ...shown, cells, cell, panel: () => shown.section.all().find((node) => node.className === "sa-panel") };
}
