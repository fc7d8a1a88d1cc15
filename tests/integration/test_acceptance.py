"""A step is done when what was asked of it is shown: gates, reports and reviewers over real runs."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from support import alive, script, until

from subagents_nb import Run, chain, launch, parallel, step
from subagents_nb.domain.plans.acceptance import Ledger
from subagents_nb.domain.runs.records import StepResult
from subagents_nb.domain.runs.states import RunState
from subagents_nb.store import StoreHome

pytestmark = [pytest.mark.timeout(60), pytest.mark.usefixtures("shared_home")]

REPORT = {
    "criteriaSatisfied": [{"id": "rows", "status": "satisfied", "evidence": "read data.csv"}],
    "changedFiles": ["out.txt"],
    "residualRisks": ["none"],
}


def agent(name: str, model: str, **fields: str) -> None:
    folder = Path(".subagents/agents")
    folder.mkdir(parents=True, exist_ok=True)
    head = "".join(f"{key}: {value}\n" for key, value in fields.items())
    (folder / f"{name}.md").write_text(f"---\nname: {name}\ndescription: d\nmodel: {model}\n{head}---\nDo it.\n")


def answer(report: Any, text: str = "Three rows.") -> dict[str, Any]:
    return {"text": f"{text}\n\n```acceptance-report\n{json.dumps(report)}\n```\n"}


def ended(run: Run, home: StoreHome) -> StepResult:
    run.wait(40)
    result = run.status.result
    assert result is not None
    return result.steps[0]


def ledger_of(done: StepResult) -> Ledger:
    assert done.acceptance is not None
    return done.acceptance


def test_a_gate_that_succeeds_lets_the_run_be_complete(shared_home: StoreHome) -> None:
    Path("x").write_text("")
    run = launch("scout", "hello", model="scripted:echo", gate="test -f x")
    done = ended(run, shared_home)
    ledger = ledger_of(done)
    assert (run.state, ledger.status, ledger.verify_runs[0].exit_code) == (RunState.COMPLETE, "verified", 0)
    assert done.text.startswith("hello")


def test_a_gate_that_fails_rejects_the_run_and_says_why(shared_home: StoreHome) -> None:
    run = launch("scout", "hello", model="scripted:echo", gate="echo no x here; test -f x")
    ledger = ledger_of(ended(run, shared_home))
    assert (run.state, ledger.status) == (RunState.REJECTED, "rejected")
    assert ledger.verify_runs[0].output == "no x here\n"
    assert "gate: exit code 1" in (run.status.error or "")


def test_a_report_is_read_and_leaves_the_answer(shared_home: StoreHome) -> None:
    model = script("reporting", answer(REPORT))
    asked = {"criteria": [{"id": "Rows", "must": "the rows are counted"}], "evidence": ["residual-risks"]}
    run = launch("scout", "count", model=model, acceptance=asked)
    done = ended(run, shared_home)
    assert (run.state, done.text, ledger_of(done).status) == (RunState.COMPLETE, "Three rows.", "checked")
    assert run.output == "Three rows."


def test_an_answer_without_the_report_that_was_asked_for_is_rejected(shared_home: StoreHome) -> None:
    run = launch("scout", "count", model=script("silent", {"text": "Three rows."}), acceptance="attested")
    assert ended(run, shared_home).text == "Three rows."
    assert run.state is RunState.REJECTED and "no acceptance report" in (run.status.error or "")


def test_a_model_that_says_its_task_back_has_reported_nothing(shared_home: StoreHome) -> None:
    run = launch("scout", "count", model="scripted:echo", acceptance="attested")
    ledger = ledger_of(ended(run, shared_home))
    assert ledger.status == "rejected" and "can't be used" in ledger.reason


def test_under_an_agent_contract_a_rejection_is_only_reported(shared_home: StoreHome) -> None:
    asked = {"verify": "false", "agent_contract": {"version": 1}}
    run = launch("scout", "count", model="scripted:echo", acceptance=asked)
    assert ledger_of(ended(run, shared_home)).status == "rejected"
    assert run.state is RunState.COMPLETE
    strict = launch("scout", "count", model="scripted:echo", acceptance={**asked, "gateOn": "acceptance"})
    ended(strict, shared_home)
    assert strict.state is RunState.REJECTED


def test_what_is_only_inferred_is_shown_and_fails_nothing(shared_home: StoreHome) -> None:
    agent("mender", script("plain", {"text": "Mended."}), acceptanceRole="writer", tools="read, write")
    run = launch("mender", "mend it")
    ledger = ledger_of(ended(run, shared_home))
    assert (run.state, ledger.explicit, ledger.status) == (RunState.COMPLETE, False, "claimed")


@pytest.mark.parametrize(
    ("verdict", "state", "status"),
    [
        ({"value": {"accepted": True, "reasons": ["all there"]}}, RunState.COMPLETE, "reviewed"),
        ({"value": {"accepted": False, "reasons": ["row 3 is missing"]}}, RunState.REJECTED, "rejected"),
        ({"value": {"verdict": "fine"}}, RunState.REJECTED, "rejected"),
        ({"fail": {"message": "no time"}}, RunState.REJECTED, "rejected"),
    ],
)
def test_a_reviewer_decides(shared_home: StoreHome, verdict: dict[str, Any], state: RunState, status: str) -> None:
    agent("judge", script("judge", {"usage": {"input_tokens": 100, "requests": 1}}, verdict), tools="read")
    agent("clerk", script("clerk", {"text": "Three rows."}))
    run = launch("clerk", "count", acceptance={"review": {"agent": "judge"}})
    done = ended(run, shared_home)
    assert (run.state, ledger_of(done).status) == (state, status)
    assert done.usage.input_tokens >= 100, "what the reviewer used is part of the step's usage"
    assert (shared_home.run(run.id).step(0) / "review" / "session.json").is_file()


def test_a_reviewer_who_need_not_answer_leaves_the_review_open(shared_home: StoreHome) -> None:
    agent("judge", script("judge", {"fail": {"message": "no time"}}))
    agent("clerk", script("clerk", {"text": "Three rows."}))
    run = launch("clerk", "count", acceptance={"review": {"agent": "judge", "required": False}})
    ledger = ledger_of(ended(run, shared_home))
    assert (run.state, ledger.status) == (RunState.COMPLETE, "review-required")


def test_a_run_that_is_stopped_while_its_gate_is_at_work_takes_that_with_it(shared_home: StoreHome) -> None:
    run = launch("scout", "hello", model="scripted:echo", gate="echo $$ > gate.pid; sleep 300; true")
    until(lambda: Path("gate.pid").is_file() and Path("gate.pid").read_text(), 20, what="the gate's beginning")
    pid = int(Path("gate.pid").read_text())
    until(lambda: run.status.status and run.status.status.steps[0].activity == "verify", 5, what="the gate on show")
    run.stop()
    done = ended(run, shared_home)
    assert (run.state, done.acceptance) == (RunState.STOPPED, None)
    until(lambda: not alive(pid), 5, what="the end of the gate")


def test_two_steps_over_the_same_files_share_what_their_gate_said(shared_home: StoreHome) -> None:
    for args in (
        ["init", "-q"],
        ["-c", "user.name=t", "-c", "user.email=t@t", "commit", "-q", "--allow-empty", "-m", "x"],
    ):
        subprocess.run(["git", *args], check=True)
    flow = chain(step("scout", "a", gate="true"), step("scout", "b", gate="true"))
    run = launch(flow, model="scripted:echo")
    run.wait(40)
    result = run.status.result
    assert result is not None
    assert [ledger_of(one).verify_runs[0].memoised for one in result.steps] == [False, True]


def test_a_step_that_failed_is_not_looked_at(shared_home: StoreHome) -> None:
    run = launch("scout", "count", model="scripted:fail", gate="touch looked")
    assert ended(run, shared_home).acceptance is None
    assert run.state is RunState.FAILED and not Path("looked").exists()


def test_each_step_of_a_group_has_its_own_gate(shared_home: StoreHome) -> None:
    flow = parallel(step("scout", "a", gate="true"), step("scout", "b", gate="false"))
    run = launch(flow, model="scripted:echo")
    run.wait(40)
    assert [one.state for one in run.steps] == ["complete", "rejected"]
