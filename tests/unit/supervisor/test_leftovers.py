"""What a dead run leaves behind is ended; whoever is not of the run never is."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest
from support import CHILDREN, alive, until

from subagents_nb.domain.environment import RUN_MARK
from subagents_nb.supervisor.leftovers import end_leftovers, mark_of

MARK = mark_of("r-1kge3h9010000000001", "a" * 32)
Starter = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def start() -> Iterator[Starter]:
    started: list[subprocess.Popen[str]] = []

    def begin(*options: str, mark: str | None = None, group: int | None = None) -> subprocess.Popen[str]:
        environ = {k: v for k, v in os.environ.items() if k != RUN_MARK} | ({RUN_MARK: mark} if mark else {})
        command = [sys.executable, str(CHILDREN / "stranger.py"), *options]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environ, process_group=group)
        assert process.stdout is not None
        process.stdout.readline()
        started.append(process)
        return process

    yield begin
    for process in started:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


def ended_leader(start: Starter) -> int:
    """Return the group of a leader that has ended and is not reaped, as a supervisor sees its runner."""
    leader = start(mark=MARK, group=0)
    os.kill(leader.pid, 9)
    os.waitid(os.P_PID, leader.pid, os.WEXITED | os.WNOWAIT)
    return leader.pid


def test_the_group_and_whoever_carries_the_mark_are_ended_and_named(start: Starter) -> None:
    leader = start(mark=MARK, group=0)
    in_group = start("deaf", group=leader.pid)
    left_session = [start("session", "deaf", mark=MARK) for _ in range(3)]
    os.kill(leader.pid, 9)
    os.waitid(os.P_PID, leader.pid, os.WEXITED | os.WNOWAIT)
    left = end_leftovers(leader.pid, MARK)
    assert set(left.ended) == {in_group.pid, *(p.pid for p in left_session)}
    assert left.empty is True
    until(lambda: not any(alive(pid) for pid in left.ended), 5)


def test_a_bystander_a_neighbours_run_and_we_ourselves_are_left_alone(start: Starter) -> None:
    bystander = start("session")
    neighbour = start("session", mark=MARK[:-1] + "b")
    longer = start("session", mark=MARK + "0")
    misspelt = start("session", mark="x" + MARK)
    odd = start("session", "name")
    left = end_leftovers(ended_leader(start), MARK)
    assert left.ended == () and left.empty is True
    for process in (bystander, neighbour, longer, misspelt, odd):
        assert alive(process.pid)


def test_the_marked_are_ended_although_a_process_with_an_odd_name_is_about(start: Starter) -> None:
    odd, marked = start("session", "name"), start("session", mark=MARK)
    left = end_leftovers(ended_leader(start), MARK)
    assert left.ended == (marked.pid,)
    assert alive(odd.pid)
