"""Find all agents a launch may name, and apply precedence: builtin < package < user < project < registered."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

from subagents_nb.catalog.agent_files import Room, builtin_agents, read_agent
from subagents_nb.catalog.scan import scan_place
from subagents_nb.catalog.scopes.packages import package_places
from subagents_nb.catalog.search_paths import (
    Project,
    agent_places,
    find_project,
    not_counted,
    settings_files,
    shown_folder,
)
from subagents_nb.catalog.trust import how_to_allow
from subagents_nb.catalog.trusting.answers import WorkIn, trust_of
from subagents_nb.domain.agents.acting import LOOK, Acting, Held, Trust
from subagents_nb.domain.agents.agent import AgentCatalog, AgentDefinition, AgentProblem, AgentSource, SearchedPlace

_Entry = AgentDefinition | AgentProblem
_WHOSE: dict[AgentSource, str] = {"builtin": "built in", "package": "of an installed package", "user": "your own"}
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
    rooms: defaultdict[str, Room] = defaultdict(Room)  # one a package: a large one takes nothing from the others
    for rank, place in enumerate((*package_places(), *agent_places(root, home=home, cwd=cwd)), start=1):
        room = rooms[place.where if place.source == "package" else place.source]
        scan = scan_place(place)
        places.append(scan.place)
        ranked.extend((rank, problem) for problem in scan.problems)
        for path, where in scan.files:
            entry = read_agent(path, where=where, source=place.source, root=place.root, room=room)
            if entry is not None:
                ranked.append((rank, entry))
    ranked.extend((len(places), as_registered(agent)) for agent in registered)
    acting: list[Acting] = []
    held: list[Held] = []
    if any(entry.source == "project" for _, entry in ranked):
        ranked = list(_withheld(ranked, trust_of(root, home=home, work_in=work_in), acting, held))
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


def _withheld(ranked: Iterable[_Ranked], trust: Trust, acting: list[Acting], held: list[Held]) -> Iterator[_Ranked]:
    """Put a problem in the place of each file of a project that would stand in for an agent the person knows.

    A built-in name is never taken, a name of the person's own files not by an agent that acts. It blocks nothing: who
    never allowed it means the agent they know. Once it was allowed, another content keeps its place, and is not
    launched. What acts is noted, with what of it may not yet.
    """
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
        item = _acting(entry, mine)
        found = None
        if item is not None:
            acting.append(item)
            found = trust.held(item)
        if found is not None:
            held.append(found)
            if mine and not found.known and (mine == "built in" or entry.acts_by):
                yield rank, _kept_out(entry, entry.name, f"{why}; look at it with {LOOK}, which allows it")
                continue
        yield rank, entry


def _acting(agent: AgentDefinition, mine: str) -> Acting | None:
    """Return an agent of a project as something that can act, by its tools or by its name; None if it can't."""
    does = agent.acts_by
    if mine == "built in" or (mine and does):
        does = (*does, f"takes the name of the one that is {mine}")
    if not does:
        return None
    return Acting(kind="agent", name=agent.name, does=does, files={agent.where: agent.content_sha256})


def _kept_out(entry: _Entry, name: str, why: str) -> AgentProblem:
    return AgentProblem(where=entry.where, source="project", error=f"not used: {why}", withheld=name)


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
