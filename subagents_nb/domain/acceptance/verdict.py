"""Decide whether a step is accepted, from what it says, what the runner saw, what commands and a reviewer said."""

from __future__ import annotations

from collections.abc import Iterable

from subagents_nb.domain.acceptance.reports import CriterionReport, Report
from subagents_nb.domain.plans.acceptance import (
    LEVELS,
    SEEN_BY_RUNNER,
    Acceptance,
    Criterion,
    Evidence,
    Finding,
    Judgement,
    Ledger,
    Status,
    VerifyRun,
)
from subagents_nb.domain.values.base import Value
from subagents_nb.domain.values.words import one_line

_NAMED = 5
_REASON_CHARS = 600


class Observed(Value):
    """What the runner saw by itself when the step had ended."""

    changed_files: tuple[str, ...] = ()  # by the step's own write tools
    staged: tuple[str, ...] | None = None  # staged by the step; None: it did not work in a git tree


class Evaluation(Value):
    """Everything an acceptance is judged by. What is None has not been looked at."""

    report: Report | None = None
    report_problem: str | None = None  # why there is none, or why it can't be used
    observed: Observed = Observed()
    verify_runs: tuple[VerifyRun, ...] | None = None
    judgement: Judgement | None = None


def evaluate(asked: Acceptance, seen: Evaluation) -> Ledger:
    """Return the ledger of a step that ended well. What the agent says of itself never counts as verified."""
    if asked.level == "none":
        return Ledger(level="none", explicit=asked.explicit, status="not-asked", reason=asked.reason or "")
    report = None if asked.report == "off" else seen.report
    criteria = tuple(_criterion(one, asked, report, seen.judgement) for one in _judged(asked, report, seen))
    checks = tuple(_check(kind, report, seen) for kind in asked.evidence if report is not None or _is_seen(kind))
    runs = seen.verify_runs or ()
    review = _review(asked, seen.judgement)
    faults = list(_faults(asked, report, seen.report_problem, criteria, checks, runs, review))
    status: Status = "rejected" if faults else _reached(asked, report, seen)
    return Ledger(
        level=asked.level,
        explicit=asked.explicit,
        status=status,
        reason=_short("; ".join(faults)),
        criteria=criteria,
        checks=checks,
        verify_runs=runs,
        report=report.model_dump(mode="json", exclude_none=True) if report is not None else None,
        report_problem=seen.report_problem if asked.report != "off" else None,
        review=review,
        review_usage=seen.judgement.usage if seen.judgement is not None else None,
    )


def _judged(asked: Acceptance, report: Report | None, seen: Evaluation) -> Iterable[Criterion]:
    """Return the criteria that somebody has said something of."""
    if report is not None or asked.report == "required":
        return asked.criteria
    return asked.criteria if seen.judgement is not None and seen.judgement.accepted is not None else ()


def _is_seen(kind: Evidence) -> bool:
    return kind in SEEN_BY_RUNNER


def _criterion(one: Criterion, asked: Acceptance, report: Report | None, judgement: Judgement | None) -> Finding:
    required = one.severity == "required"
    reported = next((c for c in report.criteria if c.id == one.id), None) if report is not None else None
    if reported is None and asked.report != "required" and judgement is not None and judgement.accepted is not None:
        text = "the reviewer accepted the work" if judgement.accepted else "the reviewer rejected the work"
        return Finding(id=one.id, ok=judgement.accepted, text=text, required=required)
    ok, text = _satisfied(reported, required)
    return Finding(id=one.id, ok=ok, text=text, required=required)


def _satisfied(reported: CriterionReport | None, required: bool) -> tuple[bool, str]:
    if reported is None:
        return False, "the report says nothing of it"
    if reported.status == "not-applicable":
        return not required, f"said not to apply: {reported.evidence or 'without a reason'}"
    if reported.status == "not-satisfied":
        return False, f"said not to hold: {reported.evidence or 'without a reason'}"
    return bool(reported.evidence), reported.evidence or "said to hold, without evidence"


def _check(kind: Evidence, report: Report | None, seen: Evaluation) -> Finding:
    observed = seen.observed
    if kind == "no-staged-files":
        ok, text = _nothing_staged(report, observed)
    elif report is None:
        ok, text = False, "it stands in a report only, and there is none"
    else:
        ok, text = _in_report(kind, report, observed, seen.verify_runs or ())
    return Finding(id=kind, ok=ok, text=text)


