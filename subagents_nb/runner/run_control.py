"""Listen for what is asked of a live run, keep its deadline, and force the end when the work won't let go.

A thread of its own: it works while the model is silent and while the event loop is stuck.
"""

from __future__ import annotations

import contextlib
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, assert_never

from subagents_nb.domain.plans.plan import LaunchPlan
from subagents_nb.domain.runs.control import ControlAnswer, ControlRequest, Retune, Retuned
from subagents_nb.domain.runs.states import RequestEvent, RequestState, RunEvent
from subagents_nb.domain.values.words import duration
from subagents_nb.runner.chains.appended import AT_ITS_END
from subagents_nb.runner.chains.chain_run import ChainRun
from subagents_nb.runner.chains.step_registry import StepRegistry
from subagents_nb.runner.journal.journal import Journal
from subagents_nb.runner.processes.stdio import cap
from subagents_nb.runner.steps.causes import GONE, Cause, interrupted_by, past_deadline, past_disk_cap, stopped_by
from subagents_nb.runner.steps.limits_in_force import LiveLimits
from subagents_nb.store.clock import utc_now
from subagents_nb.store.runs.disk_usage import DISK_CAP_BYTES, disk_use
from subagents_nb.store.runs.writer import RunWriter

POLL_S = 0.1
GRACE_S = 3.0
_CONSIDER_S = 1.0
_MEASURE_S = 5.0
_LAST_WORD_S = 1.0  # how long the end of a run waits for an answer that is being written

_Said = tuple[RequestEvent | None, str]


class ChildRuns(Protocol):
    """The runs that this one delegated to: what is asked of it reaches them too."""

    def end(self, cause: Cause) -> None: ...

    def drain(self) -> None: ...

    def retune(self, change: Retune) -> None: ...

    def take_in(self) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlCallbacks:
    """What the control thread can move in the runner. Each returns at once and may be called from any thread."""

    force_end: Callable[[Cause], None]
    due: Callable[[float | None], None]  # tells whoever watches from outside how much time is left
    tell: Callable[[str], None]
    children: Callable[[], ChildRuns | None] = lambda: None  # None: no step has delegated so far


