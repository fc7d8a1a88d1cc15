"""How our lists and plans show themselves: one description for each kind."""

from __future__ import annotations

from subagents_nb.blocks import Child, Either
from subagents_nb.domain.agents.agent import AgentCatalog
from subagents_nb.launching import Preflight, ProjectTrust, Runs
from subagents_nb.notebook.cards.reused import would_find
from subagents_nb.notebook.cards.tables import agents_table, runs_table
from subagents_nb.notebook.cards.trust_card import trust_card
from subagents_nb.notebook.page.html import element, to_page
from subagents_nb.notebook.plans.plan_card import plan


def described(what: Runs | AgentCatalog | Preflight | ProjectTrust) -> Child:
    """Return what is shown of a list of runs, the agents, what a project brings, a plan or the reasons against it."""
    if isinstance(what, AgentCatalog):
        return agents_table(what)
    if isinstance(what, ProjectTrust):
        return trust_card(what)
    return runs_table(what.snapshots, hidden=what.hidden) if isinstance(what, Runs) else _preflight(what)


def listed_html(what: Runs | AgentCatalog | Preflight | ProjectTrust) -> str:
    """Return the same as HTML, for hosts that know nothing else."""
    return to_page(described(what))


def _preflight(preflight: Preflight) -> Child:
    if preflight.plan is not None:
        reuse_text = would_find(preflight)
        return (
            element("div", None, plan(preflight.plan), element("p", None, reuse_text))
            if reuse_text
            else plan(preflight.plan)
        )
    reasons = [element("li", None, Either(None, "- "), reason) for reason in preflight.reasons]
    return element("div", None, element("p", None, "It would not be launched:"), element("ul", None, *reasons))
