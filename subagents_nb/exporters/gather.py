"""Read one run for an exporter, from its files alone: it works for runs of long ago and for runs that were lost."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from subagents_nb.domain.experiments import ExperimentPart, latest
from subagents_nb.domain.messages import Session
from subagents_nb.domain.records import StepResult, StepStatus
from subagents_nb.domain.snapshot import Snapshot
from subagents_nb.errors import RequestError
from subagents_nb.exporters.record import RunRecord, Span, StepRecord
from subagents_nb.launching.handle import Run
from subagents_nb.launching.steps import whole_text
from subagents_nb.launching.transcript import read_session
from subagents_nb.store import FileRuns
from subagents_nb.store.scores import read_scores


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
        scores=tuple(latest(read_scores(paths)).values()),
        artifacts=result.artifacts if result is not None else (),
        root=paths.root,
    )


def _step(run: Run, snapshot: Snapshot, one: StepResult | StepStatus, times: _Times) -> StepRecord:
    result = one if isinstance(one, StepResult) else _so_far(one)
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
    )


def _so_far(status: StepStatus) -> StepResult:
    """Return how a step stood when its run was lost."""
    shared = ("index", "agent", "model", "state", "usage", "tools", "error", "label", "output_name", "started_s")
    return StepResult(text=status.tail, **{name: getattr(status, name) for name in shared})


class _Times:
    """When things happened, from the run's events; a run without any has the times of its documents."""

    def __init__(self, events: Iterator[dict[str, Any]], snapshot: Snapshot) -> None:
        self.start = snapshot.started_at
        self.last = self.start
        self.requests: dict[int, list[Span]] = {}
        self.tools: dict[int, list[Span]] = {}
        self._began: dict[int, str] = {}
        self._ended: dict[int, str] = {}
        self._asked: dict[int, str] = {}
        self._open: dict[tuple[int, str], tuple[str, str]] = {}
        for event in events:
            at = event.get("t")
            if isinstance(at, str) and at >= self.last:
                self.last = at
            self._take(event, self.last)
        for index in list(self._asked):
            self._answered(index, self.last)
        for (index, call), (name, at) in self._open.items():
            span = Span(name=name, call_id=call, start=at, end=self.last, ok=False)
            self.tools.setdefault(index, []).append(span)
        ended = snapshot.result.ended_at if snapshot.result is not None else None
        self.end = max(ended or self.last, self.start)

    def of(self, index: int) -> tuple[str, str]:
        """Return when a step began and ended."""
        start = self._began.get(index, self.start)
        return start, max(start, self._ended.get(index, self.last))

    def _take(self, event: dict[str, Any], at: str) -> None:
        kind, index = event.get("type"), event.get("step")
        if not isinstance(index, int):
            return
        self._began.setdefault(index, at)
        match kind:
            case "model-asked":
                self._answered(index, at)
                self._asked[index] = at
            case "tool-started":
                self._answered(index, at)
                self._open[index, str(event.get("call"))] = (str(event.get("tool")), at)
            case "tool-ended":
                name, began = self._open.pop((index, str(event.get("call"))), ("", at))
                refused = event.get("refused")
                span = Span(
                    name=name,
                    call_id=str(event.get("call")),
                    start=began,
                    end=at,
                    ok=event.get("ok") is True,
                    refused=refused if isinstance(refused, str) else None,
                )
                self.tools.setdefault(index, []).append(span)
            case "step-ended":
                self._answered(index, at)
                self._ended[index] = at
            case _:
                pass

    def _answered(self, index: int, at: str) -> None:
        asked = self._asked.pop(index, None)
        if asked is not None:
            self.requests.setdefault(index, []).append(Span(start=asked, end=at))
