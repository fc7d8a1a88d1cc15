"""Which agents of a project can act, and which of them are kept out: they would stand in for one the person knows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from subagents_nb.domain.agents.acting import LOOK, Acting, Held, Trust
from subagents_nb.domain.agents.agent import ALL_AGENTS, AgentDefinition, AgentProblem, AgentSource

_Entry = AgentDefinition | AgentProblem
_Ranked = tuple[int, _Entry]  # a higher number has priority
_WHOSE: dict[AgentSource, str] = {"builtin": "built in", "package": "of an installed package", "user": "your own"}


def withheld(ranked: Iterable[_Ranked], trust: Trust, acting: list[Acting], held: list[Held]) -> Iterator[_Ranked]:
    """Put a problem in the place of each file of a project that would stand in for an agent the person knows.

    A built-in name is never taken, a name of the person's own files not by an agent that acts. It blocks nothing: who
    never allowed it means the agent they know. Once it was allowed, another content keeps its place, and is not
    launched. What acts is noted, with what of it may not yet.
    """
    ranked = list(ranked)
    acts = _acting_names([entry for _, entry in ranked if isinstance(entry, AgentDefinition)])
    known: dict[str, str] = {}
    for rank, entry in ranked:
        if isinstance(entry, AgentDefinition) and (whose := _WHOSE.get(entry.source)):
            for name in (entry.name, *(entry.aliases if entry.source == "builtin" else ())):
                known.setdefault(name, whose)
        if entry.source != "project" or entry.name is None:
            yield rank, entry
            continue
        mine = known.get(entry.name, "")
        why = f"it takes the name of the agent {entry.name!r} that is {mine}"
        if isinstance(entry, AgentProblem):
            taken = Acting(kind="agent", name=entry.name, files={entry.where: ""})
            takes = mine == "built in" and not trust.by_folder and taken.key not in trust.answer.contents
            yield rank, _kept_out(entry, entry.name, f"{why}, and is broken") if takes else entry
            continue
        item = _acting(entry, mine, acts)
        agent_held = None
        if item is not None:
            acting.append(item)
            agent_held = trust.held(item)
        if agent_held is not None:
            held.append(agent_held)
            if mine and not agent_held.known:
                yield rank, _kept_out(entry, entry.name, f"{why}; look at it with {LOOK}, which allows it")
                continue
        yield rank, entry


def _acting(agent: AgentDefinition, mine: str, acts: frozenset[str]) -> Acting | None:
    """Return an agent of a project as something that can act: by itself, by whom it starts or by its name; or None."""
    does = agent.reaches
    if through := _through(agent, acts):
        does = (*does, through)
    if mine == "built in" or (mine and does):
        does = (*does, f"takes the name of the one that is {mine}")
    if not does:
        return None
    return Acting(kind="agent", name=agent.name, does=does, files={agent.where: agent.content_sha256})


def _acting_names(agents: Sequence[AgentDefinition]) -> frozenset[str]:
    """Return the names of agents that act, by themselves or by others that they start; `*` if any does."""
    acts = {name for agent in agents if agent.acts_by for name in (agent.name, *agent.aliases)}
    acts |= {ALL_AGENTS} if acts else set()
    undecided = [agent for agent in agents if _starts(agent)]
    while acting := [agent for agent in undecided if acts.intersection(_starts(agent))]:
        acts.update(name for agent in acting for name in (agent.name, *agent.aliases))
        undecided = [agent for agent in undecided if agent not in acting]
    return frozenset(acts)


def _starts(agent: AgentDefinition) -> tuple[str, ...]:
    """Return whom an agent's file has at work for it: those it delegates to, and who reviews it."""
    return (*(agent.agents or ()), *agent.reviewers)


def how_it_acts(agent: AgentDefinition, agents: Sequence[AgentDefinition]) -> str:
    """Return how an agent acts, by itself or by others, in words; empty if it does not."""
    has = f"has {', '.join(agent.acts_by)}" if agent.acts_by else ""
    through = _through(agent, _acting_names(agents))
    return " and ".join(filter(None, (has, through)))


def _through(agent: AgentDefinition, acts: frozenset[str]) -> str:
    names = ["anybody" if name == ALL_AGENTS else name for name in _starts(agent) if name in acts]
    return f"starts {', '.join(names)}" if names else ""


def _kept_out(entry: _Entry, name: str, why: str) -> AgentProblem:
    return AgentProblem(where=entry.where, source="project", error=f"not used: {why}", withheld=name)
