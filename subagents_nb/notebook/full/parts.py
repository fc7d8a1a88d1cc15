"""What lies behind one entry: a thought as a whole, a call with all it was given and gave; a window of it at a time."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from subagents_nb.blocks import clean
from subagents_nb.domain.runs.messages import Message
from subagents_nb.domain.texts.redaction import Redactor
from subagents_nb.errors import SubagentsError
from subagents_nb.launching import Run
from subagents_nb.launching.results.transcript_notebook import read_session
from subagents_nb.notebook.full.entries import STREAMS
from subagents_nb.notebook.full.event_pages import PAGE_BYTES, read_page
from subagents_nb.notebook.full.said import SaidInRun
from subagents_nb.store.layout import RunPaths

WINDOW = 8_000  # characters
_LOOKED_BYTES = 4 * 1024 * 1024  # of the events after an entry, for what ends it
_QUIET = ("usage", "model-asked", "model-named", "file-changed", "changed-meanwhile")

Texts = dict[str, str]


def parts_of(run: Run, at: int, begin: Mapping[str, int], phrase: str = "") -> list[dict[str, Any]]:
    """Return windows of the texts behind the entry that begins at a byte: each from where it is asked for.

    A text that holds `phrase` is shown from a little before it, where no other place is asked for.
    """
    paths = run.home.run(run.id)
    records = _records(paths, at)
    first_at, first = next(records, (-1, {}))
    if first_at != at:
        return []
    clean_of = Redactor(os.environ)
    texts = _texts(paths, first, records)
    return [_window(name, clean_of(text), begin.get(name), phrase) for name, text in texts.items() if text]


def window_of(text: str, begin: int = 0) -> dict[str, Any]:
    """Return a window of one text."""
    return _window("text", text, begin, "")


def _window(name: str, text: str, begin: int | None, phrase: str) -> dict[str, Any]:
    if begin is None:
        found = text.lower().find(phrase) if phrase else -1
        begin = found - WINDOW // 4 if found > WINDOW * 3 // 4 else 0
    shown = text[max(0, begin) : max(0, begin) + WINDOW]
    return {"name": name, "text": clean(shown), "from": max(0, begin), "read": len(shown), "all": len(text)}


def _records(paths: RunPaths, at: int) -> Iterator[tuple[int, dict[str, Any]]]:
    end = at + _LOOKED_BYTES
    while at < end:
        page = read_page(paths, at, PAGE_BYTES)
        yield from page.records
        if page.end <= at or page.end >= page.size:
            return
        at = page.end


def _texts(paths: RunPaths, first: Mapping[str, Any], rest: Iterator[tuple[int, dict[str, Any]]]) -> Texts:
    kind, step = first.get("type"), first.get("step")
    said = SaidInRun(paths)
    if kind in STREAMS:
        return {"": "".join(_stream(first, rest))}
    if kind == "tool-started":
        number = step if isinstance(step, int) and not isinstance(step, bool) and step >= 0 else 0
        return _call(paths, number, first, rest)
    if kind == "question-asked":
        text, answer = said.whole_question(str(first.get("question")))
        return {"question": text, "answer": answer}
    if kind == "steering":
        return {"": said.whole_steer(str(first.get("request")))}
    return {}


def _stream(first: Mapping[str, Any], rest: Iterator[tuple[int, dict[str, Any]]]) -> Iterator[str]:
    yield str(first.get("text", ""))
    for _, record in rest:
        if record.get("step") != first.get("step") or record.get("type") in _QUIET:
            continue
        if record.get("type") != first.get("type"):
            return
        yield str(record.get("text", ""))


def _call(paths: RunPaths, step: int, first: Mapping[str, Any], rest: Iterator[tuple[int, dict[str, Any]]]) -> Texts:
    call_id = str(first.get("call"))
    given, gave = "", None
    for message in _of_call(paths, step, call_id, str(first.get("t", ""))):
        if message.role == "call":
            given, gave = _arguments(message), None
        elif gave is None:
            gave = message.text
    given = given or str(first.get("args", ""))
    return {"arguments": given, "result": _preview(first, rest) if gave is None else gave}


def _preview(first: Mapping[str, Any], rest: Iterator[tuple[int, dict[str, Any]]]) -> str:
    """Return what the events have of a call's result."""
    for _, one in rest:
        if one.get("type") == "tool-ended" and all(one.get(name) == first.get(name) for name in ("call", "step")):
            return str(one.get("refused") or one.get("preview", ""))
    return "no result yet"


def _of_call(paths: RunPaths, step: int, call_id: str, when: str) -> list[Message]:
    """Return a call and its result, from the step's history; of several under one id those of that time."""
    found = [one for one in messages_of(paths, step) if one.call_id == call_id and one.role in ("call", "result")]
    calls = [place for place, one in enumerate(found) if one.role == "call"]
    if len(calls) < 2:
        return found
    begun = [place for place in calls if _moment(found[place].at) <= _moment(when)]
    place = begun[-1] if begun else calls[0]
    return found[place : next((other for other in calls if other > place), None)]


def messages_of(paths: RunPaths, step: int) -> tuple[Message, ...]:
    """Return what was said in a step; nothing where that can't be read."""
    try:
        session = read_session(paths, step)
    except (ValueError, SubagentsError):
        return ()
    return session.messages if session is not None else ()


def _moment(when: str | None) -> float:
    try:
        return datetime.fromisoformat(when or "").timestamp()
    except ValueError:
        return 0.0


def _arguments(message: Message) -> str:
    """Return what a call was given: one text as it is, several by their names, everything else as JSON."""
    if not isinstance(message.args, dict):
        return message.text
    each = {
        name: value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=1)
        for name, value in message.args.items()
    }
    if len(each) == 1:
        return next(iter(each.values()))
    return "\n".join(name + (":\n" if "\n" in text else ": ") + text for name, text in each.items())
