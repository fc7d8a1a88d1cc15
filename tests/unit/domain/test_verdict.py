"""Whether a step is accepted: what each kind of evidence comes to, and what never counts."""

from __future__ import annotations

from typing import Any

import pytest

from subagents_nb.domain.acceptance.verdict import Evaluation, evaluate
from subagents_nb.domain.plans.acceptance import Acceptance, Finding, Judgement, Verify, VerifyRun
from subagents_nb.domain.values.usage import Usage

GOOD = VerifyRun(id="t", command="make", passed=True, exit_code=0)
BAD = VerifyRun(id="t", command="make", passed=False, exit_code=2)
ASKED = (Verify(id="t", command="make"),)
REVIEW = {"agent": "judge"}


def asked(level: str = "checked", **fields: Any) -> Acceptance:
    return Acceptance.model_validate({"level": level, "explicit": True, "report": "required", **fields})


def seen(report: dict[str, Any] | None = None, **fields: Any) -> Evaluation:
    return Evaluation.model_validate({"report": report, **fields})


def judged(accepted: bool | None, *reasons: str) -> dict[str, Any]:
    return {"agent": "judge", "accepted": accepted, "reasons": reasons}


def said(status: str = "satisfied", evidence: str = "e", name: str = "a") -> dict[str, Any]:
    return {"criteria": [{"id": name, "status": status, "evidence": evidence}]}


ONE = [{"id": "a", "must": "m"}]
SOFT = [{"id": "a", "must": "m", "severity": "recommended"}]

TABLE: list[tuple[str, Acceptance, Evaluation, str, str]] = [
    ("nothing asked", asked("none", reason="draft", report="off"), seen(), "not-asked", "draft"),
    ("no report", asked("attested"), seen(report_problem="the answer has none"), "rejected", "the answer has none"),
    ("a report", asked("attested"), seen({}), "attested", ""),
    ("a report at level checked", asked(), seen({}), "checked", ""),
    ("optional and missing", asked(report="optional", evidence=["tests-added"]), seen(), "claimed", ""),
    ("off", asked(report="off"), seen(), "checked", ""),
    ("a criterion that holds", asked(criteria=ONE), seen(said()), "checked", ""),
    (
        "one that doesn't",
        asked(criteria=ONE),
        seen(said("not-satisfied", "no time")),
        "rejected",
        "criterion a: said not to hold: no time",
    ),
    (
        "one without evidence",
        asked(criteria=ONE),
        seen(said(evidence="")),
        "rejected",
        "said to hold, without evidence",
    ),
    (
        "one that nobody mentions",
        asked(criteria=ONE),
        seen(said(name="b")),
        "rejected",
        "the report says nothing of it",
    ),
    ("one that does not apply", asked(criteria=ONE), seen(said("not-applicable")), "rejected", "said not to apply"),
    ("only recommended", asked(criteria=SOFT), seen(said("not-satisfied")), "checked", ""),
    (
        "missing tests",
        asked(evidence=["tests-added"]),
        seen({}),
        "rejected",
        "tests-added: the report does not have it",
    ),
    ("no tests were needed", asked(evidence=["tests-added"]), seen({"tests_added": []}), "checked", ""),
    ("no commands", asked(evidence=["commands-run"]), seen({"commands_run": []}), "rejected", "the list is empty"),
    (
        "no risks named",
        asked(evidence=["residual-risks"]),
        seen({"residual_risks": []}),
        "rejected",
        "the list is empty",
    ),
    ("no notes", asked(evidence=["manual-notes"]), seen({}), "rejected", "manual-notes: they are empty"),
    (
        "a blocker",
        asked(evidence=["review-findings"]),
        seen({"review_findings": ["Blocker: x"]}),
        "rejected",
        "a blocker",
    ),
    (
        "a change left out",
        asked(evidence=["changed-files"]),
        seen({"changed_files": ["./b.py"]}, observed={"changed_files": ["a.py", "b.py"]}),
        "rejected",
        "leaves out a.py",
    ),
    (
        "all changes named",
        asked(evidence=["changed-files"]),
        seen({"changed_files": ["/w/a.py", "./b.py"]}, observed={"changed_files": ["a.py", "b.py"]}),
        "checked",
        "",
    ),
    (
        "staged",
        asked(evidence=["no-staged-files"]),
        seen({"no_staged_files": True}, observed={"staged": ["x"]}),
        "rejected",
        "git has staged x",
    ),
    (
        "said to be staged",
        asked(evidence=["no-staged-files"]),
        seen({"no_staged_files": False}),
        "rejected",
        "files are staged",
    ),
    (
        "staged, without a report",
        asked(evidence=["no-staged-files"], report="off"),
        seen(observed={"staged": ["x"]}),
        "rejected",
        "git has staged x",
    ),
    ("not in git", asked(evidence=["no-staged-files"]), seen({}), "checked", ""),
    ("commands succeed", asked("verified", verify=ASKED, report="off"), seen(verify_runs=[GOOD]), "verified", ""),
    (
        "a command fails",
        asked("verified", verify=ASKED, report="off"),
        seen(verify_runs=[GOOD, BAD]),
        "rejected",
        "t: exit code 2",
    ),
    (
        "a command that may fail",
        asked("verified", verify=ASKED, report="off"),
        seen(verify_runs=[BAD.model_copy(update={"allow_failure": True})]),
        "verified",
        "",
    ),
    (
        "a command was ended",
        asked("verified", verify=ASKED, report="off"),
        seen(verify_runs=[BAD.model_copy(update={"exit_code": None, "seconds": 2.0})]),
        "rejected",
        "no exit code after 2 s",
    ),
    (
        "the agent's word is no verification",
        asked("checked", evidence=["validation-output"]),
        seen({"validation_output": ["all green"], "commands_run": [{"command": "x", "result": "passed"}]}),
        "checked",
        "",
    ),
    ("accepted", asked(review=REVIEW, report="off"), seen(judgement=judged(True)), "reviewed", ""),
    (
        "rejected",
        asked(review=REVIEW, report="off"),
        seen(judgement=judged(False, "row 3")),
        "rejected",
        "reviewer judge rejected: row 3",
    ),
    (
        "no verdict",
        asked(review=REVIEW, report="off"),
        seen(judgement=judged(None, "no time")),
        "rejected",
        "reviewer judge no answer: no time",
    ),
    (
        "no verdict and none needed",
        asked(review={**REVIEW, "required": False}, report="off"),
        seen(judgement=judged(None)),
        "review-required",
        "",
    ),
    (
        "rejected, which is advice",
        asked(review={**REVIEW, "required": False}, report="off"),
        seen(judgement=judged(False)),
        "checked",
        "",
    ),
    (
        "the reviewer judges criteria",
        asked(criteria=ONE, review=REVIEW, report="off"),
        seen(judgement=judged(False, "r")),
        "rejected",
        "criterion a: the reviewer rejected the work",
    ),
]