class Control:
    """The control thread of one runner."""

    def __init__(
        self,
        writer: RunWriter,
        plan: LaunchPlan,
        journal: Journal,
        registry: StepRegistry,
        flow: ChainRun,
        limits: LiveLimits,
        callbacks: ControlCallbacks,
    ) -> None:
        self._writer = writer
        self._plan = plan
        self._journal = journal
        self._registry = registry
        self._flow = flow
        self._limits = limits
        self._callbacks = callbacks
        self._seen: set[str] = set()
        self._over = threading.Event()
        self._guard = threading.Lock()
        self._since = self._considered = self._measured = 0.0
        self._noted: Cause | None = None
        self.cause: Cause | None = None
        self._thread = threading.Thread(target=self._watch, name="control", daemon=True)

    def start(self) -> None:
        """Begin to listen. What was asked while the run waited for a place is carried out before any work."""
        try:
            self._read_requests()
        except Exception:  # noqa: BLE001 - as in `_watch`, which goes on from here
            traceback.print_exc()
        self._thread.start()

    def close(self) -> None:
        """The work is over: force nothing any more. Who has asked for something has an answer, if the disk lets us.

        A request ends the work before its answer is written; the process must not be gone by then.
        """
        self._over.set()
        self._keep_budget()  # by the last figures
        self._thread.join(_LAST_WORD_S)
        if not self._thread.is_alive():
            with contextlib.suppress(Exception):  # of what ends the run, nothing may keep it from being written
                self._read_requests()
        for work in self._registry.all:
            work.inbox.close()

    def end(self, cause: Cause) -> bool:
        """End the work for this cause; False if it is being ended for another already."""
        with self._guard:
            if self.cause is not None or self._over.is_set():
                return False
            self.cause = cause
            self._since = time.monotonic()
        if cause.event is RunEvent.STOP:
            self._journal.status.milestone("stop-requested", {}, stopping=True)
        if (children := self._callbacks.children()) is not None:
            children.end(cause)
        self._flow.end(cause)
        return True

    def note(self, cause: Cause) -> None:
        """Remember a cause from a signal handler, which may take no lock; it is acted on within a tenth of a second."""
        self._noted = cause

    def _watch(self) -> None:
        while not self._over.wait(POLL_S):
            try:
                self._look_around()
            except Exception:  # noqa: BLE001 - whatever goes wrong here, a run must not get out of control
                traceback.print_exc()
            if self.cause is not None and time.monotonic() - self._since > GRACE_S:
                self._callbacks.force_end(self.cause)
                return

    def _look_around(self) -> None:
        if self._noted is not None:
            self.end(self._noted)
        if self._writer.paths.root.is_symlink() or not self._writer.paths.lock.exists():
            self.end(GONE)
        cap()
        self._keep_time()
        self._keep_budget()
        self._keep_size()
        self._read_requests()
        if (children := self._callbacks.children()) is not None:
            children.take_in()
        self._journal.flush()

    def _keep_size(self) -> None:
        if time.monotonic() - self._measured < _MEASURE_S:
            return
        self._measured = time.monotonic()
        # What the person put in does not count.
        allowed = DISK_CAP_BYTES + sum(one.bytes for one in self._plan.inputs)
        used = disk_use(self._writer.paths, enough=allowed)
        if used > allowed:
            self.end(past_disk_cap(used))

    def _keep_time(self) -> None:
        left = self._limits.time_left(self._journal.elapsed_s)
        if left is not None:
            self._callbacks.due(None if self._journal.is_waiting else left.left_s)
            if left.left_s <= 0:
                self.end(past_deadline(left.of_s, self._journal.activity))
        self._registry.keep_time(left, reminding=self.cause is None)
        now = time.monotonic()
        if now - self._considered >= _CONSIDER_S:
            self._considered = now
            concern = self._journal.consider(self._registry.thresholds, self._registry.waiting)
            if concern is not None and concern.kind != "question":
                self._callbacks.tell(f"may need a look: {concern.text}")

    def _keep_budget(self) -> None:
        self._journal.status.budget(self._limits.budget, self._limits.used)

    def _read_requests(self) -> None:
        for request in self._writer.mail.requests(self._seen):
            if isinstance(request, tuple):
                request_id, why = request
                self._answer(request_id, RequestEvent.REFUSE, f"the request can't be understood: {why}")
            else:
                event, text = self._carry_out(request)
                if event and not self._answer(request.request_id, event, text):
                    self._writer.mail.mark_heard(request)

    def _carry_out(self, request: ControlRequest) -> _Said:
        """Return what becomes of it and what is said about it; None means that somebody else answers."""
        if request.step is not None and self._registry.find(request.step) is None:
            return RequestEvent.REFUSE, f"the run has no steps[{request.step}]"
        if (self.cause is not None or self._over.is_set()) and request.verb != "stop":
            return RequestEvent.MISS, "the run is already ending"
        match request.verb:
            case "stop" if request.step is not None and self._plan.is_flow:
                return self._stop_step(request.step, request)
            case "stop":
                return self._end(stopped_by(request))
            case "interrupt" if request.step is not None and self._plan.is_flow:
                return RequestEvent.REFUSE, "one step can't be paused by itself; interrupt the run, or stop the step"
            case "interrupt":
                return self._end(interrupted_by(request))
            case "steer":
                return self._steer(request)
            case "drain":
                self._flow.drain()
                if (children := self._callbacks.children()) is not None:
                    children.drain()
                self._journal.status.milestone("drain-requested", {}, draining=True)
                return RequestEvent.ACCEPT, "what runs is finished, nothing new is started"
            case "retune":
                return self._retune(request)
            case "append":
                return self._append(request)
            case "cancel-tool":
                if self._registry.cancel_tool(request.call_id or ""):
                    return RequestEvent.ACCEPT, ""
                return RequestEvent.REFUSE, f"no tool call {request.call_id} is open"
            case _:
                assert_never(request.verb)

    def _stop_step(self, index: int, request: ControlRequest) -> _Said:
        work = self._registry.work(index)
        if not work.end(stopped_by(request, step=True)):
            return RequestEvent.MISS, f"steps[{index}] has ended already"
        self._journal.step_stopping(index)
        return RequestEvent.ACCEPT, ""

    def _steer(self, request: ControlRequest) -> _Said:
        if request.step is not None:
            work = self._registry.work(request.step)
            return (
                (None, "")
                if work.inbox.put(request)
                else (RequestEvent.MISS, f"steps[{request.step}] has ended already")
            )
        live = self._registry.at_work or ([] if self._plan.is_flow else self._registry.all)
        if len(live) > 1:
            names = ", ".join(f"steps[{work.step.index}]" for work in live)
            return RequestEvent.REFUSE, f"{names} are at work; say which one is meant"
        if not live:
            return RequestEvent.REFUSE, "no step is at work now; say which one is meant"
        return (None, "") if live[0].inbox.put(request) else (RequestEvent.MISS, "the run is already ending")

    def _append(self, request: ControlRequest) -> _Said:
        more = request.append
        if more is None or not self._plan.is_flow:
            return RequestEvent.REFUSE, "only a chain can be appended to; this run has one step"
        why = self._flow.append(more)
        if why is not None:
            return (RequestEvent.MISS if why == AT_ITS_END else RequestEvent.REFUSE), why
        return RequestEvent.ACCEPT, f"{len(more.items)} appended"

    def _end(self, cause: Cause) -> _Said:
        if self.end(cause) or (self.cause is not None and self.cause.event is cause.event):
            return RequestEvent.ACCEPT, ""
        return RequestEvent.MISS, "the run is already ending"

    def _retune(self, request: ControlRequest) -> _Said:
        change = request.retune
        if change is None:
            return RequestEvent.REFUSE, "it changes nothing"
        if change.timeout_s is not None and change.timeout_s <= self._journal.elapsed_s:
            return RequestEvent.REFUSE, f"the run has worked for {duration(round(self._journal.elapsed_s))} already"
        if change.holds_nothing(self._journal.usage):
            return (
                RequestEvent.REFUSE,
                "no price is known of its model, so that no amount of money can be held; give tokens",
            )
        self._limits.retune(change)
        if (children := self._callbacks.children()) is not None:
            children.retune(change)
        self._flow.retuned()
        if change.timeout_s is not None:
            self._registry.remind_anew()
        self._journal.status.retuned(Retuned(at=utc_now(), by=request.asked_by, changes=change.changes))
        return RequestEvent.ACCEPT, ""

    def _answer(self, request_id: str, event: RequestEvent, text: str) -> bool:
        fields = {"run_id": self._plan.run_id, "request_id": request_id, "text": text, "answered_at": utc_now()}
        try:
            self._writer.mail.answer(ControlAnswer.after(RequestState.ASKED, event, **fields))
        except OSError:
            return False  # nobody may be waiting; the run's state says it as well
        return True
