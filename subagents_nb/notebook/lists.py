"""How our lists and plans show themselves: one function for each kind and form."""

from __future__ import annotations

from subagents_nb.domain.agent import AgentCatalog
from subagents_nb.launching import Preflight, Runs
from subagents_nb.notebook.html import element
from subagents_nb.notebook.plan_card import plan_html, plan_text
from subagents_nb.notebook.reused import would_find
from subagents_nb.notebook.tables import agents_table_html, agents_table_text, runs_table_html, runs_table_text


def runs_html(runs: Runs) -> str:
    """Return a table of runs as HTML."""
    return runs_table_html(runs.snapshots, hidden=runs.hidden)


def runs_text(runs: Runs) -> str:
    """Return a table of runs as text."""
    return runs_table_text(runs.snapshots, hidden=runs.hidden)


def agents_html(catalog: AgentCatalog) -> str:
    """Return a table of agents as HTML."""
    return agents_table_html(catalog)


def agents_text(catalog: AgentCatalog) -> str:
    """Return a table of agents as text."""
    return agents_table_text(catalog)


def preflight_html(preflight: Preflight) -> str:
    """Return a plan, or the reasons against it, as HTML."""
    if preflight.plan is not None:
        plan, said = plan_html(preflight.plan), would_find(preflight)
        return element("div", None, plan, element("p", None, said)) if said else plan
    reasons = [element("li", None, reason) for reason in preflight.reasons]
    return element("div", None, element("p", None, "It would not be launched:"), element("ul", None, *reasons))


def preflight_text(preflight: Preflight) -> str:
    """Return a plan, or the reasons against it, as text."""
    if preflight.plan is not None:
        return "\n".join(filter(None, [plan_text(preflight.plan), would_find(preflight)]))
    return "It would not be launched:\n" + "\n".join(f"  - {reason}" for reason in preflight.reasons)
