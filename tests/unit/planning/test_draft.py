"""From a request to a draft, with the world handed in."""

from __future__ import annotations

from typing import Any

import pytest

from subagents_nb.catalog import discover
from subagents_nb.domain.agents.agent import KNOWN_TOOLS, AgentCatalog, AgentDefinition
from subagents_nb.domain.agents.settings import Endpoint, Settings
from subagents_nb.domain.plans.plan import Draft, FanOutItem, LaunchRequest
from subagents_nb.errors import LaunchRefused
from subagents_nb.launching.composing.flows import chain, expand, step
from subagents_nb.planning import LaunchEnvironment, draft


@pytest.fixture
def catalog(tmp_path: Any) -> AgentCatalog:
    mine = AgentDefinition(name="mine", description="d", prompt="P", model="openai:gpt-5", thinking="low", tools=())
    return discover(tmp_path, home=tmp_path, registered=[mine])


def planned(catalog: AgentCatalog, *, settings: Settings | None = None, facts: dict[str, Any] | None = None,
            **request: Any) -> Draft:  # fmt: skip
    world: dict[str, Any] = {
        "cwd": "/w",
        "environ_names": frozenset({"OPENAI_API_KEY"}),
        "scripts": frozenset({"echo"}),
    }
    return draft(
        LaunchRequest.model_validate({"task": "t", "agent": "mine", **request}),
        catalog=catalog,
        settings=settings or Settings(),
        environment=LaunchEnvironment.model_validate(world | (facts or {})),
    )


def test_the_call_wins_over_the_agent_and_the_agent_over_the_settings(catalog: AgentCatalog) -> None:
    settings = Settings(default_model="openai:other", default_thinking="high", timeout_s=5)
    step = planned(catalog, settings=settings).steps[0]
    assert (step.model.label, step.thinking, step.tools) == ("openai:gpt-5", "low", ())
    called = planned(catalog, settings=settings, model="scripted:echo", thinking="max", timeout="2m")
    assert (called.steps[0].model.label, called.steps[0].thinking, called.timeout_s) == ("scripted:echo", "max", 120)
    assert planned(catalog, settings=settings).timeout_s == 5


def test_a_level_in_the_model_string_wins_over_the_agents_own(catalog: AgentCatalog) -> None:
    assert planned(catalog, model="openai:gpt-5:high").steps[0].thinking == "high"
    assert planned(catalog, model="openai:gpt-5:high", thinking="low").steps[0].thinking == "low"


def test_an_endpoints_key_is_needed_where_it_names_one(catalog: AgentCatalog) -> None:
    settings = Settings(endpoints={"lab": Endpoint(base_url="http://x/v1", key_env="LAB_KEY")})
    (problem,) = planned(catalog, settings=settings, model="lab:m").start_problems
    assert "LAB_KEY is not set" in problem
    keyed = planned(catalog, settings=settings, model="lab:m", facts={"environ_names": frozenset({"LAB_KEY"})})
    assert keyed.steps[0].model.endpoint == settings.endpoints["lab"]
    assert keyed.start_problems == ()


def test_a_client_that_is_not_installed_is_named_with_its_extra(catalog: AgentCatalog) -> None:
    (problem,) = planned(
        catalog, model="anthropic:x", facts={"missing_extras": frozenset({"anthropic"})}
    ).start_problems
    assert 'pip install "subagents-nb[anthropic]"' in problem


def test_what_keeps_a_run_from_beginning_is_said_with_its_place_and_changes_no_contract(catalog: AgentCatalog) -> None:
    work = chain(step("mine", "a", model="scripted:echo"), step("mine", "b", acceptance={"review": {"agent": "mine"}}))
    request: dict[str, Any] = {"agent": None, "task": "", "flow": work}
    without = planned(catalog, facts={"environ_names": frozenset()}, **request)
    why = "the model openai:gpt-5 needs a key, and OPENAI_API_KEY is not set; set it in the environment of the kernel"
    assert without.start_problems == (f"stage 2 (mine): {why}", f"stage 2 (mine): acceptance.review.agent: {why}")
    assert without.digest == planned(catalog, **request).digest


def test_what_keeps_a_run_from_beginning_is_said_beside_what_is_wrong_with_it(catalog: AgentCatalog) -> None:
    with pytest.raises(LaunchRefused) as caught:
        planned(catalog, task=" ", facts={"environ_names": frozenset()})
    assert [reason.partition(";")[0].partition(",")[0] for reason in caught.value.reasons] == [
        "the task is empty",
        "the model openai:gpt-5 needs a key",
    ]


