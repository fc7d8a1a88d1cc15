"""The reports of several as one: what one leaves out the whole leaves out, and one blocker is one of the whole."""

from __future__ import annotations

from typing import Any

from subagents_nb.domain.acceptance.joining import MemberReport, joined
from subagents_nb.domain.acceptance.reports import CriterionReport, Report
from subagents_nb.domain.acceptance.verdict import Evaluation, evaluate
from subagents_nb.domain.plans.acceptance import Acceptance, Criterion

ASKED = Acceptance(
    level="checked",
    explicit=True,
    criteria=(Criterion(id="rows", must="all rows are counted"),),
    evidence=("residual-risks", "review-findings"),
    report="required",
)


def report(status: Any = "satisfied", evidence: str = "counted", **more: Any) -> Report:
    said = (CriterionReport(id="rows", status=status, evidence=evidence),)
    return Report(**{"criteria": said, "residual_risks": ("none",), "review_findings": ("no blockers",), **more})


def verdict(*reports: Report | None) -> tuple[str, str]:
    whole, problem = joined(ASKED, [MemberReport(f"step {n}", one, None) for n, one in enumerate(reports)])
    ledger = evaluate(ASKED, Evaluation(report=whole, report_problem=problem))
    return ledger.status, ledger.reason


def test_what_all_show_the_whole_shows_with_who_said_it() -> None:
    assert verdict(report(), report())[0] == "checked"
    whole, _ = joined(
        ASKED, [MemberReport("step 0", report(evidence="a")), MemberReport("step 1", report("not-applicable", "b"))]
    )
    assert whole is not None and whole.criteria[0].evidence == "step 0: a"


def test_one_that_falls_short_fails_the_whole_and_is_named() -> None:
    assert verdict(report(), report("not-satisfied", "two are missing")) == (
        "rejected", "criterion rows: said not to hold: step 1: two are missing",
    )  # fmt: skip
    assert "step 1: its report says nothing of it" in verdict(report(), report(criteria=()))[1]
    assert "step 0: without evidence" in verdict(report(evidence=""), report())[1]
    assert "blocker" in verdict(report(), report(review_findings=("blocker: x",)))[1]
    assert verdict(report(), report(residual_risks=None))[1] == "residual-risks: the report does not have it"


def test_a_report_that_is_missing_is_missing_of_the_whole() -> None:
    assert verdict(report(), None) == ("rejected", "the report of a member is missing: step 1: it gave none")
    assert verdict() == ("rejected", "no member reports")
