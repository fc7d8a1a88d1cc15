"""What came of an acceptance, on the card and as text: words and signs, and nothing that could run."""

from __future__ import annotations

from typing import Any, get_args

import pytest
from card_page import ledger_html, ledger_text

from subagents_nb.domain.plans.acceptance import Finding, Ledger, Status, VerifyRun
from subagents_nb.notebook.cards.ledgers import MAX_ROWS

EVIL = "<img src=x onerror=alert(1)>\u202e\x1b[31m"


def ledger(**fields: Any) -> Ledger:
    return Ledger.model_validate({"level": "verified", "explicit": True, "status": "rejected", **fields})


FULL = ledger(
    reason="t: exit code 1",
    criteria=[Finding(id="rows", ok=True, text="counted"), Finding(id="nice", ok=False, required=False)],
    checks=[Finding(id="tests-added", ok=False, text="the report does not have it")],
    verify_runs=[
        VerifyRun(id="t", command="make test", passed=False, exit_code=1, seconds=1.25, output="1 failed\n"),
        VerifyRun(id="l", command="make lint", passed=True, exit_code=0, memoised=True, output="fine"),
    ],
    review=Finding(id="judge", ok=True, text="accepted: fine"),
)


def test_every_finding_has_a_word_and_a_sign() -> None:
    html, text = ledger_html(FULL), ledger_text(FULL)
    for part in ("not accepted", "holds", "fails", "not shown", "passed", "failed", "rows", "judge", "make test"):
        assert part in html and part in text
    for sign in ("✓", "✕", "◌", "⊘"):
        assert sign in html and sign in text
    assert "nothing had changed since it was run" in html


def test_the_output_of_a_command_folds_and_that_of_a_failure_is_open() -> None:
    html = ledger_html(FULL)
    assert html.count("<details") == 2 and html.count('<details open="">') == 1
    assert "1 failed" in html and "1 failed" not in ledger_text(FULL)


def test_nothing_of_it_is_markup() -> None:
    hostile = ledger(
        reason=EVIL,
        criteria=[Finding(id=EVIL, ok=False, text=EVIL)],
        verify_runs=[VerifyRun(id=EVIL, command=EVIL, passed=False, output=EVIL)],
        report_problem=EVIL + "2",
        review=Finding(id=EVIL, ok=False, text=EVIL),
    )
    html, text = ledger_html(hostile), ledger_text(hostile)
    assert "<img" not in html and "&lt;img" in html
    for shown in (html, text):
        assert "\u202e" not in shown and "\x1b" not in shown
    assert all(line.strip() for line in text.splitlines())


def test_much_of_it_is_cut_and_counted() -> None:
    flood = VerifyRun(id="t", command="x", passed=True, exit_code=0, output="y" * 12_000)
    many = ledger(criteria=[Finding(id=f"c{i}", ok=True) for i in range(MAX_ROWS + 5)], verify_runs=[flood])
    html = ledger_html(many)
    assert "5 more findings" in html and "10,500 more characters" in html
    assert len(html) < 20_000


@pytest.mark.parametrize("status", get_args(Status))
def test_every_status_can_be_shown(status: str) -> None:
    shown = ledger(status=status)
    assert ledger_text(shown).startswith("acceptance ") and "Acceptance" in ledger_html(shown)


def test_a_rejection_that_nobody_asked_for_says_so() -> None:
    assert "only shown" in ledger_text(ledger(explicit=False))
    assert "only shown" not in ledger_text(ledger())