def test_a_temperature_is_kept_and_one_that_no_model_takes_is_refused(catalog: AgentCatalog) -> None:
    assert planned(catalog, temperature=0).steps[0].temperature == 0.0
    for hot in (2.1, -0.1, float("nan")):
        with pytest.raises(LaunchRefused, match="models take 0 to 2"):
            planned(catalog, temperature=hot)


def test_a_task_is_kept_verbatim(catalog: AgentCatalog) -> None:
    task = "  {x} $HOME `ls` \n\ttwo\n\n"
    assert planned(catalog, task=task).steps[0].task == task


def test_every_reason_is_told_once(catalog: AgentCatalog) -> None:
    with pytest.raises(LaunchRefused) as caught:
        planned(catalog, task=" ", model="no:x", timeout=-1, facts={"cwd_problem": "no directory"})
    assert len(caught.value.reasons) == len(set(caught.value.reasons)) == 4


@pytest.mark.parametrize("missing", [{"agent": "nobody"}, {"model": "no:x"}, {"agent": "nobody", "model": "no:x"}])
def test_what_is_wrong_with_the_work_is_told_though_agent_or_model_is_missing(
    catalog: AgentCatalog, missing: dict[str, Any]
) -> None:
    catalog = catalog.model_copy(update={"agents": (*catalog.agents, AgentDefinition(name="all", description="d"))})
    asked = {"agent": "all", "output": "../x", "reads": ("~/y",), "tool_budget": 0, "usage_budget": "lots"}
    asked |= {"acceptance": {"level": "high"}, "worktree": {"basref": "x"}, "timeout": "soon", "max_requests": 0}
    with pytest.raises(LaunchRefused) as caught:
        planned(catalog, **asked | missing)
    told = "\n".join(caught.value.reasons)
    wanted = ("output: ", "reads: ", "tool_budget must ", "usage_budget must ", "acceptance.level must ",
              "worktree.basref is unknown", "'soon' is no length of time", "max_requests is 0")  # fmt: skip
    assert [word for word in wanted if word not in told] == []


def test_step_run_and_agent_come_before_the_settings_in_each_of_their_limits(catalog: AgentCatalog) -> None:
    own = {"tool_budget": 3, "acceptance": "attested", "output": "o.md", "output_mode": "inline", "progress": False}
    agents = [
        AgentDefinition.model_validate({"name": name, "description": "d", "tools": KNOWN_TOOLS, **said})
        for name, said in (("says", own), ("silent", {}))
    ]
    catalog = catalog.model_copy(update={"agents": tuple(agents)})
    kept = Settings.model_validate(
        {"tool_budget": 40, "usage_budget": "$2", "acceptance": "checked", "output_mode": "file-only", "progress": True}
    )

    def of(agent: str, **asked: Any) -> tuple[Any, ...]:
        draft = planned(catalog, settings=kept, agent=agent, model="scripted:echo", **asked)
        (step,) = draft.steps
        assert step.tool_budget and step.acceptance
        return step.tool_budget.hard, step.acceptance.level, step.output and step.output.mode, step.progress

    assert of("says") == (3, "attested", "inline", False)
    assert of("silent") == (40, "checked", None, True)
    assert of("silent", output="x.md") == (40, "checked", "file-only", True)
    assert of("says", tool_budget=7, acceptance="checked", output_mode="file-only", progress=True) == (
        7, "checked", "file-only", True,
    )  # fmt: skip
    spent = planned(catalog, settings=kept, agent="silent", model="scripted:echo").usage_budget
    assert spent and spent.cost_usd and spent.cost_usd.hard == 2


def test_a_fan_out_that_names_no_limit_has_that_of_the_settings(catalog: AgentCatalog) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "array"}}}
    flow = chain(step("mine", "x", as_="found", schema=schema), expand("found", "/a", step("mine", "{item}")))
    request: dict[str, Any] = {"agent": None, "task": "", "flow": flow}
    item = planned(catalog, settings=Settings(max_items=7), **request).items[1]
    assert isinstance(item, FanOutItem) and item.max_items == 7
    with pytest.raises(LaunchRefused, match="max_items is missing"):
        planned(catalog, **request)


def test_equal_requests_have_equal_digests(catalog: AgentCatalog) -> None:
    assert planned(catalog, name="a").digest == planned(catalog, name="b", timeout=3).digest
    assert planned(catalog, task="u").digest != planned(catalog).digest
