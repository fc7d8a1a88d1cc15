"""Whom a step may delegate to: each resolved in its plan, to the depth that the root's plan has."""

from __future__ import annotations

from typing import Any

import pytest

from subagents_nb.domain.agents.agent import DELEGATE, REPLY, AgentCatalog, AgentDefinition
from subagents_nb.domain.agents.settings import Settings
from subagents_nb.domain.plans.plan import Draft, LaunchRequest, StepPlan, agents_of
from subagents_nb.errors import LaunchRefused
from subagents_nb.planning import LaunchEnvironment, draft


def agent(name: str, *agents: str, **more: Any) -> AgentDefinition:
    return AgentDefinition(name=name, description="d", prompt=f"You are {name}.", agents=agents or None, **more)


def planned(*agents: AgentDefinition, **request: Any) -> Draft:
    facts = LaunchEnvironment(cwd="/w", environ_names=frozenset({"OPENAI_API_KEY"}), scripts=frozenset({"echo"}))
    asked = LaunchRequest.model_validate({"task": "t", "agent": "lead", **request})
    return draft(asked, catalog=AgentCatalog(agents=agents), settings=Settings(), environment=facts)


def shape(step: StepPlan) -> dict[str, Any]:
    return {child.agent: shape(child) for child in step.children}


def test_an_agent_that_names_others_gets_the_tool_and_they_are_resolved_in_its_plan() -> None:
    plan = planned(agent("lead", "scout", model="scripted:echo"), agent("scout", model="openai:gpt-5", tools=("grep",)))
    step = plan.steps[0]
    (scout,) = step.children
    assert (step.tools[-1], step.delegates, step.depth) == (DELEGATE, ("scout",), 2)
    assert (scout.model.label, scout.tools, scout.system_prompt) == ("openai:gpt-5", ("grep",), "You are scout.")
    assert agents_of(plan.steps) == ("lead", "scout")
    alone = planned(agent("lead", model="scripted:echo")).steps[0]
    assert (alone.children, DELEGATE in alone.tools) == ((), False)


def test_there_are_two_levels_below_the_root_and_a_file_only_takes_from_them() -> None:
    lead = agent("lead", "lead", model="scripted:echo")
    assert shape(planned(lead).steps[0]) == {"lead": {"lead": {}}}
    (first,) = planned(lead).steps[0].children
    assert first.children[0].delegates == ("lead",)  # it has the tool, and is told that its levels are used up
    assert shape(planned(lead.model_copy(update={"max_depth": 1})).steps[0]) == {"lead": {}}
    assert planned(lead.model_copy(update={"max_depth": 0})).steps[0].delegates == ()
    for more in (2, 3, 99):
        deep = planned(lead.model_copy(update={"max_depth": more}))
        assert (shape(deep.steps[0]), deep.steps[0].depth) == ({"lead": {"lead": {}}}, 2)
        told = (f"Agent lead names {more} levels of runs below it; 2 are the most.",)
        assert deep.notes == (told if more > 2 else ())
    flat = agent("flat", "lead", model="scripted:echo", max_depth=9)
    assert shape(planned(agent("lead", "flat", model="scripted:echo"), flat).steps[0]) == {"flat": {"lead": {}}}


def test_an_agent_without_a_model_has_that_of_its_parent_and_no_other_word_of_the_launch() -> None:
    plan = planned(agent("lead", "scout"), agent("scout"), model="scripted:echo", max_requests=7, output="o.md")
    (scout,) = plan.steps[0].children
    assert (scout.model.label, scout.max_requests, scout.output) == ("scripted:echo", 50, None)


def test_all_reasons_against_an_agent_that_is_named_are_told_with_the_launch() -> None:
    with pytest.raises(LaunchRefused) as refused:
        planned(agent("lead", "nobody", model="scripted:echo"))
    assert "agents: nobody" in str(refused.value)
    keyless = planned(agent("lead", "scout", model="scripted:echo"), agent("scout", model="anthropic:x"))
    assert any("ANTHROPIC_API_KEY is not set" in problem for problem in keyless.start_problems)


def test_another_name_of_an_agent_means_it_and_plans_have_its_own() -> None:
    oracle = agent("oracle", aliases=("advisor",))
    step = planned(agent("lead", "advisor", "oracle", model="scripted:echo"), oracle).steps[0]
    assert step.delegates == ("oracle",) and shape(step) == {"oracle": {}}
    assert step.children[0].model.label == "scripted:echo", "as under its own name"


def test_a_star_means_all_who_can_be_had_here() -> None:
    everybody = agent("lead", "*", model="scripted:echo"), agent("scout"), agent("far", model="anthropic:x")
    plan = planned(*everybody)
    assert set(shape(plan.steps[0])) == {"lead", "scout"}
    assert plan.start_problems == ()
    assert "Agent lead can't delegate to far here." in plan.notes


def test_the_contract_binds_whom_it_may_delegate_to_and_is_as_before_where_it_may_to_nobody() -> None:
    lead, scout = agent("lead", "scout", model="scripted:echo"), agent("scout")
    digest = planned(lead, scout).digest
    assert digest == planned(lead, scout, name="other").digest
    assert digest != planned(lead, scout.model_copy(update={"prompt": "You are another."})).digest
    assert {"delegates", "depth", "children"}.isdisjoint(
        planned(scout, agent("lead", model="scripted:echo")).steps[0].contract()
    )


def test_who_may_be_asked_by_a_child_has_the_tool_to_reply_and_its_contract_binds_that() -> None:
    lead = agent("lead", "leaf", model="scripted:echo", tools=("read",))
    asks = agent("leaf", tools=("ask",), asks_parent_s=60.0)
    step = planned(lead, asks).steps[0]
    assert step.tools == ("read", DELEGATE, REPLY) and step.children[0].asks_parent_s == 60.0
    plain = asks.model_copy(update={"asks_parent_s": None})
    assert planned(lead, plain).steps[0].tools == ("read", DELEGATE)
    assert planned(lead, plain).digest != planned(lead, asks).digest
    assert planned(lead, asks, deny=("delegate",)).steps[0].tools == ("read",)
    alone = agent("lead", model="scripted:echo", tools=("read",), asks_parent_s=60.0)
    made = planned(alone)
    assert made.steps[0].asks_parent_s is None
    assert "Agent lead asks its parent by the tool ask, which its file does not list." in made.notes
