"""A step as a notebook: what was said as Markdown cells, Python that ran as code cells with what it gave.

Everything in it comes from a model, a tool or a file. No output that could run is kept, no raw HTML, no link to a
script; the notebook holds no path of this machine in its metadata.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from subagents_nb.domain.runs.messages import Message, Session
from subagents_nb.domain.texts.markdown_cells import escaped, fenced, inline
from subagents_nb.domain.values.base import pretty_json
from subagents_nb.domain.values.words import plain

PYTHON_TOOL = "python"
_CODE_ARGS = ("code", "source", "script")
_PICTURES = ("image/png", "image/jpeg")
_BASE64 = re.compile(r"[A-Za-z0-9+/\s]*={0,2}\s*\Z")
_MAX_TEXT = 200_000
_MAX_PICTURE = 8 * 1024 * 1024
_HEADS = {"system": "Instructions", "user": "Prompt", "thought": "Thinking", "answer": "Answer", "again": "Asked again"}

Cell = dict[str, Any]


def notebook(cells: Iterable[Cell], *, run_id: str) -> dict[str, Any]:
    """Return a notebook of nbformat 4.5 with these cells."""
    numbered = [{**cell, "id": f"{run_id[-12:]}-{number}"} for number, cell in enumerate(cells)]
    return {
        "nbformat": 4,
        "nbformat_minor": 5,
        "metadata": {
            "kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"},
            "language_info": {"name": "python"},
            "subagents_nb": {"run": run_id},
        },
        "cells": numbered,
    }


def heading(title: str, facts: Sequence[tuple[str, str]], *, level: int = 1) -> Cell:
    """Return a cell with a title and a list of facts; those that are empty are left out."""
    lines = [f"{'#' * level} {inline(title)}", *(f"- {name}: {inline(value)}" for name, value in facts if value)]
    return _markdown("\n".join([lines[0], "", *lines[1:]]), "heading")


def note(text: str) -> Cell:
    """Return a cell with a sentence of ours."""
    return _markdown(f"*{inline(text)}*", "note")


def step_cells(
    session: Session, executed: Mapping[str, Any] | None, *, clean: Callable[[str], str] = str
) -> Iterator[Cell]:
    """Yield the cells of one step.

    `executed` is the notebook of the step's Python tool; its cells take the places of the calls that ran them, those
    that no call fits come before the answer. `clean` takes secrets out of every text.
    """
    cells = _Executed(executed, clean)
    results = {m.call_id: m for m in session.messages if m.role == "result" and m.call_id}
    shown: set[str] = set()
    last = session.messages[-1] if session.messages and session.messages[-1].role == "answer" else None
    for message in session.messages:
        if message is last:
            yield from cells.rest()
        if message.role == "call":
            code = _code_of(message)
            cell = cells.take(code) if code is not None else None
            if cell is not None:
                shown.add(message.call_id)
                yield cell
            else:
                yield _call(message, clean)
        elif message.role == "result":
            if message.call_id not in shown:
                yield _result(message, clean, alone=message.call_id not in results)
        else:
            yield _said(message, clean)
    yield from cells.rest()


def executed_cells(executed: Any) -> Iterator[Cell]:
    """Yield the cells of a notebook of the Python tool that somebody else made, as what can do nothing."""
    yield from _Executed(executed, str).rest()


def _said(message: Message, clean: Callable[[str], str]) -> Cell:
    text = _cut(clean(message.text))
    if message.structured:
        body = fenced(pretty_json(text), "json")
    else:
        # An answer is meant to be read as Markdown; everything else is shown letter by letter.
        body = escaped(text) if message.role == "answer" else fenced(text, "text")
    return _markdown(f"### {_HEADS[message.role]}\n\n{body}", message.role)


def _call(message: Message, clean: Callable[[str], str]) -> Cell:
    body = fenced(pretty_json(_cut(clean(message.text))), "json")
    return _markdown(f"### Tool call: {inline(message.tool)}\n\n{body}", "call")


def _result(message: Message, clean: Callable[[str], str], *, alone: bool) -> Cell:
    word = "Result" if message.ok else "Refused or failed"
    head = f"**{word} of {inline(message.tool)}**" if alone or message.tool else f"**{word}**"
    return _markdown(f"{head}\n\n{fenced(_cut(clean(message.text)), 'text')}", "result")


def _code_of(message: Message) -> str | None:
    if message.tool != PYTHON_TOOL or not isinstance(message.args, dict):
        return None
    return next((code for name in _CODE_ARGS if isinstance(code := message.args.get(name), str)), None)


class _Executed:
    """The cells that ran, in order, each given out once."""

    def __init__(self, executed: Mapping[str, Any] | None, clean: Callable[[str], str]) -> None:
        cells = executed.get("cells") if isinstance(executed, Mapping) else None
        self._cells = [
            cell
            for cell in (cells if isinstance(cells, list) else ())
            if isinstance(cell, Mapping) and cell.get("cell_type") == "code"
        ]
        self._clean = clean

    def take(self, code: str) -> Cell | None:
        """Return the first cell left that ran this code."""
        for at, cell in enumerate(self._cells):
            if _joined(cell.get("source")).strip() == code.strip():
                del self._cells[at]
                return self._safe(cell)
        return None

    def rest(self) -> Iterator[Cell]:
        """Yield those that nobody took, each once."""
        while self._cells:
            yield self._safe(self._cells.pop(0))

    def _safe(self, cell: Mapping[str, Any]) -> Cell:
        outputs = cell.get("outputs")
        kept = (_output(one, self._clean) for one in (outputs if isinstance(outputs, list) else ()))
        number = cell.get("execution_count")
        return {
            "cell_type": "code",
            "metadata": {"subagents_nb": {"part": "python"}},
            "source": plain(_cut(self._clean(_joined(cell.get("source"))))),
            "execution_count": number if isinstance(number, int) and not isinstance(number, bool) else None,
            "outputs": [one for one in kept if one is not None],
        }


def _output(one: Any, clean: Callable[[str], str]) -> dict[str, Any] | None:
    """Return an output that can do nothing, or None if nobody knows what it is."""
    if not isinstance(one, Mapping):
        return None

    def words(value: Any) -> str:
        return plain(_cut(clean(_joined(value))))

    match one.get("output_type"):
        case "stream":
            name = "stderr" if one.get("name") == "stderr" else "stdout"
            return {"output_type": "stream", "name": name, "text": words(one.get("text"))}
        case "error":
            trace = one.get("traceback")
            lines = [words(line) for line in trace if isinstance(line, str)] if isinstance(trace, list) else []
            fields = {"ename": words(one.get("ename")), "evalue": words(one.get("evalue"))}
            return {"output_type": "error", **fields, "traceback": lines}
        case "display_data" | "execute_result" as kind:
            output: dict[str, Any] = {"output_type": kind, "data": _data(one.get("data"), words), "metadata": {}}
            if kind == "execute_result":
                number = one.get("execution_count")
                output["execution_count"] = number if isinstance(number, int) and not isinstance(number, bool) else None
            return output
        case _:
            return None


def _data(data: Any, words: Callable[[Any], str]) -> dict[str, str]:
    bundle = data if isinstance(data, Mapping) else {}
    texts: dict[str, str] = {}
    for kind in _PICTURES:
        picture = _joined(bundle.get(kind))
        if picture and len(picture) <= _MAX_PICTURE and _BASE64.match(picture):
            texts[kind] = picture
    if text := words(bundle.get("text/plain")):
        texts["text/plain"] = text
    if text := words(bundle.get("text/markdown")):
        texts["text/markdown"] = escaped(text)
    if not texts:
        texts["text/plain"] = f"[left out: {', '.join(sorted(plain(str(k))[:80] for k in bundle)[:10]) or 'nothing'}]"
    return texts


def _markdown(source: str, part: str) -> Cell:
    return {"cell_type": "markdown", "metadata": {"subagents_nb": {"part": part}}, "source": source}


def _joined(value: Any) -> str:
    """Return a text of a notebook file, which may be a list of lines."""
    if isinstance(value, list):
        return "".join(one for one in value if isinstance(one, str))
    return value if isinstance(value, str) else ""


def _cut(text: str) -> str:
    left = len(text) - _MAX_TEXT
    return text if left <= 0 else f"{text[:_MAX_TEXT]}\n… {left:,} more characters"
