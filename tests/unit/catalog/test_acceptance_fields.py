"""The fields of an agent file that say when its work counts as done."""

from __future__ import annotations

import pytest

from subagents_nb.catalog.parse import parse_agent
from subagents_nb.domain.agents.agent import AgentDefinition, AgentProblem


def parsed(*lines: str) -> AgentDefinition | AgentProblem | None:
    head = "\n".join(["---", "name: a", "description: d", *lines, "---", "Do it."])
    return parse_agent(head, where="a.md", source="project")


@pytest.mark.parametrize("word", ["reader", "read-only", "reviewer", "oracle", "scout", "researcher", "Analyst"])
def test_a_role_that_reads(word: str) -> None:
    agent = parsed(f"acceptanceRole: {word}")
    assert isinstance(agent, AgentDefinition) and agent.role == "reader"


@pytest.mark.parametrize("word", ["writer", "worker"])
def test_a_role_that_writes(word: str) -> None:
    agent = parsed(f"acceptance-role: {word}")
    assert isinstance(agent, AgentDefinition) and agent.role == "writer"


def test_an_acceptance_is_a_word_false_or_a_mapping() -> None:
    for line, value in (("acceptance: checked", "checked"), ("acceptance: false", False)):
        agent = parsed(line)
        assert isinstance(agent, AgentDefinition) and agent.acceptance == value
    agent = parsed("acceptance:", "  level: verified", "  verify:", "    - command: make test")
    assert isinstance(agent, AgentDefinition)
    assert agent.acceptance == {"level": "verified", "verify": [{"command": "make test"}]}


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("acceptanceRole: boss", "field `acceptanceRole` must be reader or writer, not 'boss'"),
        ("acceptance: [a]", "field `acceptance` must be attested, checked, false or a mapping, not ['a']"),
        ("acceptance: true", "field `acceptance` must be attested, checked, false or a mapping, not True"),
    ],
)
def test_what_does_not_fit_is_a_problem(line: str, why: str) -> None:
    agent = parsed(line)
    assert isinstance(agent, AgentProblem) and agent.error == why


def test_without_these_fields_an_agents_digest_is_as_it_was() -> None:
    agent = parsed()
    assert isinstance(agent, AgentDefinition) and (agent.role, agent.acceptance) == (None, None)
