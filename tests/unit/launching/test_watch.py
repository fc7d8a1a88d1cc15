"""Followers of a run are told of its end and of nothing that is not one."""

from __future__ import annotations

import asyncio
import itertools
import queue
import shutil
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from support import make_plan, make_recovery, make_result, make_status, run_id, until

from subagents_nb.domain.runs.snapshot import Snapshot
from subagents_nb.domain.runs.states import RunState
from subagents_nb.launching.following.waiting import wait_all
from subagents_nb.launching.following.watch import Watcher
from subagents_nb.launching.handle import Run
from subagents_nb.store import RunWriter, StoreHome, create_run, open_home
from subagents_nb.store.files.lock import hold


@pytest.fixture
def home(tmp_path: Path) -> StoreHome:
    return open_home(tmp_path / "store")


@pytest.fixture
def writer(home: StoreHome) -> RunWriter:
    """A live run: the test itself holds its lock."""
    made = create_run(home, make_plan(), make_recovery())
    hold(made.paths.lock)
    made.status(make_status(), milestone=False)
    return made


@pytest.fixture
def watcher() -> Iterator[Watcher]:
    made = Watcher()
    yield made
    made.close()
    assert not [t for t in threading.enumerate() if t.name == "subagents-nb-watch" and t is made._thread]


def test_a_follower_hears_the_present_state_every_change_and_the_end(
    home: StoreHome, writer: RunWriter, watcher: Watcher
) -> None:
    heard: list[Snapshot] = []
    watcher.follow(home, run_id(), heard.append)
    until(lambda: heard, 5)
    writer.status(make_status(seq=2), milestone=False)
    until(lambda: heard[-1].status is not None and heard[-1].status.seq == 2, 5)
    writer.result(make_result())
    until(lambda: heard[-1].state is RunState.COMPLETE, 5)


def moment(seconds_ago: float) -> str:
    return (datetime.now(UTC) - timedelta(seconds=seconds_ago)).isoformat(timespec="milliseconds")


def test_followers_of_a_run_that_says_nothing_any_more_are_told_so_until_it_does(
    home: StoreHome, writer: RunWriter, watcher: Watcher
) -> None:
    heard: list[Snapshot] = []
    writer.status(make_status(updated_at=moment(1)), milestone=False)
    watcher.follow(home, run_id(), heard.append)
    until(lambda: heard, 5)
    assert heard[0].attention is None
    watcher._runs[home.run_folder(run_id())].heard -= 60  # as if a minute had passed
    until(lambda: heard[-1].attention is not None, 10)
    assert heard[-1].attention is not None and heard[-1].attention.kind == "unheard"
    assert 60 < heard[-1].unheard_s < 90 and heard[-1].state is RunState.RUNNING
    writer.status(make_status(seq=2, updated_at=moment(0)), milestone=False)
    until(lambda: heard[-1].attention is None, 10)


def test_what_cannot_be_read_for_a_moment_is_no_end(home: StoreHome, writer: RunWriter, watcher: Watcher) -> None:
    heard: list[Snapshot] = []
    watcher.follow(home, run_id(), heard.append)
    until(lambda: heard, 5)
    writer.paths.status.write_bytes(b"{")
    threading.Event().wait(0.5)
    assert not [s for s in heard if s.ended], "a run was said to have ended because it could not be read once"
    writer.status(make_status(seq=5), milestone=False)
    until(lambda: heard[-1].status is not None and heard[-1].status.seq == 5, 5)


def test_a_run_that_stays_unreadable_does_not_hold_its_waiters_for_ever(home: StoreHome, writer: RunWriter) -> None:
    writer.paths.status.write_bytes(b"{")
    ended = wait_all(home, [run_id()], 20)
    assert ended[run_id()].state is None
    assert "status.json can't be read" in str(ended[run_id()].error)


def test_a_run_whose_directory_goes_away_ends_for_its_waiters(home: StoreHome, writer: RunWriter) -> None:
    threading.Timer(0.2, lambda: shutil.rmtree(writer.paths.root)).start()
    assert "gone" in str(wait_all(home, [run_id()], 10)[run_id()].error)


