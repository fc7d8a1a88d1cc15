"""Which limits a step's tools and requests have, and how a limit that was reached is said."""

from __future__ import annotations

from subagents_nb.domain.agents.agent import ASK_TOOLS, DELEGATE, REPLY
from subagents_nb.domain.policy.tool_names import MCP
from subagents_nb.domain.runs.events import StepFailed
from subagents_nb.domain.values.words import duration
from subagents_nb.runner.engines.engine import Limits

FILE_SECONDS = 300.0
CELL_SECONDS = 120.0
LONGEST_CELL_S = 3600.0


def limit_of(tool: str, given: float | None) -> float | None:
    """Return how long one call may take: what was given for all tools, else five minutes for those that touch files.

    A command's usual limit is its own affair, since it does not end the run; and a person may take any time to answer.
    """
    # A cell of python is interrupted at the limit, and the run goes on; a child has a deadline of its own.
    # So has a server's tool, which may ask the person meanwhile.
    if tool in ASK_TOOLS or tool in ("python", DELEGATE, REPLY) or tool.startswith(MCP):
        return None
    return given if given is not None or tool == "bash" else FILE_SECONDS


def cell_seconds(asked: float | None, given: float | None) -> float:
    """Return when a cell of Python is interrupted: as the model asked, within what was given for all tools."""
    longest = LONGEST_CELL_S if given is None else given
    return max(0.1, min(asked if asked is not None else (CELL_SECONDS if given is None else given), longest))


def past_limit(tool: str, seconds: float) -> StepFailed:
    """Return the failure of a step whose tool passed its limit."""
    text = f"The tool {tool} passed its limit of {duration(seconds)} and was ended. Raise it with --tool-timeout."
    return StepFailed("timeout", text)


def out_of_requests(limit: int) -> StepFailed:
    """Return the failure of a step that may make no further request."""
    return StepFailed(
        "budget",
        f"The step used up its limit of {limit} model requests without an answer. "
        "Raise max_requests in the agent file or in the settings.",
    )


def may_not_ask(limits: Limits) -> StepFailed:
    """Return the failure of a step that may make no further request: of its own limit, or of the run's budget."""
    spent = limits.over_budget()
    if spent is None:
        return out_of_requests(limits.max_requests)
    return StepFailed("budget", f"The usage budget is used up: {spent}")
