from __future__ import annotations

import re
from pathlib import Path

import pytest

from subagents_nb.catalog.agent_files import builtin_agents
from subagents_nb.domain.agents.agent import READ_TOOLS, WRITE_TOOLS, AgentDefinition

READERS = ["analyst", "evidence-auditor", "oracle", "plotter", "researcher", "reviewer", "scout"]
AGENTS = {agent.name: agent for agent in builtin_agents() if isinstance(agent, AgentDefinition)}


def test_the_shipped_agents_are_these_and_all_are_valid() -> None:
    assert sorted(AGENTS) == [*READERS[:1], "delegate", *READERS[1:], "worker"]
    assert len(builtin_agents()) == len(AGENTS)
    assert [agent.where for agent in AGENTS.values()] == [f"builtin/{name}.md" for name in AGENTS]


def test_who_only_reads_has_only_the_reading_tools() -> None:
    computing = {"analyst", "plotter"}
    for name in READERS:
        assert AGENTS[name].tools == (*READ_TOOLS, "python") if name in computing else READ_TOOLS
    assert AGENTS["worker"].tools == AGENTS["delegate"].tools == READ_TOOLS + WRITE_TOOLS


def test_each_agent_thinks_as_much_as_its_work_needs() -> None:
    levels = {name: agent.thinking for name, agent in AGENTS.items()}
    assert levels == {
        "analyst": "medium", "delegate": None, "evidence-auditor": "high", "oracle": "high", "plotter": "medium",
        "researcher": "medium", "reviewer": "high", "scout": "low", "worker": "high",
    }  # fmt: skip


def test_only_the_delegate_keeps_the_prompt_of_its_host() -> None:
    assert [name for name, agent in AGENTS.items() if agent.prompt_mode == "append"] == ["delegate"]
    assert all(agent.inherit_project_context for agent in AGENTS.values())


def test_some_answer_to_other_names() -> None:
    assert AGENTS["worker"].aliases == ("developer", "develop", "implementer", "coder")
    assert AGENTS["oracle"].aliases == ("advisor",)


def test_the_page_says_of_each_when_to_use_it() -> None:
    page = (Path(__file__).parents[3] / "docs" / "agents.md").read_text(encoding="utf-8")
    assert re.findall(r"^### `([a-z-]+)`$", page, re.MULTILINE) == list(AGENTS)


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
