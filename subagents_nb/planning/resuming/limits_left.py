"""What is left of the limits of a run to the one that goes on from it."""

from __future__ import annotations

from typing import Any

from subagents_nb.domain.plans.budgets import UsageBudget, retuned_budget
from subagents_nb.domain.plans.plan import LaunchPlan, StepPlan
from subagents_nb.domain.plans.request import Revival
from subagents_nb.domain.plans.resumed import Taken
from subagents_nb.domain.runs.control import in_force
from subagents_nb.domain.runs.records import StepResult, StepStatus
from subagents_nb.domain.runs.snapshot import Snapshot
from subagents_nb.domain.tree.spent import Spent
from subagents_nb.domain.values.reasons import Reasons
from subagents_nb.domain.values.usage import Usage
from subagents_nb.domain.values.words import duration, parse_duration
from subagents_nb.planning.budget_parser import plan_usage_budget


class LimitsLeft:
    """Limits as they were in force at the end, retuned ones too: what is left of them, unless new ones are asked for.

    That nothing is left is added to the reasons.
    """

    def __init__(
        self, revival: Revival, plan: LaunchPlan, snapshot: Snapshot, reasons: Reasons, *, spent: Spent
    ) -> None:
        self._revival = revival
        self._plan = plan
        self._snapshot = snapshot
        self._spent = spent  # by all of the tree that it belongs to, and by whoever went on from it
        self._reasons = reasons
        self._asked_s = self._read_time()
        self.retuned = in_force(snapshot.retunes)

    def of_run(self, *, alone: StepPlan | None = None) -> dict[str, Any]:
        """Return those of the new run; `alone` is the one step that goes on by itself."""
        return {"timeout_s": self._time(alone), "usage_budget": self._budget(single=alone is not None)}

    def of_only_step(self, step: StepPlan) -> dict[str, Any]:
        """Return those of a step that goes on by itself; its deadline is the run's."""
        tool_timeout_s = self.retuned.tool_timeout_s or step.tool_timeout_s
        return {"max_requests": self._requests(step), "timeout_s": None, "tool_timeout_s": tool_timeout_s}

    def of_steps_to_come(self) -> dict[str, Any]:
        """Return what is new for the steps of a chain that begin only now."""
        new = {
            "max_requests": self._revival.max_requests or self.retuned.max_requests,
            "tool_timeout_s": self.retuned.tool_timeout_s,
        }
        return {name: value for name, value in new.items() if value is not None}

    def of_step(self, taken: Taken, step: StepPlan, had: Taken | None, outcome: StepResult | StepStatus) -> Taken:
        """Return a step of a chain that goes on, with what is left to it of its own; `had` is what was left before."""
        allowed = self.retuned.max_requests or (had and had.max_requests) or step.max_requests
        requests = self._revival.max_requests or allowed - outcome.usage.requests
        if requests <= 0:
            self._reasons.append(
                f"all {allowed} requests of steps[{taken.step}] are used; give it more with max_requests"
            )
        limit = (had and had.timeout_s) or step.timeout_s
        if limit is None:
            return taken.model_copy(update={"max_requests": requests})
        limit = max(limit, self.retuned.timeout_s or 0.0)
        time = max(limit - _worked(outcome), self._asked_s or float("-inf"))
        if time <= 0:
            self._used_up(limit, f"steps[{taken.step}]")
        return taken.model_copy(update={"max_requests": requests, "timeout_s": time})

    def _read_time(self) -> float | None:
        try:
            return None if self._revival.timeout is None else parse_duration(self._revival.timeout)
        except ValueError as error:
            self._reasons.append(f"timeout: {error}")
            return None

    def _time(self, alone: StepPlan | None) -> float | None:
        """Return what is left of the run's deadline; of one without, that of the one step that goes on."""
        deadline = self.retuned.timeout_s or self._plan.timeout_s
        if self._revival.timeout is not None or deadline is None:
            return self._asked_s if alone is None else self._asked_s or alone.timeout_s
        seconds = deadline - self._snapshot.elapsed_s
        if seconds <= 0:
            self._used_up(deadline, self._plan.name)
        return seconds

    def _used_up(self, limit: float, what: str) -> None:
        self._reasons.append(f"the {duration(limit)} of {what} are used up; give it more with --timeout")

    def _no_requests(self, allowed: int, what: str) -> None:
        self._reasons.append(f"all {allowed} requests of {what} are used; give it more with max_requests")

    def _requests(self, step: StepPlan) -> int:
        asked = self._revival.max_requests
        if asked is not None and asked < 1:
            self._reasons.append(f"max_requests is {asked}; a step needs at least 1")
            return 1
        allowed = self.retuned.max_requests or step.max_requests
        used = next((one.usage for one in self._snapshot.steps if one.index == step.index), Usage())
        requests = asked or allowed - used.requests
        if requests <= 0:
            self._no_requests(allowed, self._plan.name)
        return requests

    def _budget(self, *, single: bool) -> UsageBudget | None:
        plan = self._plan
        if self._revival.usage_budget is not None:
            return plan_usage_budget(self._revival.usage_budget, self._reasons, single=single)
        budget = retuned_budget(plan.usage_budget, tokens=self.retuned.tokens, cost_usd=self.retuned.cost_usd)
        if budget is None:
            return None
        # Of a tree whose root was deleted only the run itself is known.
        used = max(self._spent.usage, self._snapshot.usage_of_all, key=lambda one: one.input_tokens + one.output_tokens)
        if budget.judge(used) == "hard-reached":
            self._reasons.append(
                f"the usage budget of {plan.name} is used up: {budget.words(used)}; give it more with --usage-budget"
            )
            return None
        rest = budget.less(used)
        # Of a chain it kept later steps from starting; here there is none.
        return rest.model_copy(update={"stop_running": True}) if plan.is_flow and single else rest


def _worked(outcome: StepResult | StepStatus) -> float:
    if outcome.started_s is None:
        return 0.0
    return max(0.0, (outcome.ended_s or outcome.started_s) - outcome.started_s)
