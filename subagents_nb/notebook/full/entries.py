"""What a run did, as entries: a line for each thought, text, call, question and remark, made of its events."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from subagents_nb.notebook.page.lines import line

STREAMS = ("thinking", "text")
_LINE, _SHORT = 200, 80
_SILENT = ("usage", "model-asked", "file-changed", "changed-meanwhile", "tree")  # told elsewhere, or by a call


class Said(Protocol):
    """What people and agents said to each other, which the events only name."""

    def question(self, question_id: str) -> tuple[str, str]:
        """Return a question and what was answered, as lines."""

    def steer(self, request_id: str) -> str:
        """Return a steering message as a line."""


@dataclass(slots=True)
class Entry:
    """One line; `at` is the byte at which its first event begins, and its name."""

    at: int
    seconds: float
    kind: str
    step: int | None = None
    key: str = ""  # under which later events mean it
    name: str = ""
    text: list[str] = field(default_factory=list)
    state: str = ""
    took: float | None = None
    aside: str = ""
    opens: bool = False  # whether there is more of it

    def row(self) -> dict[str, Any]:
        """Return it as the page knows it."""
        text = "".join(self.text) if self.kind in STREAMS else self.text[0] if self.text else ""
        told = {"at": self.at, "s": self.seconds, "kind": self.kind, "name": self.name, "line": line(text, _LINE)}
        more = {"step": self.step, "key": self.key, "state": self.state, "took": self.took, "aside": self.aside}
        if self.kind in STREAMS:
            more["chars"] = len(text)
        return told | {k: v for k, v in more.items() if v not in (None, "")} | ({"opens": True} if self.opens else {})


class Entries(NamedTuple):
    """What a page of events came to."""

    entries: list[Entry]
    ends: list[dict[str, Any]]  # what became of entries of an earlier page, by their keys
    open_at: int | None  # where the earliest stream begins that may go on


def entries_of(records: Iterable[tuple[int, Mapping[str, Any]]], said: Said, *, step: int | None = None) -> Entries:
    """Fold events into entries, of one step if one is named."""
    folding = _Folding(said)
    for at, record in records:
        whose = record.get("step")
        if step is None or whose == step:
            folding.take(at, record, whose if isinstance(whose, int) else None)
    open_at = min((one.at for one in folding.streams.values()), default=None)
    return Entries(folding.entries, folding.ends, open_at)


class _Folding:
    def __init__(self, said: Said) -> None:
        self._said = said
        self.entries: list[Entry] = []
        self.ends: list[dict[str, Any]] = []
        self.streams: dict[int | None, Entry] = {}
        self._named: dict[str, Entry] = {}

    def take(self, at: int, record: Mapping[str, Any], step: int | None) -> None:
        kind = _text(record.get("type"), 40)
        if kind in _SILENT or not kind:
            return
        entry = Entry(at, _number(record.get("s")) or 0.0, kind, step)
        if kind in STREAMS:
            self._stream(entry, record)
            return
        self.streams.pop(step, None)
        match kind:
            case "tool-started":
                entry.kind, entry.state, entry.opens = "call", "running", True
                entry.key = f"c/{step}/{_text(record.get('call'))}"
                entry.name, entry.text = _text(record.get("tool"), 60), [str(record.get("args", ""))]
                self._add(entry)
            case "tool-ended":
                self._call_ended(record, f"c/{step}/{_text(record.get('call'))}")
            case "question-asked" | "question-closed":
                self._question(entry, record)
            case "steering":
                self._steering(entry, record)
            case _:
                self._remark(entry, record)

    def _add(self, entry: Entry) -> None:
        self.entries.append(entry)
        if entry.key:
            self._named[entry.key] = entry

    def _change(self, key: str, **changed: Any) -> None:
        """Change an entry of this page, or have one of an earlier page changed."""
        entry = self._named.get(key)
        if entry is None:
            self.ends.append({"key": key, **{k: v for k, v in changed.items() if v not in (None, "")}})
            return
        for name, value in changed.items():
            setattr(entry, name, value)

    def _stream(self, entry: Entry, record: Mapping[str, Any]) -> None:
        goes_on = self.streams.get(entry.step)
        if goes_on is None or goes_on.kind != entry.kind:
            self.streams[entry.step] = goes_on = entry
            entry.opens = True
            self._add(entry)
        goes_on.text.append(str(record.get("text", "")))

    def _call_ended(self, record: Mapping[str, Any], key: str) -> None:
        refused = record.get("refused")
        preview = str(record.get("preview", ""))
        if (entry := self._named.get(key)) is not None:
            entry.text.append(str(refused or preview))
        self._change(
            key,
            state="refused" if refused is not None else "complete" if record.get("ok") else "failed",
            took=_number(record.get("seconds")),
            aside=f"refused: {_text(refused, _SHORT)}" if refused is not None else "",
        )

    def _question(self, entry: Entry, record: Mapping[str, Any]) -> None:
        asked = _text(record.get("question"))
        entry.kind, entry.key, entry.opens = "asked", f"q/{asked}", True
        text, answer = self._said.question(asked)
        if record.get("type") == "question-asked":
            entry.text, entry.aside = [text, answer], answer
            self._add(entry)
        else:
            self._change(entry.key, aside=answer or "closed")

    def _steering(self, entry: Entry, record: Mapping[str, Any]) -> None:
        asked, outcome = _text(record.get("request")), _text(record.get("outcome"), 40)
        entry.kind, entry.key, entry.opens = "steered", f"s/{asked}", True
        if entry.key in self._named:
            self._change(entry.key, aside=outcome)
            return
        entry.text, entry.aside = [self._said.steer(asked)], outcome
        self._add(entry)

    def _remark(self, entry: Entry, record: Mapping[str, Any]) -> None:
        entry.name, text = entry.kind.partition("-")[0], _REMARKS.get(entry.kind, "")
        said = {name: _text(value, _LINE) for name, value in record.items()}
        if entry.kind == "notice":
            entry.name, text = "note", said.get("text", "")
        elif entry.kind == "artifact":
            entry.name, text = "made", f"{said.get('kind', 'file')} {said.get('name') or said.get('path', '')}"
        elif entry.kind == "retuned":
            changes = record.get("changes")
            each = changes.items() if isinstance(changes, Mapping) else ()
            entry.name, entry.aside = "limits", f"by {said.get('by', '')}"
            text = ", ".join(f"{_text(name, 40)} {_text(value, 40)}" for name, value in each)
        elif not text:
            return
        entry.kind, entry.text = "remark", [text.format_map(_Missing(said))]
        self._add(entry)


_REMARKS = {
    "run-started": "began to work",
    "run-ended": "{state} {reason}",
    "step-started": "{agent} began",
    "step-ended": "{state} {reason}",
    "step-carried": "taken over from {from}",
    "attention": "{kind}",
    "budget": "{state}",
    "model-loading": "the local model is being loaded",
    "model-named": "{model} answers",
    "stop-requested": "was asked to stop",
    "step-stop-requested": "was asked to stop",
    "drain-requested": "was asked to begin nothing new",
}


class _Missing(dict[str, str]):
    def __missing__(self, key: str) -> str:
        return ""


def _text(value: object, limit: int = 100) -> str:
    return "" if value is None else line(str(value), limit)


def _number(value: object) -> float | None:
    if not isinstance(value, int | float) or isinstance(value, bool) or not math.isfinite(value):
        return None
    return float(value)
