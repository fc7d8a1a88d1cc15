"""A server that does not let go, and a run that ends: by a stop, its deadline, or its runner killed. Nobody is left."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from crash.counting import times
from support import processes_of, until

from subagents_nb import Run, launch
from subagents_nb.domain.runs.states import RunState
from subagents_nb.store import FileRuns, StoreHome

Case = Callable[..., None]
ROUNDS = times(1, 20)
SERVER = Path(__file__).parents[1] / "children" / "mcp_server.py"


@pytest.fixture(autouse=True)
def ground(shared_home: StoreHome) -> None:
    shutil.copy(SERVER, "server.py")
    home, scripts = Path.home() / ".subagents", Path(".subagents/scripts")
    for folder in (home / "agents", scripts):
        folder.mkdir(parents=True, exist_ok=True)
    command = json.dumps([sys.executable, "server.py", "stays"])
    (home / "settings.toml").write_text(f"[mcp.stays]\ncommand = {command[1:].split(', ', 1)[0]}\n"
                                        f"args = [{command.split(', ', 1)[1]}\n")  # fmt: skip
    (home / "agents/holder.md").write_text("---\nname: holder\ndescription: d\ntools: mcp:stays\n---\nwork\n")
    calls = [{"call": "mcp__stays__add", "args": {"one": 1, "other": 1}}, {"text": "at it"}, {"sleep": 600}]
    (scripts / "holds.json").write_text(json.dumps(calls))


def stopped(run: Run) -> RunState:
    run.stop()
    return RunState.STOPPED


def killed(run: Run) -> RunState:
    process = FileRuns(run.home).snapshot(run.id, whole=True).process
    assert process is not None and process.pid is not None
    os.kill(process.pid, signal.SIGKILL)
    return RunState.LOST


def past_its_deadline(run: Run) -> RunState:
    del run
    return RunState.FAILED


@pytest.mark.row(35, cases=3 * ROUNDS)
@pytest.mark.timeout(900)
def test_no_server_outlives_its_run(shared_home: StoreHome, case: Case) -> None:
    for number in range(ROUNDS):
        for end in (stopped, killed, past_its_deadline):
            limit = "6s" if end is past_its_deadline else "10m"
            run = launch("holder", f"round {number} {end.__name__}", model="scripted:holds", timeout=limit)
            until(lambda run=run: "at it" in run.status.tail or run.state.ended, 30, what="the server at work")
            wanted = end(run)
            assert run.wait(30) and run.state is wanted, (end, run.state, run.error)
            until(lambda: not processes_of(shared_home), 10, what="no process of the run")
            case()
