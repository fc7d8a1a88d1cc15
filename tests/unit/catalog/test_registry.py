from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from subagents_nb.catalog import discover, register_agent, registered_agents, resolve, unregister_agent
from subagents_nb.catalog.registry import MAX_REGISTERED
from subagents_nb.domain.agents.agent import AgentDefinition
from subagents_nb.errors import RequestError


@pytest.fixture(autouse=True)
def _empty() -> Iterator[None]:
    yield
    for agent in registered_agents():
        unregister_agent(agent.name)


def agent(name: str = "mine", **fields: object) -> AgentDefinition:
    return AgentDefinition.model_validate({"name": name, "description": "d", **fields})


def test_a_registered_agent_is_found_and_can_be_forgotten(project: Path, home: Path) -> None:
    stored = register_agent(agent("scout", prompt="Look.", where="/x", source="builtin"))
    catalog = discover(project, home=home, registered=registered_agents())
    assert resolve("scout", catalog) == stored
    assert (stored.source, stored.where, len(stored.content_sha256)) == ("registered", "registered", 64)
    assert unregister_agent("scout") is True
    assert unregister_agent("scout") is False
    assert registered_agents() == ()


def test_registering_the_same_name_again_replaces_it() -> None:
    register_agent(agent(prompt="old"))
    register_agent(agent(prompt="new"))
    assert [known.prompt for known in registered_agents()] == ["new"]


def test_the_number_is_bounded_but_replacing_goes_on() -> None:
    for number in range(MAX_REGISTERED):
        register_agent(agent(f"a{number}"))
    with pytest.raises(RequestError, match="200 agents are registered already"):
        register_agent(agent("one-more"))
    register_agent(agent("a7", prompt="new"))
    assert len(registered_agents()) == MAX_REGISTERED


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"name": "../x"}, "'../x' is no name"),
        ({"aliases": ("a b",)}, "'a b' is no name"),
        ({"description": " "}, "it has no description"),
        ({"description": "x" * 4097}, "its description is longer than 4096 characters"),
        ({"prompt": "x" * (1024 * 1024 + 1)}, "its prompt is larger than 1024 KiB"),
        (
            {"tools": ("read", "teleport")},
            "unknown tools 'teleport' (known: read, list, find, grep, write, edit, bash, python, ask)",
        ),
    ],
)
def test_what_a_file_may_not_say_a_registration_may_not_either(fields: dict[str, object], message: str) -> None:
    with pytest.raises(RequestError) as error:
        register_agent(agent(**{"name": "mine", **fields}))  # type: ignore[arg-type]
    assert message in str(error.value)
    assert registered_agents() == ()
