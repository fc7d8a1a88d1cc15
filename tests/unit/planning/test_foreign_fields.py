"""Every key of an agent's file is carried out, refused or noted; the spelling makes no difference."""

from __future__ import annotations

from typing import Any

import pytest

from subagents_nb.catalog.parse import parse_agent
from subagents_nb.domain.agents.agent import AgentCatalog, AgentDefinition, AgentProblem
from subagents_nb.domain.agents.settings import Settings
from subagents_nb.domain.plans.plan import Draft, LaunchRequest
from subagents_nb.errors import LaunchRefused
from subagents_nb.planning import LaunchEnvironment, draft


def read(head: str) -> AgentDefinition | AgentProblem | None:
    text = f"---\nname: guarded\ndescription: d\n{head}\n---\nYou work."
    return parse_agent(text, where=".claude/agents/guarded.md", source="user")


def plan(head: str, **asked: Any) -> Draft:
    agent = read(head)
    assert isinstance(agent, AgentDefinition)
    request = LaunchRequest.model_validate({"agent": "guarded", "task": "t", "model": "scripted:echo", **asked})
    facts = LaunchEnvironment(cwd="/home/me/w", scripts=frozenset({"echo"}))
    return draft(request, catalog=AgentCatalog(agents=(agent,)), settings=Settings(), environment=facts)


GUARDS = {
    "hooks": "hooks:\n  PreToolUse: [{matcher: Bash}]",
    "permissionMode": "permissionMode: dontAsk",
    "permission_mode": "permission_mode: dontAsk",
    "permission-mode": "permission-mode: dontAsk",
    "isolation": "isolation: container",
}


@pytest.mark.parametrize("key", GUARDS)
def test_a_guard_that_is_not_kept_here_keeps_the_agent_from_beginning(key: str) -> None:
    with pytest.raises(LaunchRefused) as caught:
        plan(GUARDS[key])
    (reason,) = caught.value.reasons
    assert f"agent 'guarded' (.claude/agents/guarded.md) sets {key}, which guards" in reason
    assert reason.endswith(f'or launch with ignore=["{key}"]')
    notes = plan(GUARDS[key], ignore=(key,)).notes
    assert f"Agent guarded is launched without what guards it elsewhere: {key}." in notes


def test_an_isolation_is_kept_by_a_worktree() -> None:
    with pytest.raises(LaunchRefused) as caught:
        plan("isolation: container", worktree=True)
    assert not any("isolation" in reason for reason in caught.value.reasons), "the rest is that there is no git here"


def test_a_worktree_by_the_file_is_made_unless_the_person_says_otherwise() -> None:
    with pytest.raises(LaunchRefused, match="worktree: git was not looked up"):
        plan("isolation: worktree")
    text = "Agent guarded works in your files, as this launch says; by its file it has a worktree of its own."
    for said in ({"worktree": False}, {"ignore": ("isolation",)}):
        draft = plan("isolation: worktree", **said)
        assert draft.steps[0].worktree is None
        assert text in draft.notes


def test_what_is_to_be_ignored_has_to_be_there() -> None:
    with pytest.raises(LaunchRefused) as caught:
        plan("tools: read", ignore=("hooks", "model"))
    assert [reason.partition(") ")[2] for reason in caught.value.reasons] == [
        "sets no hooks that could be ignored",
        "sets no model that could be ignored",
    ]


@pytest.mark.parametrize("head", ["disabled: true", "Disabled: yes"])
def test_an_agent_that_is_disabled_can_not_be_named(head: str) -> None:
    found = read(head)
    assert isinstance(found, AgentProblem)
    assert found.name == "guarded" and "is disabled" in found.error


@pytest.mark.parametrize(
    ("head", "field", "value"),
    [
        ("disabled: false", "tools", None),
        ("effort: high", "thinking", "high"),
        ("permissionMode: plan\ntools: Read, Bash, Write, AskUserQuestion", "tools", ("read", "ask")),
        ("permissionMode: plan", "tools", None),
        ("permissionMode: default\ntools: Bash", "tools", ("bash",)),
        ("permissionMode: acceptEdits\ntools: Bash", "tools", ("bash",)),
    ],
)
def test_what_can_be_kept_is(head: str, field: str, value: object) -> None:
    agent = read(head)
    assert isinstance(agent, AgentDefinition)
    assert getattr(agent, field) == value


@pytest.mark.parametrize(
    "key",
    ["fallbackModels", "machine", "background", "color", "runner", "whatever"],
)  # fmt: skip
def test_all_else_is_noted(key: str) -> None:
    assert f"Agent guarded sets fields that are not carried out: {key}." in plan(f"{key}: some").notes


def test_a_mode_that_allows_more_is_noted() -> None:
    notes = plan("permissionMode: acceptEdits").notes
    assert "Agent guarded sets fields that are not carried out: permissionMode." in notes
