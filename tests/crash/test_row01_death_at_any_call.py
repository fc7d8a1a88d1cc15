"""A run whose process dies before any one of its file calls: old or new, whole, and an honest end."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from crash.disks import FaultyDisk, dying
from crash.lives import a_plan, event_lines, exit_code, fork, live, temps
from support import script

from subagents_nb.domain.runs.states import RunState
from subagents_nb.store import FileRuns, StoreHome
from subagents_nb.supervisor.warm.reconcile import reconcile

MANY = 250


class Telling(FaultyDisk):
    """Tells over a pipe how much of the events is on the device."""

    def __init__(self, at: int, pipe: int) -> None:
        super().__init__(dying, lambda number, _: number == at)
        self._pipe = pipe

    def sync(self, handle: int) -> None:
        super().sync(handle)
        if os.readlink(f"/proc/self/fd/{handle}").endswith("events.jsonl"):
            os.write(self._pipe, b"%d\n" % os.fstat(handle).st_size)


@pytest.mark.row(1, at_least=60)
@pytest.mark.timeout(120)
def test_a_run_that_dies_at_any_call_is_whole_and_has_an_honest_end(
    store_home: StoreHome, case: Callable[..., None]
) -> None:
    model = script(
        "all",
        {"think": "hm"},
        {"text": "one "},
        {"tool": "read", "args": {"path": "a.csv"}, "result": "x"},
        {"sleep": 0.11},  # long enough for a status that is no milestone
        {"text": "two "},
        {"usage": {"input_tokens": 3}},
        {"tool": "edit", "args": {"path": "a.csv"}, "refused": "no"},
        {"text": "three"},
    )
    found: set[RunState | None] = set()
    for at in range(1, MANY):
        plan = a_plan(at, model=model)
        reading, writing = os.pipe()
        pid = fork(lambda at=at, plan=plan, writing=writing: live(store_home, plan, Telling(at, writing)))
        os.close(writing)
        with open(reading, "rb") as pipe:
            durable = [int(line) for line in pipe]
        code = exit_code(pid)
        assert code in (0, 9), store_home.run(plan.run_id).err.read_text()
        check(store_home, plan.run_id, durable, found)
        case()
        if code == 0:
            break
    assert code == 0, "the run has more calls than were tried"
    assert found >= {None, RunState.FAILED, RunState.LOST, RunState.COMPLETE}


def check(home: StoreHome, run_id: str, durable: list[int], found: set[RunState | None]) -> None:
    runs, root = FileRuns(home), home.run(run_id).root
    if run_id not in runs.ids():
        assert not root.exists()
        return
    before = runs.snapshot(run_id, whole=True)
    assert [damage for damage in before.damage if damage.kind != "missing"] == []
    assert len(temps(root)) <= 1
    reconcile(home, [run_id])
    after = runs.snapshot(run_id, whole=True)
    found.add(after.state)
    if before.plan is None:
        assert after.state is None and after.error, "a directory without a plan passes for a run"
    elif before.result is not None:
        assert (after.state, after.verdict) == (RunState.COMPLETE, None)
        assert after.text == "one two three"
    else:
        began = before.status is not None and before.status.state is RunState.RUNNING
        assert after.state is (RunState.LOST if began else RunState.FAILED), after.error
    lines = event_lines(home, run_id)
    assert [line["seq"] for line in lines] == list(range(1, len(lines) + 1))
    shown = before.status.steps[0].tail_end if before.status is not None else 0
    told = sum(len(line["text"]) for line in lines if line["type"] == "text")
    assert told >= shown, "the status shows what the events lack"
    assert not durable or size_of(root / "events.jsonl") >= durable[-1], "what was synced is missing"


def size_of(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0
