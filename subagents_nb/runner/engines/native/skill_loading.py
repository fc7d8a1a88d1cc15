"""Skills for a model: a line for each, and its text when the model asks for it by `load_capability`.

The capabilities are made here and not by the harness's `Skills`, which reads the folders once more by rules of its own:
it takes other skills than those that were checked, and leaves line ends in descriptions, each of which begins an entry
of the list.
"""

from __future__ import annotations

from collections.abc import Sequence

from pydantic_ai.capabilities import Capability

from subagents_nb.domain.plans.plan import StepPlan
from subagents_nb.runner.engines.engine import StepContext
from subagents_nb.runner.engines.skill_texts import skill_text
from subagents_nb.runner.engines.tools.tools import ToolContext


def skill_capabilities(step: StepPlan, context: StepContext) -> Sequence[Capability[ToolContext]]:
    """Return a capability for each skill of a step."""
    return [
        Capability[ToolContext](
            id=record.name,
            description=record.description,
            instructions=skill_text(record, context),
            defer_loading=True,
        )
        for record in step.skills
    ]
