"""What a dead run leaves behind is ended; whoever is not of the run never is."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support import CHILDREN, alive, make_plan, make_recovery, run_id, until

from subagents_nb.domain.agents.environment import NO_RUN, RUN_MARK
from subagents_nb.domain.runs.exit_report import ChildEnd
from subagents_nb.store import create_run, open_home
from subagents_nb.store.files.lock import hold
from subagents_nb.store.processes.outliving import outlives
from subagents_nb.store.processes.process_list import look
from subagents_nb.supervisor.ends.termination import record_pending
from subagents_nb.supervisor.processes.identity import start_ticks
from subagents_nb.supervisor.processes.orphans import end_run_processes, mark_of

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
    left = end_run_processes(leader.pid, MARK)
    assert set(left.ended) == {in_group.pid, *(p.pid for p in left_session)}
    assert left.empty is True
    until(lambda: not any(alive(pid) for pid in left.ended), 5)


def test_a_bystander_a_neighbours_run_and_we_ourselves_are_left_alone(start: Starter) -> None:
    bystander = start("session")
    neighbour = start("session", mark=MARK[:-1] + "b")
    longer = start("session", mark=MARK + "0")
    misspelt = start("session", mark="x" + MARK)
    odd = start("session", "name")
    left = end_run_processes(ended_leader(start), MARK)
    assert left.ended == () and left.empty is True
    for process in (bystander, neighbour, longer, misspelt, odd):
        assert alive(process.pid)


def test_the_marked_are_ended_although_a_process_with_an_odd_name_is_about(start: Starter) -> None:
    odd, marked = start("session", "name"), start("session", mark=MARK)
    left = end_run_processes(ended_leader(start), MARK)
    assert left.ended == (marked.pid,)
    assert alive(odd.pid)


def row_of(process: subprocess.Popen[str], **more: object) -> ChildEnd:
    ticks = start_ticks(process.pid)
    return ChildEnd.model_validate({"pid": process.pid, "start_ticks": ticks, "group": process.pid, **more})


SHELL = """
import subprocess, sys
print(subprocess.Popen([{command}], env={{"PATH": "/usr/bin:/bin"}}).pid, flush=True)
{after}
"""


@pytest.fixture
def shell() -> Iterator[Callable[..., tuple[subprocess.Popen[str], int]]]:
    """Start a command of a run, in its own session, and one below it that has thrown its environment away."""
    begun: list[subprocess.Popen[str]] = []
    below: list[int] = []

    def begin(after: str = "sys.stdin.read()", *, away: bool = False) -> tuple[subprocess.Popen[str], int]:
        command = "'setsid', '--wait', 'sleep', '300'" if away else "'sleep', '300'"
        environ = {k: v for k, v in os.environ.items() if k != RUN_MARK}
        process = subprocess.Popen(
            [sys.executable, "-c", SHELL.format(command=command, after=after)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environ,
            start_new_session=True,
        )
        assert process.stdout is not None
        begun.append(process)
        below.append(int(process.stdout.readline()))
        return process, below[-1]

    yield begin
    for process in begun:
        process.kill()
        process.communicate()
    for pid in below:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, 9)


@pytest.mark.parametrize("away", [False, True], ids=["in its session", "in another"])
@pytest.mark.parametrize("observed", [True, False], ids=["by its parent", "by a stranger"])
def test_a_command_that_was_written_down_is_ended_with_all_below_it(
    start: Starter, shell: Callable[..., tuple[subprocess.Popen[str], int]], away: bool, observed: bool
) -> None:
    process, below = shell(away=away)
    left = end_run_processes(ended_leader(start) if observed else None, MARK, recorded=[row_of(process)])
    assert {process.pid, below} <= set(left.ended) and left.empty is True
    until(lambda: not alive(below), 5, what="the end of what was below it")


def test_what_outlived_its_command_is_ended_by_who_can_prove_the_number_and_else_keeps_the_proof_away(
    start: Starter, shell: Callable[..., tuple[subprocess.Popen[str], int]]
) -> None:
    process, below = shell(after="pass")
    row = row_of(process)
    process.wait()
    left = end_run_processes(None, MARK, recorded=[row])
    assert (left.ended, left.empty) == ((), False)
    assert alive(below)
    left = end_run_processes(ended_leader(start), MARK, recorded=[row])
    assert (left.ended, left.empty) == ((below,), True)


def test_a_number_that_was_given_out_again_and_a_notice_to_the_person_are_left_alone(start: Starter) -> None:
    stranger, notice = start("session"), start("session")
    row = row_of(stranger)
    assert row.start_ticks is not None
    earlier = row.model_copy(update={"start_ticks": row.start_ticks - 1})
    left = end_run_processes(ended_leader(start), MARK, recorded=[earlier, row_of(notice, what="notice")])
    assert (left.ended, left.empty) == ((), True)
    assert alive(stranger.pid) and alive(notice.pid)


def test_whoever_fell_to_us_is_ended_whatever_it_says_of_itself_but_for_who_is_proved_to_be_anothers(
    start: Starter,
) -> None:
    ours, other, none = start("session"), start("session", mark=MARK + "0"), start("session", mark=NO_RUN)
    server = start("session", mark=NO_RUN)
    fallen = {ours.pid, other.pid, none.pid, server.pid}
    left = end_run_processes(
        ended_leader(start), MARK, fallen=lambda: fallen, spare=lambda process: process.pid == server.pid
    )
    assert set(left.ended) == {ours.pid, other.pid, none.pid} and left.empty is True
    assert alive(server.pid)


def test_nobody_is_left_only_if_two_looks_say_so_between_which_nobody_fell_to_us(start: Starter) -> None:
    fallen: list[int] = []

    def falling() -> list[int]:
        fallen.append(2**22 + len(fallen))  # a number that is gone at each look, and a new one each time
        return fallen

    left = end_run_processes(ended_leader(start), MARK, fallen=falling)
    assert left.empty is False, "somebody is there whom no look met"


def test_who_may_outlive_a_run_has_written_down_who_it_is(tmp_path: Path, start: Starter) -> None:
    home = open_home(tmp_path / "store")
    liar, server, watched = (start("session", mark=mark) for mark in (NO_RUN, NO_RUN, mark_of(run_id(2), "f" * 32)))
    seen = {process.pid: look(process.pid) for process in (liar, server, watched)}
    assert not any(outlives(home, run_id(1), process) for process in seen.values() if process is not None)
    (home.root / "local-model").mkdir()
    said = {"pid": server.pid, "start_ticks": start_ticks(server.pid)}
    (home.root / "local-model" / "server.json").write_text(json.dumps(said))
    record_pending(
        create_run(home, make_plan(2), make_recovery(2)),
        spawn="cold",
        token="f" * 32,
        pid=watched.pid,
        ticks=start_ticks(watched.pid),
    )
    spared = {pid for pid, process in seen.items() if process is not None and outlives(home, run_id(1), process)}
    assert spared == {server.pid, watched.pid}
    (home.supervisor / "k-warm.lock").write_text(f"{liar.pid} {start_ticks(liar.pid)}")
    assert not outlives(home, run_id(1), seen[liar.pid])  # type: ignore[arg-type]
    lock = hold(home.supervisor / "k-warm.lock")
    assert outlives(home, run_id(1), seen[liar.pid]), "and holds the lock that a supervisor holds"  # type: ignore[arg-type]
    os.close(lock)


def test_for_want_of_descriptors_nobody_is_said_to_be_gone(start: Starter, monkeypatch: pytest.MonkeyPatch) -> None:
    marked = start("session", mark=MARK)

    def refuse(pid: int) -> int:
        raise OSError(24, f"Too many open files for {pid}")

    with monkeypatch.context() as few:
        few.setattr(os, "pidfd_open", refuse)
        with pytest.raises(OSError, match="Too many"):
            end_run_processes(None, MARK)
    assert end_run_processes(None, MARK).ended == (marked.pid,)
