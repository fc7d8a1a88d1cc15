"""Runs last: every planned case ran, and README.md says what is planned."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from crash.counting import LEDGER

TABLE_ROW = re.compile(r"\| *(\d+) *\|[^|]*\| *≥? *([\d,]+) *\|", re.MULTILINE)


@pytest.fixture(autouse=True)
def _whole() -> None:
    if not LEDGER.whole:
        pytest.skip("only a part of the crash tests was asked for")


def test_as_many_cases_ran_as_were_planned() -> None:
    assert LEDGER.faults() == []
    print("left out:", LEDGER.left_out or "nothing")


def test_the_table_tells_the_numbers() -> None:
    table = (Path(__file__).parent / "README.md").read_text()
    told = {int(row): int(cases.replace(",", "")) for row, cases in TABLE_ROW.findall(table)}
    assert told == LEDGER.rows()
