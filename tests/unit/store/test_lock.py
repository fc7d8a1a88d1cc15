"""The lock that proves life, and the ages that people read."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from subagents_nb.store.clock import age_s, utc_now
from subagents_nb.store.files.lock import hold, probe


def test_a_lock_is_held_while_its_holder_lives_and_free_at_once_after_a_kill(
    tmp_path: Path, forked: Callable[..., int]
) -> None:
    path, (ready, tell) = tmp_path / "lock", os.pipe()

    def work() -> int:
        hold(path)
        os.write(tell, b"x")
        time.sleep(60)
        return 0

    assert probe(path) is None
    pid = forked(work)
    os.read(ready, 1)
    assert probe(path) == "held"
    os.kill(pid, 9)
    os.waitpid(pid, 0)
    assert probe(path) == "free"
    os.close(ready)
    os.close(tell)


def test_a_prober_in_the_way_does_not_keep_a_runner_from_its_lock(tmp_path: Path, forked: Callable[..., int]) -> None:
    path = tmp_path / "lock"
    path.touch()

    def work() -> int:
        while True:
            probe(path)

    pid = forked(work)
    try:
        for _ in range(20):
            os.close(hold(path))
    finally:
        os.kill(pid, 9)
        os.waitpid(pid, 0)


def test_a_second_holder_is_refused(tmp_path: Path) -> None:
    handle = hold(tmp_path / "lock")
    try:
        with pytest.raises(BlockingIOError):
            hold(tmp_path / "lock")
    finally:
        os.close(handle)


def test_a_holders_lock_does_not_go_to_the_programs_it_starts(tmp_path: Path) -> None:
    handle = hold(tmp_path / "lock")
    assert os.get_inheritable(handle) is False
    os.close(handle)


def test_a_link_is_no_lock(tmp_path: Path) -> None:
    (tmp_path / "real").touch()
    (tmp_path / "lock").symlink_to(tmp_path / "real")
    assert probe(tmp_path / "lock") is None


def test_an_age_is_counted_from_any_moment_and_is_nothing_for_what_is_none() -> None:
    assert 0 <= age_s(utc_now()) < 5
    assert age_s("2020-01-01T00:00:00Z") > 1e8
    for text in (
        "",
        "yesterday",
        "2020-13-01T00:00:00Z",
        "2020-01-01T00:00:00.1234",
        "2020-01-01",
        "0001-01-01T00:00Z",
    ):
        assert isinstance(age_s(text), float)
