"""How a chain ends by its own course: decided from the results of its steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from subagents_nb.domain.plans.flow import OnFailure
from subagents_nb.domain.runs.records import Actor, EndReason, StepResult
from subagents_nb.domain.runs.states import RunEvent, StepState


@dataclass(frozen=True, slots=True)
class ChainEnd:
    """How a run ended by its own course."""

    event: RunEvent
    reason: EndReason | None = None
    error: str | None = None
    actor: Actor = "self"


DRAINED = ChainEnd(RunEvent.FALL_SHORT, "drained", "Drained on request: what was at work is done.", "person")


class ChainBroken(Exception):
    """The chain can't go on: why, for the run's last word."""

    def __init__(self, end: ChainEnd) -> None:
        super().__init__(end.error)
        self.end = end


_ACTORS: dict[str, Actor] = {"timeout": "deadline", "budget": "budget"}


def end_after(results: Sequence[StepResult], on_failure: OnFailure, what: str) -> ChainEnd | None:
    """Return how the chain ends after a group or fan-out; None if it goes on."""
    bad = [r for r in results if r.state is not StepState.COMPLETE]
    spent = next((r for r in bad if r.reason == "budget"), None)
    if spent is not None:
        return ChainEnd(RunEvent.FAIL, "budget", spent.error, "budget")
    failed = [r for r in bad if r.state in (StepState.FAILED, StepState.REJECTED)]
    if not failed or on_failure != "stop":
        return None
    first = failed[0]
    text = f"{len(failed)} of {len(results)} steps of {what} failed; steps[{first.index}]: {first.error}"
    rejected = all(r.state is StepState.REJECTED for r in failed)
    return ChainEnd(RunEvent.REJECT if rejected else RunEvent.FAIL, "rejected" if rejected else "child", text)


def end_of(result: StepResult, *, single: bool) -> ChainEnd:
    """Return how the chain ends with a step that did not complete; a `single` one is all of its run."""
    where = "" if single else f"steps[{result.index}] ({result.label or result.agent}): "
    error = None if result.error is None else where + result.error
    match result.state:
        case StepState.STOPPED:
            return ChainEnd(RunEvent.STOP, "stopped", error, "person")
        case StepState.REJECTED:
            return ChainEnd(RunEvent.REJECT, result.reason, error)
        case StepState.SKIPPED if result.reason == "drained":
            return DRAINED
        case _:
            return ChainEnd(RunEvent.FAIL, result.reason, error, _ACTORS.get(result.reason or "", "self"))


def shortfall(results: Sequence[StepResult], not_accepted: Sequence[str]) -> str:
    """Say what a chain that went on to its end lacks."""
    bad = [r for r in results if r.state is not StepState.COMPLETE]
    if not bad:
        return "; ".join(not_accepted)
    shown = ", ".join(f"steps[{r.index}] {r.state}" for r in bad[:5])
    return f"{len(bad)} of {len(results)} steps did not complete: {shown}" + (" …" if len(bad) > 5 else ".")
