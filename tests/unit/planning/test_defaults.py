"""What is appended to a chain is planned as its launch was, whatever settings and keys there are by then."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support import make_plan, make_status, make_step

from subagents_nb.domain.agents.settings import Settings
from subagents_nb.domain.plans.defaults import LaunchDefaults
from subagents_nb.domain.plans.plan import AttachedItem, Draft, LaunchPlan, StepItem
from subagents_nb.domain.runs.snapshot import Snapshot
from subagents_nb.launching.composing.appending import plan_appendix
from subagents_nb.launching.composing.flows import chain, step
from subagents_nb.launching.composing.parsed_launch import ParsedLaunch
from subagents_nb.launching.composing.planned import plan_launch

pytestmark = pytest.mark.usefixtures("store_home")


def launched(*items: Any, **options: Any) -> LaunchPlan:
    draft = plan_launch(ParsedLaunch.of(chain(*items), None, **options)).draft
    assert isinstance(draft, Draft)
    return draft.to_plan(run_id=make_plan(1).run_id, token="f" * 32, created_at="2026-03-01T12:00:00.000Z")


def appended(plan: LaunchPlan, **options: Any) -> Any:
    snapshot = Snapshot(run_id=plan.run_id, plan=plan, status=make_status(1))
    return plan_appendix(chain(step("scout", "go on", **options)), plan, snapshot).steps[0]


def test_an_appended_step_has_every_default_that_the_launch_named() -> None:
    named: dict[str, Any] = {"max_requests": 7, "tool_budget": 9, "thinking": "high", "temperature": 0.5}
    plan = launched(step("scout", "a", model="scripted:slow"), model="scripted:echo", tool_timeout="90s", **named)
    found = appended(plan)
    assert (found.model.name, found.max_requests, found.thinking, found.temperature) == ("echo", 7, "high", 0.5)
    assert (found.tool_timeout_s, found.tool_budget.hard) == (90, 9)
    own = appended(plan, max_requests=3, model="scripted:fail")
    assert (own.max_requests, own.model.name) == (3, "fail")


def test_an_appended_step_is_under_the_terms_of_the_launch() -> None:
    plan = launched(
        step("scout", "a"), model="scripted:echo", max_output="2k", agent_contract={"version": 1}, gate_on="acceptance"
    )
    found = appended(plan, gate="true")
    assert (found.max_output.chars, found.acceptance.contract, found.acceptance.gate_on) == (2000, True, "acceptance")


def by_settings(text: str) -> Path:
    path = Path(".subagents/settings.toml")
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    return path


def test_a_key_that_was_set_since_does_not_choose_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody named a model, and the launch came to one of its settings: so it does later, when a key would cost money.

    Nor is it that of an earlier step.
    """
    path = by_settings('default_model = "scripted:echo"\n')
    plan = launched(step("scout", "a"), step("scout", "b", model="scripted:slow"))
    path.unlink()
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    assert appended(plan).model.label == "scripted:echo"


def test_a_plan_that_kept_no_defaults_is_appended_to_with_its_one_model() -> None:
    plan = make_plan(1, items=(StepItem(step=0),), mode="chain")
    assert plan.defaults is None
    assert appended(plan).model.label == "scripted:echo"


def test_settings_of_the_launch_hold_and_those_it_did_not_have_stay_unset() -> None:
    then = LaunchDefaults.of({}, Settings(max_requests=5), fallback="scripted:echo")
    now = Settings(max_requests=8, default_thinking="high", default_model="openai:gpt-5", max_live_runs=3)
    found = then.settings_of(now)
    assert (found.max_requests, found.default_thinking, found.default_model) == (5, None, "scripted:echo")
    assert found.max_live_runs == 3


def test_defaults_are_no_part_of_the_contract() -> None:
    plan = launched(step("scout", "a", model="scripted:echo"), max_requests=50)
    other = launched(step("scout", "a", model="scripted:echo"))
    assert plan.digest == other.digest and plan.defaults != other.defaults


def test_what_an_attached_run_may_say_since_is_bound_only_where_it_is_said() -> None:
    """Digests of older plans stay what they were."""

    def bound(**said: Any) -> str:
        item = AttachedItem(attached_run=make_plan(2).run_id, **said)
        return Draft(cwd="/tmp", mode="chain", steps=(make_step(),), items=(item, StepItem(step=0))).digest

    assert bound() == "ffc503c07faf4bf33cd3e5644c05e10e042767d95286a87359135fcd71876326"
    assert len({bound(), bound(step=0), bound(outputs=("a",))}) == 3
