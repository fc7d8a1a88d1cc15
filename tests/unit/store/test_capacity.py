"""Places are counted, whatever their numbers, and who waits for one is not gone past."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from support import run_id, until

from subagents_nb.store import StoreHome, open_home
from subagents_nb.store.waiting import line
from subagents_nb.store.waiting.capacity import coming_back, slots_taken, take_slot


@pytest.fixture
def home(tmp_path: Path) -> StoreHome:
    return open_home(tmp_path / "store")


def take(home: StoreHome, limit: int, *, waited: bool = False) -> int:
    handle = take_slot(home, limit, waited=waited)
    assert handle is not None
    return handle


def test_a_lower_limit_counts_all_live_runs_and_not_only_the_first_places(home: StoreHome) -> None:
    first, second = take(home, 2), take(home, 2)
    os.close(first)
    assert take_slot(home, 1) is None, "one run is live, and none may be beside it"
    third = take(home, 2)
    assert (take_slot(home, 2), slots_taken(home)) == (None, 2)
    os.close(second)
    os.close(third)
    assert slots_taken(home) == 0
    os.close(take(home, 1))


def test_places_beyond_the_limit_go_when_nobody_holds_them(home: StoreHome) -> None:
    handles = [take(home, 5) for _ in range(5)]
    for handle in (*handles[:2], handles[4]):
        os.close(handle)
    os.close(take(home, 3))
    assert sorted(path.name for path in home.capacity.glob("place-*")) == [f"place-00{n}" for n in range(4)]
    assert slots_taken(home) == 2, "what is held stays and counts, whatever its number"
    for handle in handles[2:4]:
        os.close(handle)


def test_nobody_goes_past_a_run_that_waits_and_could_begin(home: StoreHome) -> None:
    line.enter(home, run_id(1), 2)
    assert take_slot(home, 16) is None
    first = take(home, 16, waited=True)
    assert take_slot(home, 16) is None
    second = take(home, 16, waited=True)
    third = take(home, 16)  # those that wait can't begin while two are live
    line.enter(home, run_id(2), 4)
    assert take_slot(home, 16) is None
    for turn in line.standing(home):
        line.hold_up_nobody(home, turn, limit=0)
    fourth = take(home, 16)
    for handle in (first, second, third, fourth):
        os.close(handle)


def test_a_run_at_work_that_wants_its_place_back_comes_before_those_that_wait(home: StoreHome) -> None:
    first = take(home, 1)
    line.enter(home, run_id(2), 1)
    (home.capacity / f"back-{run_id(3)}").touch()  # of one that died
    with coming_back(home, run_id(1)):
        os.close(first)
        assert take_slot(home, 1, waited=True) is None and take_slot(home, 1) is None
        second = take(home, 2, waited=True)
        mine = take_slot(home, 2, back=True)
        assert mine is not None
    assert [path.name for path in home.capacity.glob("back-*")] == []
    os.close(mine)
    os.close(second)


def test_the_line_stands_in_the_order_of_launches_and_outlives_who_made_it(home: StoreHome) -> None:
    for number, limit in ((3, 16), (1, 4), (2, 16)):
        line.enter(home, run_id(number), limit, ["A_KEY"] if number == 1 else ())
    for strange in ("turn-r-x.9", "turn-.1", f"turn-{run_id(4)}.x"):
        (home.capacity / strange).touch()
    assert [(turn.run_id, turn.limit) for turn in line.standing(home)] == [
        (run_id(1), 4),
        (run_id(2), 16),
        (run_id(3), 16),
    ]
    assert line.needs_of(line.standing(home)[0]) == line.Needs(4, sys.executable, ("A_KEY",))
    line.leave(home, run_id(1))
    assert take_slot(home, 16) is None, "two wait, and one of them could begin"


def test_one_at_a_time_decides_about_a_run_that_waits(home: StoreHome) -> None:
    line.enter(home, run_id(1), 1)
    with line.claimed(home, run_id(1)) as first, line.claimed(home, run_id(1)) as second:
        assert (first, second) == (True, False)
        line.leave(home, run_id(1))
    with line.claimed(home, run_id(1)) as late:
        assert late is None, "it has begun"


def test_a_process_halted_while_it_counts_lets_nobody_pass_the_limit(home: StoreHome) -> None:
    os.close(take(home, 2))
    code = f"import fcntl, sys; f = open({str(home.capacity / 'lock')!r}); fcntl.flock(f, fcntl.LOCK_EX); "
    command = [sys.executable, "-c", code + "print('held', flush=True); sys.stdin.read()"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        assert take_slot(home, 2) is None
        assert slots_taken(home) == 0, "looking goes on without it"
        process.kill()
    os.close(take(home, 2))


def test_many_at_once_are_never_more_than_the_limit(home: StoreHome) -> None:
    held, most, guard = 0, 0, threading.Lock()
    first = [take_slot(home, 3) for _ in range(3)]
    assert None not in first and take_slot(home, 3) is None  # however the threads below are scheduled
    for place in first:
        os.close(int(place or -1))

    def work() -> None:
        nonlocal held, most
        for _ in range(40):
            place = take_slot(home, 3)
            with guard:
                if place is None:
                    continue
                held += 1
                most = max(most, held)
            assert slots_taken(home) <= 3
            with guard:
                held -= 1
                os.close(place)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert 1 <= most <= 3
    until(lambda: slots_taken(home) == 0, 5)