def test_one_view_that_fails_blinds_no_other(home: StoreHome, writer: RunWriter, watcher: Watcher) -> None:
    def broken(_: Snapshot) -> None:
        raise RuntimeError("a view's fault")

    heard: list[Snapshot] = []
    watcher.follow(home, run_id(), broken)
    watcher.follow(home, run_id(), heard.append)
    writer.result(make_result())
    until(lambda: heard and heard[-1].ended, 5)


def test_the_thread_rests_when_nobody_follows(home: StoreHome, writer: RunWriter, watcher: Watcher) -> None:
    stop = watcher.follow(home, run_id(), lambda _: None)
    thread = watcher._thread
    assert thread is not None and thread.daemon
    stop()
    thread.join(5)
    assert not thread.is_alive()


def test_a_wait_of_no_time_still_knows_who_has_ended(home: StoreHome, writer: RunWriter) -> None:
    assert wait_all(home, [run_id()], 0) == {}
    writer.result(make_result())
    assert set(wait_all(home, [run_id()], 0)) == {run_id()}


def test_without_file_events_runs_are_looked_at_all_the_same(home: StoreHome, writer: RunWriter) -> None:
    def used_up(_paths: list[str]) -> None:
        raise OSError(24, "Too many open files")

    watcher = Watcher(notifier=used_up)
    heard: list[Snapshot] = []
    watcher.follow(home, run_id(), heard.append)
    until(lambda: heard, 5)
    writer.result(make_result())
    until(lambda: heard[-1].state is RunState.COMPLETE, 2.5, what="the end, without events")
    watcher.close()


def test_a_wait_that_is_cancelled_raises_what_asyncio_knows(home: StoreHome, writer: RunWriter) -> None:
    run = Run(home, run_id())

    async def fails() -> None:
        raise ValueError("boom")

    async def main() -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.02):
                await run
        with pytest.raises(ExceptionGroup) as caught:
            async with asyncio.TaskGroup() as group:
                group.create_task(fails())
                await run
        assert [type(one) for one in caught.value.exceptions] == [ValueError]

    asyncio.run(main())


class Events:
    """File events as a test sends them."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._sent: queue.Queue[str] = queue.Queue()

    def send(self, name: str) -> None:
        self._sent.put(name)

    def watch(self, _debounce: int, _step: int, timeout_ms: int, _stop: threading.Event) -> object:
        try:
            return {(2, str(self._root / self._sent.get(timeout=timeout_ms / 1000)))}
        except queue.Empty:
            return "timeout"

    def close(self) -> None: ...


def test_a_run_that_says_much_is_read_four_times_a_second_and_its_end_at_once(
    home: StoreHome, writer: RunWriter
) -> None:
    events = Events(home.run(run_id()).root.resolve())
    watcher = Watcher(notifier=lambda _paths: events)
    heard: list[tuple[float, Snapshot]] = []
    try:
        watcher.follow(home, run_id(), lambda snapshot: heard.append((time.monotonic(), snapshot)))
        until(lambda: heard, 5)
        for seq in range(2, 42):
            writer.status(make_status(seq=seq), milestone=False)
            events.send("status.json")
            until(lambda: events._sent.empty(), 5)
        until(lambda: heard[-1][1].status is not None and heard[-1][1].status.seq == 41, 5)
        pauses = [late - early for (early, _), (late, _) in itertools.pairwise(heard)]
        assert len(heard) < 12 and min(pauses) > 0.2, pauses
        writer.result(make_result())
        ended = time.monotonic()
        events.send("result.json")
        until(lambda: heard[-1][1].ended, 5)
        assert heard[-1][0] - ended < 0.2
    finally:
        watcher.close()


def test_the_same_run_in_two_stores_is_two_runs(
    home: StoreHome, writer: RunWriter, watcher: Watcher, tmp_path: Path
) -> None:
    """It came from there in an archive: a follower of the one must not hear of the other."""
    other = open_home(tmp_path / "other")
    create_run(other, make_plan(), make_recovery()).result(make_result())
    here: list[Snapshot] = []
    there: list[Snapshot] = []
    writer.status(make_status(updated_at=moment(1)), milestone=False)
    watcher.follow(home, run_id(), here.append)
    watcher.follow(other, run_id(), there.append)
    until(lambda: here and there and there[-1].ended, 5)
    assert not any(snapshot.ended for snapshot in here) and all(snapshot.ended for snapshot in there)
