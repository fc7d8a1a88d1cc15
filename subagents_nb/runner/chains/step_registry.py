"""All steps of one run, those that wait and those at work, by their numbers: found, ended, told."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection
from pathlib import Path

from subagents_nb.domain.agents.attention import Thresholds
from subagents_nb.domain.plans.plan import StepPlan
from subagents_nb.domain.runs.states import RunEvent
from subagents_nb.runner.steps.causes import Cause
from subagents_nb.runner.steps.limits_in_force import TimeLeft
from subagents_nb.runner.steps.step_context import RunServices
from subagents_nb.runner.steps.step_run import StepWork


class StepRegistry:
    """The steps of a run. Its methods may be called from the control thread."""

    def __init__(
        self,
        services: RunServices,
        *,
        history: Callable[[StepPlan], Path | None] = lambda _: None,
        limited: Callable[[StepPlan], StepPlan] = lambda step: step,
    ) -> None:
        self._services = services
        self._history = history
        self._limited = limited  # gives a step what was left to it of its limits
        self._guard = threading.Lock()
        self._works: dict[int, StepWork] = {}
        self._cause: Cause | None = None
        self.next_index = 0
        self.add(services.plan.steps)

    @property
    def stopped(self) -> bool:
        """Whether all was ended for good."""
        return self._cause is not None and self._cause.event is RunEvent.STOP

    def add(self, steps: tuple[StepPlan, ...]) -> None:
        """Take steps in; those of the plan come first, each later one has the next number."""
        for step in steps:
            work = StepWork(self._limited(step), self._services, history=self._history(step))
            with self._guard:
                self._works[step.index] = work
                self.next_index = max(self.next_index, step.index + 1)
                cause = self._cause
            if cause is not None:
                work.end(cause)

    def work(self, index: int) -> StepWork:
        """Return one step."""
        with self._guard:
            return self._works[index]

    def find(self, index: int) -> StepWork | None:
        """Return one step, or None if the run has no such step."""
        with self._guard:
            return self._works.get(index)

    @property
    def at_work(self) -> list[StepWork]:
        """Return the steps that are at work."""
        with self._guard:
            return [work for work in self._works.values() if work.at_work]

    @property
    def all(self) -> list[StepWork]:
        """Return all steps, in the order of their numbers."""
        with self._guard:
            return list(self._works.values())

    def end_all(self, cause: Cause) -> None:
        """End every step that has not ended, and every one that is still added."""
        with self._guard:
            self._cause = cause
            works = list(self._works.values())
        for work in works:
            work.end(cause)

    def keep_time(self, run: TimeLeft | None, *, reminding: bool = True) -> None:
        """End the steps that are past their own deadlines, and remind those that are near to one, or to the run's."""
        for work in self.at_work:
            cause = work.overdue()
            if cause is not None:
                work.end(cause)
            elif reminding:
                work.remind(run)

    def remind_anew(self) -> None:
        """The deadlines are others now: what was said of the old ones counts no more."""
        for work in self.all:
            work.remind_anew()

    @property
    def waiting(self) -> Collection[int]:
        """Return the numbers of the steps that wait for the person or for a rate limit."""
        return {work.step.index for work in self.at_work if work.waits}

    def thresholds(self, index: int) -> Thresholds:
        """Return when to point at a step: one that thinks harder may be silent longer."""
        return self._services.plan.patience.thresholds(self.work(index).step.thinking)

    def cancel_tool(self, call_id: str) -> bool:
        """End one open tool call, whichever step made it."""
        return any(work.cancel_tool(call_id) for work in self.at_work)
