"""Read one run for an exporter, from its files alone: it works for runs of long ago and for runs that were lost."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from subagents_nb.domain.plans.experiments import ExperimentPart, latest
from subagents_nb.domain.runs.messages import Session
from subagents_nb.domain.runs.records import StepResult, StepStatus
from subagents_nb.domain.runs.snapshot import Snapshot
from subagents_nb.errors import RequestError
from subagents_nb.exporters.run_record import Note, RunRecord, Span, StepRecord
from subagents_nb.launching.controlling.step_handles import whole_text
from subagents_nb.launching.handle import Run
from subagents_nb.launching.results.transcript_notebook import read_session
from subagents_nb.store import FileRuns
from subagents_nb.store.clock import moment
from subagents_nb.store.runs.score_files import read_scores

_NOTED = frozenset(
    ("notice", "steering", "retuned", "budget", "stop-requested", "step-stop-requested", "drain-requested")
)
_FRAME = frozenset(("seq", "t", "s", "type", "step"))  # what every line of the events has


def gather(run: Run) -> RunRecord:
    """Return everything that is known of an ended run.

    Raises:
        RequestError: it has not ended, or nothing of it can be read.
    """
    state = run.status.state  # gives a run whose process is gone its verdict
    if state is None:
        raise RequestError(f"Nothing of run {run.id} can be read: {run.error}.")
    if not run.status.ended:
        raise RequestError(f"{run.name} is {state}; wait for its end, then export it.")
    snapshot = FileRuns(run.home).snapshot(run.id, whole=True)
    plan, result = snapshot.plan, snapshot.result
    times = _Times(run.events(), snapshot)
    paths = run.home.run(run.id)
    return RunRecord(
        run_id=run.id,
        name=snapshot.name,
        state=state,
        reason=snapshot.reason,
        error=snapshot.error,
        mode=plan.mode if plan is not None else "single",
        digest=plan.digest if plan is not None else "",
        start=snapshot.started_at,
        end=times.end,
        elapsed_s=snapshot.elapsed_s,
        waited_s=snapshot.waited_s,
        usage=snapshot.usage,
        refusals=snapshot.refusals,
        resumed_from=snapshot.resumed_from,
        tags=plan.tags if plan is not None else (),
        experiment=plan.experiment if plan is not None else ExperimentPart(),
        plan=plan,
        steps=tuple(_step(run, snapshot, step.status, times) for step in run.steps),
        text=run.text or snapshot.tail,
        scores=tuple(latest(read_scores(run.home, run.id)).values()),
        artifacts=result.artifacts if result is not None else (),
        root=paths.root,
        notes=tuple(times.notes),
        tree=snapshot.tree,
    )


def _step(run: Run, snapshot: Snapshot, one: StepResult | StepStatus, times: _Times) -> StepRecord:
    # Of a run that was lost: how the step stood.
    result = one if isinstance(one, StepResult) else StepResult(text=one.tail, **one.head())
    plan = snapshot.plan
    try:
        session = read_session(run.home.run(run.id), one.index) or Session()
    except ValueError:
        session = Session()
    start, end = times.of(one.index)
    return StepRecord(
        result=result,
        plan=next((step for step in plan.steps if step.index == one.index), None) if plan is not None else None,
        text=whole_text(run, result),
        session=session,
        start=start,
        end=end,
        requests=tuple(times.requests.get(one.index, ())),
        tools=tuple(times.tools.get(one.index, ())),
        began=times.began(one.index),
    )


class _Times:
    """What happened and when, from the run's events; a run without any has the times of its documents."""

    def __init__(self, events: Iterator[dict[str, Any]], snapshot: Snapshot) -> None:
        self.start = snapshot.started_at
        self.last = self.start
        self.requests: dict[int, list[Span]] = {}
        self.tools: dict[int, list[Span]] = {}
        self.notes: list[Note] = []
        self._order = 0
        self._began: dict[int, str] = {}
        self._ended: dict[int, str] = {}
        self._asked: dict[int, Span] = {}
        self._open: dict[tuple[int, str], Span] = {}
        for self._order, event in enumerate(events, 1):
            at = event.get("t")
            if isinstance(at, str) and at >= self.last and moment(at) is not None:
                self.last = at
            self._take(event, self.last)
        for index in list(self._asked):
            self._answered(index, self.last)
        for (index, _), call in self._open.items():
            span = call.model_copy(update={"end": self.last, "ok": False, "cut_off": True})
            self.tools.setdefault(index, []).append(span)
        ended = snapshot.result.ended_at if snapshot.result is not None else None
        self.end = max(ended or self.last, self.start)

    def began(self, index: int) -> bool:
        """Say whether a step did anything."""
        return index in self._began

    def of(self, index: int) -> tuple[str, str]:
        """Return when a step began and ended."""
        start = self._began.get(index, self.start)
        return start, max(start, self._ended.get(index, self.last))

    def _take(self, event: dict[str, Any], at: str) -> None:
        kind, index = event.get("type"), event.get("step")
        step = index if isinstance(index, int) else None
        if kind in _NOTED:
            self._note(str(kind), at, step, {name: value for name, value in event.items() if name not in _FRAME})
        if step is None:
            return
        self._began.setdefault(step, at)
        match kind:
            case "model-asked":
                self._answered(step, at)
                self._asked[step] = Span(start=at, end=at, order=self._order)
            case "text":
                self._spoke(step)
            case "tool-started":
                self._answered(step, at)
                call, tool, args = (str(event.get(name) or "") for name in ("call", "tool", "args"))
                self._open[step, call] = Span(start=at, end=at, name=tool, call_id=call, args=args, order=self._order)
            case "tool-ended":
                self._tool_ended(event, step, at)
            case "step-ended":
                self._answered(step, at)
                self._ended[step] = at
            case _:
                pass

    def _tool_ended(self, event: dict[str, Any], step: int, at: str) -> None:
        call, refused = str(event.get("call") or ""), event.get("refused")
        began = self._open.pop((step, call), None) or Span(start=at, end=at, call_id=call, order=self._order)
        why = refused if isinstance(refused, str) else None
        ends = {"end": at, "ok": event.get("ok") is True, "refused": why, "preview": str(event.get("preview") or "")}
        self.tools.setdefault(step, []).append(began.model_copy(update=ends))
        if why is not None:
            self._note("refused", at, step, {"call": call, "tool": began.name, "why": why})

    def _note(self, kind: str, at: str, step: int | None, facts: dict[str, Any]) -> None:
        self.notes.append(Note(kind=kind, at=at, order=self._order, step=step, facts=facts))

    def _spoke(self, index: int) -> None:
        """Note that a step's latest request brought some text; a script goes on with it after a call."""
        asked, over = self._asked.get(index), self.requests.get(index)
        if asked is not None:
            self._asked[index] = asked if asked.said else asked.model_copy(update={"said": True})
        elif over and not over[-1].said:
            over[-1] = over[-1].model_copy(update={"said": True})

    def _answered(self, index: int, at: str) -> None:
        asked = self._asked.pop(index, None)
        if asked is not None:
            self.requests.setdefault(index, []).append(asked.model_copy(update={"end": at}))
