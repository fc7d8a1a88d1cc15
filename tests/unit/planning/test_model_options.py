"""What is asked of a step's model beside its task: what it lacks is a reason where it was asked for, else a note."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from subagents_nb.catalog import discover
from subagents_nb.domain.agents.agent import AgentDefinition
from subagents_nb.domain.agents.settings import Endpoint, Settings
from subagents_nb.domain.plans.plan import Draft, LaunchRequest
from subagents_nb.errors import LaunchRefused
from subagents_nb.planning import LaunchEnvironment, draft

Plan = Callable[..., Draft]
KEYS = frozenset({"OPENAI_API_KEY", "ANTHROPIC_API_KEY"})


@pytest.fixture
def plan(tmp_path: Any) -> Plan:
    def make(
        model: str, *, file: dict[str, Any] | None = None, settings: Settings | None = None,
        environ: frozenset[str] = KEYS, **request: Any,
    ) -> Draft:  # fmt: skip
        mine = AgentDefinition(name="mine", description="d", tools=(), **(file or {}))
        return draft(
            LaunchRequest.model_validate({"task": "t", "agent": "mine", "model": model, **request}),
            catalog=discover(tmp_path, home=tmp_path, registered=[mine]),
            settings=settings or Settings(endpoints={"lab": Endpoint(base_url="http://x/v1")}),
            environment=LaunchEnvironment(cwd="/w", environ_names=environ, scripts=frozenset({"echo"})),
        )

    return make


@pytest.mark.parametrize(
    ("model", "asked", "why"),
    [
        ("openai:gpt-4o", {"thinking": "high"}, "thinking: openai:gpt-4o does not think; leave the level out, or name "
         "a model that does"),
        ("local:smollm2", {"thinking": "low"}, "thinking: local:smollm2 does not think; leave the level out, or name "
         "a model that does"),
        ("openai:gpt-5-mini:xhigh", {}, "thinking: openai:gpt-5-mini has no thinking level xhigh; it has minimal, low, "
         "medium, high"),
        ("openai:gpt-5", {"thinking": "off"}, "thinking: openai:gpt-5 can't do without thinking; it has minimal, low, "
         "medium, high"),
        ("openai:gpt-5", {"prompt_cache": "1h"}, "prompt_cache: openai:gpt-5 can't be asked to keep the beginning of a "
         "prompt; some providers keep it by themselves"),
        ("lab:m", {"prompt_cache": "on"}, "prompt_cache: lab:m can't be asked to keep the beginning of a prompt; some "
         "providers keep it by themselves"),
        ("openai:gpt-5.6", {"prompt_cache": "1h"}, "prompt_cache: openai:gpt-5.6 keeps the beginning of "
         "a prompt for 30m or 12h, not for 1h"),
        ("openai:gpt-5", {"prompt_cache": "2h"}, "prompt_cache: there is no '2h'; it is one of on, off, 5m, 30m, "
         "1h, 12h"),
        ("local:smollm2", {"fast": True}, "fast: local:smollm2 has no faster tier to ask for; OpenAI, Google and some "
         "models of Anthropic have one"),
    ],
)  # fmt: skip
def test_what_is_asked_for_and_is_not_there_is_a_reason_against_it(
    plan: Plan, model: str, asked: dict[str, Any], why: str
) -> None:
    with pytest.raises(LaunchRefused) as refused:
        plan(model, **asked)
    assert refused.value.reasons == (why,)


@pytest.mark.parametrize(
    ("model", "file", "note"),
    [
        ("openai:gpt-4o", {"thinking": "high"}, "Model openai:gpt-4o does not think; high is left out."),
        ("openai:gpt-5", {"thinking": "off"}, "Model openai:gpt-5 can't do without thinking; it has minimal, low, "
         "medium, high; it thinks as little as it can instead of off."),
        ("openai:gpt-5", {"fast": True, "thinking": "max"}, "Model openai:gpt-5 has no thinking level max; it has "
         "minimal, low, medium, high; it takes the nearest."),
        ("openai:gpt-5", {"prompt_cache": "1h"}, "Model openai:gpt-5 can't be asked to keep the beginning of a "
         "prompt; some providers keep it by themselves; 1h is left out."),
        ("lab:m", {"fast": True}, "Model lab:m has no faster tier to ask for; OpenAI, Google and some models of "
         "Anthropic have one; it is left out."),
    ],
)  # fmt: skip
def test_what_only_a_file_says_and_is_not_there_is_noted(
    plan: Plan, model: str, file: dict[str, Any], note: str
) -> None:
    assert note in plan(model, file=file).notes


def test_what_the_model_has_is_planned_and_changes_no_contract(plan: Plan) -> None:
    bare = plan("anthropic:claude-opus-5")
    full = plan("anthropic:claude-opus-5", prompt_cache="1h", fast=True)
    assert (full.steps[0].prompt_cache, full.steps[0].fast) == ("1h", True) and not full.notes
    assert full.digest == bare.digest
    by_file = plan("openai:gpt-5.6", file={"prompt_cache": "1h", "fast": True})
    assert (by_file.steps[0].prompt_cache, by_file.steps[0].fast) == ("on", True)
    assert plan("openai:gpt-5.6", prompt_cache=True).steps[0].prompt_cache == "on"


def test_the_twin_of_all_models_has_all_that_they_have(plan: Plan) -> None:
    step = plan("scripted:echo", prompt_cache="5m", fast=True, thinking="max").steps[0]
    assert (step.prompt_cache, step.fast, step.thinking) == ("5m", True, "max")


def test_another_server_than_the_providers_own_may_have_other_models_under_its_names(plan: Plan) -> None:
    draft = plan("openai:gpt-4o", environ=KEYS | {"OPENAI_BASE_URL"}, thinking="high")
    assert draft.steps[0].thinking == "high" and not draft.steps[0].verify_model


@pytest.mark.parametrize(
    ("model", "verified"),
    [("openai:gpt-5", True), ("anthropic:claude-opus-5", True), ("lab:m", False), ("openrouter:openai/gpt-5", False),
     ("ollama:llama3.3", False), ("mistral:mistral-small", False), ("local:smollm2", False), ("scripted:echo", False)],
)  # fmt: skip
def test_only_providers_that_serve_their_own_models_must_answer_by_their_names(
    plan: Plan, model: str, verified: bool
) -> None:
    environ = KEYS | {"OPENROUTER_API_KEY"}
    assert plan(model, environ=environ).steps[0].verify_model is verified


def test_the_settings_say_by_which_other_names_a_model_may_answer(plan: Plan) -> None:
    settings = Settings(response_aliases={"openai/gpt-5": ("house-blend",)})
    step = plan("openai:gpt-5", settings=settings).steps[0]
    assert (
        step.response_aliases == ("house-blend",)
        and plan("openai:gpt-5").digest == plan("openai:gpt-5", settings=settings).digest
    )
