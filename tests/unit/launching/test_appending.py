"""What is appended must be able to begin: there is no earlier run that could stand in for it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support import make_plan, make_status, makes_namespaces

from subagents_nb.domain.plans.budgets import UsageBudget
from subagents_nb.domain.plans.defaults import LaunchDefaults
from subagents_nb.domain.plans.plan import StepItem
from subagents_nb.domain.policy.sandbox_plan import SandboxPlan
from subagents_nb.domain.runs.snapshot import Snapshot
from subagents_nb.launching.composing.appending import AppendRefused, plan_appendix
from subagents_nb.launching.composing.flows import chain, step
from subagents_nb.store import StoreHome


def test_a_step_whose_model_has_no_key_is_not_appended(store_home: StoreHome) -> None:
    del store_home
    plan = make_plan(1, items=(StepItem(step=0),), mode="chain")
    snapshot = Snapshot(run_id=plan.run_id, plan=plan, status=make_status(1))
    planned = plan_appendix(chain(step("scout", "go on", model="scripted:echo")), plan, snapshot)
    assert [one.task for one in planned.steps] == ["go on"]
    with pytest.raises(AppendRefused, match="OPENAI_API_KEY is not set"):
        plan_appendix(chain(step("scout", "go on", model="openai:gpt-5")), plan, snapshot)


def test_a_step_whose_price_nobody_knows_is_not_appended_to_a_chain_that_counts_money(store_home: StoreHome) -> None:
    del store_home
    budget = UsageBudget.model_validate({"cost_usd": {"hard": 1}})
    plan = make_plan(1, items=(StepItem(step=0),), mode="chain", usage_budget=budget)
    snapshot = Snapshot(run_id=plan.run_id, plan=plan, status=make_status(1))
    with pytest.raises(AppendRefused, match="no price is known of ollama:x"):
        plan_appendix(chain(step("scout", "go on", model="ollama:x")), plan, snapshot)


def test_an_appended_step_may_name_a_server_as_a_step_of_the_launch_may(store_home: StoreHome) -> None:
    del store_home
    agents = Path.home() / ".subagents/agents"
    agents.mkdir(parents=True)
    (agents / "user.md").write_text("---\nname: user\ndescription: d\ntools: mcp:files\n---\nwork\n")
    (Path.home() / ".subagents/settings.toml").write_text("[mcp.files]\ncommand = 'sh'\n")
    plan = make_plan(1, items=(StepItem(step=0),), mode="chain")
    snapshot = Snapshot(run_id=plan.run_id, plan=plan, status=make_status(1))
    asked = chain(step("user", "go on", model="scripted:echo"))
    (planned,) = plan_appendix(asked, plan, snapshot).steps
    assert [one.name for one in planned.mcp] == ["files"]


@pytest.mark.parametrize(
    ("of_launch", "of_step", "found"),
    [
        ({"sandbox": "workspace"}, {}, SandboxPlan()),
        ({"sandbox": "workspace", "network": True}, {}, SandboxPlan(network=True)),
        ({}, {"sandbox": "workspace"}, SandboxPlan()),
        ({}, {}, None),
        ({"sandbox": "workspace"}, {"sandbox": "none"}, "this launch says workspace"),
        ({"network": False}, {"sandbox": "workspace", "network": True}, "this launch says network false"),
    ],
)
def test_what_is_appended_works_in_the_sandbox_of_its_chain(
    store_home: StoreHome,
    tmp_path: Path,
    of_launch: dict[str, Any],
    of_step: dict[str, Any],
    found: SandboxPlan | str | None,
) -> None:
    del store_home
    (Path.home() / ".subagents/agents").mkdir(parents=True)
    (Path.home() / ".subagents/agents/coder.md").write_text("---\nname: coder\ndescription: d\ntools: bash\n---\nx\n")
    work = tmp_path / "place"
    work.mkdir()
    known = LaunchDefaults(asked=of_launch)
    plan = make_plan(1, items=(StepItem(step=0),), mode="chain", defaults=known, cwd=str(work))
    snapshot = Snapshot(run_id=plan.run_id, plan=plan, status=make_status(1))
    flow = chain(step("coder", "go on", model="scripted:echo", **of_step))
    if isinstance(found, str):
        with pytest.raises(AppendRefused, match=found):
            plan_appendix(flow, plan, snapshot)
        return
    if found is not None and not makes_namespaces():
        pytest.skip("a kernel that makes no namespaces")
    (planned,) = plan_appendix(flow, plan, snapshot).steps
    assert planned.sandbox == found
