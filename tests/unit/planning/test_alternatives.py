"""What a launch may have been where its run was made, when this machine lacks a key or an endpoint."""

from __future__ import annotations

import pytest

from subagents_nb.domain.agents.models import ModelChoice, ModelOrigin, parse_model
from subagents_nb.domain.agents.settings import Endpoint, Settings
from subagents_nb.planning import LaunchEnvironment
from subagents_nb.planning.alternatives import alternative_settings, comes_to_embedded

LAB = Endpoint(base_url="http://lab/v1")
OTHER = Endpoint(base_url="http://other/v1")


def used(text: str, origin: ModelOrigin = "call", endpoint: Endpoint = LAB) -> ModelChoice:
    return parse_model(text, origin=origin, endpoints={"lab": endpoint})


def found(settings: Settings, *choices: ModelChoice, unnamed: bool) -> list[tuple[str | None, dict[str, Endpoint]]]:
    return [(one.default_model, one.endpoints) for one in alternative_settings(settings, choices, unnamed=unnamed)]


def test_a_default_of_another_machine_is_tried_as_it_was_written_there() -> None:
    choices = (used("openai:gpt-5:high", "settings"), used("anthropic:x", "environment"), used("openai:gpt-5", "call"))
    assert found(Settings(), *choices, unnamed=True) == [("openai:gpt-5:high", {}), ("anthropic:x", {})]


@pytest.mark.parametrize(("settings", "unnamed"), [(Settings(default_model="groq:x"), True), (Settings(), False)])
def test_a_model_that_is_named_here_is_never_replaced(settings: Settings, unnamed: bool) -> None:
    assert found(settings, used("openai:gpt-5", "environment"), unnamed=unnamed) == []


def test_an_endpoint_is_known_under_a_name_that_means_nothing_here() -> None:
    assert found(Settings(), used("lab:m"), unnamed=False) == [(None, {"lab": LAB})]
    both = found(Settings(), used("lab:m"), used("lab:m", endpoint=OTHER), unnamed=False)
    assert both == [(None, {"lab": LAB}), (None, {"lab": OTHER})]


def test_an_endpoint_of_the_users_own_stays_what_it_is() -> None:
    assert found(Settings(endpoints={"lab": OTHER}), used("lab:m"), unnamed=False) == []


def test_a_key_here_means_a_default_of_its_own() -> None:
    assert comes_to_embedded(Settings(), LaunchEnvironment(cwd="/w"))
    assert not comes_to_embedded(Settings(), LaunchEnvironment(cwd="/w", environ_names=frozenset({"OPENAI_API_KEY"})))
    assert not comes_to_embedded(Settings(default_model="no:such"), LaunchEnvironment(cwd="/w"))
