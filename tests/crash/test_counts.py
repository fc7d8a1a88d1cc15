"""Runs last: every planned case ran, and README.md says what is planned."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from crash.counting import LEDGER

TABLE_ROW = re.compile(r"\| *(\d+) *\|[^|]*\| *≥? *([\d,]+) *\|", re.MULTILINE)


def test_as_many_cases_ran_as_were_planned() -> None:
    if LEDGER.narrowed:
        pytest.skip("single tests were asked for")
    faults = LEDGER.faults()
    assert not faults, "\n".join(faults)
    print("left out:", LEDGER.left_out or "nothing")


def test_the_table_tells_the_numbers() -> None:
    if not LEDGER.whole:
        pytest.skip("only a part of the crash tests was asked for")
    table = (Path(__file__).parent / "README.md").read_text()
    told = {int(row): int(cases.replace(",", "")) for row, cases in TABLE_ROW.findall(table)}
    assert told == LEDGER.rows()
