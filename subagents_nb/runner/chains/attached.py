"""Wait for another run and take over what it came to. That run is somebody's own: it is watched, never ended."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable
from dataclasses import dataclass, field

from subagents_nb.domain.plans.plan import AttachedItem
from subagents_nb.domain.runs.records import NamedOutput, StepRecord, StepResult
from subagents_nb.domain.runs.snapshot import Snapshot
from subagents_nb.domain.runs.states import RunState, StepState
from subagents_nb.errors import Unreadable
from subagents_nb.runner.chains.collecting import as_input
from subagents_nb.store.layout import RunPaths, StoreHome
from subagents_nb.store.runs.reader import FileRuns, read_document

POLL_S = 0.25


class AttachedFailed(Exception):
    """The other run ended without something to go on from."""


@dataclass(frozen=True, slots=True)
class Attachment:
    """What a run came to, and those of its outputs by name that were asked for."""

    answer: NamedOutput
    outputs: dict[str, NamedOutput] = field(default_factory=dict)


async def attached(paths: RunPaths, item: AttachedItem, ending: asyncio.Event) -> Attachment | None:
    """Return what a run came to once that has ended, or its step that counts has; None if `ending` came first.

    Raises:
        AttachedFailed: it ended badly, or is gone.
    """
    home = StoreHome(paths.root.parents[1])
    reader, source = FileRuns(home), home.run(item.attached_run)
    while True:
        snapshot = reader.snapshot(item.attached_run)
        if item.step is not None:
            result = _step(source, snapshot, item.step)
            if result is not None and result.state is StepState.COMPLETE:
                return Attachment(_output(source, result))
            if result is not None or snapshot.ended:
                raise AttachedFailed(
                    _end_text(f"steps[{item.step}] of the attached run {snapshot.name}", result or snapshot)
                )
        elif snapshot.state in (RunState.COMPLETE, RunState.PARTIAL):
            return Attachment(_whole(source, snapshot, snapshot.answer), _named(source, snapshot, item.outputs))
        if snapshot.ended:
            raise AttachedFailed(_end_text(f"The attached run {snapshot.name}", snapshot))
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(ending.wait(), POLL_S)
            return None


def _end_text(what: str, ended: Snapshot | StepResult) -> str:
    return f"{what} ended as {ended.state or 'unreadable'}{f': {ended.error}' if ended.error else ''}"


def _named(source: RunPaths, snapshot: Snapshot, names: Iterable[str]) -> dict[str, NamedOutput]:
    result = snapshot.result
    if result is None:
        return {}
    there = {name: result.outputs[name] for name in names if name in result.outputs}
    steps = {step.index: step for step in result.steps}
    return {
        name: _whole(source, snapshot, output if output.step is None else steps.get(output.step))
        for name, output in there.items()
    }


def _whole(source: RunPaths, snapshot: Snapshot, answer: StepResult | NamedOutput | None) -> NamedOutput:
    """Return an output as a value of this chain. What the run's result holds cut is read from the step's own record."""
    if isinstance(answer, StepResult):
        output = _step(source, snapshot, answer.index) if answer.cut else answer
        return _output(source, output or answer)
    if answer is None:
        return NamedOutput(attached_run=source.root.name)
    return answer.model_copy(update={"step": None, "attached_run": source.root.name})


def _output(source: RunPaths, result: StepResult) -> NamedOutput:
    run_id = source.root.name
    return NamedOutput(text=as_input(result), has_value=result.has_value, value=result.value, attached_run=run_id)


def _step(source: RunPaths, snapshot: Snapshot, step: int) -> StepResult | None:
    """Return how a step ended, from its own record, which is there while its run goes on; None if it has not."""
    with contextlib.suppress(Unreadable):
        return read_document(source.step(step) / "result.json", StepRecord, source.root.name).result
    steps = snapshot.result.steps if snapshot.result is not None else ()
    return next((one for one in steps if one.index == step), None)
