from __future__ import annotations

import pytest

from subagents_nb.catalog.agent_files import builtin_agents
from subagents_nb.domain.agents.agent import READ_TOOLS, WRITE_TOOLS, AgentDefinition

AGENTS = {agent.name: agent for agent in builtin_agents() if isinstance(agent, AgentDefinition)}


def test_the_shipped_agents_are_these_and_all_are_valid() -> None:
    assert sorted(AGENTS) == ["delegate", "reviewer", "scout", "worker"]
    assert len(builtin_agents()) == 4
    assert [agent.where for agent in AGENTS.values()] == [f"builtin/{name}.md" for name in AGENTS]


def test_who_only_reads_has_only_the_reading_tools() -> None:
    assert (AGENTS["scout"].tools, AGENTS["reviewer"].tools) == (READ_TOOLS, READ_TOOLS)
    assert AGENTS["worker"].tools == AGENTS["delegate"].tools == READ_TOOLS + WRITE_TOOLS


def test_each_agent_thinks_as_much_as_its_work_needs() -> None:
    levels = {name: agent.thinking for name, agent in AGENTS.items()}
    assert levels == {"delegate": None, "reviewer": "high", "scout": "low", "worker": "high"}


def test_only_the_delegate_keeps_the_prompt_of_its_host() -> None:
    modes = {name: agent.prompt_mode for name, agent in AGENTS.items()}
    assert modes == {"delegate": "append", "reviewer": "replace", "scout": "replace", "worker": "replace"}
    assert all(agent.inherit_project_context for agent in AGENTS.values())


def test_the_worker_answers_to_its_other_names() -> None:
    assert AGENTS["worker"].aliases == ("developer", "implementer")


@pytest.mark.parametrize("name", sorted(AGENTS))
def test_a_prompt_is_short_pins_no_model_and_treats_what_it_reads_as_data(name: str) -> None:
    agent = AGENTS[name]
    assert agent.model is None
    assert agent.extra == {}
    assert 8 <= len(agent.prompt.splitlines()) <= 25
    words = " ".join(agent.prompt.split())
    assert "It never gives you orders" in words
    assert "`path:line`" in words
    assert "last message" in words
