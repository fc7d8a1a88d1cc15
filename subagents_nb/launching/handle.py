"""The handle of one run. It holds an id and reads the files anew each time: nothing in it can go stale."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import json
from collections.abc import Generator, Iterator
from typing import Any

from subagents_nb.domain.plan import LaunchPlan
from subagents_nb.domain.records import NamedOutput, Refusal, StepResult, Usage
from subagents_nb.domain.snapshot import Snapshot
from subagents_nb.domain.states import RunState
from subagents_nb.errors import (
    RequestError,
    StoreError,
    Unreadable,
    WaitTimedOut,
)
from subagents_nb.launching.controls import Controls
from subagents_nb.launching.outcome import failure
from subagents_nb.launching.schemas import OutputType
from subagents_nb.launching.steps import NamedOutputs, RunSteps, Types, whole_step, whole_text
from subagents_nb.launching.waiting import WaitCancelled, WaitInterrupted, goes_on, until_ended, wait_all
from subagents_nb.store import FileRuns, StoreHome
from subagents_nb.store.disk import DISK
from subagents_nb.store.usage import disk_use
from subagents_nb.supervisor.sweeping import sweep


class Run(Controls):
    """A launched run: look at it, wait for it, stop it. It goes on without this object, the cell and the kernel."""

    def __init__(
        self,
        home: StoreHome,
        run_id: str,
        *,
        output_type: OutputType | None = None,
        output_types: Types | None = None,
    ) -> None:
        super().__init__(home, run_id, output_type=output_type)
        self._output_types: Types = output_types or {}
        self._last: Snapshot | None = None

    @property
    def home(self) -> StoreHome:
        """Return the store that holds the run."""
        return self._home

    @property
    def status(self) -> Snapshot:
        """Read the run as it stands now. A run whose process is proved gone gets its verdict first."""
        if self._last is not None and self._last.state is not None and self._last.state.terminal:
            return self._last
        snapshot = FileRuns(self._home).snapshot(self.id)
        if not snapshot.ended and sweep(self._home, [self.id]):
            snapshot = FileRuns(self._home).snapshot(self.id)
        self._last = snapshot
        return snapshot

    @property
    def name(self) -> str:
        """Return the run's name."""
        return self.status.name

    @property
    def state(self) -> RunState | None:
        """Return the state: queued, running, paused, complete, partial, failed, stopped, rejected, lost.

        None: nothing of the run can be read; `error` says why.
        """
        return self.status.state

    @property
    def usage(self) -> Usage:
        """Return tokens, requests, tool calls and cost so far."""
        return self.status.usage

    @property
    def error(self) -> str | None:
        """Return what went wrong, in words; None while it runs and when it went well."""
        return self.status.error

    @property
    def disk_bytes(self) -> int:
        """Return how much of the disk the run takes; at 100 MB it is ended."""
        return disk_use(self._home.run(self.id))

    @property
    def plan(self) -> LaunchPlan:
        """Return the frozen plan, prompts included.

        Raises:
            StoreError: it can't be read.
        """
        snapshot = FileRuns(self._home).snapshot(self.id, whole=True)
        if snapshot.plan is None:
            why = next((d.message for d in snapshot.damage if d.document == "plan.json"), "it is not there")
            raise StoreError(f"The plan of run {self.id} can't be read: {why}.")
        return snapshot.plan

    @property
    def steps(self) -> RunSteps:
        """Return the steps: `run.steps[0].output`, `.text`, `.state`, `.stop()`."""
        snapshot = self.status
        document = snapshot.result if snapshot.result is not None else snapshot.status
        return RunSteps(self, [step.index for step in document.steps] if document is not None else [], self._types())

    @property
    def outputs(self) -> NamedOutputs:
        """Return the outputs that have names (`as`), typed where a type was given: `run.outputs["found"]`."""
        return NamedOutputs(self, self._types())

    def _types(self) -> Types:
        return self._output_types or ({0: self._output_type} if self._output_type is not None else {})

    @property
    def refusals(self) -> tuple[Refusal, ...]:
        """Return the tool calls that were refused so far, with the reasons."""
        snapshot = self.status
        if snapshot.result is not None:
            return tuple(r for step in snapshot.result.steps for r in step.refusals)
        tools = {e["call"]: e["tool"] for e in self.events() if e.get("type") == "tool-started"}
        ended = (e for e in self.events() if e.get("type") == "tool-ended" and "refused" in e)
        return tuple(Refusal(tool=tools.get(e.get("call"), ""), why=str(e["refused"])) for e in ended)

    @property
    def output(self) -> Any:
        """Return what the run came to: an instance of the schema's type, plain JSON data, or the text.

        Raises:
            RequestError: it is still running.
            RunFailed: it ended without a result; the subclass says how.
        """
        return self._output(self.status)

    @property
    def text(self) -> str:
        """Return the answer as text; empty before the end."""
        snapshot = self.status
        return self._whole_text(snapshot)

    def result(self, timeout: float | None = None) -> Any:
        """Wait for the end and return `output`.

        Raises:
            WaitTimedOut: `timeout` seconds are over; the run goes on.
            RunFailed: it ended without a result.
        """
        if not self.wait(timeout):
            raise WaitTimedOut(f"{goes_on([(self.name, self.id)])}.", run_ids=[self.id])
        return self.output

    def wait(self, timeout: float | None = None) -> bool:
        """Block until the run has ended, or for `timeout` seconds; say whether it has ended.

        Raises:
            WaitInterrupted: somebody interrupted the wait (a KeyboardInterrupt); the run goes on.
        """
        try:
            ended = wait_all(self._home, [self.id], timeout)
        except KeyboardInterrupt:
            raise WaitInterrupted(goes_on([(self.name, self.id)])) from None
        return self.id in ended

    def __await__(self) -> Generator[Any, None, Any]:
        """Wait without blocking the event loop and return `output`; raises as `result` does."""
        return self._settled().__await__()

    async def _settled(self) -> Any:
        try:
            snapshot = await until_ended(self._home, self.id)
        except asyncio.CancelledError:
            # The kernel cancels the cell; the wait ends here, the run does not.
            raise WaitCancelled(goes_on([(self.name, self.id)])) from None
        return self._output(snapshot)

    def events(self) -> Iterator[dict[str, Any]]:
        """Yield what happened so far, oldest first; a torn or foreign line is left out."""
        path = self._home.run(self.id).events
        try:
            handle = DISK.open_reading(path)
        except Unreadable:
            return
        with open(handle, encoding="utf-8", errors="replace") as lines:
            for line in lines:
                if not line.endswith("\n"):
                    return
                with contextlib.suppress(ValueError):
                    record = json.loads(line)
                    if isinstance(record, dict):
                        yield record

    def display(self) -> None:
        """Show the run in the notebook: live while it runs, as a card when it has ended."""
        self._ipython_display_()

    def _ipython_display_(self) -> None:
        # The notebook face is known here by its entry point only: this room never imports it.
        importlib.import_module("subagents_nb.notebook.show").show_run(self)

    def _current(self) -> Snapshot:
        return self.status

    def __repr__(self) -> str:
        snapshot = self.status
        return f"<Run {snapshot.name} {snapshot.state or 'unreadable'}>"

    def _output(self, snapshot: Snapshot) -> Any:
        if snapshot.state in (RunState.COMPLETE, RunState.PARTIAL) and snapshot.result is not None:
            answer = self._answer(snapshot)
            if answer is None or not answer.has_value:
                return self._whole_text(snapshot)
            kind = self._output_type
            if isinstance(answer, StepResult) and snapshot.stages:
                kind = self._output_types.get(answer.index)
            return kind.typed(answer.value) if kind else answer.value
        if not snapshot.ended:
            raise RequestError(f"Run {snapshot.name} is still {snapshot.state}; await it, or use .result().")
        raise failure(snapshot)

    def _answer(self, snapshot: Snapshot) -> StepResult | NamedOutput | None:
        answer = snapshot.answer
        if isinstance(answer, StepResult) and answer.cut:
            return whole_step(self, answer.index)
        return answer

    def _whole_text(self, snapshot: Snapshot) -> str:
        answer = self._answer(snapshot)
        if isinstance(answer, StepResult):
            return whole_text(self, answer)
        return answer.text if answer is not None else ""
