"""Runners and tools that do everything wrong: each run ends in time, exactly as it should, and leaves nobody behind."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from crash.counting import times
from crash.lives import settings
from support import CHILDREN, marked_processes, until

from subagents_nb import Run, launch
from subagents_nb.domain.runs.exit_report import ProcessRecord
from subagents_nb.domain.runs.states import RunState
from subagents_nb.errors import LaunchError
from subagents_nb.store import FileRuns, StoreHome

Case = Callable[..., None]
TIMES = times(2, 20)
GRACE_S, MORE_S = 3.0, 2.0

# Kind -> state, reason, part of the message, exit code, signal, how many of its processes were ended with it.
ENDS_BY_ITSELF = {
    "early": ("failed", "startup", "before it began to work (exit code 0)", 0, None, 0),
    "hollow": ("lost", "vanished", "exit code 0", 0, None, 0),
    "brood": ("lost", "vanished", "exit code 3", 3, None, 20),
    "daemon": ("lost", "vanished", "exit code 0", 0, None, 1),
    "closed": ("lost", "signal", "SIGABRT", None, 6, 0),
}
MUST_BE_STOPPED = ["silent", "deaf"]


def proof_of(run: Run) -> ProcessRecord | None:
    process = FileRuns(run.home).snapshot(run.id, whole=True).process
    return process if process is not None and process.state != "pending" else None


def begin_badly(kind: str, monkeypatch: pytest.MonkeyPatch) -> list[Run]:
    settings(live=TIMES)
    monkeypatch.setenv("PYTHONPATH", str(CHILDREN / "standin"))
    monkeypatch.setenv("BAD_RUNNER", kind)
    begun = []
    for _ in range(TIMES):
        try:
            begun.append(launch(task="x", model="scripted:echo"))
        except LaunchError as error:  # it was seen to be gone before anything was said to it: there was no launch
            assert kind == "early" and "before it could be told to begin" in str(error)
    monkeypatch.delenv("PYTHONPATH")
    return begun


@pytest.mark.row(19, cases=TIMES)
@pytest.mark.timeout(90)
@pytest.mark.parametrize("kind", ENDS_BY_ITSELF)
def test_a_bad_runner_that_goes_away(
    store_home: StoreHome, kind: str, monkeypatch: pytest.MonkeyPatch, case: Case
) -> None:
    state, reason, said, code, signal, ended = ENDS_BY_ITSELF[kind]
    begun = begin_badly(kind, monkeypatch)
    case(TIMES - len(begun))
    for run in begun:
        assert run.wait(20), f"{kind} has no end"
        assert (run.state, run.status.reason) == (state, reason), run.error
        assert said in str(run.error)
        proof = until(lambda run=run: proof_of(run), 10, what="the proof of the end")
        assert proof is not None
        assert (proof.exit_code, proof.signal) == (code, signal)
        assert (len(proof.ended_with_it), proof.group_empty) == (ended, True)
        until(lambda run=run: marked_processes([run.id]) == {}, 5, what="the end of its watcher")
        case()


@pytest.mark.row(19, cases=TIMES)
@pytest.mark.timeout(90)
@pytest.mark.parametrize("kind", MUST_BE_STOPPED)
def test_a_bad_runner_that_hears_nothing_can_be_stopped(
    store_home: StoreHome, kind: str, monkeypatch: pytest.MonkeyPatch, case: Case
) -> None:
    begun = begin_badly(kind, monkeypatch)
    wanted = RunState.RUNNING if kind == "deaf" else RunState.QUEUED
    until(lambda: all(run.state is wanted for run in begun), 20, what="their beginning")
    until(lambda: all(len(marked_processes([run.id])) >= 2 for run in begun), 20, what="their processes", pause=0.1)
    asked = time.monotonic()
    for run in begun:
        run.stop("enough")
    for run in begun:
        assert run.wait(max(0.1, asked + GRACE_S + MORE_S - time.monotonic())), f"{kind} lives on"
        case()
    print(f"{kind}: {TIMES} ended in {time.monotonic() - asked:.1f} s")
    for run in begun:
        assert (run.state, run.status.reason) == (RunState.STOPPED, "stopped"), run.error
        assert "asked to stop" in str(run.error)
    until(lambda: marked_processes([run.id for run in begun]) == {}, 5, pause=0.05)


# What a run's own tools may start. All of it carries the run's mark, wherever it goes.
TOOLS = {
    "deaf": "trap '' TERM; echo begun; while :; do sleep 300; done",
    "brood": "for n in $(seq 20); do sleep 300 & done; echo begun; wait",
    "away": "setsid bash -c 'trap \"\" TERM; while :; do sleep 300; done' & echo begun; wait",
    "closed": "exec 0<&- 1>&- 2>&-; sleep 300",
}


@pytest.mark.row(19, cases=TIMES)
@pytest.mark.timeout(90)
@pytest.mark.parametrize("kind", TOOLS)
def test_a_bad_tool_goes_with_its_run(
    shared_home: StoreHome, told: str, kind: str, monkeypatch: pytest.MonkeyPatch, case: Case
) -> None:
    monkeypatch.setenv("SUBAGENTS_NB_SPAWN", "warm")
    launch(model="scripted:echo", task="the supervisor is up").result(60)
    begun = [launch(task=f"RUN: {TOOLS[kind]}", model=told) for _ in range(TIMES)]
    ids = [run.id for run in begun]

    def at_work() -> bool:
        found = list(marked_processes(ids).values())
        return all(found.count(run_id) >= 1 for run_id in ids)

    until(at_work, 40, what="the tools", pause=0.1)
    asked = time.monotonic()
    for run in begun:
        run.stop("enough")
    for run in begun:
        assert run.wait(max(0.1, asked + GRACE_S + MORE_S - time.monotonic())), f"a run with a {kind} tool lives on"
        assert run.state is RunState.STOPPED, run.error
        case()
    until(lambda: marked_processes(ids) == {}, 3, what="the end of the tools", pause=0.05)
    for run in begun:
        proof = until(lambda run=run: proof_of(run), 10, what="the proof of the end")
        assert proof is not None and (proof.state, proof.candidate) == ("observed", "agrees")
    print(f"{kind} tool: {TIMES} ended in {time.monotonic() - asked:.1f} s on {os.cpu_count()} processors")


# Tools that throw their mark away: what they start is known by descent and by what the runner wrote down only.
HIDDEN = {
    "scrubbed": "env -i sleep {n}",
    "away": "(env -i setsid sleep {n} &) >/dev/null 2>&1; env -i sleep {n}",
    "left": "env -i setsid sleep {n} >/dev/null 2>&1 & sleep 0.2; echo begun",
}


def sleepers(numbers: range) -> dict[int, int]:
    """Return the processes that sleep for one of these unusual numbers of seconds."""
    found = {}
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            words = path.read_bytes().split(b"\0")
            if words[0] == b"sleep" and words[1].isdigit() and int(words[1]) in numbers:
                found[int(path.parent.name)] = int(words[1])
    return found


@pytest.mark.row(19, cases=TIMES)
@pytest.mark.timeout(120)
@pytest.mark.parametrize("kind", HIDDEN)
def test_what_a_tool_hides_goes_with_its_run_too(
    shared_home: StoreHome, told: str, kind: str, monkeypatch: pytest.MonkeyPatch, case: Case
) -> None:
    monkeypatch.setenv("SUBAGENTS_NB_SPAWN", "warm")
    launch(model="scripted:echo", task="whoever starts them is up").result(60)
    first = 50_000 + 1000 * [*HIDDEN].index(kind)
    numbers = range(first, first + TIMES)
    begun = [launch(task=f"RUN: {HIDDEN[kind].format(n=n)}", model=told) for n in numbers]
    if kind == "left":
        for run in begun:
            assert run.wait(30) and run.state is RunState.COMPLETE, run.error
    else:
        until(lambda: set(sleepers(numbers).values()) == set(numbers), 60, what="the tools", pause=0.1)
        for run in begun:
            process = FileRuns(run.home).snapshot(run.id, whole=True).process
            assert process is not None and process.pid is not None
            os.kill(process.pid, signal.SIGKILL)
    for run in begun:
        proof = until(lambda run=run: proof_of(run), 20, what="the proof of the end")
        assert proof is not None and (proof.state, proof.group_empty) == ("observed", True)
    left = sleepers(numbers)
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    assert left == {}, "a process that nobody owns lives on beside a proof that there is none"
    case(TIMES)
