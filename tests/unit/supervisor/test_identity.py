"""Who a process is: the dead, the stopped, the strangers."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support import CHILDREN, until

from subagents_nb.domain.runs.postmortem import Liveness
from subagents_nb.store.layout import RunPaths
from subagents_nb.supervisor.processes.identity import identify, is_zombie, start_ticks
from subagents_nb.supervisor.processes.liveness import liveness_of


@pytest.fixture
def stranger() -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, str(CHILDREN / "stranger.py"), "session"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process
        process.kill()


@pytest.fixture
def nowhere(tmp_path: Path) -> RunPaths:
    """A run whose lock says nothing, so that the process itself has to be looked at."""
    return RunPaths(tmp_path)


def test_a_living_process_is_alive(stranger: subprocess.Popen[str], nowhere: RunPaths) -> None:
    assert liveness_of(identify(stranger.pid, "t"), nowhere) is Liveness.ALIVE


@pytest.mark.row(17, cases=1)
def test_a_zombie_is_dead_and_so_is_what_was_reaped(stranger: subprocess.Popen[str], nowhere: RunPaths) -> None:
    identity = identify(stranger.pid, "t")
    os.kill(stranger.pid, signal.SIGKILL)
    until(lambda: is_zombie(stranger.pid), 5)
    os.kill(stranger.pid, 0)  # which a zombie answers
    assert liveness_of(identity, nowhere) is Liveness.DEAD
    stranger.wait()
    assert liveness_of(identity, nowhere) is Liveness.DEAD
    assert start_ticks(stranger.pid) is None


@pytest.mark.row(17, cases=1)
def test_a_stopped_process_is_alive(stranger: subprocess.Popen[str], nowhere: RunPaths) -> None:
    identity = identify(stranger.pid, "t")
    os.kill(stranger.pid, signal.SIGSTOP)
    assert liveness_of(identity, nowhere) is Liveness.ALIVE
    os.kill(stranger.pid, signal.SIGCONT)


@pytest.mark.row(17, cases=1)
def test_a_stranger_with_a_dead_runners_pid_is_not_that_runner(
    stranger: subprocess.Popen[str], nowhere: RunPaths
) -> None:
    identity = identify(stranger.pid, "t")
    assert identity.start_ticks is not None
    earlier = identity.model_copy(update={"start_ticks": identity.start_ticks - 1})
    assert liveness_of(earlier, nowhere) is Liveness.DEAD


@pytest.mark.row(17, cases=1)
def test_another_machine_another_boot_and_another_container_are_told_apart(
    stranger: subprocess.Popen[str], nowhere: RunPaths
) -> None:
    identity = identify(stranger.pid, "t")
    elsewhere = {"host": Liveness.UNKNOWN, "boot_id": Liveness.DEAD, "pid_namespace": Liveness.UNKNOWN}
    for name, expected in elsewhere.items():
        assert liveness_of(identity.model_copy(update={name: "other"}), nowhere) is expected


def test_a_process_whose_name_is_cut_in_the_middle_of_a_character_can_be_looked_at() -> None:
    command = [sys.executable, str(CHILDREN / "stranger.py"), "name"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        assert start_ticks(process.pid) is not None and not is_zombie(process.pid)
        process.kill()


@pytest.mark.parametrize("pid", [-1, 0, 2**31 - 1, 10**20])
def test_a_pid_that_can_belong_to_nobody_has_no_ticks(pid: int) -> None:
    assert start_ticks(pid) is None
