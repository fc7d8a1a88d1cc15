"""Everything an exporter needs of one run, read once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from subagents_nb.domain.plans.experiments import ExperimentPart, ParamValue, Score
from subagents_nb.domain.plans.plan import LaunchPlan, StepPlan
from subagents_nb.domain.plans.request import Origin
from subagents_nb.domain.runs.messages import Session, Turn
from subagents_nb.domain.runs.records import Artifact, StepResult, Usage
from subagents_nb.domain.runs.states import RunState
from subagents_nb.domain.runs.tree_rows import TreeRow, used_by_all
from subagents_nb.domain.values.base import Value
from subagents_nb.store.clock import moment


class Span(Value):
    """One request of a model, or one call of a tool. Times are UTC in ISO 8601."""

    start: str
    end: str
    name: str = ""  # the tool's
    call_id: str = ""
    ok: bool = True
    refused: str | None = None
    order: int = 0  # its place among all that happened in the run
    said: bool = False  # of a request: some text came back
    args: str = ""  # of a call: the preview that the events have, as of its result
    preview: str = ""
    cut_off: bool = False  # it was at work when the events end


class Note(Value):
    """Something that happened to a run beside its requests and calls."""

    kind: str  # the event's type; `refused` for a call that was not allowed
    at: str
    order: int
    step: int | None = None  # None: it is the run's
    facts: dict[str, Any]  # the event's own fields, plain JSON data


class StepRecord(Value):
    """One step: what was planned, how it ended, what was said, and when."""

    result: StepResult
    plan: StepPlan | None  # None: it was added while the run went on
    text: str  # whole
    session: Session
    start: str
    end: str
    requests: tuple[Span, ...] = ()
    tools: tuple[Span, ...] = ()
    began: bool = False  # the events know of it

    def exchanges(self) -> tuple[tuple[Span, Turn | None], ...]:
        """Return each request with its response, where there is one.

        The session of a step that goes on from an earlier run begins with that one's responses: they are left out.
        """
        if not self.requests:
            return ()
        began, turns = moment(self.requests[0].start), self.session.turns
        earlier = [n for n, turn in enumerate(turns, 1) if (at := moment(turn.at)) and began and at < began]
        own = turns[max(earlier, default=0) :][-len(self.requests) :]
        answered = self.requests
        if len(own) < len(answered):
            # A model answers every request but the last that it got. A script says nothing of the time, nor always
            # something; what it said is in the events.
            timed = any(turn.at for turn in own)
            spoke = answered if timed else tuple(one for one in answered if one.said) or answered
            answered = spoke[: len(own)] if timed else spoke[max(0, len(spoke) - len(own)) :]
        found = {request.order: turn for request, turn in zip(answered, own, strict=False)}
        return tuple((request, found.get(request.order)) for request in self.requests)


class RunRecord(Value):
    """One ended run."""

    run_id: str
    name: str
    state: RunState
    reason: str | None
    error: str | None
    mode: str
    digest: str
    start: str
    end: str
    elapsed_s: float
    waited_s: float
    usage: Usage
    refusals: int
    resumed_from: str | None
    tags: tuple[str, ...]
    experiment: ExperimentPart
    plan: LaunchPlan | None
    steps: tuple[StepRecord, ...]
    text: str  # what the run came to
    scores: tuple[Score, ...]  # of each name and case the latest
    artifacts: tuple[Artifact, ...]
    root: Path  # the run's directory
    notes: tuple[Note, ...] = ()
    tree: tuple[TreeRow, ...] = ()  # of the runs below it, which are exported as runs of their own

    @property
    def origin(self) -> Origin:
        """Return where it stands in its tree, if it was started by another run."""
        return self.plan.origin if self.plan is not None else Origin()

    @property
    def well(self) -> bool:
        """Whether it has a result."""
        return self.state in (RunState.COMPLETE, RunState.PARTIAL)

    @property
    def agents(self) -> tuple[str, ...]:
        """Return its agents' names."""
        return tuple(dict.fromkeys(step.result.agent for step in self.steps))

    @property
    def models(self) -> tuple[str, ...]:
        """Return the models that were asked, as they were planned."""
        labels = (s.plan.model.label if s.plan is not None else s.result.model for s in self.steps)
        return tuple(dict.fromkeys(labels))

    def params(self) -> dict[str, ParamValue]:
        """Return what it was launched with; a param that a person gave stands in the place of ours of the same name."""
        plan = self.plan
        ours: dict[str, ParamValue] = {
            "agent": ", ".join(self.agents),
            "model": ", ".join(self.models),
            "mode": self.mode,
            "timeout_s": plan.timeout_s if plan is not None else None,
        }
        if len(self.steps) == 1 and (step := self.steps[0].plan) is not None:
            ours |= {
                "thinking": step.thinking,
                "temperature": step.temperature,
                "max_requests": step.max_requests,
                "tools": ", ".join(step.tools),
                "schema": step.schema_name,
            }
        return {name: value for name, value in ours.items() if value not in (None, "")} | self.experiment.params

    def metrics(self) -> dict[str, float]:
        """Return what was measured of the run itself; a cost only if it is known."""
        usage = self.usage
        figures: dict[str, float | None] = {
            "elapsed_s": self.elapsed_s,
            "waited_s": self.waited_s,
            "input_tokens": usage.input_tokens,
            "output_tokens": usage.output_tokens,
            "cache_read_tokens": usage.cache_read_tokens,
            "requests": usage.requests,
            "tool_calls": usage.tool_calls,
            "cost_usd": usage.cost_usd,
            "refusals": self.refusals,
            "steps": len(self.steps),
        }
        if self.tree:
            everyone = used_by_all(usage, self.tree)
            figures |= {
                "tree_runs": len(self.tree) + 1,
                "tree_input_tokens": everyone.input_tokens,
                "tree_output_tokens": everyone.output_tokens,
                "tree_cost_usd": everyone.cost_usd,
            }
        return {name: float(value) for name, value in figures.items() if value is not None}

    def labels(self) -> dict[str, str]:
        """Return what describes the run in single words, by names of ours."""
        lineage, cell = self.experiment.lineage, self.experiment.cell
        texts = {
            "run_id": self.run_id,
            "state": str(self.state),
            "reason": self.reason,
            "error": self.error,
            "digest": self.digest,
            "resumed_from": self.resumed_from,
            "parent": self.origin.parent,
            "root": self.origin.root,
            "path": self.origin.path,
            "tags": ", ".join(self.tags),
            "sweep": cell.sweep if cell is not None else None,
            "repeat": str(cell.repeat) if cell is not None else None,
            "cell_id": lineage.cell_id if lineage is not None else None,
            "source_sha256": lineage.source_sha256 if lineage is not None else None,
        }
        return {name: value for name, value in texts.items() if value}
