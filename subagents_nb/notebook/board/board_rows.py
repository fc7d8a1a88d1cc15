"""A run as a row of the board: plain data, all bounded, with what it needs of the person."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Literal

from subagents_nb.domain.plans.plan import LaunchPlan
from subagents_nb.domain.runs.snapshot import Snapshot
from subagents_nb.domain.runs.states import RunState
from subagents_nb.domain.values import words
from subagents_nb.domain.values.ids import launched_ms
from subagents_nb.notebook.cards.shown import UNREADABLE, shown_name, shown_state, who
from subagents_nb.notebook.cards.view import attention_line, now, question_row
from subagents_nb.notebook.page.lines import line
from subagents_nb.store.clock import age_s

Need = Literal["asks", "failed", "working", "waiting", "done"]
NEEDS: tuple[Need, ...] = ("asks", "failed", "working", "waiting", "done")
WENT_WRONG = {RunState.FAILED, RunState.LOST, RunState.REJECTED}
_TAGS = 8
_ASTRAY_S = 5.0  # so far the time that a page counts may be from that of the run
_NUMBERS = re.compile(r"\d+")


def need_of(snapshot: Snapshot, *, seen: bool) -> Need:
    """Return what a run needs of the person; what went wrong and was not looked at needs a look."""
    if not snapshot.ended:
        if snapshot.questions:
            return "asks"
        return "waiting" if snapshot.state is RunState.QUEUED else "working"
    wrong = snapshot.state in WENT_WRONG or shown_state(snapshot) == UNREADABLE
    return "failed" if wrong and not seen else "done"


def origin_of(plan: LaunchPlan | None, run_id: str) -> dict[str, Any]:
    """Return what of a row never changes: where the run comes from, by which rows are grouped and found."""
    at = datetime.fromtimestamp(launched_ms(run_id) / 1000, UTC).astimezone()
    told = {"id": run_id, "day": at.strftime("%Y-%m-%d"), "at": at.strftime("%H:%M"), "began": launched_ms(run_id)}
    if plan is None:
        return told | {"notebook": "", "experiment": "", "tags": [], "tag": "", "task": ""}
    tasks = [plan.task, *(step.task for step in plan.steps)]
    return told | {
        "notebook": line(plan.origin.notebook or "", 120),
        "experiment": line(plan.experiment.name or "", 80),
        "tags": [line(tag, 40) for tag in plan.tags[:_TAGS]],
        "tag": line(plan.tags[0], 40) if plan.tags else "",  # by which it is grouped
        "task": line(next(filter(None, tasks), ""), 200),
    }


def row_of(
    snapshot: Snapshot, origin: dict[str, Any], *, seen: bool, asks_in: str = "", turn: int = 0
) -> dict[str, Any]:
    """Return the row as the page knows it.

    Its question stands in the row of the run that `asks_in` names; `turn` is its place in the line, from 1.
    """
    usage, need = snapshot.usage_of_all, need_of(snapshot, seen=seen)
    agent, model = who(snapshot)
    question = snapshot.questions[0] if snapshot.questions else None
    row = origin | {
        "need": need,
        "name": shown_name(snapshot),
        "word": shown_state(snapshot),
        "agent": agent,
        "model": model,
        "now": _now(snapshot, asks_in, turn),
        "elapsed_s": round(snapshot.elapsed_s, 1),
        "tokens_in": usage.input_tokens,
        "tokens_out": usage.output_tokens,
        "cost": words.cost(usage.cost_usd),
        "stopping": bool(snapshot.status is not None and snapshot.status.stopping and not snapshot.ended),
        "attention": attention_line(snapshot),
        "more": max(0, len(snapshot.questions) - 1),
        "ended": _ended_at(snapshot),
    }
    if question is not None:
        row |= {
            "question": question_row(snapshot, question),
            "asked": question.asked_at,
            "asked_s": age_s(question.asked_at),
        }
    return row


def _ended_at(snapshot: Snapshot) -> str:
    if snapshot.result is not None:
        return snapshot.result.ended_at
    return snapshot.verdict.judged_at if snapshot.verdict is not None else ""


def _now(snapshot: Snapshot, asks_in: str, turn: int) -> str:
    if asks_in:
        return line(f"its question stands in the row of {asks_in}", 200)
    said = now(snapshot, 200)
    if snapshot.attention is not None and snapshot.attention.kind == "long-tool" and snapshot.open_tools:
        return line(f"{said} · {snapshot.open_tools[0].args}", 200)  # the first is at work the longest
    if not turn or snapshot.state is not RunState.QUEUED:
        return said
    return f"{'next in line' if turn == 1 else f'place {turn} in line'}{f' · {said}' if said else ''}"


def is_news(row: dict[str, Any], told: tuple[float, dict[str, Any]] | None, now_s: float, *, unheard: bool) -> bool:
    """Say whether a page that was told a row at a time must be told this one.

    It counts the time itself, and what it is told counts as activity of the kernel, which then is never culled.
    """
    if told is None:
        return True
    then_s, before = told
    if _timeless(row) != _timeless(before):
        return True
    counted = now_s - then_s if before["word"] == "running" else 0.0
    return not unheard and abs(row["elapsed_s"] - before["elapsed_s"] - counted) > _ASTRAY_S


def _timeless(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row without what only says how much time went by."""
    said = {name: value for name, value in row.items() if name not in ("elapsed_s", "asked_s")}
    if said["attention"]:
        said |= {name: _NUMBERS.sub("", said[name]) for name in ("attention", "now")}
    return said


def _instant(when: str | int) -> float:
    """Return when it was, in seconds; `began` is in milliseconds."""
    try:
        return datetime.fromisoformat(when).timestamp() if isinstance(when, str) else when / 1000
    except ValueError:
        return 0.0


def order(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return rows as the board has them: by need, questions and the line oldest first, all else newest first.

    Those that are over stand by their ends.
    """

    def key(row: dict[str, Any]) -> tuple[int, Any, int]:
        need = row["need"]
        if need == "asks":
            return NEEDS.index(need), str(row.get("asked", "")), row["began"]
        if need == "done":
            return NEEDS.index(need), -_instant(row["ended"] or row["began"]), -row["began"]
        return NEEDS.index(need), "", row["began"] if need == "waiting" else -row["began"]

    return sorted(rows, key=key)
