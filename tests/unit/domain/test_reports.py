"""Acceptance reports as models write them, and as somebody writes them who wants to be believed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from subagents_nb.domain.acceptance.reports import MAX_ENTRIES, Report, ReportProblem, find_report, parse_report

PLAIN = '{"residualRisks": ["none"]}'
CRITERIA = {"criteriaSatisfied": [{"id": "a", "status": "satisfied", "evidence": "e"}]}


def fenced(source: str, info: str = "acceptance-report", mark: str = "```") -> str:
    return f"{mark}{info}\n{source}\n{mark}"


def read(text: str) -> Report:
    found = find_report(text)
    assert found is not None
    return parse_report(found)


def parsed(**fields: Any) -> Report:
    return read(fenced(json.dumps(fields)))


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        (f"Done.\n\n{fenced(PLAIN)}\n", "Done."),
        (f"Done.\n{fenced(PLAIN, 'acceptance_report')}\nBye.", "Done.\n\nBye."),
        (f"Done.\n{fenced(PLAIN, ' Acceptance-Report', '~~~~')}", "Done."),
        (f"Done.\n```acceptance-report\n{PLAIN}", "Done."),
        (f"Done.\n```acceptance-report\n{PLAIN}\nAnd more.", "Done.\n\nAnd more."),
        (f"Done.\n{fenced(json.dumps(CRITERIA), 'json')}", "Done."),
        (f"Done.\nACCEPTANCE_REPORT: {PLAIN}\nBye.", "Done.\n\nBye."),
        (f"```python\nx = 1\n{fenced(PLAIN)}", "```python\nx = 1"),
        (fenced(PLAIN), ""),
    ],
)
def test_a_report_is_found_and_cut_out(text: str, answer: str) -> None:
    found = find_report(text)
    assert found is not None and found.answer == answer
    parse_report(found)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Done.",
        fenced('{"a": 1}', "json"),
        fenced("no json", "json"),
        fenced(fenced(PLAIN), "markdown", "````"),
        "the acceptance-report is below",
        fenced(f"ACCEPTANCE_REPORT: {PLAIN}", "text"),
    ],
)
def test_what_is_no_report_is_not_found(text: str) -> None:
    assert find_report(text) is None


def test_of_several_the_last_counts_and_a_broken_one_does_not_fall_through() -> None:
    quoted, own = fenced('{"notes": "quoted"}'), fenced('{"notes": "own"}')
    assert read(f"{quoted}\ntext\n{own}").manual_notes == "own"
    with pytest.raises(ReportProblem, match="it is no JSON"):
        read(f"{fenced(json.dumps(CRITERIA), 'json')}\n{fenced('{oops}')}")


def test_other_spellings_and_single_values_are_understood() -> None:
    report = read(fenced(json.dumps({"acceptance_report": {
        "criteria": [{"criterion": "A b", "result": "PASSED", "proof": ["x", "y"]},
                     {"id": "c", "status": "not applicable"}],
        "files-changed": "a.py", "tests": [], "commands": ["make", {"cmd": "ls", "exit_code": 0}],
        "no_staged_files": "yes", "risks": ["", " none "], "notes": "n",
    }})))  # fmt: skip
    assert [(c.id, c.status, c.evidence) for c in report.criteria] == [("a-b", "satisfied", "x; y"),
                                                                       ("c", "not-applicable", "")]  # fmt: skip
    assert (report.changed_files, report.tests_added, report.residual_risks) == (("a.py",), (), ("none",))
    assert report.commands_run is not None and [c.result for c in report.commands_run] == ["not-run", "passed"]
    assert (report.no_staged_files, report.manual_notes, report.validation_output) == (True, "n", None)
    short = parsed(criteria={"a": "yes", "b": {"status": False, "evidence": "e"}})
    assert [(c.id, c.status) for c in short.criteria] == [("a", "satisfied"), ("b", "not-satisfied")]


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("[]", "it is no JSON object"),
        ("null", "it is no JSON object"),
        ('{"a": 1}', "a is unknown; the keys are criteria, changed_files"),
        ('{"residualRisk": []}', "did you mean residual_risks?"),
        ('{"notes": "a", "notes": "b"}', "the key 'notes' is given twice"),
        ('{"changedFiles": [], "changed_files": []}', "changedFiles and changed_files mean the same"),
        ('{"notes": NaN}', "it holds NaN, which is no JSON"),
        ('{"notes": {}}', "notes must be text, not {}"),
        ('{"changedFiles": [{}]}', "changedFiles\\[0\\] must be text, not {}"),
        ('{"noStagedFiles": "perhaps"}', "noStagedFiles must be true or false, not 'perhaps'"),
        ('{"criteria": ["a"]}', "criteria\\[0\\] must be a mapping, not 'a'"),
        (
            '{"criteria": [{"id": "a", "status": "splendid"}]}',
            "criteria\\[0\\].status must be satisfied, not-satisfied or not-applicable, not 'splendid'",
        ),
        ('{"criteria": [{"id": "a"}]}', r"criteria\[0\].status is missing"),
        ('{"criteria": [{"id": "a", "status": "ok", "x": 1}]}', "criteria\\[0\\].x is unknown"),
        ('{"criteria": [{"id": "a", "status": "ok", "result": "ok"}]}', "status and result mean the same"),
        (
            '{"criteria": [{"id": "a", "status": "ok"}, {"id": "A", "status": "no"}]}',
            "the criterion 'a' is there more than once",
        ),
        (
            '{"commandsRun": [{"command": "x", "result": "maybe"}]}',
            "commandsRun\\[0\\].result must be passed, failed or not-run, not 'maybe'",
        ),
        (json.dumps({"risks": ["r"] * (MAX_ENTRIES + 1)}), f"has {MAX_ENTRIES + 1} entries, more than {MAX_ENTRIES}"),
        (json.dumps({"notes": "x" * 300_000}), "it has more than 256 KiB"),
        ("[" * 100_000, "nested too deeply|it is no JSON"),
        ('{"notes": ' + "9" * 5000 + "}", "it is no JSON"),
    ],
)
def test_what_can_not_be_read_is_a_problem_in_words(source: str, why: str) -> None:
    with pytest.raises(ReportProblem, match=why):
        read(fenced(source))


def test_a_report_that_breaks_off_says_so() -> None:
    with pytest.raises(ReportProblem, match="it breaks off"):
        read('Done.\n```acceptance-report\n{"notes": "a')


def test_long_and_broken_texts_are_made_fit_to_be_kept() -> None:
    report = read(fenced('{"notes": "' + "x" * 5000 + '", "diffSummary": "a\\ud800b"}'))
    assert len(report.manual_notes) == 2000
    assert report.diff_summary == "a?b"


@pytest.mark.parametrize(
    "piece", ["```a\n", "```acceptance-report\n", "~~~\n", "ACCEPTANCE_REPORT:\n", "```json\n{}\n```\n"]
)
@pytest.mark.timeout(60)
def test_hostile_text_takes_no_more_than_its_length(piece: str) -> None:
    find_report(piece * (400_000 // len(piece)))  # for hours, if it took the square of it
