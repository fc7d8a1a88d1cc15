"""Whether an amount of money can be held: only where the price of every model is known."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from subagents_nb.domain.agents.models import ModelChoice
from subagents_nb.domain.plans.budgets import UsageBudget
from subagents_nb.domain.plans.plan import PlanItem, StepPlan, choices_of


class Planned(Protocol):
    """Anything with steps and the items over them: a draft, or what is appended."""

    @property
    def steps(self) -> Sequence[StepPlan]:
        """Return the steps."""
        ...

    @property
    def items(self) -> Sequence[PlanItem]:
        """Return the items over them."""
        ...


# It says itself what each request has cost.
_SAYS_ITSELF = frozenset({"openrouter"})


def price_problems(plan: Planned, budget: UsageBudget | None) -> tuple[str, ...]:
    """Return why a budget can't be kept by the models of a plan: it names money alone, and one has no known price."""
    if budget is None or budget.cost_usd is None or budget.tokens is not None:
        return ()
    unpriced = sorted({model.label for model in choices_of(plan.steps, plan.items) if not _has_price(model)})
    if not unpriced:
        return ()
    return (
        f"usage_budget: no price is known of {', '.join(unpriced)}, so ${budget.cost_usd.hard:g} would hold nothing; "
        "give an amount of tokens (200k), or both",
    )


def _has_price(model: ModelChoice) -> bool:
    if model.kind == "endpoint":
        return False  # a server of the person's own
    if model.kind != "provider" or model.provider in _SAYS_ITSELF:
        return True  # nothing is paid, or a script says what was
    from genai_prices import Usage, calc_price  # an import of its own weight, for those who ask for money

    try:
        calc_price(Usage(input_tokens=1, output_tokens=1), model_ref=model.name, provider_id=model.provider)
    except (LookupError, ValueError):
        return False
    return True
