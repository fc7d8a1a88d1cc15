"""A group is judged once, as a whole, when all of it has ended: carried out in this process."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from support import make_step
from unit.runner.flows import run_flow, write_script

from subagents_nb import expand, parallel, step
from subagents_nb.domain.plans.plan import StepPlan
from subagents_nb.domain.policy.policy import Ceiling, Policy
from subagents_nb.domain.policy.sandbox_plan import SandboxPlan
from subagents_nb.domain.runs.resuming import chain_can_resume
from subagents_nb.domain.runs.states import RunState, StepState
from subagents_nb.runner.chains.accepting_all import _strictest
from subagents_nb.runner.steps.step_run import StepWork
from subagents_nb.store import StoreHome, open_home

LIST = {"type": "object", "properties": {"files": {"type": "array"}}}
COUNTS = "echo x >> runs.txt"
TWO = (step("scout", "a"), step("scout", "b"))
AFTER = step("scout", "then {previous}")
CONTRACT = {"version": 1}


@pytest.fixture
def home(tmp_path: Path) -> StoreHome:
    return open_home(tmp_path / "store")


@pytest.fixture
def work(tmp_path: Path) -> Path:
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


def states(result: Any) -> list[str]:
    return [str(one.state) for one in result.steps]


def reported(work: Path, name: str, status: str, evidence: str) -> str:
    report = {"criteriaSatisfied": [{"id": "rows", "status": status, "evidence": evidence}]}
    return write_script(work, name, {"text": f"Done.\n\n```acceptance-report\n{json.dumps(report)}\n```\n"})


def test_its_command_runs_once_behind_all_its_steps(home: StoreHome, work: Path) -> None:
    flow = parallel(*TWO, gate=COUNTS)
    _, result = run_flow(home, work, flow, AFTER)
    assert (result.state, result.error) == (RunState.COMPLETE, None)
    assert (work / "runs.txt").read_text() == "x\n"
    (stage, _) = result.stages
    assert stage.state is StepState.COMPLETE and stage.acceptance is not None
    assert (stage.acceptance.status, [one.passed for one in stage.acceptance.verify_runs]) == ("verified", [True])


def test_what_status_holds_of_a_verdict_is_bounded(home: StoreHome, work: Path) -> None:
    _, result = run_flow(home, work, parallel(*TWO, gate="seq 100000; echo the end"))
    ledger = result.stages[0].acceptance
    assert ledger is not None
    (run,) = ledger.verify_runs
    assert len(run.output) <= 2_000 and run.output.rstrip().endswith("the end")


def test_one_that_is_not_accepted_fails_by_its_rules(home: StoreHome, work: Path) -> None:
    carried, result = run_flow(home, work, parallel(*TWO, gate="exit 3", label="both"), AFTER)
    assert (result.state, result.reason) == (RunState.REJECTED, "rejected")
    assert result.error == "both was not accepted: gate: exit code 3"
    assert (states(result), result.stages[0].state) == (["complete", "complete", "skipped"], StepState.REJECTED)
    assert chain_can_resume(carried.look())  # its steps stand, the verdict is asked for anew
    _, result = run_flow(home, work, parallel(*TWO, gate="exit 3", on_failure="continue"), AFTER)
    assert (result.state, states(result)) == (RunState.PARTIAL, ["complete"] * 3)
    assert result.error == "stage 1: the parallel group was not accepted: gate: exit code 3"


@pytest.mark.parametrize(("gate_on", "state"), [(None, RunState.COMPLETE), ("acceptance", RunState.REJECTED)])
def test_under_a_contract_a_rejection_is_reported_unless_the_chain_waits_for_acceptance(
    home: StoreHome, work: Path, gate_on: str | None, state: RunState
) -> None:
    _, result = run_flow(home, work, parallel(*TWO, gate="exit 3", gate_on=gate_on), agent_contract=CONTRACT)
    assert result.state is state
    assert result.stages[0].acceptance is not None and result.stages[0].acceptance.rejected


def test_its_steps_report_and_the_whole_is_judged_by_all_of_it(home: StoreHome, work: Path) -> None:
    good = step("scout", "a", model=reported(work, "good", "satisfied", "counted"))
    bad = step("scout", "b", model=reported(work, "bad", "not-satisfied", "two are missing"))
    asked = {"criteria": [{"id": "rows", "must": "all rows are counted"}], "verify": [COUNTS]}
    _, result = run_flow(home, work, parallel(good, good, acceptance=asked))
    assert (result.state, result.error) == (RunState.COMPLETE, None)
    assert [one.text for one in result.steps] == ["Done.", "Done."]
    _, result = run_flow(home, work, parallel(good, bad, acceptance=asked))
    assert (result.state, states(result)) == (RunState.REJECTED, ["complete", "complete"])
    assert result.error is not None and "steps[1] (scout): two are missing" in result.error
    assert (work / "runs.txt").read_text() == "x\n"  # what costs more is done only when the reports hold


def test_a_fan_out_is_judged_over_all_its_items_and_an_empty_one_is_not(home: StoreHome, work: Path) -> None:
    for found, runs in ((["a", "b"], "x\n"), ([], None)):
        (work / "runs.txt").unlink(missing_ok=True)
        model = write_script(work, f"find{len(found)}", {"value": {"files": found}})
        find = step("scout", "find", as_="f", schema=LIST, model=model)
        _, result = run_flow(home, work, find, expand("f", "/files", step("scout", "{item}"), max_items=3, gate=COUNTS))
        assert (result.state, result.error) == (RunState.COMPLETE, None)
        assert ((work / "runs.txt").read_text() if (work / "runs.txt").exists() else None) == runs


def test_where_a_step_fell_short_nothing_is_run_and_the_reason_is_kept(home: StoreHome, work: Path) -> None:
    flow = parallel(step("scout", "a"), step("scout", "b", model="scripted:fail"), gate=COUNTS, on_failure="continue")
    _, result = run_flow(home, work, flow)
    assert result.state is RunState.PARTIAL and not (work / "runs.txt").exists()
    ledger = result.stages[0].acceptance
    assert ledger is not None and (ledger.status, "steps[1] failed" in ledger.reason) == ("skipped", True)


def test_an_answer_beyond_its_bound_is_given_on_in_part_and_kept_whole(home: StoreHome, work: Path) -> None:
    model = write_script(work, "long", {"text": "0123456789" * 5})
    carried, result = run_flow(home, work, step("scout", "a", model=model, max_output=12), AFTER)
    first = result.steps[0]
    assert (first.text, first.text_file) == ("012345678901", "steps/0/output.txt")
    assert (carried.writer.paths.root / "steps/0/output.txt").read_text() == "0123456789" * 5
    assert "[Cut: only the first 12 characters of this answer are given]\n012345678901" in result.steps[1].text


def test_commands_of_a_group_are_in_the_sandbox_that_any_member_is_under() -> None:
    """A step that starts nothing has none of its own, and is under the word of who wants one all the same."""
    ruled = Policy(ceilings=(Ceiling(origin="managed", sandbox="workspace"),))
    plain, under = make_step(), make_step(policy=ruled)
    boxed = make_step(sandbox=SandboxPlan(network=True))

    def of(*steps: StepPlan) -> SandboxPlan | None:
        return _strictest([cast(StepWork, SimpleNamespace(step=step)) for step in steps])

    assert of(plain) is None
    assert of(plain, under) == SandboxPlan()
    assert of(boxed) == SandboxPlan(network=True)
    assert of(boxed, make_step(sandbox=SandboxPlan())) == SandboxPlan()
