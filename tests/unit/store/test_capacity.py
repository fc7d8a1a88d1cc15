"""Places are counted, whatever their numbers, and who waits for one is not gone past."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from support import until

from subagents_nb.store import StoreHome, open_home
from subagents_nb.store.capacity import WaitingMark, places_taken, take_place

MARKS = """
import sys
from pathlib import Path
from subagents_nb.store import open_home
from subagents_nb.store.capacity import WaitingMark
mark = WaitingMark(open_home(Path(sys.argv[1])))
mark.say(9)
print("said", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def home(tmp_path: Path) -> StoreHome:
    return open_home(tmp_path / "store")


@pytest.fixture
def keeper(home: StoreHome) -> Iterator[subprocess.Popen[str]]:
    """Another process, with which a run waits that may begin while fewer than nine are live."""
    command = [sys.executable, "-c", MARKS, str(home.root)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "said\n"
        yield process
        process.kill()


def take(home: StoreHome, limit: int, *, waited: bool = False) -> int:
    handle = take_place(home, limit, waited=waited)
    assert handle is not None
    return handle


def test_a_lower_limit_counts_all_live_runs_and_not_only_the_first_places(home: StoreHome) -> None:
    first, second = take(home, 2), take(home, 2)
    os.close(first)
    assert take_place(home, 1) is None, "one run is live, and none may be beside it"
    third = take(home, 2)
    assert (take_place(home, 2), places_taken(home)) == (None, 2)
    os.close(second)
    os.close(third)
    assert places_taken(home) == 0
    os.close(take(home, 1))


def test_places_beyond_the_limit_go_when_nobody_holds_them(home: StoreHome) -> None:
    handles = [take(home, 5) for _ in range(5)]
    for handle in (*handles[:2], handles[4]):
        os.close(handle)
    os.close(take(home, 3))
    assert sorted(path.name for path in home.capacity.glob("place-*")) == [f"place-00{n}" for n in range(4)]
    assert places_taken(home) == 2, "what is held stays and counts, whatever its number"
    for handle in handles[2:4]:
        os.close(handle)


def test_nobody_goes_past_a_run_that_waits_and_could_begin(home: StoreHome) -> None:
    mark = WaitingMark(home)
    mark.say(2)
    assert take_place(home, 16) is None
    first = take(home, 16, waited=True)
    assert take_place(home, 16) is None
    second = take(home, 16, waited=True)
    third = take(home, 16)  # those that wait can't begin while two are live
    mark.say(4)
    assert take_place(home, 16) is None
    mark.say(0)
    fourth = take(home, 16)
    assert not list(home.capacity.glob("waiting-*"))
    for handle in (first, second, third, fourth):
        os.close(handle)


def test_a_killed_keeper_holds_nobody_up(home: StoreHome, keeper: subprocess.Popen[str]) -> None:
    assert take_place(home, 16) is None
    keeper.send_signal(signal.SIGKILL)
    keeper.wait(10)
    os.close(take(home, 16))
    assert not list(home.capacity.glob("waiting-*")), "its mark is done away with"


def test_a_mark_that_says_nothing_readable_holds_nobody_up(home: StoreHome) -> None:
    WaitingMark(home).say(2)
    next(home.capacity.glob("waiting-*")).write_bytes(b"\xff{}")
    os.close(take(home, 16))


def test_a_process_halted_while_it_counts_lets_nobody_pass_the_limit(home: StoreHome) -> None:
    os.close(take(home, 2))
    code = f"import fcntl, sys; f = open({str(home.capacity / 'lock')!r}); fcntl.flock(f, fcntl.LOCK_EX); "
    command = [sys.executable, "-c", code + "print('held', flush=True); sys.stdin.read()"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        assert take_place(home, 2) is None
        assert places_taken(home) == 0, "looking goes on without it"
        process.kill()
    os.close(take(home, 2))


def test_many_at_once_are_never_more_than_the_limit(home: StoreHome) -> None:
    held, most, guard = 0, 0, threading.Lock()
    first = [take_place(home, 3) for _ in range(3)]
    assert None not in first and take_place(home, 3) is None  # however the threads below are scheduled
    for place in first:
        os.close(int(place or -1))

    def work() -> None:
        nonlocal held, most
        for _ in range(40):
            place = take_place(home, 3)
            with guard:
                if place is None:
                    continue
                held += 1
                most = max(most, held)
            assert places_taken(home) <= 3
            with guard:
                held -= 1
                os.close(place)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert 1 <= most <= 3
    until(lambda: places_taken(home) == 0, 5)
