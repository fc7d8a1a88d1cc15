"""A runner that shall not begin is ended, and nobody who only has its pid."""

from __future__ import annotations

import functools
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support import CHILDREN, alive, make_plan, make_process, make_recovery

from subagents_nb.domain.runs.postmortem import Verdict
from subagents_nb.errors import LaunchError
from subagents_nb.store import RunWriter, create_run, open_home
from subagents_nb.store.runs.reader import read_document
from subagents_nb.supervisor.processes.identity import start_ticks
from subagents_nb.supervisor.protocol.handshake import RunnerSilent, end_process, is_of_launch
from subagents_nb.supervisor.protocol.socket_lines import Lines
from subagents_nb.supervisor.start import Started

TOKEN = "f" * 32


@pytest.fixture
def writer(tmp_path: Path) -> RunWriter:
    return create_run(open_home(tmp_path / "store"), make_plan(), make_recovery())


@pytest.fixture
def waiting() -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, str(CHILDREN / "stranger.py"), "deaf"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process
        process.kill()


@pytest.mark.parametrize("change", [{"token": "e" * 32}, {"pid": 4}], ids=["another launch", "another process"])
def test_a_process_that_the_record_does_not_name_is_not_signalled(
    writer: RunWriter, waiting: subprocess.Popen[str], change: dict[str, object]
) -> None:
    record = make_process().model_copy(update={"state": "pending", "token": TOKEN, "pid": waiting.pid, **change})
    writer.process(record)
    proved = functools.partial(is_of_launch, writer.paths, waiting.pid, TOKEN)
    assert end_process(waiting.pid, start_ticks(waiting.pid), proved=proved) is False
    assert alive(waiting.pid)


@pytest.mark.parametrize("recorded", [True, False])
def test_the_process_of_this_launch_is_ended_though_it_hears_nothing(
    writer: RunWriter, waiting: subprocess.Popen[str], recorded: bool
) -> None:
    if recorded:
        writer.process(make_process().model_copy(update={"state": "pending", "token": TOKEN, "pid": waiting.pid}))
    proved = functools.partial(is_of_launch, writer.paths, waiting.pid, TOKEN)
    assert end_process(waiting.pid, start_ticks(waiting.pid), proved=proved) is True
    assert not alive(waiting.pid)


@pytest.fixture
def started(writer: RunWriter, waiting: subprocess.Popen[str]) -> Iterator[tuple[Started, socket.socket]]:
    """A runner that waits to go on from a session, and its end of the channel."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        lines = Lines(ours)
        ticks = start_ticks(waiting.pid)
        proved = functools.partial(is_of_launch, writer.paths, waiting.pid, TOKEN)
        yield Started(waiting.pid, ticks, "cold", lines, proved, writer.paths), theirs


def test_a_runner_that_says_nothing_is_ended_and_that_is_told_as_our_own_doing(
    writer: RunWriter, started: tuple[Started, socket.socket], waiting: subprocess.Popen[str]
) -> None:
    runner, _ = started
    with pytest.raises(RunnerSilent, match=r"was silent for 0.05 s before it was ready") as silent:
        runner.revive(TOKEN, within_s=0.05)
    assert runner.abandon(silent.value) is True
    assert not alive(waiting.pid)
    verdict = read_document(writer.paths.verdict, Verdict, writer.paths.root.name)
    assert (verdict.state, verdict.reason, verdict.judged_by) == ("failed", "startup", "launcher")
    assert "silent" in verdict.message and "its launcher ended it" in verdict.message
    assert "memory" not in verdict.message


@pytest.mark.parametrize(
    ("how", "said"),
    [({"exit_code": 75}, "exited with code 75"), ({"exit_code": None, "signal": 9}, "was ended by SIGKILL")],
)
def test_a_runner_that_ended_is_not_called_silent(
    writer: RunWriter, started: tuple[Started, socket.socket], how: dict[str, int | None], said: str
) -> None:
    runner, theirs = started
    theirs.close()
    writer.process(make_process().model_copy(update={"state": "unknown", "token": TOKEN, **how}))
    with pytest.raises(LaunchError, match=f"The run's process {said} before it was ready"):
        runner.revive(TOKEN)
    assert not writer.paths.verdict.exists(), "its watcher knows more"
