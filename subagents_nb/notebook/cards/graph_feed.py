"""What a chain's live view is sent: the graph as a whole now and then, what changed of it as messages between."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Protocol

from subagents_nb.blocks import clean
from subagents_nb.domain.runs.events import ASKS_MODEL, LOADS_MODEL
from subagents_nb.domain.runs.records import RECENT_TOOLS, TAIL_CHARS, StepResult, StepStatus
from subagents_nb.domain.runs.snapshot import Snapshot
from subagents_nb.domain.values import words
from subagents_nb.notebook.cards.graph import StepRow, accepted_line, counts, is_chain, remarks, stage_rows, step_rows
from subagents_nb.notebook.cards.shown import context_words, model_words
from subagents_nb.notebook.cards.work_summary import work_text
from subagents_nb.notebook.page.lines import cut, line

WHOLE_S = 5.0  # so often the trait is renewed, for a page that is loaded again or has missed a message
MAX_OUTPUT_CHARS = 20_000
_MAX_STEPS = 500
_WATCHED = 4  # steps whose panels are open on some page


class Sender(Protocol):
    """What the feed needs of a widget."""

    def send(self, content: Any) -> None: ...
    def set_trait(self, name: str, value: Any) -> None: ...


def drawn(snapshot: Snapshot, seq: int = 0) -> dict[str, Any]:
    """Return the whole graph as the page knows it; nothing for a run of one step."""
    if not is_chain(snapshot):
        return {}
    rows = step_rows(snapshot)
    by_number = {row.number: row for row in rows}
    stages = [
        {
            "title": stage.title,
            "kind": stage.kind,
            "state": stage.state,
            "aside": " · ".join(filter(None, [stage.aside, "" if stage.error else accepted_line(stage.accepted)])),
            "as": stage.output_name,
            "error": stage.error,
            "steps": list(stage.steps[:_MAX_STEPS]),
            "counts": list(counts(by_number[number] for number in stage.steps if number in by_number)),
        }
        for stage in stage_rows(snapshot)
    ]
    # All are counted, also those for which the map has no room.
    steps = [_row(row) for row in rows[:_MAX_STEPS]]
    return {"seq": seq, "stages": stages, "steps": steps, "counts": list(counts(rows))}


def _row(row: StepRow) -> dict[str, Any]:
    return {
        "n": row.number,
        "name": row.name,
        "agent": row.agent,
        "state": row.state,
        "from": row.started_s,
        "took": row.took_s,
        "doing": row.activity,
        "stopping": row.stopping,
    }


def awaited(step: StepStatus | None) -> str:
    """Say for what a step waits that has written nothing yet."""
    if step is None or step.tail:
        return ""
    if step.activity == LOADS_MODEL:
        return "The local model is being loaded; nothing was sent to it yet."
    if step.activity == ASKS_MODEL:
        return f"The request was sent; {line(step.model, 80) or 'the provider'} has sent nothing yet."
    return ""


def detail(step: StepStatus | StepResult, text: str = "") -> dict[str, Any]:
    """Return what the panel of a step shows: while it works what it writes, afterwards what it came to (`text`)."""
    message: dict[str, Any] = {
        "kind": "step",
        "n": step.index,
        "agent": line(step.agent, 80),
        "model": " · ".join(filter(None, [model_words(step), context_words(step)])),
        "tokens_in": step.usage.input_tokens,
        "tokens_out": step.usage.output_tokens,
        "cost": words.cost(step.usage.cost_usd),
        "error": cut(clean(step.error or "").strip(), 1_200)[0],
        "tools": [
            {"name": line(row.name, 60), "args": line(row.args, 160), "state": row.state, "seconds": row.seconds}
            for row in step.tools[-RECENT_TOOLS:]
        ],
    }
    if isinstance(step, StepStatus):
        tail = step.tail[-TAIL_CHARS:].encode("utf-8", "replace").decode("utf-8")
        return message | {"tail": tail, "tail_end": max(step.tail_end, len(tail)), "silent": awaited(step)}
    output, more = cut(clean(text), MAX_OUTPUT_CHARS)
    work = work_text(step, alone=False) if remarks(step) else ""
    return message | {"output": output, "more": more, "remarks": remarks(step), "work": work}


class GraphFeed:
    """Feeds one widget; `show` and `renew` belong to the watcher's thread, `watch` to any."""

    def __init__(self, face: Sender, first: dict[str, Any], clock: Callable[[], float]) -> None:
        self._face = face
        self._clock = clock
        self._sent = first
        self._seq = 0
        self._renewed = clock()
        self._stale = False  # the trait lacks what went out as a message
        self._guard = threading.Lock()
        self._watched: dict[int, tuple[int, dict[str, Any]]] = {}  # with what was streamed, and the last detail

    def watch(self, number: int | None, told: dict[str, Any] | None = None) -> None:
        """Tell the page about one step from now on, beginning with what it was told; None: about none."""
        with self._guard:
            if number is None:
                self._watched.clear()
                return
            self._watched.pop(number, None)
            self._watched[number] = (int((told or {}).get("tail_end", 0)), {})
            while len(self._watched) > _WATCHED:
                self._watched.pop(next(iter(self._watched)))

    @property
    def whole(self) -> dict[str, Any]:
        """Return the graph as the page knows it by now."""
        return {**self._sent, "seq": self._seq}

    def show(self, snapshot: Snapshot) -> None:
        """Send what changed."""
        drawing = drawn(snapshot, self._seq + 1)
        if not drawing:
            return
        if _structure(drawing) != _structure(self._sent):
            self._seq += 1
            self._renew(drawing)
        else:
            before = {row["n"]: row for row in self._sent["steps"]}
            rows = [row for row in drawing["steps"] if row != before.get(row["n"])]
            pairs = enumerate(zip(drawing["stages"], self._sent["stages"], strict=True))
            stages = [[at, new["state"], new["error"], new["counts"]] for at, (new, old) in pairs if new != old]
            if rows or stages or drawing["counts"] != self._sent["counts"]:
                self._seq += 1
                self._sent, self._stale = drawing, True
                message = {"steps": rows, "stages": stages, "counts": drawing["counts"]}
                self._face.send({"kind": "graph", "seq": self._seq, **message})
        self._show_steps(snapshot)
        self.renew()

    def renew(self) -> None:
        """Renew the trait when it has lain behind the messages for a while."""
        if self._stale and self._clock() - self._renewed >= WHOLE_S:
            self._renew({**self._sent, "seq": self._seq})

    def _renew(self, whole: dict[str, Any]) -> None:
        self._sent, self._stale, self._renewed = whole, False, self._clock()
        self._face.set_trait("graph", whole)

    def _show_steps(self, snapshot: Snapshot) -> None:
        if snapshot.status is None or not self._watched:
            return
        steps = {step.index: step for step in snapshot.status.steps}
        with self._guard:
            watched = dict(self._watched)
        for number, (streamed, last) in watched.items():
            step = steps.get(number)
            if step is None:
                continue
            message = detail(step)
            tail, end = str(message.pop("tail")), int(message.pop("tail_end"))
            fresh = end - streamed
            changed = {key: value for key, value in message.items() if last.get(key) != value}
            if fresh > len(tail):
                changed |= {"tail": tail, "tail_end": end}
            elif fresh > 0:
                changed |= {"at": streamed, "fresh": tail[-fresh:]}
            if changed:
                self._face.send({"kind": "step", "n": number, **changed})
            with self._guard:
                if number in self._watched:
                    self._watched[number] = (max(end, streamed), message)


def _structure(whole: dict[str, Any]) -> list[Any]:
    return [[stage["title"], stage["kind"], stage["aside"], stage["as"], stage["steps"]] for stage in whole["stages"]]
