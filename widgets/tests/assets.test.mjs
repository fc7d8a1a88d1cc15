// Rules for the files themselves: hosts put them into pages we do not own.
import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { test } from "node:test";

const read = (name) => readFileSync(new URL(`../${name}`, import.meta.url), "utf8");
const RUN = ["beat.js", "dom.js", "asks.js", "stand.js", "tree.js", "view.js", "run.js"]; // what a host loads for a run of one step ...
const CHAIN = ["beat.js", "dom.js", "asks.js", "graph.js", "stand.js", "step.js", "tree.js", "view.js", "chain.js"]; // ... and for a chain
const COMPARE = ["dom.js", "compare.js"]; // ... and for a comparison
const SWEEP = ["beat.js", "dom.js", "stand.js", "place.js", "sweep.js"]; // ... and for a sweep
const FINDER = ["dom.js", "place.js", "stand.js", "finder.js"]; // ... and to find what an earlier kernel left
const BOARD = ["beat.js", "dom.js", "asks.js", "stand.js", "place.js", "row.js", "group.js", "hand.js", "board.js"]; // ... and for many runs at once
const FULL = ["beat.js", "dom.js", "asks.js", "stand.js", "place.js", "entry.js", "opened.js"]; // ... and for a run in full
const MODULES = [...new Set([...RUN, ...CHAIN, ...COMPARE, ...SWEEP, ...FINDER, ...BOARD, ...FULL])];
const [js, css] = [MODULES.map(read).join("\n"), read("run.css") + read("chain.css") + read("compare.css") + read("board.css") + read("opened.css") + read("sweep.css")];

/** As `joined` of the kernel half puts it together: without comments, types and indentation. */
const loaded = (names) => names.map((name) => read(name).replace(/^[ \t]*(?:\/\*\*(?:(?!\*\/)[\s\S])*\*\/|\/\/[^\n]*)\n/gm, "").replace(/\/\*\* @[^*\n]*\*\/ ?/g, "").replace(/[ \t]+\/\/ [^\n"'`]*$/gm, "")
  .replace(/^import .*\n|^export (?!default)|^[ \t]+|\n(?=\n)/gm, "")).join("\n");

test("each file is below 40 KB and 400 lines, and what a host loads for a run of one step below 40 KB", () => {
  assert.deepEqual(readdirSync(new URL("..", import.meta.url)).filter((name) => name.endsWith(".js")).sort(), [...MODULES].sort());
  assert.ok(Buffer.byteLength(loaded(RUN)) < 40_000);
  assert.ok(Buffer.byteLength(loaded(CHAIN)) < 60_000);
  assert.ok(Buffer.byteLength(loaded(BOARD)) < 56_000);
  assert.ok(Buffer.byteLength(loaded(FULL)) < 46_000);
  assert.ok(Buffer.byteLength(loaded(SWEEP)) < 40_000);
  for (const text of [...MODULES.map(read), ...["run.css", "chain.css", "compare.css", "board.css", "opened.css", "sweep.css"].map(read)]) {
    assert.ok(Buffer.byteLength(text) < 40_000);
    assert.ok(text.split("\n").length <= 400);
  }
});

test("nothing is imported but our own modules, and nothing is fetched", () => {
  for (const [whole] of js.matchAll(/^\s*(?:import|export\b.*\bfrom)\b.*/gm)) assert.match(whole, /^import \{[^}]*\} from "\.\/(?:asks|beat|dom|entry|graph|group|hand|opened|place|row|stand|step|tree|view)\.js";$/);
  const code = js.replace(/\/\*[\s\S]*?\*\//g, "");
  assert.doesNotMatch(code, /\bimport\s*\(|\bfetch\s*\(|XMLHttpRequest|WebSocket|\beval\b|new Function|https:/);
  assert.deepEqual(js.match(/http:[^"]*/g), ["http://www.w3.org/2000/svg"]); // the name of SVG, not an address
  assert.doesNotMatch(css, /@import|url\(|https?:|@font-face/);
});

test("no text is ever parsed as HTML", () => {
  assert.doesNotMatch(js, /innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|createContextualFragment|srcdoc/);
});

test("the page's clock is never compared with the kernel's", () => assert.doesNotMatch(js, /\bDate\b/));

test("every selector starts with .sa and none reaches out", () => {
  const bare = css.replace(/\/\*[\s\S]*?\*\//g, "");
  const selectors = [...bare.matchAll(/([^{}]+)\{/g)].map((match) => match[1].trim()).filter((text) => !text.startsWith("@"));
  assert.ok(selectors.length > 50);
  for (const selector of selectors.flatMap((text) => text.split(","))) {
    assert.match(selector.trim(), /^\.sa(?![a-z0-9])/, selector);
    assert.doesNotMatch(selector, /\*|:root|:host/, selector);
  }
});

test("both themes are there for every host", () => {
  for (const sign of ['body[data-jp-theme-light="true"]', 'body[data-jp-theme-light="false"]', ".vscode-light", ".vscode-dark",
    ".vscode-high-contrast", '[data-theme="dark"]', '[data-theme="light"]', "color-scheme: light dark", "--vscode-editor-background"])
    assert.ok(css.includes(sign), sign);
  for (const token of ["bg", "line", "text", "soft", "blue", "ok", "bad", "warn"])
    assert.match(css, new RegExp(`--sa-${token}: .*light-dark\\(#\\w+, #\\w+\\)`), token);
  assert.match(css, /--sa-sunk: color-mix\(in srgb, var\(--sa-text\) \d%, var\(--sa-bg\)\)/); // made of the two above
});

test("nothing moves by itself, focus always visible", () => {
  assert.doesNotMatch(css, /animation|transition|@keyframes/); // each would be painted anew sixty times a second
  assert.match(js, /prefers-reduced-motion: reduce/); // what is turned with a drawing stands still there
  assert.match(css, /button:focus-visible, \.sa input:focus-visible[^}]*outline: 2px/);
});

test("the lock file names no registry", () => assert.doesNotMatch(read("package-lock.json"), /resolved|https?:/));
