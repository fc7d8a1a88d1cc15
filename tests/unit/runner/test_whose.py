"""Whose doing a change is: what the kernel noted of itself against what the watch saw of everybody."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from subagents_nb.runner.engines.kernel.written import LOG, Written
from subagents_nb.runner.tracking import Moment, Since


def since(*, unfinished: tuple[str, ...] = (), **writes: int) -> Since:
    counted = Counter(writes)
    return Since(
        until=Moment(9, counted),
        changed=dict.fromkeys(writes, True),
        writes=counted,
        unfinished=frozenset(unfinished),
        read_first=frozenset(),
    )


@pytest.fixture
def written(tmp_path: Path) -> Written:
    return Written(tmp_path)


def note(folder: Path, *notes: str) -> None:
    with open(folder / LOG, "a") as log:
        log.writelines(f"{one}\0" for one in notes)


@pytest.mark.parametrize(
    ("notes", "seen", "whose"),
    [
        (["wa"], since(a=1), "own"),
        (["wa"], None, "own"),
        ([], since(a=1), "unknown"),
        ([], None, "unknown"),
        (["wa"], since(a=2), "shared"),
        (["wa", "wa", "ma"], since(a=3), "own"),
        (["wa"], since(a=1, unfinished=("a",)), "shared"),
        (["oa"], since(a=1), "own"),
        (["oa", "ta"], since(a=2), "shared"),
        (["wa", "oa", "ta"], since(a=1), "shared"),  # both closed it at once, which is seen as one
        (["wa", "wa", "oa", "ta"], since(a=1), "own"),  # so did the kernel and a process that was forked from it
        (["oa", "!"], since(a=2), "shared"),
        (["wa", "ta"], since(a=1), "own"),  # a process that was forked from the kernel
        (["xa"], since(), "own"),
    ],
)
def test_what_explains_all_that_was_seen_is_ones_own(
    written: Written, tmp_path: Path, notes: list[str], seen: Since | None, whose: str
) -> None:
    note(tmp_path, *notes)
    written.take()
    assert written.whose("a", seen) == whose


def test_what_lies_in_a_folder_that_was_moved_came_with_it(written: Written, tmp_path: Path) -> None:
    note(tmp_path, "mout")
    written.take()
    assert written.whose("out/deep/a.csv", since()) == "own"


def test_a_file_that_is_still_open_is_ones_own_until_it_is_closed(written: Written, tmp_path: Path) -> None:
    note(tmp_path, "wa")
    written.take()
    assert written.whose("a", since(unfinished=("a",), a=0)) == "own"
    written.end(since(a=0))
    assert written.whose("a", since(a=1)) == "own"
    written.end(since(a=1))
    assert written.whose("a", since(a=1)) == "unknown", "closed once; this is somebody else"


def test_half_a_note_waits_for_its_other_half_and_a_link_is_no_log(written: Written, tmp_path: Path) -> None:
    (tmp_path / LOG).write_text("wa\0wb")
    written.take()
    assert written.names == {"a"}
    note(tmp_path, ".csv")
    written.take()
    assert written.names == {"a", "b.csv"}
    (tmp_path / LOG).rename(tmp_path / "elsewhere")
    (tmp_path / LOG).symlink_to(tmp_path / "elsewhere")
    written.restart()
    written.end(None)
    written.take()
    assert written.names == frozenset()
