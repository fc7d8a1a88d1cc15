"""Chains as the tests of this room need them."""

from __future__ import annotations

from typing import Any

from card_samples import AT, RUN_ID, USAGE

from subagents_nb.domain.runs.records import NamedOutput, RunResult, RunStatus, StepResult, StepStatus, ToolRow, Usage
from subagents_nb.domain.runs.snapshot import Snapshot
from subagents_nb.domain.runs.stages import Stage, state_of
from subagents_nb.domain.runs.states import RunState, StepState

P, R, C, F = StepState.PENDING, StepState.RUNNING, StepState.COMPLETE, StepState.FAILED


def live(items: int = 3, states: list[StepState] | None = None, **changes: Any) -> Snapshot:
    """A chain at work: a scout, a fan-out over what it found, a summary."""
    found = states or [C, P, *[R] * items]
    steps = tuple(_status(n, state) for n, state in enumerate(found))
    known: dict[str, Any] = {
        "run_id": RUN_ID, "state": RunState.RUNNING, "name": "review-release", "mode": "chain", "started_at": AT,
        "updated_at": AT, "elapsed_s": 61.0, "usage": USAGE, "steps": steps, "stages": _stages(found),
    }  # fmt: skip
    return Snapshot(run_id=RUN_ID, status=RunStatus(**{**known, **changes}))


def over(
    items: int = 3, states: list[StepState] | None = None, *, text: str = "All is well.", **changes: Any
) -> Snapshot:
    """The same chain, ended."""
    found = states or [C] * (items + 2)
    steps = tuple(_result(n, state, text) for n, state in enumerate(found))
    known: dict[str, Any] = {
        "run_id": RUN_ID, "state": RunState.COMPLETE, "name": "review-release", "mode": "chain", "started_at": AT,
        "ended_at": AT, "elapsed_s": 187.0, "usage": USAGE, "steps": steps, "stages": _stages(found),
        "answer": NamedOutput(step=1), "outputs": {"found": NamedOutput(step=0), "reviews": NamedOutput(text="[]")},
    }  # fmt: skip
    return Snapshot(run_id=RUN_ID, result=RunResult(**{**known, **changes}))


def _stages(states: list[StepState]) -> tuple[Stage, ...]:
    rest = tuple(range(2, len(states)))
    return (
        Stage(kind="step", label="map files", state=states[0], steps=(0,), output_name="found"),
        Stage(
            kind="expand", label="review each", state=state_of(states[2:]), steps=rest, output_name="reviews",
            source="found", max_items=100, concurrency=8,
        ),
        Stage(kind="step", label="synthesis", state=states[1], steps=(1,)),
    )  # fmt: skip


def _name(number: int) -> tuple[str, str]:
    return ("scout", "map files") if number == 0 else ("delegate", "synthesis") if number == 1 else (
        "reviewer", f"pkg/module_{number - 2}.py"
    )  # fmt: skip


def _status(number: int, state: StepState) -> StepStatus:
    agent, label = _name(number)
    began = 1.0 * number if state is not P else None
    doing = {
        "tools": (ToolRow(call_id="1", name="grep", args="-c x"),), "tail": f"Looking at {label}.", "tail_end": 40,
        "activity": "thinking",
    }  # fmt: skip
    return StepStatus(
        index=number, agent=agent, model="scripted:echo", state=state, label=label, started_s=began,
        ended_s=None if state in (P, R) else number + 11.4, usage=Usage() if state is P else USAGE,
        **(doing if state is R else {}),
    )  # fmt: skip


def _result(number: int, state: StepState, text: str) -> StepResult:
    agent, label = _name(number)
    return StepResult(
        index=number, agent=agent, model="scripted:echo", state=state, label=label, text=text if state is C else "",
        usage=USAGE, started_s=1.0 * number, ended_s=number + 11.4, session=True,
        error=None if state is C else "The model gave up.", reason=None if state is C else "model",
    )  # fmt: skip
