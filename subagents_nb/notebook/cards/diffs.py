"""What a step changed, as a card shows it: one fold for each file, with counts."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import groupby

from subagents_nb.blocks import Child, Either, clean, to_text
from subagents_nb.notebook.page.html import (
    CODE,
    bar,
    code,
    colour,
    element,
    frame,
    note,
    pre,
    safe,
    soft,
    styled,
    to_page,
)
from subagents_nb.notebook.page.lines import line, plural
from subagents_nb.plain_text import shortened

MAX_LINES = 200
_MAX_FILES = 40
_LINE_CHARS = 300
_HUNK = re.compile(r"@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@")
_ESCAPE = re.compile(r"\\(?:([0-7]{3})|(.))")
_PLAIN = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}
_TONES = {"+": "ok", "-": "bad"}
_LINES = (
    "font:12px/1.45 var(--jp-code-font-family,ui-monospace,monospace);margin:4px 0 8px;white-space:pre;"
    "overflow-x:auto;background:color-mix(in srgb,currentColor 6%,transparent);border-radius:4px;padding:8px 12px"
)


@dataclass(slots=True)
class FileDiff:
    """One file of a patch: what was done to it, and the lines of its hunks as the patch has them."""

    path: str = ""
    source: str = ""  # what it was called before, if it was renamed
    what: str = "changed"
    binary: bool = False
    added: int = 0
    removed: int = 0
    lines: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class ShownDiff:
    """What a run, or one step of it, changed in worktrees; shows itself. `patch` is the text as git writes it."""

    name: str
    patch: str
    step: int | None = None
    run: str = ""  # what to type for the run; its name if empty

    def __repr__(self) -> str:
        return f"{line(self.name, 80)}: {to_text(changes(self.patch))}"

    def _repr_html_(self) -> str:
        of = "" if self.step is None else f", steps[{self.step}]"
        head = bar(
            safe(
                element("strong", None, line(self.name, 80)),
                soft(f"{of} · what it changed in a git worktree of its own"),
            )
        )
        flag = "" if self.step is None else f" --step {self.step}"
        typed = code(f"%subagent_apply {shlex.quote(self.run or line(self.name, 80))}{flag}")
        foot = bar(safe(soft("take it over:"), " ", typed), foot=True) if self.patch else None
        return to_page(frame(f"Changes of {line(self.name, 80)}{of}", head, [changes(self.patch)], foot))


def parse_patch(text: str) -> list[FileDiff]:
    """Return the files of a patch as git writes it. What can't be understood is left out; nothing is raised."""
    files: list[FileDiff] = []
    old = new = 0  # lines that the hunk still has: inside of it nothing else is looked for
    for row in text.split("\n"):
        if (old > 0 or new > 0) and files and row[:1] in (" ", "+", "-", ""):
            files[-1].lines.append(row)
            old -= row[:1] != "+"
            new -= row[:1] != "-"
            files[-1].added += row[:1] == "+"
            files[-1].removed += row[:1] == "-"
        elif row.startswith("diff --git "):
            old = new = 0
            files.append(FileDiff(path=_both(row.removeprefix("diff --git "))))
        elif not files:
            continue
        elif (match := _HUNK.match(row)) is not None:
            old, new = (int(part) if part is not None else 1 for part in match.groups())
            files[-1].lines.append(row)
        elif row.startswith("\\"):
            files[-1].lines.append(row)
        else:
            _header(files[-1], row)
    return files


def changes(text: str, limit: int = MAX_LINES, *, files: int = _MAX_FILES) -> Child:
    """Describe a patch: what was done to each file, and at most `limit` lines in all.

    On a page a fold stands for each of at most so many files. Whatever the patch holds is text.
    """
    changed = parse_patch(text)
    if not changed:
        return note("No changes.")
    left, folds, rows = limit, [], []
    for number, file in enumerate(changed):
        shown = file.lines[: max(left, 0)]
        left -= len(file.lines)
        folds += [_fold(file, shown)] if number < files else []
        rows += ["", _name(file), *map(_cut, shown)] if shown else []
    rows += [f"… {plural(-left, 'more line')}"] if left < 0 else []
    names = [element("li", None, f"{file.what} {_name(file)} {_counts(file)}") for file in changed[:_MAX_FILES]]
    names += [element("li", None, _more(len(changed) - _MAX_FILES))] if len(changed) > _MAX_FILES else []
    text_form = element("div", None, *names, pre("\n".join(rows)) if rows else None)
    on_page = safe(*folds, note(_more(len(changed) - files)) if len(changed) > files else None)
    return element("div", None, note(_summary(changed)), Either(on_page, text_form))


