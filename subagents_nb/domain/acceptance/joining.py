"""The reports of a group's members as one report on all of it. What one member leaves out, the whole leaves out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from subagents_nb.domain.acceptance.reports import CriterionReport, Report
from subagents_nb.domain.plans.acceptance import Acceptance

_LISTS = ("changed_files", "tests_added", "commands_run", "validation_output", "residual_risks", "review_findings")
_TEXTS = ("diff_summary", "manual_notes")
_NAMED = 5


class MemberReport(NamedTuple):
    """What one member said of its part."""

    who: str
    report: Report | None
    problem: str | None = None  # why there is none


def joined(asked: Acceptance, members: Sequence[MemberReport]) -> tuple[Report | None, str | None]:
    """Return the report on the whole, and why there is none: one is missing where one of a member's is.

    A criterion holds when it holds for every member to whom it applies; a blocker of one is one of the whole.
    """
    missing = [one for one in members if one.report is None]
    if missing or not members:
        named = "; ".join(f"{one.who}: {one.problem or 'it gave none'}" for one in missing[:_NAMED])
        more = f" and {len(missing) - _NAMED} more" if len(missing) > _NAMED else ""
        return None, f"the report of a member is missing: {named}{more}" if missing else "no member reports"
    reports = [(one.who, one.report) for one in members if one.report is not None]
    update: dict[str, Any] = {name: _list(name, reports) for name in _LISTS}
    update |= {name: _text(name, reports) for name in _TEXTS}
    staged = [report.no_staged_files for _, report in reports]
    update["no_staged_files"] = False if False in staged else None if None in staged else True
    update["criteria"] = tuple(_criterion(one.id, reports) for one in asked.criteria)
    return Report(**update), None


def _criterion(name: str, reports: Sequence[tuple[str, Report]]) -> CriterionReport:
    verdicts = [(who, next((one for one in report.criteria if one.id == name), None)) for who, report in reports]
    lacking = [f"{who}: {why}" for who, one in verdicts if (why := _unsatisfied_reason(one))]
    if lacking:
        return CriterionReport(id=name, status="not-satisfied", evidence="; ".join(lacking[:_NAMED]))
    every = [(one.status, f"{who}: {one.evidence}") for who, one in verdicts if one is not None]
    satisfied = [text for status, text in every if status == "satisfied"]
    if satisfied:
        return CriterionReport(id=name, status="satisfied", evidence="; ".join(satisfied[:_NAMED]))
    return CriterionReport(id=name, status="not-applicable", evidence="; ".join(text for _, text in every[:_NAMED]))


def _unsatisfied_reason(one: CriterionReport | None) -> str:
    if one is None:
        return "its report says nothing of it"
    if one.status == "not-satisfied":
        return one.evidence or "without a reason"
    return "" if one.evidence else "without evidence"


def _list(name: str, reports: Sequence[tuple[str, Report]]) -> tuple[Any, ...] | None:
    lists = [getattr(report, name) for _, report in reports]
    return None if None in lists else tuple(dict.fromkeys(entry for entries in lists for entry in entries))


def _text(name: str, reports: Sequence[tuple[str, Report]]) -> str:
    texts = [(who, getattr(report, name)) for who, report in reports]
    return "" if not all(text for _, text in texts) else "\n".join(f"{who}: {text}" for who, text in texts)
