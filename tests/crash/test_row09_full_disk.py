"""A disk that refuses: the run works on, its result is kept until there is room, and nobody spins meanwhile."""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from crash.counting import times
from crash.disks import FaultyDisk, raising
from crash.lives import a_plan, event_lines, exit_code, fork, live, made, temps
from support import alive, script, until

from subagents_nb import launch, parallel, step
from subagents_nb.domain.plans.plan import LaunchPlan
from subagents_nb.domain.runs.states import RunState
from subagents_nb.errors import StoreError
from subagents_nb.store import FileRuns, StoreHome, open_home
from subagents_nb.store.files.disk import DISK

Case = Callable[..., None]
ERRORS = [errno.ENOSPC, errno.EACCES, errno.EMFILE, errno.EIO]
AT_ONCE = 8
EVERY = times(5, 1)  # so many calls lie between two that are refused
OUTAGE_S = 0.7


def working() -> str:
    return script("work", {"text": "one "}, {"tool": "read", "result": "x"}, {"sleep": 0.11}, {"text": "two"})


def expect_well(home: StoreHome, plan: LaunchPlan) -> None:
    snapshot = FileRuns(home).snapshot(plan.run_id, whole=True)
    assert (snapshot.damage, snapshot.verdict) == ((), None)
    assert (snapshot.state, snapshot.text) == (RunState.COMPLETE, "one two")
    assert temps(home.run(plan.run_id).root) == []