def _more(files: int) -> str:
    return f"… and {plural(files, 'more file')}"


def _fold(file: FileDiff, shown: list[str]) -> Child:
    what = "" if file.what == "changed" else f" {file.what}"
    notes = soft(f"{what} (binary)" if file.binary else what)
    title = safe(styled("code", CODE, _name(file)), *_signs(file), notes)
    if not file.lines:
        return styled("div", "padding-left:1.2em", title)  # where the names behind a marker begin
    left_out = len(file.lines) - len(shown)
    more = note(f"… {plural(left_out, 'more line')}" if left_out else "")
    body = styled("pre", _LINES, *_coloured(shown)) if shown else None
    return element("details", None, element("summary", None, title), body, more)


def _signs(file: FileDiff) -> Iterator[Child]:
    for sign, count in (("+", file.added), ("-", file.removed)):
        if count:
            yield styled("span", f"color:{colour(_TONES[sign])}", f" {sign}{count:,}")


def _coloured(rows: list[str]) -> Iterator[Child]:
    for sign, group in groupby(rows, key=lambda row: row[:1]):
        text = "".join(f"{_cut(row)}\n" for row in group)
        if sign in _TONES:
            yield styled("span", f"color:{colour(_TONES[sign])}", text)
        else:
            yield soft(text) if sign in ("@", "\\") else safe(text)


def _cut(row: str) -> str:
    return shortened(clean(row).replace("\n", " "), _LINE_CHARS)


def _summary(files: list[FileDiff]) -> str:
    added, removed = sum(file.added for file in files), sum(file.removed for file in files)
    return f"{plural(len(files), 'file')} changed, +{added:,} −{removed:,}"


def _counts(file: FileDiff) -> str:
    return "(binary)" if file.binary else f"+{file.added:,} -{file.removed:,}"


def _name(file: FileDiff) -> str:
    name = line(file.path, 120) or "?"
    return f"{line(file.source, 120)} → {name}" if file.source else name


def _header(file: FileDiff, row: str) -> None:
    word, _, rest = row.partition(" ")
    if row.startswith(("new file mode", "deleted file mode")):
        file.what = "added" if word == "new" else "deleted"
    elif row.startswith("rename from "):
        file.source, file.what = _unquoted(row.removeprefix("rename from ")), "renamed"
    elif row.startswith("rename to "):
        file.path = _unquoted(row.removeprefix("rename to "))
    elif row.startswith("new mode ") and file.what == "changed":
        file.what = f"mode {rest.removeprefix('mode ')[:6]}"
    elif row.startswith(("GIT binary patch", "Binary files ")):
        file.binary = True
    elif word in ("---", "+++"):
        name = _unquoted(rest.rstrip("\t"))
        if name != "/dev/null":
            file.path = name[2:]


def _both(names: str) -> str:
    """Return the name of a file that is called the same before and after, as in `a/x b/x`; later lines know better."""
    half = names[: len(names) // 2]
    name = _unquoted(half)
    return name[2:] if names[len(half) + 1 :].replace("b/", "a/", 1) == half else _unquoted(names)


def _unquoted(name: str) -> str:
    """Undo git's quoting of names that hold control characters, quotes and backslashes."""
    if len(name) < 2 or not (name.startswith('"') and name.endswith('"')):
        return name
    octal = _ESCAPE.sub(lambda m: chr(int(m[1], 8)) if m[1] else _PLAIN.get(m[2], m[2]), name[1:-1])
    try:
        return octal.encode("latin-1").decode("utf-8", "replace")
    except UnicodeEncodeError:  # it was written out, not in octal numbers
        return octal
