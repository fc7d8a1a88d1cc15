"""What a row of the board opens in place: the task, why it ended, where it comes from, every call, the answer."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from typing import Any

from pydantic_core import from_json

from subagents_nb.blocks import clean
from subagents_nb.domain.runs.snapshot import Snapshot
from subagents_nb.domain.values import words
from subagents_nb.domain.values.base import stable_json
from subagents_nb.errors import Unreadable
from subagents_nb.launching import Run
from subagents_nb.notebook.cards.end_notes import ending
from subagents_nb.notebook.cards.shown import model_words
from subagents_nb.notebook.cards.view import question_row
from subagents_nb.notebook.page.lines import cut, line, plural
from subagents_nb.store import FileRuns
from subagents_nb.store.files.disk import DISK

MAX_CALLS, MAX_TEXT = 200, 20_000
_TAIL_BYTES = 4 * 1024 * 1024  # of the events: what lies before is in the transcript
_SIGN = b'"type":"tool-'


def board_detail(run: Run) -> dict[str, Any]:
    """Return all of it, bounded."""
    snapshot = FileRuns(run.home).snapshot(run.id, whole=True)
    calls, earlier = _calls(run)
    value = stable_json(snapshot.value) if snapshot.has_value else snapshot.text
    text, more = cut(clean(value or snapshot.tail), MAX_TEXT)
    task, task_more = cut(clean(_task(snapshot)).strip(), MAX_TEXT)
    error = clean(snapshot.error or "").strip() or (ending(snapshot) if snapshot.ended else "")
    return {
        "kind": "detail",
        "task": task + " …" if task_more else task,
        "facts": [[name, value] for name, value in _facts(snapshot) if value],
        "error": cut(error, 4_000)[0],
        "calls": calls,
        "earlier": earlier,
        "text": text,
        "more": more,
        "questions": [question_row(snapshot, question) for question in snapshot.questions[:4]],
    }


def _task(snapshot: Snapshot) -> str:
    plan = snapshot.plan
    if plan is None:
        return ""
    return plan.task or "\n\n".join(step.task for step in plan.steps)


def _facts(snapshot: Snapshot) -> Iterator[tuple[str, str]]:
    plan, usage = snapshot.plan, snapshot.usage_of_all
    yield "launched", snapshot.started_at.replace("T", " ").partition(".")[0].removesuffix("Z")
    if plan is not None:
        yield "notebook", line(plan.origin.notebook or plan.origin.surface, 120)
        yield "cell", line(plan.origin.cell_id or "", 80)
        yield "tools", line(", ".join(dict.fromkeys(tool for step in plan.steps for tool in step.tools)), 300)
        yield "goes on from", line(plan.resumes.run_id if plan.resumes is not None else "", 80)
        yield "experiment", line(plan.experiment.name or "", 80)
    yield "model", "; ".join(dict.fromkeys(filter(None, map(model_words, snapshot.steps))))[:300]
    yield "time", words.elapsed(snapshot.elapsed_s)
    yield "requests", str(usage.requests) if usage.requests else ""
    yield "tokens", words.tokens(usage) if usage.input_tokens + usage.output_tokens else ""
    yield "budget", snapshot.usage_budget.words(snapshot.usage) if snapshot.usage_budget is not None else ""
    yield "cost", words.cost(usage.cost_usd)
    yield "files", line(", ".join(snapshot.changed_files), 600)
    yield "notes", line(" · ".join(snapshot.notes), 600)
    if snapshot.retunes:
        yield "limits changed", plural(len(snapshot.retunes), "time")


def _calls(run: Run) -> tuple[list[dict[str, Any]], bool]:
    """Return the latest calls, oldest first, and whether there were others before."""
    calls: list[dict[str, Any]] = []
    latest: dict[tuple[Any, Any], dict[str, Any]] = {}
    lines, cut_off = _tool_lines(run)
    for record in lines:
        key = record.get("step"), record.get("call")
        if record.get("type") == "tool-started":
            args = cut(clean(str(record.get("args", ""))), 2_000)[0]
            name = line(str(record.get("tool", "")), 60)
            calls.append({"name": name, "args": args, "state": "running"})
            latest[key] = calls[-1]
        elif (call := latest.get(key)) is not None:
            refused = record.get("refused")
            call["state"] = "refused" if refused is not None else "complete" if record.get("ok") else "failed"
            call["seconds"] = record.get("seconds")
            call["result"] = cut(clean(str(refused or record.get("preview", ""))), 2_000)[0]
    return calls[-MAX_CALLS:], cut_off or len(calls) > MAX_CALLS


def _tool_lines(run: Run) -> tuple[list[dict[str, Any]], bool]:
    try:
        file = DISK.open_reading(run.home.run(run.id).events)
    except Unreadable:
        return [], False
    with file:
        begin = max(0, file.seek(0, os.SEEK_END) - _TAIL_BYTES)
        file.seek(begin)
        rows = itertools.islice(file, 1 if begin else 0, None)  # the first may be the end of a line
        read = [record for row in rows if _SIGN in row[:200] and isinstance(record := _parsed(row), dict)]
    return read, begin > 0


def _parsed(row: bytes) -> Any:
    try:
        return from_json(row)
    except ValueError:
        return None