@pytest.mark.row(10, at_least=35 // EVERY * len(ERRORS))
@pytest.mark.timeout(120)
def test_one_refused_call_of_a_runner_costs_no_run(store_home: StoreHome, case: Case) -> None:
    model, at, over = working(), 1 - EVERY, False
    while not over:
        at += EVERY
        begun = []
        for number in ERRORS:
            plan = a_plan(at, model=model)
            begun.append((plan, fork(lambda plan=plan, number=number, at=at: stumble(store_home, plan, number, at))))
        for plan, pid in begun:
            code = exit_code(pid)
            assert code in (0, 1), store_home.run(plan.run_id).err.read_text()
            expect_well(store_home, plan)
            case(code == 0)
            over = over or code == 1


def stumble(home: StoreHome, plan: LaunchPlan, number: int, at: int) -> int:
    """Live with a disk that refuses the call `at`; 1 if the run ended before it."""
    disk = FaultyDisk(raising(number), lambda call, _: call == at)
    live(home, plan, DISK, disk)
    return 0 if disk.struck else 1


@pytest.mark.row(10, at_least=12)
@pytest.mark.parametrize("number", [errno.EMFILE, errno.EROFS], ids=errno.errorcode.get)
def test_a_launch_that_the_disk_refuses_at_any_call_leaves_nothing(
    store_home: StoreHome, number: int, case: Case
) -> None:
    for at in range(1, 60):
        plan = a_plan(at)
        disk = FaultyDisk(raising(number), lambda call, _, at=at: call == at)
        try:
            made(store_home, plan, disk)
        except StoreError as error:
            assert os.strerror(number) in str(error)
            assert FileRuns(store_home).ids() == []
            case()
        else:
            assert not disk.struck
            return


@pytest.mark.row(9, at_least=35 // EVERY)
@pytest.mark.timeout(120)
def test_a_disk_that_is_full_from_any_call_on_and_then_has_room_again(store_home: StoreHome, case: Case) -> None:
    model, at, over = working(), 1, False
    while not over:
        batch = []
        for at in range(at, at + AT_ONCE * EVERY, EVERY):  # noqa: B020 - goes on where the last batch ended
            plan = a_plan(at, model=model)
            batch.append((plan, fork(lambda at=at, plan=plan: outlast(store_home, plan, at))))
        for plan, pid in batch:
            code = exit_code(pid)
            assert code in (0, 1), f"{code}: {store_home.run(plan.run_id).err.read_text()}"
            expect_well(store_home, plan)
            if code == 1:
                over = True  # the run had ended before its disk was full
            else:
                case()
        at += EVERY


def outlast(home: StoreHome, plan: LaunchPlan, at: int) -> int:
    """Live with a disk that is full from the call `at` on for a while; 1 if the run ended before that."""
    ends: list[float] = []

    def due(call: int, _: str) -> bool:
        if call == at:
            ends.append(time.monotonic() + OUTAGE_S)
        return bool(ends) and time.monotonic() < ends[0]

    disk = FaultyDisk(raising(errno.ENOSPC), due)
    live(home, plan, DISK, disk)
    if not ends:
        return 1
    late = time.monotonic() - ends[0]
    if late > 5:
        return 20  # the result came too late
    return 0 if disk.struck < 60 * OUTAGE_S + 10 else 21  # it asked again and again without a pause


@pytest.fixture
def small_disk(tmp_path: Path, not_here: Callable[[str], None]) -> Iterator[Path]:
    """A file system of two megabytes."""
    place = tmp_path / "small"
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=2m,mode=700", "tmpfs", str(place)]
    if os.geteuid() != 0 or subprocess.run(command, capture_output=True, check=False).returncode != 0:
        not_here("a small file system can't be mounted here (needs root and mount)")
    yield place
    subprocess.run(["umount", "--lazy", str(place)], check=True)


def fill(place: Path) -> Path:
    """Take all the room there is."""
    ballast = place / "ballast"
    with ballast.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(b"x" * 4096)
    return ballast


@pytest.mark.row(9, cases=1)
@pytest.mark.parametrize("reserve", ["with", "without"])
def test_a_file_system_that_is_really_full(
    store_home: StoreHome, small_disk: Path, reserve: str, case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = open_home(small_disk / "store")
    monkeypatch.setenv("SUBAGENTS_NB_HOME", str(home.root))
    model = script("long", {"text": "one "}, {"sleep": 0.5}, {"text": "and "}, {"sleep": 2.5}, {"text": "two"})
    other = launch("scout", "x", model="scripted:echo")
    assert other.wait(20)
    run = launch("scout", "x", model=model)
    until(lambda: run.status.tail, 20, what="the first words")
    status = run.status.status
    assert status is not None and status.runner is not None
    pid = status.runner.pid
    paths = home.run(run.id)
    until(lambda: (paths.root / ".reserve").exists(), 5, what="the reserve")
    ballast = fill(small_disk)
    if reserve == "without":
        (paths.root / ".reserve").unlink()
        ballast = fill(small_disk)
    before, began = cpu_s(pid), time.monotonic()
    old = paths.status.read_bytes()
    if reserve == "with":
        until(lambda: run.status.ended, 10, what="the result in the room that was kept for it")
    else:
        # The work is done after three seconds; a second later the result has been refused several times.
        until(lambda: time.monotonic() - began > 4, 10)
        assert not paths.result.exists()
        assert FileRuns(home).snapshot(run.id).state is RunState.RUNNING, "what was there is not readable any more"
        assert paths.status.read_bytes()[:1] == old[:1] == b"{"
        used = (cpu_s(pid) - before) / (time.monotonic() - began)
        print(f"processor while the disk was full: {used:.1%}")
        assert used < 0.03
        ballast.unlink()
        until(lambda: run.status.ended, 10, what="the result, now that there is room")
    assert (run.state, run.output) == (RunState.COMPLETE, "one and two")
    assert other.output == "x"
    case()


@pytest.mark.row(9, cases=1)
@pytest.mark.parametrize("what", ["one step", "the run"])
def test_a_stop_that_a_full_disk_lets_nobody_answer_ends_what_was_meant_and_no_more(
    store_home: StoreHome, small_disk: Path, what: str, case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = open_home(small_disk / "store")
    monkeypatch.setenv("SUBAGENTS_NB_HOME", str(home.root))
    model = script("long", {"text": "one "}, {"sleep": 8}, {"text": "two"})
    run = launch(parallel(*(step("scout", "x", model=model) for _ in range(2)), on_failure="continue"))
    until(lambda: all(one.state == "running" and one.text for one in run.steps), 20, what="the first words")
    process = FileRuns(home).snapshot(run.id, whole=True).process
    assert process is not None
    assert process.pid is not None
    paths = home.run(run.id)
    until(lambda: (paths.root / ".reserve").exists(), 5, what="the reserve")
    os.kill(process.pid, signal.SIGSTOP)  # it must not take the room that is there for a moment
    ballast = fill(small_disk)
    with ballast.open("r+b") as file:
        file.truncate(ballast.stat().st_size - 4096)  # room for the request, and for nothing else
    if what == "the run":
        (paths.root / ".reserve").unlink()
        run.stop()
    else:
        run.steps[0].stop()
    ballast = fill(small_disk)
    os.kill(process.pid, signal.SIGCONT)
    began = time.monotonic()
    # Who does not hear a stop is ended from outside after three seconds; this one heard it and can't say so.
    until(lambda: time.monotonic() - began > 6, 10)
    assert alive(process.pid, process.start_ticks), paths.err.read_text()
    assert list(paths.answers.iterdir()) == []
    ballast.unlink()
    assert run.wait(20)
    found = (run.state, [str(one.state) for one in run.steps])
    if what == "the run":
        assert found == (RunState.STOPPED, ["stopped", "stopped"])
    else:
        assert found == (RunState.PARTIAL, ["stopped", "complete"])
    assert paths.result.exists()
    case()


def cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@pytest.mark.row(10, cases=1)
@pytest.mark.parametrize("when", [0.0, 0.05, 0.2])
def test_a_runner_without_free_descriptors_for_a_second_comes_through(
    store_home: StoreHome, when: float, case: Case
) -> None:
    plan = a_plan(1, model=script("pause", {"text": "one "}, {"sleep": 0.4}, {"text": "two"}))

    def work() -> int:
        import resource

        os.closerange(3, 4096)  # whatever the other tests hold open
        resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
        threading.Thread(target=greedy, args=(store_home, plan, when), daemon=True).start()
        return live(store_home, plan)

    assert exit_code(fork(work)) == 0, store_home.run(plan.run_id).err.read_text()
    expect_well(store_home, plan)
    assert event_lines(store_home, plan.run_id)
    case()


def greedy(home: StoreHome, plan: LaunchPlan, when: float) -> None:
    """Once the run works, take all descriptors for a second."""
    until(lambda: any(e["type"] == "model-asked" for e in event_lines(home, plan.run_id)), 10, pause=0.001)
    threading.Event().wait(when)
    taken: list[int] = []
    with contextlib.suppress(OSError):
        while True:
            taken.append(os.open(os.devnull, os.O_RDONLY))
    threading.Event().wait(1.0)
    for handle in taken:
        os.close(handle)
