"""Events cut anywhere in their last three lines, and another line after it: whole lines once each, in order."""

from __future__ import annotations

import errno
from collections.abc import Callable
from typing import Any

import pytest
from crash.disks import FaultyDisk, raising
from crash.lives import a_plan, made

from subagents_nb import Run
from subagents_nb.store import RunWriter, StoreHome

LINES = [{"seq": n, "type": "text", "text": text} for n, text in enumerate(["a", "b", "é漢🙂", 'q"\n', "x" * 60], 1)]
LENGTHS = (43, 39, 94)  # of the last three, as written


def seqs(home: StoreHome, run_id: str) -> list[Any]:
    return [line["seq"] for line in Run(home, run_id).events()]


@pytest.fixture
def writer(store_home: StoreHome) -> RunWriter:
    return made(store_home, a_plan(1))


@pytest.mark.row(8, cases=sum(LENGTHS))
def test_events_cut_at_any_byte_are_read_up_to_the_cut_and_go_on_after_it(
    store_home: StoreHome, writer: RunWriter, case: Callable[..., None]
) -> None:
    paths = writer.paths
    for line in LINES:
        writer.events.append(line, keep=True)
    whole = paths.events.read_bytes()
    assert tuple(len(line) for line in whole.splitlines(keepends=True)[2:]) == LENGTHS
    for length in range(len(whole) - sum(LENGTHS), len(whole)):
        paths.events.write_bytes(whole[:length])
        left = whole[:length].count(b"\n")
        assert seqs(store_home, paths.root.name) == list(range(1, left + 1))
        RunWriter(paths).events.append({"seq": 9, "type": "text", "text": "after"}, keep=True)
        left += whole[length : length + 1] == b"\n"  # only its end was missing, and now it is there
        assert seqs(store_home, paths.root.name) == [*range(1, left + 1), 9]
        case()


@pytest.mark.row(8, cases=1)
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO, errno.EDQUOT], ids=errno.errorcode.get)
def test_a_line_that_was_refused_half_way_costs_no_other(
    store_home: StoreHome, writer: RunWriter, number: int, case: Callable[..., None]
) -> None:
    disk = FaultyDisk(raising(number), lambda _, name: name == "write" and 3 <= writes() <= 4)
    numbers = iter(range(1, 100))

    def writes() -> int:
        return next(numbers)

    mine = RunWriter(writer.paths, disk=disk)
    kept = []
    for line in LINES:
        try:
            mine.events.append(line, keep=True)
            kept.append(line["seq"])
        except OSError:
            pass
    assert disk.struck == 2
    assert seqs(store_home, writer.paths.root.name) == kept == [1, 2, 5]
    case()
