from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from subagents_nb.catalog import AmbiguousAgent, BrokenAgent, UnknownAgent, discover, resolve
from subagents_nb.catalog.resolve import near_names
from subagents_nb.domain.agents.agent import AgentCatalog, AgentDefinition, AgentProblem, SearchedPlace
from subagents_nb.errors import RequestError

Write = Callable[..., Path]


def agent(name: str, *aliases: str) -> AgentDefinition:
    return AgentDefinition(name=name, description="d", aliases=aliases, source="project", where=f".agents/{name}.md")


def catalog(*agents: AgentDefinition, **fields: object) -> AgentCatalog:
    return AgentCatalog.model_validate({"agents": agents, "cwd": "~/work", **fields})


def test_a_name_gives_its_agent_and_an_alias_too() -> None:
    worker = agent("worker", "developer", "implementer")
    assert resolve("worker", catalog(worker, agent("other"))) is worker
    assert resolve("implementer", catalog(worker, agent("other"))) is worker


def test_a_name_beats_an_alias() -> None:
    developer = agent("developer")
    assert resolve("developer", catalog(agent("worker", "developer"), developer)) is developer


def test_a_broken_name_beats_an_alias() -> None:
    problem = AgentProblem(where=".agents/x.md", source="project", error="bad", name="developer")
    with pytest.raises(BrokenAgent):
        resolve("developer", catalog(agent("worker", "developer"), problems=(problem,)))


def test_an_alias_of_two_agents_is_ambiguous() -> None:
    with pytest.raises(AmbiguousAgent) as error:
        resolve("dev", catalog(agent("a", "dev"), agent("b", "dev")))
    assert str(error.value) == (
        "The alias 'dev' fits 2 agents; use the name of one:\n"
        "  a (project, .agents/a.md)\n"
        "  b (project, .agents/b.md)"
    )  # fmt: skip


@pytest.mark.usefixtures("trusted")
def test_the_parse_error_of_a_blocking_file_is_shown(project: Path, home: Path, write_agent: Write) -> None:
    write_agent(project / ".claude/agents/scout.md", "scout", "thinking: huge")
    with pytest.raises(BrokenAgent) as error:
        resolve("scout", discover(project, home=home))
    assert str(error.value) == (
        "Agent 'scout' can't be used: .claude/agents/scout.md (project): field `thinking` must be off, minimal, "
        "low, medium, high, xhigh or max, not 'huge'\n"
        "It has priority over builtin:scout. Mend or remove that file."
    )


def test_a_broken_agent_that_hides_nothing_is_shown_in_one_line() -> None:
    problem = AgentProblem(where=".agents/x.md", source="project", error="bad YAML", name="mine")
    with pytest.raises(BrokenAgent) as error:
        resolve("mine", catalog(problems=(problem,)))
    assert str(error.value) == "Agent 'mine' can't be used: .agents/x.md (project): bad YAML"


def test_the_diagnostic_of_an_unknown_agent_holds_all_there_is_to_know() -> None:
    places = tuple(
        SearchedPlace.model_validate({"where": where, "source": source, "state": state, "candidates": count})
        for where, source, state, count in [
            ("builtin", "builtin", "read", 4),
            ("~/.agents", "user", "absent", 0),
            ("~/.pi/agents", "user", "empty", 0),
            ("~/.claude/agents", "user", "not a directory", 0),
            (".agents", "project", "unreadable", 0),
            (".claude/agents", "project", "read", 1),
        ]
    )
    problem = AgentProblem(where=".claude/agents/x.md", source="project", error="bad YAML")
    with pytest.raises(UnknownAgent) as error:
        resolve("scot", catalog(agent("worker", "dev"), agent("scout"), places=places, problems=(problem,)))
    assert isinstance(error.value, RequestError)
    assert str(error.value) == (
        "No agent is named 'scot'. Did you mean 'scout'?\n"
        "Working directory: ~/work\n"
        "Looked in:\n"
        "  builtin (builtin): 4 candidates\n"
        "  ~/.pi/agents (user): present but empty\n"
        "  ~/.claude/agents (user): not a directory\n"
        "  .agents (project): unreadable\n"
        "  .claude/agents (project): 1 candidate\n"
        "  absent: ~/.agents\n"
        "Agents: scout (project), worker (project)\n"
        "Could not be used:\n"
        "  .claude/agents/x.md (project): bad YAML"
    )


def test_upper_and_lower_case_differ_but_the_other_case_is_suggested() -> None:
    known = catalog(agent("Scout"), agent("scouts"))
    with pytest.raises(UnknownAgent, match="Did you mean 'Scout'\\?"):
        resolve("sCOUT", known)
    assert near_names("Zzz", known) == ()
    assert near_names("scouts2", known) == ("scouts", "Scout")


def test_without_agents_the_diagnostic_says_none() -> None:
    with pytest.raises(UnknownAgent, match=r"Agents: none$"):
        resolve("x", catalog())


@pytest.mark.parametrize("name", ["../x", "a\nb", "", "x" * 10_000, "\x1b[31m"])
def test_a_hostile_name_stays_on_the_first_line_and_short(name: str) -> None:
    with pytest.raises(UnknownAgent) as error:
        resolve(name, catalog(agent("scout")))
    first = str(error.value).splitlines()[0]
    assert first.startswith("No agent is named '")
    assert len(first) < 120
    assert "\x1b" not in first
