"""A step does not begin where something of a project would act in it that the person has not allowed."""

from __future__ import annotations

from typing import Any

import pytest

from subagents_nb.blocks import to_text
from subagents_nb.domain.agents.acting import Acting, Held
from subagents_nb.domain.agents.agent import AgentCatalog, AgentDefinition, AgentProblem
from subagents_nb.domain.agents.settings import Settings
from subagents_nb.domain.plans.plan import Draft, LaunchRequest
from subagents_nb.notebook.plans.plan_card import plan as plan_card
from subagents_nb.planning import LaunchEnvironment, draft

THEIRS = ".subagents/settings.toml"


def held(kind: str, name: str, where: str, *does: str) -> Held:
    return Held(item=Acting(kind=kind, name=name, does=does, files={where: "0" * 64}))


CLERK, JUDGE = held("agent", "clerk", "c.md", "bash"), held("agent", "judge", "j.md", "bash")
CHECKS = held("agent", "clerk", "c.md", "verify")
MODEL = held("settings", "default_model", THEIRS, "scripted:evil", "a script that makes tool calls")
AGENT = held("settings", "default_agent", THEIRS, "clerk, which has bash")


def plan(*waiting: Held, source: str = "project", settings: Any = None, asked: Any = None, **of: Any) -> Draft:
    fields = {"name": "clerk", "description": "d", "source": source, "where": "c.md", **of}
    other = AgentDefinition(name="judge", description="d", source="project", where="j.md", tools=("bash",))
    catalog = AgentCatalog(agents=(AgentDefinition.model_validate(fields), other))
    scripts = frozenset({"echo", "evil"})
    facts = LaunchEnvironment(
        cwd="/home/me/clone",
        project="~/clone",
        brought=tuple(one.item for one in waiting),
        held=waiting,
        scripts=scripts,
    )
    request = LaunchRequest.model_validate({"agent": "clerk", "task": "t", "model": "scripted:echo", **(asked or {})})
    return draft(request, catalog=catalog, settings=Settings.model_validate(settings or {}), environment=facts)


def of_settings(where: str, **values: Any) -> dict[str, Any]:
    return {**values, "origins": dict.fromkeys(values, where)}


EVIL = {"default_model": "scripted:evil"}
VERIFY = {"report": "off", "verify": [{"id": "a", "command": "id > x"}]}
BY_OTHER = {"level": "checked", "report": "off", "evidence": [], "criteria": [], "review": {"agent": "judge"}}


@pytest.mark.parametrize(
    ("waiting", "what", "words"),
    [
        (CLERK, {"tools": ("bash",)}, "agent clerk (bash)"),
        (CHECKS, {"acceptance": VERIFY}, "agent clerk (verify)"),
        (CHECKS, {"acceptance": '{"verify": "id"}'}, "agent clerk (verify)"),
        (JUDGE, {"acceptance": BY_OTHER}, "agent judge (bash)"),
        (
            MODEL,
            {"settings": of_settings(THEIRS, **EVIL), "asked": {"model": None}},
            "settings default_model (scripted:evil, a script that makes tool calls)",
        ),
        (
            AGENT,
            {"settings": of_settings(THEIRS, default_agent="clerk"), "asked": {"agent": None}},
            "settings default_agent (clerk, which has bash)",
        ),
    ],
)
def test_what_may_not_act_yet_keeps_a_step_from_beginning(waiting: Held, what: dict[str, Any], words: str) -> None:
    assert plan(waiting, **what).start_problems == (
        "this project brings 1 thing that acts with your rights and that you have not allowed, or that changed since: "
        f"{words}. Look at it with %subagent_trust",
    )
    assert plan(**what).start_problems == ()


def test_all_of_it_is_one_reason_for_all_steps() -> None:
    flow = {
        "items": [{"agent": "clerk", "task": "a"}, {"agent": "judge", "task": "b"}, {"agent": "clerk", "task": "c"}]
    }
    both = (CLERK, Held(item=JUDGE.item, known=True, run="lead-4f2a"))
    (reason,) = plan(*both, tools=("bash",), asked={"agent": None, "flow": flow}).start_problems
    assert reason == (
        "this project brings 2 things that act with your rights and that you have not allowed, or that changed since: "
        "agent clerk (bash), agent judge (bash; changed while run lead-4f2a was at work here). Look at them with "
        "%subagent_trust"
    )


def test_whom_an_agent_may_delegate_to_is_asked_for_alike_and_left_out_where_everybody_is_meant() -> None:
    assert "agent judge (bash)" in str(plan(JUDGE, agents=("judge",)).start_problems)
    found = plan(JUDGE, agents=("*",))
    assert found.start_problems == () and "Agent clerk can't delegate to judge here." in found.notes
    assert [child.agent for child in found.steps[0].children] == ["clerk"]


def test_a_plan_says_what_of_the_project_it_lets_act() -> None:
    facts = LaunchEnvironment(cwd="/w", brought=(CLERK.item, JUDGE.item), scripts=frozenset({"echo"}))
    agent = AgentDefinition(name="clerk", description="d", source="project", where="c.md", tools=("bash",))
    request = LaunchRequest(agent="clerk", task="t", model="scripted:echo")
    found = draft(request, catalog=AgentCatalog(agents=(agent,)), settings=Settings(), environment=facts)
    assert found.allowed == ("agent clerk (bash)",) and "allowed" not in found.body()
    assert "allowed here  agent clerk (bash)" in to_text(plan_card(found))


@pytest.mark.parametrize(
    ("waiting", "what"),
    [
        (MODEL, {"settings": of_settings(THEIRS, **EVIL), "asked": {"model": "scripted:echo"}}),
        (CHECKS, {"acceptance": VERIFY, "asked": {"acceptance": False}}),
        (CHECKS, {"acceptance": VERIFY, "asked": {"gate": "true"}}),
        (CHECKS, {"asked": {"acceptance": VERIFY}}),
        (AGENT, {"settings": of_settings(THEIRS, default_agent="clerk")}),
        (CLERK, {"source": "user", "tools": ("bash",)}),
        (JUDGE, {}),
        (CLERK, {"tools": ("bash", "read"), "asked": {"tools": ("read",)}}),
        (CLERK, {"tools": ("bash",), "where": "another.md"}),
    ],
)
def test_what_does_not_act_in_this_launch_does_not_keep_it_from_beginning(waiting: Held, what: dict[str, Any]) -> None:
    assert plan(waiting, **what).start_problems == ()


def test_a_file_that_was_not_let_in_is_noted_on_the_run_of_the_agent_it_would_have_been() -> None:
    agent = AgentDefinition(name="scout", description="d", source="builtin")
    problem = AgentProblem(where=".agents/s.md", source="project", error="not used: why", withheld="scout")
    found = draft(
        LaunchRequest(agent="scout", task="t", model="scripted:echo"),
        catalog=AgentCatalog(agents=(agent,), problems=(problem,)),
        settings=Settings(),
        environment=LaunchEnvironment(cwd="/w", scripts=frozenset({"echo"})),
    )
    assert ".agents/s.md of this project is not used: why." in found.notes
