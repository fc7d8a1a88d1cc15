"""Permission for one tool call: what is shown of it to the person, and the five answers that there are."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from subagents_nb.domain.policy.tool_call import CallPath
from subagents_nb.domain.policy.tool_names import shown_tool
from subagents_nb.domain.values.base import Value
from subagents_nb.domain.values.characters import sayable
from subagents_nb.plain_text import visible

Answer = Literal["once", "run", "edit", "no", "stop", "unattended"]
PART_CHARS, _PARTS = 20_000, 12
_STATUS_CHARS, _STATUS_PARTS = 2_000, 6
_TEXT_CHARS = 2_500
_SAYS = {
    "once": "once", "yes": "once", "y": "once", "1": "once", "allow": "once",
    "for this run": "run", "run": "run", "always": "run", "2": "run",
    "no": "no", "n": "no", "deny": "no", "4": "no", "": "no",
    "stop": "stop", "stop the run": "stop", "5": "stop",
}  # fmt: skip
CHOICES = ("once", "for this run", "no", "stop the run")
HOW = "once · for this run · with {other arguments} · no: why · stop the run"


class PartShown(Value):
    """One argument of a call, as a person reads it."""

    name: str
    text: str
    kind: Literal["command", "code", "path", "removed", "added", "text"] = "text"
    cut: int = 0  # characters that are not shown
    marked: bool = False  # it has signs in the place of what can't be seen, so it is not what would be run as it stands


class PermissionRequest(Value):
    """A call that waits for the person's word."""

    tool: str
    reason: str  # why it is asked about
    parts: tuple[PartShown, ...] = ()
    for_run: tuple[str, ...] = ()  # what a yes for the whole run would allow

    def shortened(self) -> PermissionRequest:
        """Return as much of it as may stand in a status, which is written often."""
        kept = []
        for one in self.parts:
            text = one.text[:_STATUS_CHARS]
            kept.append(one.model_copy(update={"text": text, "cut": one.cut + len(one.text) - len(text)}))
        return self.model_copy(update={"parts": _at_most(tuple(kept), _STATUS_PARTS)})

    def to_show(self, clean: Callable[[str], str]) -> PermissionRequest:
        """Return it without secrets, which `clean` takes out, and with signs for all that can't be seen."""
        kept = []
        for one in self.parts:
            cleaned = clean(sayable(one.text))
            text = visible(cleaned)
            text = _in_line(text) if one.kind == "path" else text
            name = _in_line(visible(clean(sayable(one.name))))
            kept.append(one.model_copy(update={"name": name, "text": text, "marked": text != one.text}))
        said = {"tool": visible(self.tool), "reason": _in_line(visible(clean(sayable(self.reason))))}
        granted = tuple(visible(clean(sayable(one))) for one in self.for_run)
        return self.model_copy(update={**said, "parts": tuple(kept), "for_run": granted})


def _at_most(parts: tuple[PartShown, ...], most: int) -> tuple[PartShown, ...]:
    """Return so many parts; the last one then stands for all that are left out, and says so."""
    if len(parts) <= most:
        return parts
    left = parts[most - 1 :]
    names = ", ".join(one.name[:40] for one in left)[:_STATUS_CHARS]
    size = sum(len(one.text) + one.cut for one in left)
    return (*parts[: most - 1], PartShown(name=f"{len(left)} more arguments", text=names, cut=size))


class PermissionAnswer(Value):
    """What the person said; `unattended` when nobody was there."""

    decision: Answer
    text: str = ""
    args: dict[str, Any] | None = None
    waited_s: float | None = None


def lets_through(answer: PermissionAnswer) -> bool:
    """Say whether a call is made after this answer."""
    return answer.decision in ("once", "run", "edit")


_HEADINGS = {
    "bash": "May it run this?",
    "python": "May it run this code?",
    "edit": "May it make this edit?",
    "write": "May it write this file?",
    "delegate": "May it have another agent do this?",
}
_KINDS: dict[tuple[str, str], Literal["command", "code", "path", "removed", "added"]] = {
    ("bash", "command"): "command",
    ("python", "code"): "code",
    ("edit", "old_text"): "removed",
    ("edit", "new_text"): "added",
    ("write", "content"): "added",
}


