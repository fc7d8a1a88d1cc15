"""The steps of a run, each by itself: look at it, read what it came to, stop or steer it while the others go on."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, overload

from subagents_nb.domain.runs.records import NamedOutput, StepRecord, StepResult, StepStatus, Usage
from subagents_nb.domain.runs.states import StepEvent, StepState
from subagents_nb.errors import RequestError, RunFailed, Unreadable
from subagents_nb.launching.gathering.output_types import OutputType
from subagents_nb.plain_text import plain
from subagents_nb.store.files.disk import DISK
from subagents_nb.store.runs.reader import read_document

if TYPE_CHECKING:
    from subagents_nb.launching.handle import Run

CUT_SHORT = "cut short"
CARRIED = "carried over"  # from the run that this one goes on from: nothing was done or paid again
_OPEN = (StepState.PENDING, StepState.RUNNING)
Types = Mapping[str | int, OutputType]


class RunStep:
    """One step of a run, as it stands at each look."""

    def __init__(self, run: Run, index: int, types: Types) -> None:
        self._run = run
        self.index = index
        self._types = types

    @property
    def run_id(self) -> str:
        """Return the id of its run."""
        return self._run.id

    @property
    def status(self) -> StepResult | StepStatus:
        """Return what is known of it: its result when it has ended, else how it stands."""
        return whole_step(self._run, self.index) or _now(self._run, self.index)

    @property
    def agent(self) -> str:
        """Return the name of its agent."""
        return self.status.agent

    @property
    def label(self) -> str:
        """Return what it is called: the label it was given, the key of its item, or nothing."""
        return self.status.label

    @property
    def state(self) -> StepState:
        """Return the state: pending, running, complete, partial, failed, paused, stopped, rejected, skipped."""
        return self.status.state

    @property
    def usage(self) -> Usage:
        """Return tokens, requests, tool calls and cost so far."""
        return self.status.usage

    @property
    def error(self) -> str | None:
        """Return what went wrong, in words."""
        return self.status.error

    @property
    def text(self) -> str:
        """Return its answer as text; what it has streamed so far, while it is at work."""
        status = self.status
        return whole_text(self._run, status) if isinstance(status, StepResult) else status.tail

    @property
    def output(self) -> Any:
        """Return what it came to: an instance of the schema's type, plain JSON data, or the text.

        Raises:
            RequestError: it has not ended.
            RunFailed: it ended without a result.
        """
        result = self.status
        if result.state in _OPEN:
            raise RequestError(f"steps[{self.index}] of {self._run.name} is {result.state}; it has no output yet.")
        if not isinstance(result, StepResult) or result.state is not StepState.COMPLETE:
            why = f": {result.error}" if result.error else ""
            text = f"steps[{self.index}] of {self._run.name} is {result.state}{why}"
            reason = result.reason if isinstance(result, StepResult) else self._run.status.reason
            raise RunFailed(text, run_id=self._run.id, state=str(result.state), reason=reason)
        if not result.has_value:
            return self.text
        kind = self._types.get(result.output_name or "") or self._types.get(self.index) or self._types.get(self._stage)
        return kind.typed(result.value) if kind is not None else result.value

    @property
    def _stage(self) -> str:
        stages = self._run.status.stages
        return next((f"@{place}" for place, stage in enumerate(stages) if self.index in stage.steps), "")

    def stop(self, reason: str = "") -> bool:
        """Stop this step alone; its run goes on with the others."""
        return self._run.stop(reason, step=self.index)

    def steer(self, text: str, *, follow_up: bool = False) -> Any:
        """Say something to this step's agent; as `Run.steer`."""
        return self._run.steer(text, follow_up=follow_up, step=self.index)

    def __repr__(self) -> str:
        status = self.status
        return plain(f"<steps[{self.index}] {status.label or status.agent} {status.state}>")


class RunSteps(Sequence[RunStep]):
    """The steps of a run, by their numbers; a fan-out's come behind those of the plan."""

    def __init__(self, run: Run, indices: Sequence[int], types: Types) -> None:
        self._steps = tuple(RunStep(run, index, types) for index in indices)

    @overload
    def __getitem__(self, index: int) -> RunStep: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[RunStep]: ...
    def __getitem__(self, index: int | slice) -> RunStep | Sequence[RunStep]:
        """Return one step, or some."""
        return self._steps[index]

    def __len__(self) -> int:
        return len(self._steps)

    def __repr__(self) -> str:
        return "\n".join(map(repr, self._steps)) or "<no steps>"


class NamedOutputs(Mapping[str, Any]):
    """The named outputs of a chain, typed where a type was given; those of steps that are done, while it runs."""

    def __init__(self, run: Run, types: Types) -> None:
        self._run = run
        self._types = types

    def __getitem__(self, name: str) -> Any:
        """Return one output."""
        run = self._run
        output = self._all().get(name)
        if output is None:
            there = ", ".join(self._all()) or "none"
            raise KeyError(f"{run.name} has no output {name!r} (it has: {there})")
        if output.step is not None:
            return RunStep(run, output.step, self._types).output
        return output.value if output.has_value else output.text

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())

    def __repr__(self) -> str:
        return plain(f"<outputs: {', '.join(self) or 'none'}>")

    def _all(self) -> dict[str, NamedOutput]:
        snapshot = self._run.status
        if snapshot.result is not None:
            return dict(snapshot.result.outputs)
        steps = snapshot.status.steps if snapshot.status is not None else ()
        done = [step for step in steps if step.state is StepState.COMPLETE and step.output_name]
        return {step.output_name: NamedOutput(step=step.index) for step in done if step.output_name}


def whole_step(run: Run, index: int) -> StepResult | None:
    """Return the whole result of a step that has ended, from the run's result or the step's own record."""
    snapshot = run.status
    steps = snapshot.result.steps if snapshot.result is not None else ()
    stored = next((step for step in steps if step.index == index), None)
    if stored is not None and not stored.cut:
        return stored
    with contextlib.suppress(Unreadable):
        return read_document(run.home.run(run.id).step(index) / "result.json", StepRecord, run.id).result
    return stored


def whole_text(run: Run, step: StepResult) -> str:
    """Return the whole text of a step, from the file that holds it if it was too long for a result."""
    if step.text_file is None:
        return step.text
    try:
        path = run.home.run(run.id).step(step.index) / "output.txt"
        with DISK.open_reading(path) as file:
            return file.read().decode("utf-8", "replace")
    except (OSError, Unreadable):
        return step.text


def left_behind(step: StepStatus) -> StepStatus:
    """Return the status of a step whose run has ended without a last word: no such step is at work, or ever will be."""
    if step.state is StepState.RUNNING:
        return step.to(StepEvent.FAIL, error=CUT_SHORT)
    return step.to(StepEvent.SKIP) if step.state is StepState.PENDING else step


def _now(run: Run, index: int) -> StepStatus:
    snapshot = run.status
    status = snapshot.status
    current = next((step for step in status.steps if step.index == index), None) if status is not None else None
    if current is None:
        raise RequestError(f"{run.name} has no steps[{index}].")
    return left_behind(current) if snapshot.ended and snapshot.result is None else current
