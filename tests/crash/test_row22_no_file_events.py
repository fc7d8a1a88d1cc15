"""The system reports no change of any file: what is shown is two seconds old at most."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from crash.counting import times
from crash.lives import a_plan, made
from support import make_result, make_status, until

from subagents_nb.domain.runs.snapshot import Snapshot
from subagents_nb.launching.following.watch import Watcher
from subagents_nb.store import StoreHome
from subagents_nb.store.files.lock import hold

MANY, LATE_S = times(5, 20), 2.5
SEED = 20260322


class Deaf:
    """Hears of nothing, as on a network file system."""

    def __init__(self, paths: list[str]) -> None:
        self.paths = paths

    def watch(self, debounce_ms: int, step_ms: int, timeout_ms: int, stop: threading.Event) -> str:
        return "stop" if stop.wait(timeout_ms / 1000) else "timeout"

    def close(self) -> None:
        pass


def refusing(_: list[str]) -> Any:
    raise OSError(28, "no watches are left")


@pytest.mark.row(22, cases=2 * MANY)
@pytest.mark.parametrize("notifier", [Deaf, refusing])
def test_changes_are_shown_although_nobody_reports_them(
    store_home: StoreHome, notifier: Callable[[list[str]], Any], case: Callable[..., None]
) -> None:
    rng = random.Random(SEED)
    print("seed", SEED)
    watcher = Watcher(notifier=notifier)
    heard: dict[str, tuple[int, float]] = {}
    written: dict[str, float] = {}

    def hear(snapshot: Snapshot) -> None:
        seq = 99 if snapshot.ended else snapshot.status.seq if snapshot.status is not None else 0
        heard[snapshot.run_id] = (seq, time.monotonic())

    writers = [made(store_home, a_plan(number)) for number in range(MANY)]
    for writer in writers:
        hold(writer.paths.lock)
        run_id = writer.paths.root.name
        writer.status(make_status(seq=1).model_copy(update={"run_id": run_id}), milestone=False)
        watcher.follow(store_home, run_id, hear)
    until(lambda: len(heard) == MANY, 5)
    for seq in (2, 99):
        for writer in writers:
            run_id = writer.paths.root.name
            if seq == 99:
                writer.result(make_result().model_copy(update={"run_id": run_id}))
            else:
                writer.status(make_status(seq=seq).model_copy(update={"run_id": run_id}), milestone=False)
            written[run_id] = time.monotonic()
            threading.Event().wait(rng.uniform(0, 0.1))
        until(lambda seq=seq: all(one[0] == seq for one in heard.values()), LATE_S + 1, what=f"change {seq}")
        late = [heard[run_id][1] - at for run_id, at in written.items()]
        print(f"{notifier.__name__}: at most {max(late):.2f} s late")
        assert max(late) <= LATE_S
        case(MANY)
    watcher.close()
