"""A name -> the one agent it means, or an error that holds all there is to know. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from subagents_nb.domain.agents.agent import AgentCatalog, AgentDefinition, AgentProblem, SearchedPlace
from subagents_nb.domain.values.faults import shown, similar
from subagents_nb.errors import RequestError


class UnknownAgent(RequestError):
    """No agent has this name or alias."""


class AmbiguousAgent(RequestError):
    """Several agents answer to this name or alias."""


class BrokenAgent(RequestError):
    """The file that defines this agent can't be used, and nothing of lower priority takes its place."""


def resolve(name: str, catalog: AgentCatalog) -> AgentDefinition:
    """Return the agent that `name` means: by its name, else by an alias. Upper and lower case differ.

    Raises:
        BrokenAgent: the definition with the highest priority is broken.
        AmbiguousAgent: several agents have this alias.
        UnknownAgent: none has it; the message lists where we looked and what there is.
    """
    named = [agent for agent in catalog.agents if agent.name == name]
    if named:
        return _only(name, named, "name")
    broken = [problem for problem in catalog.problems if problem.name == name]
    if broken:
        raise BrokenAgent(_broken_text(name, broken[-1], catalog))
    aliased = [agent for agent in catalog.agents if name in agent.aliases]
    if aliased:
        return _only(name, aliased, "alias")
    raise UnknownAgent("\n".join(_unknown_lines(name, catalog)))


def _only(name: str, agents: list[AgentDefinition], what: str) -> AgentDefinition:
    if len(agents) == 1:
        return agents[0]
    listed = "\n".join(f"  {agent.name} ({agent.source}, {agent.where})" for agent in agents)
    raise AmbiguousAgent(f"The {what} {shown(name)} fits {len(agents)} agents; use the name of one:\n{listed}")


def _broken_text(name: str, problem: AgentProblem, catalog: AgentCatalog) -> str:
    text = f"Agent {shown(name)} can't be used: {problem.where} ({problem.source}): {problem.error}"
    label = f"{problem.source}:{problem.name}"
    behind = [lower for winner, lower in catalog.shadowed if winner in {label, f"{label} ({problem.where})"}]
    if behind:
        text += f"\nIt has priority over {', '.join(dict.fromkeys(behind))}. Mend or remove that file."
    return text


def _unknown_lines(name: str, catalog: AgentCatalog) -> Iterator[str]:
    near = near_names(name, catalog)
    hint = f" Did you mean {' or '.join(shown(other) for other in near)}?" if near else ""
    yield f"No agent is named {shown(name)}.{hint}"
    yield f"Working directory: {catalog.cwd}"
    yield "Looked in:"
    for place in catalog.places:
        if place.state != "absent":
            yield f"  {place.where} ({place.source}): {_state(place)}"
    absent = [place.where for place in catalog.places if place.state == "absent"]
    if absent:
        yield f"  absent: {', '.join(absent)}"
    agents = sorted(catalog.agents, key=lambda agent: agent.name)
    yield "Agents: " + (", ".join(f"{agent.name} ({agent.source})" for agent in agents) or "none")
    if catalog.problems:
        yield "Could not be used:"
        for problem in catalog.problems:
            yield f"  {problem.where} ({problem.source}): {problem.error}"


def near_names(name: str, catalog: AgentCatalog) -> tuple[str, ...]:
    """Return the one name that differs in case only, else up to three that look alike."""
    names = {word for agent in catalog.agents for word in (agent.name, *agent.aliases)}
    same = [word for word in names if word.casefold() == name.casefold()]
    if len(same) == 1:
        return (same[0],)
    return similar(name, names)


def _state(place: SearchedPlace) -> str:
    if place.state == "read":
        return f"{place.candidates} candidate{'' if place.candidates == 1 else 's'}"
    return "present but empty" if place.state == "empty" else place.state
