"""Runners are reaped when their end is on disk, not before. In a process of their own, to which their orphans fall."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import os, resource, signal, sys
from pathlib import Path
from support import alive, make_plan, make_recovery, make_status, run_id, until
from subagents_nb.domain.runs.exit_report import ProcessRecord
from subagents_nb.store import FileRuns, create_run, open_home
from subagents_nb.store.files.disk import DISK, Disk
from subagents_nb.store.processes.process_list import look
from subagents_nb.prctl import adopt_orphans
from subagents_nb.supervisor.processes.identity import identify
from subagents_nb.supervisor.warm.process_table import ProcessTable, SpawnRequest

adopt_orphans()
home = open_home(Path(sys.argv[1]))
plan = make_plan()
writer = create_run(home, plan, make_recovery())
nursery = ProcessTable(home, forking=False)
reading, writing = os.pipe()
environ = dict(os.environ, SUBAGENTS_NB_RUN=f"{plan.run_id}:{plan.token}")
pid = nursery.start(SpawnRequest(plan.run_id, plan.token, "/", environ), channel=reading, place=None)
writer.status(make_status(runner=identify(pid, plan.token)), milestone=False)
os.kill(pid, signal.SIGKILL)
until(lambda: look(pid).ended, 10)

def spoilt():
    if sys.argv[2] == "descriptors":
        limit = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (0, limit[1]))
        return lambda: resource.setrlimit(resource.RLIMIT_NOFILE, limit)
    write = Disk.write
    def refuse(self, handle, data):
        raise OSError(28, "No space left on device")
    Disk.write = refuse
    return lambda: setattr(Disk, "write", write)

mend = spoilt()
for _ in range(3):
    assert nursery.reap() == 0
assert len(nursery) == 1
mend()
assert look(pid).ended, "it was reaped before its end was on disk"
until(lambda: nursery.reap(), 10, what="the record")
assert look(pid) is None and len(nursery) == 0
snapshot = FileRuns(home).snapshot(plan.run_id, whole=True)
assert (snapshot.process.state, snapshot.process.signal) == ("observed", 9), snapshot.process
assert (snapshot.verdict.state, snapshot.verdict.actor) == ("lost", "outside"), snapshot.verdict
"""


@pytest.mark.parametrize("fault", ["descriptors", "disk"])
def test_an_end_that_cannot_be_recorded_now_is_recorded_later_with_all_that_was_seen(
    tmp_path: Path, fault: str
) -> None:
    environ = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    command = [sys.executable, "-c", SCRIPT, str(tmp_path / "store"), fault]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