def call_as_shown(
    tool: str,
    args: Mapping[str, Any],
    reason: str,
    grants: tuple[str, ...],
    path: CallPath | None = None,
    hints: str = "",
) -> PermissionRequest:
    """Return a call as it is shown; `path` is where it really goes, which is shown where it is not what was written.

    `hints` is what a server says of its tool.
    """
    parts = []
    # What it goes to comes first: nobody reads to the end of what is written there.
    for name, value in sorted(args.items(), key=lambda one: one[0] != "path"):
        if value is None:
            continue
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
        kind = _KINDS.get((tool, name)) or ("path" if name == "path" else "text")
        parts.append(
            PartShown(name=_in_line(name), text=text[:PART_CHARS], kind=kind, cut=max(0, len(text) - PART_CHARS))
        )
        if name == "path" and path is not None and not path.is_as_written:
            parts.append(PartShown(name="which really is", text=path.shown, kind="path"))
    if hints:
        parts.append(PartShown(name="its server says, unchecked", text=hints))
    where = path.shown if path is not None else None
    words = tuple(dict.fromkeys(shown_tool(_words_of(one, where)) for one in grants))
    shown = shown_tool(tool)
    return PermissionRequest(tool=shown, reason=reason, parts=_at_most(tuple(parts), _PARTS), for_run=words)


def _words_of(grant: str, where: str | None) -> str:
    """Return what was granted in words; whole ways are nobody's business on a page."""
    if where is not None and grant.endswith(")"):
        return f"{grant.partition('(')[0]} {where}"
    if not grant.startswith("bash ["):
        return grant.removeprefix("bash ")
    try:
        words = json.loads(grant.removeprefix("bash "))
    except ValueError:
        return grant
    return shlex.join(words[0] if isinstance(words[0], list) else words)


def heading_of(tool: str) -> str:
    """Return the question in a few words."""
    return _HEADINGS.get(tool, f"May it use {tool}?")


def in_short(asked: PermissionRequest) -> str:
    """Return the question with what the call is about, for where there is room for a line."""
    return " ".join([heading_of(asked.tool), *(one.text for one in asked.parts[:1])])


def question_of(asked: PermissionRequest, chars: int = _TEXT_CHARS) -> str:
    """Return the call as text, for those who show no more than the text of a question."""
    signs = {"removed": "- ", "added": "+ ", "command": "$ ", "code": "| "}
    lines = [heading_of(asked.tool)]
    for part, room in zip(asked.parts, _rooms([len(part.text) for part in asked.parts], chars), strict=True):
        # Each line says whose it is: none of an argument passes for one of ours.
        sign = signs.get(part.kind, f"{_in_line(part.name)}: ")
        lines += [f"{sign}{one}" for one in part.text[:room].splitlines() or [""]]
        if left := len(part.text[room:]) + part.cut:
            lines.append(f"[... {left:,} more characters]")
    return "\n".join([*lines, f"Asked because {_in_line(asked.reason)}.", f"Answers: {HOW}"])


def _rooms(lengths: Sequence[int], chars: int) -> list[int]:
    """Return how much of each text is shown: what is short whole, so that nothing long hides it, and the rest alike."""
    rooms = [0] * len(lengths)
    for done, index in enumerate(sorted(range(len(lengths)), key=lengths.__getitem__)):
        rooms[index] = min(lengths[index], chars // (len(lengths) - done))
        chars -= rooms[index]
    return rooms


def _in_line(text: str) -> str:
    """Return a text as one line."""
    return "⟨U+000A⟩".join(text.splitlines())


def read_answer(text: str) -> PermissionAnswer:
    """Return what an answer in words means; what is none of the five is a no, with these words as the reason."""
    answer = text.strip()
    known = _SAYS.get(answer.casefold().rstrip(".!"))
    if known is not None:
        return PermissionAnswer(decision=known)
    if edited := re.match(r"(?:with|edit|3)\b\s*:?\s*(\{.*\})\s*\Z", answer, re.DOTALL | re.IGNORECASE):
        try:
            args = json.loads(edited[1])
        except ValueError as error:
            return PermissionAnswer(decision="no", text=f"its other arguments could not be read ({error})")
        return PermissionAnswer(decision="edit", args=args)
    why = re.sub(r"\A(?:no|n|deny|4)\b[\s,:;.-]*", "", answer, flags=re.IGNORECASE)
    return PermissionAnswer(decision="no", text=why)