@pytest.mark.parametrize(("name", "what", "found", "status", "why"), TABLE, ids=[row[0] for row in TABLE])
def test_what_a_step_comes_to(name: str, what: Acceptance, found: Evaluation, status: str, why: str) -> None:
    ledger = evaluate(what, found)
    assert ledger.status == status, ledger
    assert why in ledger.reason and (why or not ledger.reason)
    assert ledger.rejected == (status == "rejected")


def test_every_fault_is_named_and_the_whole_stays_short() -> None:
    ledger = evaluate(asked(criteria=ONE, evidence=["tests-added"]), seen({}))
    assert ledger.reason.count(";") == 1
    long = evaluate(asked(criteria=ONE), seen(said("not-satisfied", "x" * 2000)))
    assert len(long.reason) <= 600


def test_the_ledger_keeps_what_it_was_judged_by() -> None:
    usage = Usage(input_tokens=3, requests=1)
    judgement = Judgement(agent="judge", accepted=True, reasons=("fine",), usage=usage)
    found = Evaluation(report=seen({"residual_risks": ["none"]}).report, verify_runs=(GOOD,), judgement=judgement)
    ledger = evaluate(asked("verified", verify=ASKED, review=REVIEW, evidence=["residual-risks"]), found)
    assert (ledger.status, ledger.review_usage, ledger.verify_runs) == ("reviewed", usage, (GOOD,))
    assert ledger.review == Finding(id="judge", ok=True, text="accepted: fine")
    assert ledger.report is not None and ledger.report["residual_risks"] == ["none"]
    assert ledger.checks == (Finding(id="residual-risks", ok=True, text="none"),)
