"""README.md says which row is tried, and how often with every change."""

from __future__ import annotations

import re
from pathlib import Path

from crash.counting import Planned

TABLE_ROW = re.compile(r"\| *(\d+) *\|[^|]*\| *≥? *([\d,]+|—) *\|", re.MULTILINE)
ROWS = 35


def table() -> dict[int, str]:
    told = (Path(__file__).parent / "README.md").read_text()
    return {int(row): cases for row, cases in TABLE_ROW.findall(told)}


def soaked() -> dict[int, int]:
    """Return the rows that only `make soak` tries; its file is not collected otherwise."""
    from soak import soak_chaos

    planned = [Planned(m.args[0], **m.kwargs) for m in soak_chaos.test_chaos.pytestmark if m.name == "row"]
    return {plan.row: plan.number for plan in planned}


def test_every_row_of_the_matrix_names_its_number() -> None:
    assert {row for row, cases in table().items() if cases != "—"} == set(range(1, ROWS + 1))


def test_the_table_tells_the_numbers(planned_rows: dict[int, int]) -> None:
    assert {row: int(cases.replace(",", "")) for row, cases in table().items()} == {**soaked(), **planned_rows}
