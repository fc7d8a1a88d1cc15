"""Everything a runner writes: events appended, status replaced at most ten times a second, the result once."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from subagents_nb.domain.agents.attention import Attention, Thresholds, attention_of_run
from subagents_nb.domain.plans.plan import LaunchPlan, StepPlan, choices_of
from subagents_nb.domain.runs.events import EngineEvent
from subagents_nb.domain.runs.postmortem import not_stored
from subagents_nb.domain.runs.reads import ReadLog
from subagents_nb.domain.runs.records import (
    Actor,
    EndReason,
    NamedOutput,
    RunStatus,
    StepRecord,
    StepResult,
    first_step,
)
from subagents_nb.domain.runs.states import RunEvent, RunState, StepEvent, StepState
from subagents_nb.domain.runs.tree_rows import to_person
from subagents_nb.domain.values.usage import Usage, total
from subagents_nb.runner.journal.account import StepAccount, concerns
from subagents_nb.runner.journal.event_redaction import EventRedactor
from subagents_nb.runner.journal.eventlog import event_line
from subagents_nb.runner.journal.final_result import final_result, retry_until_written
from subagents_nb.runner.journal.live_status import LiveStatus
from subagents_nb.runner.journal.stage_progress import Stages
from subagents_nb.runner.journal.work_clock import WorkClock
from subagents_nb.store.runs.writer import RunWriter

STATUS_EVERY_S = 0.1
# Every write wakes whoever watches: a kernel with fifty silent runs would pay three times as much for one every 1.5 s.
HEARTBEAT_S, TOOL_HEARTBEAT_S = 5.0, 1.0
REWORD_S = 10.0  # how often "at work for 5 min" is counted anew


class Journal:
    """The one writer of a run's status, events and result. Its methods may be called from two threads."""

    def __init__(
        self,
        writer: RunWriter,
        plan: LaunchPlan,
        first: RunStatus,
        clock: WorkClock,
        *,
        reads: Callable[[], ReadLog | None] = lambda: None,
    ) -> None:
        self._reads = reads
        self._writer = writer
        self._plan = plan
        self._clock = clock
        self._worded = 0.0  # when the text of the attention was last made
        self.unstored = False  # the disk never took the result
        self.disk_full = False  # something that can't be left out waits for room
        self.accounts = {step.index: StepAccount(step) for step in first.steps}
        self.status = LiveStatus(writer, first, clock, steps=self._shown)
        self._guard = self.status.guard
        self._events = self.status.events
        self._stages = Stages(first.stages)
        self.clean = EventRedactor(plan)  # no secret gets into what is written

    @property
    def elapsed_s(self) -> float:
        """Return the working time so far in seconds."""
        return self._clock.worked_s

    @property
    def is_waiting(self) -> bool:
        """Whether its working time stands still just now."""
        return self._clock.is_waiting

    @property
    def activity(self) -> str:
        """Return what the run is busy with, in a word."""
        return next((a.status.activity for a in self.accounts.values() if a.status.activity), "")

    def start(self) -> None:
        """Take the run over from its launcher: from here on it is running, durably."""
        with self._guard:
            self.status.current = self.status.current.to(RunEvent.PROCEED)
            self._events.line("run-started", {}, keep=True)
            self.status.write(milestone=True)
            self._writer.reserve()

    @property
    def usage(self) -> Usage:
        """Return what all steps used so far."""
        with self._guard:
            return total(account.status.usage for account in self.accounts.values())

    def add_steps(self, steps: Sequence[StepPlan], labels: Sequence[str] = ()) -> None:
        """Take in steps that a fan-out or an append adds."""
        with self._guard:
            self.clean.know(choices_of(steps))
            for number, step in enumerate(steps):
                label = labels[number] if labels else step.title
                self._writer.add_step(step.index)
                self.accounts[step.index] = StepAccount(first_step(step, label=label))
            self.status.dirty = True

    def stages(self, change: Callable[[Stages], None], **update: Any) -> None:
        """Change how the stages of a chain are shown."""
        with self._guard:
            change(self._stages)
            self.status.update(**update)

    def step_began(self, index: int) -> None:
        """Say that a step is at work."""
        with self._guard:
            account = self.accounts[index]
            account.status = account.status.to(StepEvent.BEGIN, started_s=round(self.elapsed_s, 3))
            account.last_event_s = self.elapsed_s
            if self._plan.is_flow:
                self._events.line("step-started", {"agent": account.status.agent}, keep=True, step=index)
            self.status.dirty = True

    def step_ended(self, result: StepResult) -> None:
        """Record how a step ended while its run may go on; what it came to is on disk from here on."""
        with self._guard:
            account = self.accounts[result.index]
            if self.status.over or account.result is not None:
                return
            now = round(self.elapsed_s, 3)
            self._take(account, self.clean.rest(result.index))
            times = {"started_s": account.status.started_s, "ended_s": now}
            ended = self.clean.result(result).model_copy(update=times)
            account.end(ended)
            self.status.dirty = True
            if not self._plan.is_flow:
                return
            self._flush_streams()
            with contextlib.suppress(OSError):  # the run's own result holds it too
                self._writer.step_result(StepRecord(run_id=self._plan.run_id, result=ended))
            self._events.line(
                "step-ended", {"state": ended.state, "reason": ended.reason}, keep=True, step=result.index
            )

    def step_carried(self, result: StepResult) -> None:
        """Record a step that stands as another run left it: it took no time and cost nothing here."""
        with self._guard:
            account = self.accounts[result.index]
            account.end(result)
            carried = {"carried_from": result.carried_from, "model": result.model}
            account.status = account.status.model_copy(update=carried)
            self.status.dirty = True
            with contextlib.suppress(OSError):
                self._writer.step_result(StepRecord(run_id=self._plan.run_id, result=result))
            fields = {"state": result.state, "from": result.carried_from}
            self._events.line("step-carried", fields, keep=True, step=result.index)

    def report(self, index: int, event: EngineEvent) -> None:
        """Take one event of a step's engine; never raises for a disk that refuses progress."""
        with self._guard:
            if self.status.over:
                return
            self.status.dirty = True
            self._take(self.accounts[index], self.clean.events(index, event))
            if time.monotonic() - self.status.written >= STATUS_EVERY_S:
                self.flush()

    def _take(self, account: StepAccount, events: Sequence[EngineEvent]) -> None:
        for event in events:
            if remark := account.remark(event, alone=not self._plan.is_flow):
                self.status.note(remark)
            if account.take(event, self.elapsed_s):
                self._flush_streams()
                self._events.line(*event_line(event), keep=False, step=account.status.index)

    def flush(self) -> None:
        """Write what came since the last write; called by the runner's tick."""
        with self._guard:
            idle = time.monotonic() - self.status.written
            at_work = any(account.open_tools for account in self.accounts.values())
            if not self.status.over and (self.status.dirty or idle >= (TOOL_HEARTBEAT_S if at_work else HEARTBEAT_S)):
                self._flush_streams()
                self.status.write(milestone=False)

    def step_stopping(self, index: int) -> None:
        """Show that one step was asked to stop."""
        with self._guard:
            account = self.accounts[index]
            account.status = account.status.model_copy(update={"stopping": True})
            self._events.line("step-stop-requested", {}, keep=True, step=index)
            self.status.dirty = True

    def consider(self, patience: Callable[[int], Thresholds], waiting: Collection[int] = ()) -> Attention | None:
        """Decide anew whether to point at this run; return why if that is news. Words are at most ten seconds old.

        `patience` gives a step's thresholds; steps that are `waiting`, for the person or a rate limit, are not silent.
        """
        with self._guard:
            accounts = [a for a in self.accounts.values() if a.status.state is StepState.RUNNING]
            if self.status.over or not accounts:
                return None
            now = self.elapsed_s
            concern = attention_of_run(
                concerns(accounts, patience, waiting, now_s=now, alone=not self._plan.is_flow),
                open_questions=len(to_person(self.status.current.questions)),
                disk_full=self.disk_full,
                since_s=max(a.last_event_s for a in accounts),
            )
            before = self.status.current.attention
            if (concern and concern.kind) == (before and before.kind):
                if concern != before and now - self._worded >= REWORD_S:
                    self._worded = now
                    self.status.update(attention=concern)
                return None
            self._worded = now
            self.status.milestone("attention", {"kind": concern.kind if concern else None}, attention=concern)
            return concern

    def draft(self, index: int) -> StepResult:
        """Return a step as it stands, to be completed into its result."""
        with self._guard:
            return self.accounts[index].draft()

    def finish(
        self,
        *,
        event: RunEvent,
        reason: EndReason | None = None,
        actor: Actor = "self",
        error: str | None = None,
        unfinished: Callable[[StepResult], StepResult] | None = None,
        answer: NamedOutput | None = None,
        outputs: Mapping[str, NamedOutput] | None = None,
    ) -> bool:
        """Write the result, then the last status. The first caller wins; False means somebody was first.

        `unfinished` says how a step that is still at work ended. A disk that refuses is asked again, for minutes: this
        is the one record that must not be lost. One that never takes it makes the run failed and sets `unstored`.
        """
        with self._guard:
            if self.status.over:
                return False
            state = self.status.current.to(event).state
            self.status.over = True
            for index, account in self.accounts.items():
                self._take(account, self.clean.rest(index))
            self._flush_streams()
            end = None if unfinished is None else lambda draft: self.clean.result(unfinished(draft))
            for account in self.accounts.values():
                account.settle(state, end, round(self.elapsed_s, 3))
            error = None if error is None else self.clean(error)
            self._stages.settle(paused=state is RunState.PAUSED)
            result = final_result(
                self._plan,
                self.status.current,
                tuple(self.accounts.values()),
                event=event,
                reason=reason,
                actor=actor,
                error=error,
                clock=self._clock,
                stages=self._stages.shown(self._states()),
                reads=self._reads(),
            )
            complete = result.model_copy(update={"answer": answer, "outputs": dict(outputs or {})})
            why = retry_until_written(lambda: self._writer.result(complete))
            if why is not None:
                self.unstored = True
                event, reason = RunEvent.FAIL, "not-stored"
                self.status.update(reason=reason, error=not_stored(why))
            self.status.current = self.status.current.to(event, attention=None, questions=())
            self._events.line("run-ended", {"state": self.status.current.state, "reason": reason}, keep=True)
            self.status.write(milestone=True)
            return True

    def _shown(self) -> dict[str, Any]:
        steps = tuple(account.shown(crowd=len(self.accounts)) for account in self.accounts.values())
        used = total(step.usage for step in steps)
        return {"usage": used, "steps": steps, "stages": self._stages.shown(self._states())}

    def _states(self) -> dict[int, StepState]:
        return {index: account.status.state for index, account in self.accounts.items()}

    def _flush_streams(self) -> None:
        for index, account in self.accounts.items():
            self._events.streamed(account.streamed(), step=index)
