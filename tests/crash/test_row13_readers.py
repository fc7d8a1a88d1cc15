"""Two processes read a run as fast as they can while it is written as fast as can be: nothing torn, nothing older."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable

import pytest
from crash.counting import times
from crash.lives import a_plan, exit_code, fork, store
from support import CHILDREN, make_result

from subagents_nb.domain.runs.records import RunStatus, StepStatus
from subagents_nb.domain.runs.states import RunState
from subagents_nb.store import StoreHome
from subagents_nb.store.clock import utc_now
from subagents_nb.store.files.lock import hold

Case = Callable[..., None]
SECONDS = times(2, 60)
A_SECOND = 833  # 50,000 reads in a minute


@pytest.mark.row(13, cases=2)
@pytest.mark.timeout(150)
def test_two_readers_beside_one_writer(store_home: StoreHome, case: Case) -> None:
    plan = a_plan(1)
    writes_seen, writes_said = os.pipe()
    may_begin, begin = os.pipe()

    def write() -> int:
        os.close(writes_seen)
        writer = store(store_home, plan)
        hold(writer.paths.lock)
        step = StepStatus(agent="scout", model="scripted:echo")
        first = {"run_id": plan.run_id, "name": plan.name, "started_at": plan.created_at, "updated_at": utc_now()}
        status = RunStatus.model_validate({**first, "state": RunState.RUNNING, "steps": (step,)})
        os.write(writes_said, b"go\n")
        os.read(may_begin, 1)
        seq, end = 0, time.monotonic() + SECONDS
        while time.monotonic() < end:
            seq += 1
            text = "x" * (seq % 3900)  # every length, so that no two documents have the same one
            now = step.model_copy(update={"tail": text, "tail_end": seq})
            writer.status(status.model_copy(update={"seq": seq, "steps": (now,)}), milestone=seq % 50 == 0)
        writer.result(make_result().model_copy(update={"run_id": plan.run_id}))
        os.write(writes_said, b"%d\n" % seq)
        return 0

    pid = fork(write)
    os.close(writes_said)
    with open(writes_seen) as said:
        assert said.readline() == "go\n"
        command = [sys.executable, str(CHILDREN / "reader.py"), plan.run_id]
        readers = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
        assert [reader.stdout.readline() for reader in readers if reader.stdout] == ["reading\n"] * 2
        os.write(begin, b"!")
        writes = int(said.readline())
    assert exit_code(pid) == 0
    ends = [reader.communicate(timeout=30)[0].split() for reader in readers]
    print(f"{writes} writes, {[int(reads) for _, reads in ends]} reads in {SECONDS:g} s")
    for state, reads in ends:
        assert state == "complete"
        assert int(reads) > A_SECOND * (SECONDS - 2) / 2
        case()
