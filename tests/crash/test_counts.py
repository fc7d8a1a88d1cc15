"""Runs last: every planned case ran, and README.md says what is planned."""

from __future__ import annotations

import re
from pathlib import Path

from crash.counting import LEDGER, Planned

TABLE_ROW = re.compile(r"\| *(\d+) *\|[^|]*\| *≥? *([\d,]+|—) *\|", re.MULTILINE)
ROWS = 32


def table() -> dict[int, str]:
    told = (Path(__file__).parent / "README.md").read_text()
    return {int(row): cases for row, cases in TABLE_ROW.findall(told)}


def soaked() -> dict[int, int]:
    """Return the rows that only `make soak` tries; its file is not collected otherwise."""
    from soak import soak_chaos

    planned = [Planned(m.args[0], **m.kwargs) for m in soak_chaos.test_chaos.pytestmark if m.name == "row"]
    return {plan.row: plan.number for plan in planned}


def test_as_many_cases_ran_as_were_planned() -> None:
    faults = LEDGER.faults()
    assert not faults, "\n".join(faults)
    print("left out:", LEDGER.left_out or "nothing")


def test_every_row_of_the_matrix_names_its_number() -> None:
    assert {row for row, cases in table().items() if cases != "—"} == set(range(1, ROWS + 1))


def test_the_table_tells_the_numbers() -> None:
    told = {row: int(cases.replace(",", "")) for row, cases in table().items()}
    found = {**soaked(), **LEDGER.rows()}
    if not LEDGER.everywhere:  # what is tried in other folders was not collected, or not all of it
        here = {plan.row for plan in LEDGER.planned.values()}
        told, found = ({row: n for row, n in rows.items() if row in here} for rows in (told, found))
    assert told == found
