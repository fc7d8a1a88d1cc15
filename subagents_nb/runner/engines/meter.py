"""Count the tool calls of one step against its budget: a reminder once, then refusals. The answer is never refused."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from subagents_nb.domain.agents.agent import KNOWN_TOOLS
from subagents_nb.domain.plans.budgets import ToolBudget
from subagents_nb.domain.runs.events import EngineEvent, Noticed


class ToolMeter:
    """The tool budget of one step; without a budget it allows everything. Calls count from when they are announced."""

    def __init__(self, budget: ToolBudget | None, report: Callable[[EngineEvent], None]) -> None:
        self._budget = budget
        self._report = report
        self._count = 0
        self._open: dict[str, int] = {}  # which call it is, from 1; ids may come again once a call is over
        self._reminder: str | None = None
        self._reminded = self._refused = False

    def announce(self, call_id: str) -> int:
        """Count a call, once however often it is announced while it is open, and return which call it is."""
        if call_id not in self._open:
            self._count += 1
            self._open[call_id] = self._count
            self._look()
        return self._open[call_id]

    def forget(self, call_id: str) -> None:
        """Take note that a call is over."""
        self._open.pop(call_id, None)

    def refusal(self, call_id: str, tool: str) -> str | None:
        """Return why this call is refused; None if it may be made."""
        budget, number = self._budget, self.announce(call_id)
        if budget is None or number <= budget.hard or not budget.blocks(tool):
            return None
        blocked = "no tool" if "*" in budget.block else f"none of {', '.join(_ordered(budget.block))}"
        if not self._refused:
            self._refused = True
            text = f"The step made {_calls(budget.hard)}, its budget; {blocked} may be called any more."
            self._report(Noticed("tool-budget", text))
        return f"this step may make {_calls(budget.hard)}, and {blocked} may be called any more; answer now"

    def reminders(self) -> Sequence[str]:
        """Take what the model is to be told before its next request: at most one thing, once."""
        reminder, self._reminder = self._reminder, None
        return () if reminder is None else (reminder,)

    def _look(self) -> None:
        budget = self._budget
        if budget is None or budget.soft is None or self._reminded or self._count < budget.soft:
            return
        self._reminded = True
        self._report(Noticed("tool-budget", f"The step made {self._count} of the {_calls(budget.hard)} it may make."))
        self._reminder = (
            f"You have made {self._count} of the {_calls(budget.hard)} that you may make. Finish what you are looking "
            "for and answer soon."
        )


def _ordered(tools: Sequence[str]) -> list[str]:
    return [tool for tool in KNOWN_TOOLS if tool in tools]


def _calls(number: int) -> str:
    return f"{number} tool call{'' if number == 1 else 's'}"
