"""Launches under random kills of supervisors, runners and launchers, while a stranger takes each pid that is freed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from crash.counting import times
from support import CHILDREN

RUNS, LIVE = times(8, 200), times(4, 16)


@pytest.mark.row(33, at_least=RUNS)
@pytest.mark.timeout(times(170, 900))
def test_a_storm_leaves_no_run_without_an_end_no_process_and_no_stranger_signalled(
    tmp_path: Path, case: Callable[..., None], not_here: Callable[[str], None]
) -> None:
    own = ["unshare", "--pid", "--fork", "--mount-proc"]
    if os.geteuid() != 0 or subprocess.run([*own, "true"], capture_output=True, check=False).returncode != 0:
        not_here("no pid namespace can be made here (needs root and unshare)")
    seed = os.environ.get("SOAK_SEED", str(time.time_ns() % 10**8))
    command = [*own, sys.executable, str(CHILDREN / "storm.py"), str(tmp_path / "store"), str(RUNS), str(LIVE), seed]
    (tmp_path / "user").mkdir()
    ours = {name: value for name, value in os.environ.items() if not name.startswith("SUBAGENTS_NB_")}
    environ = {**ours, "PYTHONPATH": str(CHILDREN.parent), "HOME": str(tmp_path / "user")}
    environ["SUBAGENTS_NB_HOME"] = str(tmp_path / "store")
    done = subprocess.run(command, capture_output=True, text=True, env=environ, timeout=times(160, 880), check=False)
    assert done.returncode == 0, f"seed {seed}: {done.stderr[-3000:]}"
    found = json.loads(done.stdout.splitlines()[-1])
    print(f"seed {seed}: {found}")
    assert found["runs"] >= RUNS
    nothing: tuple[object, ...] = ([], [], [], {}, [])
    assert (found["unended"], found["bad"], found["in_line"], found["left"], found["signalled"]) == nothing, found
    assert found["struck"], "nobody was killed"
    assert found["strangers"] > 0, "no pid was given out again"
    case(found["runs"])