def _nothing_staged(report: Report | None, observed: Observed) -> tuple[bool, str]:
    if observed.staged:
        return False, f"git has staged {_names(observed.staged)}"
    if report is not None and report.no_staged_files is False:
        return False, "the report says that files are staged"
    return True, "nothing is staged" if observed.staged is not None else "not in a git tree"


def _in_report(kind: Evidence, report: Report, observed: Observed, runs: tuple[VerifyRun, ...]) -> tuple[bool, str]:
    match kind:
        case "changed-files":
            return _changed(report, observed)
        case "tests-added":
            return _listed(report.tests_added, may_be_empty=True)
        case "commands-run":
            ran = report.commands_run
            return _listed(None if ran is None else tuple(f"{one.command}: {one.result}" for one in ran))
        case "validation-output":
            return (True, "the commands of the runner") if runs else _listed(report.validation_output)
        case "residual-risks":
            return _listed(report.residual_risks)
        case "review-findings":
            findings = report.review_findings
            blockers = [text for text in findings or () if text.lower().startswith("blocker")]
            return (False, f"it names a blocker: {_names(blockers)}") if blockers else _listed(findings)
        case "diff-summary":
            return bool(report.diff_summary), _short(report.diff_summary) or "it is empty"
        case _:
            return bool(report.manual_notes), _short(report.manual_notes) or "they are empty"


def _changed(report: Report, observed: Observed) -> tuple[bool, str]:
    claimed = report.changed_files
    if claimed is None:
        return False, "the report does not list them"
    claimed_paths = {_path(path) for path in claimed}
    # An agent may write an absolute path or one from the repository's root.
    missing = [p for p in observed.changed_files if not any(k == p or k.endswith(f"/{p}") for k in claimed_paths)]
    if missing:
        return False, f"the report leaves out {_names(missing)}"
    return True, _names(claimed) if claimed else "none"


def _listed(entries: tuple[str, ...] | None, *, may_be_empty: bool = False) -> tuple[bool, str]:
    if entries is None:
        return False, "the report does not have it"
    if not entries:
        return may_be_empty, "none" if may_be_empty else "the list is empty"
    return True, _names(entries)


def _review(asked: Acceptance, judgement: Judgement | None) -> Finding | None:
    if asked.review is None or judgement is None:
        return None
    reasons = _short("; ".join(judgement.reasons)) or "no reason was given"
    text = {True: f"accepted: {reasons}", False: f"rejected: {reasons}", None: f"no answer: {reasons}"}[
        judgement.accepted
    ]
    return Finding(id=judgement.agent, ok=judgement.accepted is True, text=text, required=asked.review.required)


def _faults(
    asked: Acceptance,
    report: Report | None,
    problem: str | None,
    criteria: tuple[Finding, ...],
    checks: tuple[Finding, ...],
    runs: tuple[VerifyRun, ...],
    review: Finding | None,
) -> Iterable[str]:
    if asked.report == "required" and report is None:
        # The criteria would only say the same again.
        yield problem or "the answer has no acceptance report"
    else:
        yield from (f"criterion {one.id}: {one.text}" for one in criteria if one.required and not one.ok)
    yield from (f"{one.id}: {one.text}" for one in checks if one.required and not one.ok)
    yield from (f"{run.id}: {how_it_went(run)}" for run in runs if not run.passed and not run.allow_failure)
    if review is not None and review.required and not review.ok:
        yield f"reviewer {review.id} {review.text}"


def _reached(asked: Acceptance, report: Report | None, seen: Evaluation) -> Status:
    status: Status = "attested" if report is not None else "claimed"
    if LEVELS.index(asked.level) >= LEVELS.index("checked") and (report is not None or asked.report == "off"):
        status = "checked"
    if asked.verify and seen.verify_runs is not None:
        status = "verified"
    if asked.review is not None and seen.judgement is not None:
        if seen.judgement.accepted is None:
            return "review-required"
        return "reviewed" if seen.judgement.accepted else status
    return status


def how_it_went(run: VerifyRun) -> str:
    """Say how a verify command went, in a few words."""
    if run.passed:
        return "passed"
    if run.exit_code is None:
        return f"no exit code after {run.seconds:.3g} s"
    return f"exit code {run.exit_code}"


def _path(path: str) -> str:
    return path.replace("\\", "/").removeprefix("./")


def _names(entries: Iterable[str]) -> str:
    names = [one_line(entry, 120) for entry in entries]
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more


def _short(text: str) -> str:
    return one_line(text, _REASON_CHARS)
