"""A runner that shall not begin is ended, and nobody who only has its pid."""

from __future__ import annotations

import functools
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support import CHILDREN, alive, make_plan, make_process, make_recovery

from subagents_nb.store import RunWriter, create_run, open_home
from subagents_nb.supervisor.exchange import end_process, is_of_launch
from subagents_nb.supervisor.identity import start_ticks

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
