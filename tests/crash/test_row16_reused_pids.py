"""The system gives the pid of a dead runner to a stranger: the run is judged, and the stranger hears nothing of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from support import CHILDREN

Case = Callable[..., None]
ROUNDS = 20


@pytest.mark.row(16, cases=ROUNDS)
@pytest.mark.timeout(120)
def test_a_pid_that_is_really_given_out_again(tmp_path: Path, case: Case, not_here: Callable[[str], None]) -> None:
    own = ["unshare", "--pid", "--fork", "--mount-proc"]
    if os.geteuid() != 0 or subprocess.run([*own, "true"], capture_output=True, check=False).returncode != 0:
        not_here("no pid namespace can be made here (needs root and unshare)")
    command = [*own, sys.executable, str(CHILDREN / "reused.py"), str(tmp_path / "store"), str(ROUNDS)]
    environ = {**os.environ, "PYTHONPATH": str(CHILDREN.parent)}
    done = subprocess.run(command, capture_output=True, text=True, env=environ, timeout=100, check=False)
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    ends, rounds = lines[::2], lines[1::2]
    assert ends == [{"code": 0}] * ROUNDS, "a stranger was signalled"
    for one in rounds:
        wanted = {"pid": True, "alive": True, "gone": True, "state": "stopped", "watched": 0}
        assert one == wanted
        case()
