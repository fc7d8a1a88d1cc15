"""The handle of one run. It holds an id and reads the files anew each time: nothing in it can go stale."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Generator, Iterator, Sequence
from pathlib import Path
from typing import IO, Any

from pydantic_core import from_json

from subagents_nb.above import above
from subagents_nb.domain.plans.experiments import Case
from subagents_nb.domain.plans.plan import LaunchPlan
from subagents_nb.domain.runs.control import ControlAnswer
from subagents_nb.domain.runs.records import NamedOutput, Refusal, StepResult, Usage
from subagents_nb.domain.runs.snapshot import Snapshot
from subagents_nb.domain.runs.states import RunState
from subagents_nb.errors import (
    RequestError,
    StoreError,
    Unreadable,
    WaitTimedOut,
)
from subagents_nb.launching.composing import appending
from subagents_nb.launching.composing.flows import FlowLike, chain, types_of
from subagents_nb.launching.controlling.step_handles import NamedOutputs, RunSteps, Types, whole_step, whole_text
from subagents_nb.launching.following.waiting import (
    WaitInterrupted,
    cancelled,
    still_running_text,
    until_ended,
    wait_all,
)
from subagents_nb.launching.gathering.output_types import OutputType
from subagents_nb.launching.judging import scoring
from subagents_nb.launching.results.outcome import failure
from subagents_nb.launching.results.showing import Showing
from subagents_nb.launching.results.transcript_notebook import write_transcript
from subagents_nb.launching.starting.reuse_search import NO_MATCH, ReuseDecision
from subagents_nb.plain_text import plain
from subagents_nb.store import FileRuns, StoreHome
from subagents_nb.store.files.disk import DISK, MAX_DOCUMENT_BYTES
from subagents_nb.store.runs.disk_usage import disk_use
from subagents_nb.store.runs.raw_reader import read_raw
from subagents_nb.supervisor.warm.reconcile import reconcile


class Run(Showing):
    """A launched run: look at it, wait for it, stop it. It goes on without this object, the cell and the kernel."""

    def __init__(
        self,
        home: StoreHome,
        run_id: str,
        *,
        output_type: OutputType | None = None,
        output_types: Types | None = None,
        match: ReuseDecision = NO_MATCH,
    ) -> None:
        super().__init__(home, run_id, output_type=output_type)
        self._match = match
        self._output_types: Types = output_types or {}
        self._last: Snapshot | None = None
        self._case: Case | None = None

    @property
    def home(self) -> StoreHome:
        """Return the store that holds the run."""
        return self._home

    @property
    def reused(self) -> bool:
        """Whether the launch that gave this handle found the run and started nothing."""
        return self._match.run_id is not None

    @property
    def found_live(self) -> bool:
        """Whether the run was at work when that launch found it."""
        return self._match.live

    @property
    def asked_name(self) -> str:
        """Return the name that the launch asked for, which a run that it found does not take; empty for none."""
        return (self._match.draft.name or "") if self._match.draft is not None else ""

    @property
    def found_note(self) -> str:
        """Return what of the workspace was compared before the run stood in for a new one; empty for any other."""
        return self._match.note if self.reused and not self._match.live else ""

    @property
    def reuse_note(self) -> str:
        """Return why no earlier run of the same contract stood in for this one; empty where there was none."""
        return self._match.miss

    @property
    def status(self) -> Snapshot:
        """Read the run as it stands now. A run whose process is proved gone gets its verdict first."""
        if self._last is not None and self._last.state is not None and self._last.state.terminal:
            return self._last
        snapshot = FileRuns(self._home).snapshot(self.id)
        if (snapshot.state is None or not snapshot.ended) and reconcile(self._home, [self.id]):
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
    def case(self) -> Case | None:
        """Return the case that was asked, with its right answer, as a sweep has it now or had it; None without one."""
        if self._case is None:
            plan = read_raw(self._home, self.id, ("plan.json",))["plan.json"] or {}
            part = plan.get("experiment")
            case = part.get("case") if isinstance(part, dict) else None
            self._case = Case.model_validate(case) if isinstance(case, dict) else None
        return self._case

    @case.setter
    def case(self, case: Case) -> None:
        self._case = case

    @property
    def usage(self) -> Usage:
        """Return tokens, requests, tool calls and cost so far."""
        return self.status.usage

    @property
    def error(self) -> str | None:
        """Return what went wrong, in words; None while it runs and when it went well."""
        return self.status.error

    @property
    def scores(self) -> scoring.Scores:
        """Return the latest scores by name; what a scorer of the launch has to say is asked for first."""
        self._judge()
        return scoring.scores_of(self._home, self.id)

    def score(
        self, name: str, value: Any, *, case: str | None = None, step: int | None = None, comment: str = ""
    ) -> None:
        """Keep a judgement with the run; the latest of a name (and case) counts.

        Args:
            name: what is judged, such as `accuracy`.
            value: a number, or true or false as 1 or 0. NaN and the infinities are kept as such.
            case: which of several things it is about, where the run is judged on more than one.
            step: at which step or iteration.
            comment: why.

        Raises:
            RequestError: one of these makes no sense.
            StoreError: it can't be written.
        """
        scoring.keep_score(self._home, self.id, name, value, case=case, step=step, comment=comment, by="python")

    def judge_with(self, scorers: Sequence[scoring.Scorer]) -> None:
        """Have functions judge the run when somebody asks, in this process, what it came to; each once.

        A dear one that has judged it already is not called, unless it or what it reads was changed since; none is if it
        ends without a result.
        """
        scoring.judge_later(self, scorers)

    def _judge(self) -> None:
        if scoring.waits_for(self.id):
            scoring.judge_now(self, self.status)

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
            raise WaitTimedOut(f"{still_running_text([(self.name, self.id)])}.", run_ids=[self.id])
        return self.output

    def wait(self, timeout: float | None = None) -> bool:
        """Block until the run has ended, or for `timeout` seconds; say whether it has ended.

        Raises:
            WaitInterrupted: somebody interrupted the wait (a KeyboardInterrupt); the run goes on.
        """
        try:
            ended = wait_all(self._home, [self.id], timeout)
        except KeyboardInterrupt:
            raise WaitInterrupted(still_running_text([(self.name, self.id)])) from None
        self._judge()
        return self.id in ended

    def __await__(self) -> Generator[Any, None, Any]:
        """Wait without blocking the event loop and return `output`; raises as `result` does."""
        return self._settled().__await__()

    async def _settled(self) -> Any:
        try:
            snapshot = await until_ended(self._home, self.id)
        except asyncio.CancelledError as error:
            # The kernel cancels the cell; the wait ends here, the run does not.
            raise cancelled(error, still_running_text([(self.name, self.id)])) from None
        self._judge()
        return self._output(snapshot)

    def events(self) -> Iterator[dict[str, Any]]:
        """Yield what happened so far, oldest first; a torn or foreign line is left out."""
        path = self._home.run(self.id).events
        try:
            file = DISK.open_reading(path)
        except Unreadable:
            return
        with file:
            for line in _lines(file):
                # Not `json`: what nests without end is a fault of the line there, and none of ours.
                with contextlib.suppress(ValueError):
                    record = from_json(line.decode("utf-8", "replace"))
                    if isinstance(record, dict):
                        yield record

    def append(self, *items: FlowLike, asked_by: str = "python") -> ControlAnswer | None:
        """Append items to a live chain, behind its last one: what `step`, `parallel`, `expand` and `chain` compose.

        They are planned as the launch was, with the run's own directory. Waits up to three seconds for the receipt;
        None: the run has not looked yet, and takes them in when it does.

        Raises:
            AppendRefused: with every reason found; nothing was asked of the run.
            RequestError: it is no chain, has ended, or refused.
        """
        flow = chain(*items)
        answer = appending.append(self._home, self.id, flow, asked_by=asked_by)
        # Their numbers are the runner's to give; their names are known.
        self._output_types = {**self._output_types, **{k: t for k, t in types_of(flow).items() if isinstance(k, str)}}
        return answer

    def transcript(self, step: int | None = None, to: str | os.PathLike[str] | None = None) -> Path:
        """Write all that was said, or one step of it, as a notebook (.ipynb) and return its path.

        It lies with the run unless `to` names a file. Call it again while the run works: it shows what there is so far.

        Raises:
            RequestError: there is no such step, or `to` can't be written.
        """
        return write_transcript(self, step, to)

    def export_to(self, to: str, **options: Any) -> Any:
        """Send the ended run to another tool, as `export(run, to=…)` does, and return the report."""
        return above("export")(self, to=to, **options)

    def _current(self) -> Snapshot:
        return self.status

    def _next(self, run_id: str, step: int | None = None) -> Run:
        if step is None:
            return Run(self._home, run_id, output_type=self._output_type, output_types=self._output_types)
        return Run(self._home, run_id, output_type=self._output_types.get(step, self._output_type))

    def __repr__(self) -> str:
        snapshot = self.status
        return plain(f"<Run {snapshot.name} {snapshot.state or 'unreadable'}>")

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


def _lines(file: IO[bytes]) -> Iterator[bytes]:
    """Yield the whole lines of a file; one that is longer than any document of ours is left out."""
    long = False
    while line := file.readline(MAX_DOCUMENT_BYTES):
        ends = line.endswith(b"\n")
        if ends and not long:
            yield line
        long = not ends
