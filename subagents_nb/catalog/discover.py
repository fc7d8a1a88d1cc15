"""Find all agents a launch may name, and apply precedence: builtin < user < project < registered."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from subagents_nb.catalog.files import builtin_agents, read_agent
from subagents_nb.catalog.places import agent_places, project_root, shown_folder
from subagents_nb.catalog.scan import scan_place
from subagents_nb.domain.agent import AgentCatalog, AgentDefinition, AgentProblem, SearchedPlace

_Entry = AgentDefinition | AgentProblem
# An entry with the number of its place; a higher number has priority.
_Ranked = tuple[int, _Entry]


def discover(cwd: Path, *, home: Path | None = None, registered: Iterable[AgentDefinition] = ()) -> AgentCatalog:
    """Return every usable agent, every file that is broken, and every place that was looked into.

    A broken file keeps agents of the same name and lower priority out of the catalog: a project that overrides `scout`
    and gets it wrong must not silently run another `scout`. Nothing about the files raises.
    """
    root = project_root(cwd, home=home)
    shipped = builtin_agents()
    places = [SearchedPlace(where="builtin", source="builtin", state="read", candidates=len(shipped))]
    ranked: list[_Ranked] = [(0, agent) for agent in shipped]
    for rank, place in enumerate(agent_places(root, home=home), start=1):
        scan = scan_place(place)
        places.append(scan.place)
        ranked.extend((rank, problem) for problem in scan.problems)
        for path, where in scan.files:
            entry = read_agent(path, where=where, source=place.source)
            if entry is not None:
                ranked.append((rank, entry))
    ranked.extend((len(places), as_registered(agent)) for agent in registered)
    agents, shadowed = _winners(ranked)
    return AgentCatalog(
        agents=agents,
        problems=tuple(entry for _, entry in ranked if isinstance(entry, AgentProblem)),
        places=tuple(places),
        shadowed=shadowed,
        cwd=shown_folder(cwd.resolve(), home=home),
    )


def as_registered(agent: AgentDefinition) -> AgentDefinition:
    """Say of a definition that it came from this process and from no file."""
    return agent.model_copy(update={"source": "registered", "where": "registered"})


def _winners(ranked: Iterable[_Ranked]) -> tuple[tuple[AgentDefinition, ...], tuple[tuple[str, str], ...]]:
    """Choose one definition a name, the last of the highest rank; return the pairs it stands before, too."""
    by_name: defaultdict[str, list[_Ranked]] = defaultdict(list)
    for rank, entry in ranked:
        if entry.name is not None:
            by_name[entry.name].append((rank, entry))
    agents: list[AgentDefinition] = []
    shadowed: list[tuple[str, str]] = []
    for _, entries in sorted(by_name.items()):
        valid = [(rank, entry) for rank, entry in entries if isinstance(entry, AgentDefinition)]
        if not valid:
            continue
        best_rank, best = valid[-1]
        broken = [entry for rank, entry in entries if isinstance(entry, AgentProblem) and rank > best_rank]
        if broken:
            shadowed.extend(_pair(broken[-1], lower) for _, lower in valid)
        else:
            agents.append(best)
            shadowed.extend(_pair(best, lower) for _, lower in valid[:-1])
    return tuple(agents), tuple(shadowed)


def _pair(winner: _Entry, loser: _Entry) -> tuple[str, str]:
    """Write `source:name`, with the file where the source alone can't tell them apart."""
    labels = [f"{entry.source}:{entry.name}" for entry in (winner, loser)]
    if winner.source == loser.source:
        labels = [f"{label} ({entry.where})" for label, entry in zip(labels, (winner, loser), strict=True)]
    return labels[0], labels[1]
