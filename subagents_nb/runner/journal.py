"""Everything a runner writes: events appended, status replaced at most ten times a second, the result once."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Mapping
from typing import Any

from subagents_nb.domain.events import EngineEvent, TextStreamed, ThoughtStreamed, ToolEnded, ToolStarted, fold
from subagents_nb.domain.plan import LaunchPlan
from subagents_nb.domain.records import Actor, Reason, Refusal, RunResult, RunStatus, StepResult, ToolRow
from subagents_nb.domain.states import RunState, StepState, advance, event_to
from subagents_nb.runner.lines import event_line
from subagents_nb.store.clock import utc_now
from subagents_nb.store.writer import RunWriter

STATUS_EVERY_S = 0.1
HEARTBEAT_S = 5.0
_FIRST_RETRY_S, _LAST_RETRY_S, _GIVE_UP_S = 0.1, 5.0, 600.0


class Journal:
    """The one writer of a run's status, events and result. Its methods may be called from two threads."""

    def __init__(self, writer: RunWriter, plan: LaunchPlan, first: RunStatus) -> None:
        self._writer = writer
        self._plan = plan
        self._began = time.monotonic()
        self._guard = threading.RLock()
        self._seq = 0
        self._written = 0.0
        self._dirty = False
        self._text: list[str] = []
        self._thought: list[str] = []
        self._tools: dict[str, tuple[str, str]] = {}
        self._refusals: list[Refusal] = []
        self._rows: list[ToolRow] = []
        self._finished = False
        self._status = first
        self._step = first.steps[0]

    @property
    def elapsed_s(self) -> float:
        """Return the working time so far in seconds, by a clock that never jumps."""
        return time.monotonic() - self._began

    @property
    def activity(self) -> str:
        """Return what the step is busy with, in a word."""
        return self._step.activity

    @property
    def refusals(self) -> tuple[Refusal, ...]:
        """Return the tool calls that were refused."""
        return tuple(self._refusals)

    def begin(self) -> None:
        """Take the run over from its launcher: from here on it is running, durably."""
        with self._guard:
            self._step = self._step.model_copy(update={"state": StepState.RUNNING, "started_s": 0.0})
            self._status = self._status.model_copy(update={"state": RunState.RUNNING})
            self._line("run-started", {}, keep=True)
            self._write(milestone=True)
            self._writer.reserve()

    def report(self, event: EngineEvent) -> None:
        """Take one event of the engine; never raises for a disk that refuses progress."""
        with self._guard:
            if self._finished:
                return
            self._step = fold(self._step, event)
            self._dirty = True
            match event:
                case TextStreamed(text):
                    self._text.append(text)
                case ThoughtStreamed(text):
                    self._thought.append(text)
                case _:
                    self._note_tool(event)
                    self._flush_streams()
                    self._line(*event_line(event), keep=False)
            if time.monotonic() - self._written >= STATUS_EVERY_S:
                self.flush()

    def flush(self) -> None:
        """Write what came since the last write; called by the runner's tick."""
        with self._guard:
            idle = time.monotonic() - self._written
            if not self._finished and (self._dirty or idle >= HEARTBEAT_S):
                self._flush_streams()
                self._write(milestone=False)

    def stopping(self) -> None:
        """Show that a stop was asked for and is being carried out."""
        with self._guard:
            self._status = self._status.model_copy(update={"stopping": True})
            self._line("stop-requested", {}, keep=True)
            self._write(milestone=True)

    def finish(
        self,
        step: StepResult,
        *,
        state: RunState,
        reason: Reason | None = None,
        actor: Actor = "self",
        error: str | None = None,
    ) -> bool:
        """Write the result, then the last status. The first caller wins; False means somebody was first.

        A disk that refuses is asked again, for minutes: this is the one record that must not be lost.
        """
        with self._guard:
            if self._finished:
                return False
            self._finished = True
            advance(RunState.RUNNING, event_to(state))
            self._flush_streams()
            result = self._result(step, state=state, reason=reason, actor=actor, error=error)
            self._insist(lambda: self._writer.result(result))
            self._step = self._step.model_copy(
                update={"state": step.state, "ended_s": result.elapsed_s, "error": error, "activity": ""}
            )
            self._status = self._status.model_copy(update={"state": state, "usage": step.usage})
            self._line("run-ended", {"state": state, "reason": reason}, keep=True)
            self._write(milestone=True)
            return True

    def _result(
        self, step: StepResult, *, state: RunState, reason: Reason | None, actor: Actor, error: str | None
    ) -> RunResult:
        return RunResult(
            run_id=self._plan.run_id,
            state=state,
            name=self._plan.name,
            mode=self._plan.mode,
            digest=self._plan.digest,
            reason=reason,
            actor=actor,
            error=error,
            started_at=self._plan.created_at,
            ended_at=utc_now(),
            elapsed_s=round(self.elapsed_s, 3),
            timeout_s=self._plan.timeout_s,
            usage=step.usage,
            steps=(step,),
            tail=self._step.tail if state is not RunState.COMPLETE else "",
            notes=self._plan.notes,
        )

    def draft(self) -> StepResult:
        """Return the step as it stands, to be completed into its result."""
        with self._guard:
            return StepResult(
                agent=self._step.agent,
                model=self._step.model,
                state=StepState.RUNNING,
                usage=self._step.usage,
                refusals=tuple(self._refusals),
                tools=tuple(self._rows[-50:]),
            )

    def _note_tool(self, event: EngineEvent) -> None:
        if isinstance(event, ToolStarted):
            self._tools[event.call_id] = (event.name, event.args)
        elif isinstance(event, ToolEnded):
            name, args = self._tools.pop(event.call_id, ("", ""))
            if event.refused is not None:
                self._refusals.append(Refusal(tool=name, why=event.refused[:300]))
            ended = "refused" if event.refused is not None else "complete" if event.ok else "failed"
            row = {"call_id": event.call_id, "name": name, "args": args[:160], "state": ended}
            self._rows.append(ToolRow.model_validate({**row, "seconds": round(event.seconds, 3)}))

    def _flush_streams(self) -> None:
        for kind, parts in (("thinking", self._thought), ("text", self._text)):
            if parts:
                text = "".join(parts)
                parts.clear()
                for start in range(0, len(text), 3000):
                    self._line(kind, {"text": text[start : start + 3000]}, keep=False)

    def _line(self, kind: str, fields: Mapping[str, Any], *, keep: bool) -> None:
        self._seq += 1
        record = {"seq": self._seq, "t": utc_now(), "s": round(self.elapsed_s, 3), "type": kind, "step": 0, **fields}
        with contextlib.suppress(OSError):
            self._writer.event(record, keep=keep)

    def _write(self, *, milestone: bool) -> None:
        self._written = time.monotonic()
        self._dirty = False
        self._status = self._status.model_copy(
            update={
                "seq": self._status.seq + 1,
                "updated_at": utc_now(),
                "elapsed_s": round(self.elapsed_s, 3),
                "usage": self._step.usage,
                "steps": (self._step,),
            }
        )
        try:
            self._writer.status(self._status, milestone=milestone)
            if milestone:
                self._writer.sync_events()
        except OSError as error:
            # Progress is dropped and the work goes on; the result itself is insisted on.
            print(f"status not written: {error}", file=sys.stderr, flush=True)  # noqa: T201

    @staticmethod
    def _insist(write: Any) -> None:
        wait, deadline = _FIRST_RETRY_S, time.monotonic() + _GIVE_UP_S
        while True:
            try:
                write()
            except FileNotFoundError:
                print("result not stored: the run's directory is gone", file=sys.stderr, flush=True)  # noqa: T201
                return
            except OSError as error:
                if time.monotonic() + wait > deadline:
                    print(f"result not stored: {error}", file=sys.stderr, flush=True)  # noqa: T201
                    return
                time.sleep(wait)
                wait = min(wait * 2, _LAST_RETRY_S)
            else:
                return
