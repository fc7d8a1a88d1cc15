from __future__ import annotations

import itertools
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from subagents_nb.catalog import discover
from subagents_nb.catalog.agent_files import builtin_agents
from subagents_nb.domain.agents.agent import AgentCatalog, AgentDefinition

Write = Callable[..., Path]


FOLDERS = (".agents", ".pi/agents", ".claude/agents", ".subagents/agents")
BUILTIN = [agent.name for agent in builtin_agents() if agent.name is not None]


def one(catalog: AgentCatalog, name: str) -> AgentDefinition:
    (agent,) = [agent for agent in catalog.agents if agent.name == name]
    return agent


def test_an_empty_machine_has_the_builtin_agents(project: Path, home: Path) -> None:
    catalog = discover(project, home=home)
    assert [agent.name for agent in catalog.agents] == BUILTIN
    assert [agent.where for agent in catalog.agents] == [f"builtin/{name}.md" for name in BUILTIN]
    assert (catalog.problems, catalog.shadowed) == ((), ())
    assert (catalog.places[0].where, catalog.places[0].candidates) == ("builtin", len(BUILTIN))
    assert {place.state for place in catalog.places[1:]} == {"absent"}


# Every place from the lowest to the highest priority; `~` is the home folder, `.` the project.
PLACES = [f"~/{name}" for name in FOLDERS] + list(FOLDERS)


@pytest.mark.parametrize(("lower", "higher"), list(itertools.combinations(PLACES, 2)))
def test_the_later_place_wins(project: Path, home: Path, write_agent: Write, lower: str, higher: str) -> None:
    for where in (lower, higher):
        base = home if where.startswith("~") else project
        write_agent(base / where.removeprefix("~/") / "x.md", "mine", description=f"from {where}")
    catalog = discover(project, home=home)
    winner = one(catalog, "mine")
    assert (winner.description, winner.where) == (f"from {higher}", f"{higher}/x.md")
    assert winner.source == ("user" if higher.startswith("~") else "project")


@pytest.mark.usefixtures("trusted")
def test_each_scope_shadows_the_one_below_and_says_so(project: Path, home: Path, write_agent: Write) -> None:
    write_agent(home / ".claude/agents/scout.md", "scout")
    write_agent(project / ".agents/scout.md", "scout")
    write_agent(project / ".claude/agents/scout.md", "scout")
    registered = AgentDefinition(name="scout", description="in process", where="/abs/olute", source="user")
    catalog = discover(project, home=home, registered=[registered])
    assert (one(catalog, "scout").source, one(catalog, "scout").where) == ("registered", "registered")
    assert catalog.shadowed == (
        ("registered:scout", "builtin:scout"),
        ("registered:scout", "user:scout"),
        ("registered:scout", "project:scout"),
        ("registered:scout", "project:scout"),
    )
    assert ("project:scout (.claude/agents/scout.md)", "project:scout (.agents/scout.md)") in discover(
        project, home=home
    ).shadowed


def test_two_files_of_one_place_are_ordered_by_their_names(project: Path, home: Path, write_agent: Write) -> None:
    write_agent(project / ".agents/b.md", "mine", description="second")
    write_agent(project / ".agents/a.md", "mine", description="first")
    assert one(discover(project, home=home), "mine").description == "second"


@pytest.mark.usefixtures("trusted")
def test_a_broken_file_blocks_its_name_below_and_not_above(project: Path, home: Path, write_agent: Write) -> None:
    write_agent(home / ".agents/scout.md", "scout", "thinking: huge")
    catalog = discover(project, home=home)
    assert [agent.name for agent in catalog.agents] == [name for name in BUILTIN if name != "scout"]
    assert [(problem.name, problem.where) for problem in catalog.problems] == [("scout", "~/.agents/scout.md")]
    assert catalog.shadowed == (("user:scout", "builtin:scout"),)

    write_agent(project / ".agents/scout.md", "scout")
    catalog = discover(project, home=home)
    assert one(catalog, "scout").source == "project"
    assert len(catalog.problems) == 1


def test_a_broken_file_beside_a_valid_one_blocks_nothing(project: Path, home: Path, write_agent: Write) -> None:
    write_agent(project / ".agents/a.md", "mine")
    write_agent(project / ".agents/b.md", "mine", "thinking: huge")
    assert one(discover(project, home=home), "mine").where == ".agents/a.md"


def test_a_hostile_name_in_a_project_blocks_nothing(project: Path, home: Path, write_agent: Write) -> None:
    write_agent(project / ".agents/a.md", "../scout")
    catalog = discover(project, home=home)
    assert [agent.name for agent in catalog.agents] == BUILTIN
    assert [problem.name for problem in catalog.problems] == [None]


def test_files_that_are_no_agents_leave_no_trace_but_the_count(project: Path, home: Path) -> None:
    (project / ".agents").mkdir()
    (project / ".agents/README.md").write_text("# Our agents")
    (project / ".agents/latin.md").write_bytes(b"# caf\xe9")
    catalog = discover(project, home=home)
    assert catalog.problems == ()
    assert [place.candidates for place in catalog.places if place.where == ".agents"] == [2]


def test_an_agent_that_is_not_utf8_is_a_problem(project: Path, home: Path) -> None:
    (project / ".agents").mkdir()
    (project / ".agents/x.md").write_bytes(b"---\nname: clerk\ndescription: caf\xe9\n---\n")
    (problem,) = discover(project, home=home).problems
    assert (problem.name, problem.error) == ("clerk", "the file is not UTF-8 (byte 33)")


def test_a_changed_file_is_read_again_and_an_unchanged_one_is_not(
    project: Path, home: Path, write_agent: Write
) -> None:
    path = write_agent(project / ".agents/x.md", "mine", description="old")
    first = one(discover(project, home=home), "mine")
    assert one(discover(project, home=home), "mine") is first
    write_agent(path, "mine", description="new")
    os.utime(path, ns=(1, 1))
    assert one(discover(project, home=home), "mine").description == "new"
    path.unlink()
    assert [agent.name for agent in discover(project, home=home).agents] == BUILTIN


def test_nothing_shown_is_absolute(project: Path, home: Path, write_agent: Write, tmp_path: Path) -> None:
    write_agent(home / ".agents/a.md", "a")
    write_agent(project / "elsewhere/b.md", "b")
    (project / ".agents").symlink_to(project / "elsewhere")
    below = project / "notebooks"
    below.mkdir()
    catalog = discover(below, home=home)
    shown = [agent.where for agent in catalog.agents] + [place.where for place in catalog.places]
    assert {"~/.agents/a.md", ".agents/b.md"} < set(shown)
    assert not [where for where in shown if where.startswith("/") or str(tmp_path) in where]


def test_in_the_home_folder_the_users_agents_are_not_the_projects(home: Path, write_agent: Write) -> None:
    write_agent(home / ".claude/agents/mine.md", "mine")
    catalog = discover(home, home=home)
    assert one(catalog, "mine").source == "user"
    assert (catalog.shadowed, catalog.cwd) == ((), "~")


def test_a_typical_project_is_searched_within_the_budget(project: Path, home: Path, write_agent: Write) -> None:
    for number in range(20):
        write_agent(project / f".claude/agents/team/a{number}.md", f"a{number}", "tools: Read, Grep")
    discover(project, home=home)
    times = []
    for _ in range(5):
        start = time.perf_counter()
        discover(project, home=home)
        times.append(time.perf_counter() - start)
    assert min(times) < 0.015
