"""The limits in force: as planned, until somebody retunes the live run."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import NamedTuple

from subagents_nb.domain.plans.budgets import BudgetState, UsageBudget, retuned_budget
from subagents_nb.domain.plans.plan import LaunchPlan, StepPlan
from subagents_nb.domain.runs.control import Retune
from subagents_nb.domain.values.usage import Usage


class TimeLeft(NamedTuple):
    """How much of a deadline is left, and how much it was in all."""

    left_s: float
    of_s: float


class LiveLimits:
    """The limits of a run, which may change while it works. What was retuned holds for all its steps."""

    def __init__(self, plan: LaunchPlan, usage: Callable[[], Usage]) -> None:
        self._plan = plan
        self._own = usage
        self._in_tree: Callable[[Usage, bool], Usage] | None = None
        self._together: Callable[[], str | None] = lambda: None
        self._guard = threading.Lock()
        self._retuned = Retune()

    def share(self, in_tree: Callable[[Usage, bool], Usage]) -> None:
        """Have one budget with the other runs of a tree: `in_tree` adds what they used, as of now if that is said."""
        self._in_tree = in_tree

    def hold_together(self, over: Callable[[], str | None]) -> None:
        """Hold a budget with other runs too: `over` says what was used of it once nothing is left, as of now."""
        self._together = over

    def time_left(self, worked_s: float) -> TimeLeft | None:
        """Return what is left of the run's deadline after so much work; None without one."""
        limit = self.retuned.timeout_s or self._plan.timeout_s
        return None if limit is None else TimeLeft(limit - worked_s, limit)

    @property
    def retuned(self) -> Retune:
        """Return what was changed, all changes together."""
        with self._guard:
            return self._retuned

    def retune(self, change: Retune) -> None:
        """Put new limits into force."""
        with self._guard:
            self._retuned = self._retuned.model_copy(update=change.model_dump(exclude_none=True))

    @property
    def max_parallel(self) -> int:
        """Return how many steps may be at work at a time."""
        return self.retuned.concurrency or self._plan.max_parallel

    def concurrency(self, planned: int) -> int:
        """Return how many steps of a group with this concurrency may be at work at a time."""
        return self.retuned.concurrency or planned

    # --- the usage budget ---

    @property
    def budget(self) -> UsageBudget | None:
        """Return the usage budget in force."""
        retuned = self.retuned
        return retuned_budget(self._plan.usage_budget, tokens=retuned.tokens, cost_usd=retuned.cost_usd)

    def _usage(self) -> Usage:
        return self._own() if self._in_tree is None else self._in_tree(self._own(), True)

    @property
    def used(self) -> Usage:
        """Return what is held against the budget, for those who show it: of the other runs as it was a moment ago."""
        return self._own() if self._in_tree is None else self._in_tree(self._own(), False)

    def spent(self) -> BudgetState | None:
        """Return how far the usage has come; None without a budget."""
        budget = self.budget
        return None if budget is None else budget.judge(self._usage())

    def may_start(self) -> bool:
        """Say whether another step may start."""
        return self.spent() != "hard-reached" and self._together() is None

    def over_budget(self) -> str | None:
        """Return what was used and what to do, if a step that is at work may make no further request; else None."""
        budget = self.budget
        if budget is not None and budget.stop_running and budget.judge(used := self._usage()) == "hard-reached":
            return f"{budget.words(used)}. Give it more with --usage-budget."
        return self._together()


class StepLimits:
    """The limits of one step, by its plan and by what was retuned since."""

    def __init__(self, run: LiveLimits, step: StepPlan) -> None:
        self._run = run
        self._step = step

    def time_left(self, worked_s: float) -> TimeLeft | None:
        """Return what is left of the step's own deadline; a longer one given to the live run lifts it too."""
        own = self._step.timeout_s
        limit = own and max(own, self._run.retuned.timeout_s or 0.0)
        return None if limit is None else TimeLeft(limit - worked_s, limit)

    @property
    def max_requests(self) -> int:
        """Return how many requests the step may make."""
        return self._run.retuned.max_requests or self._step.max_requests

    @property
    def tool_timeout_s(self) -> float | None:
        """Return how long one tool call may take."""
        return self._run.retuned.tool_timeout_s or self._step.tool_timeout_s

    def over_budget(self) -> str | None:
        """Return what was used of the run's usage budget, if that allows no further request; else None."""
        return self._run.over_budget()
