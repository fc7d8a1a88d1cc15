"""Find all agents a launch may name, and apply precedence: builtin < package < user < project < registered."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

from subagents_nb.catalog.agent_files import ReadQuota, builtin_agents, read_agent
from subagents_nb.catalog.scan import scan_path
from subagents_nb.catalog.scopes.packages import package_paths
from subagents_nb.catalog.search_paths import (
    Project,
    agent_search_paths,
    find_project,
    not_counted,
    settings_files,
    shown_folder,
)
from subagents_nb.catalog.trust import how_to_allow
from subagents_nb.catalog.trusting.agents_withheld import withheld
from subagents_nb.catalog.trusting.answers import WorkIn, trust_of
from subagents_nb.domain.agents.acting import Acting, Held
from subagents_nb.domain.agents.agent import AgentCatalog, AgentDefinition, AgentProblem, SearchedPlace

_Entry = AgentDefinition | AgentProblem
# An entry with the number of its place; a higher number has priority.
_Ranked = tuple[int, _Entry]


def discover(
    cwd: Path,
    *,
    home: Path | None = None,
    registered: Iterable[AgentDefinition] = (),
    work_in: WorkIn | None = None,
) -> AgentCatalog:
    """Return every usable agent, every file that is broken, and every place that was looked into.

    A broken file keeps agents of the same name and lower priority out of the catalog: a project that overrides `scout`
    and gets it wrong must not silently run another `scout`. Nothing about the files raises. `work_in` knows which runs
    could write into the project, for what they wrote is the person's to allow.
    """
    project = find_project(cwd, home=home)
    root = project.root
    shipped = builtin_agents()
    places = [SearchedPlace(where="builtin", source="builtin", state="read", candidates=len(shipped))]
    ranked: list[_Ranked] = [(0, agent) for agent in shipped]
    quotas: defaultdict[str, ReadQuota] = defaultdict(
        ReadQuota
    )  # one a package: a large one takes nothing from the others
    for rank, place in enumerate((*package_paths(), *agent_search_paths(root, home=home, cwd=cwd)), start=1):
        quota = quotas[place.where if place.source == "package" else place.source]
        scan = scan_path(place)
        places.append(scan.place)
        ranked.extend((rank, problem) for problem in scan.problems)
        for path, where in scan.files:
            entry = read_agent(path, where=where, source=place.source, root=place.root, quota=quota)
            if entry is not None:
                ranked.append((rank, entry))
    ranked.extend((len(places), as_registered(agent)) for agent in registered)
    acting: list[Acting] = []
    held: list[Held] = []
    if any(entry.source == "project" for _, entry in ranked):
        ranked = list(withheld(ranked, trust_of(root, home=home, work_in=work_in), acting, held))
    ranked += [(0, problem) for problem in _not_counted(project, cwd, home)]
    agents, shadowed = _winners(ranked)
    return AgentCatalog(
        agents=agents,
        problems=tuple(entry for _, entry in ranked if isinstance(entry, AgentProblem)),
        places=tuple(places),
        shadowed=shadowed,
        acting=tuple(acting),
        held=tuple(held),
        cwd=shown_folder(cwd.resolve(), home=home),
    )


def _not_counted(project: Project, cwd: Path, home: Path | None) -> Iterator[AgentProblem]:
    """Report what lies above the working directory and does not count, since others may write it."""
    for folder, others in project.left_out:
        shown = shown_folder(folder, home=home)
        error = f"agents and settings there do not count: {others}; {how_to_allow(shown)}"
        yield AgentProblem(where=Path(os.path.relpath(folder, cwd)).as_posix(), source="project", error=error)
    for place in settings_files(project.root, home=home, cwd=cwd):
        if place.guarded and (why := not_counted(place)) is not None:
            error = f"it does not count: {why}; {how_to_allow(shown_folder(project.root, home=home))}"
            yield AgentProblem(where=place.where, source="project", error=error)


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
