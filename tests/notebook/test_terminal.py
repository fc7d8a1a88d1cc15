"""IPython in a terminal, where there is no page: plain lines of text."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from kernels import dismiss_supervisors, end_runs
from support import SECRET_PREFIXES

from subagents_nb.store import StoreHome

Ipython = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def ipython(tmp_path: Path) -> Iterator[Ipython]:
    """Return how to run a script in a terminal's IPython, which ends as the user's would."""
    environ = {n: v for n, v in os.environ.items() if not n.startswith((*SECRET_PREFIXES, "SUBAGENTS_NB_"))}
    environ |= {"HOME": str(tmp_path), "IPYTHONDIR": str(tmp_path / "ip"), "SUBAGENTS_NB_HOME": str(tmp_path / "store")}
    environ |= {"SUBAGENTS_NB_SPAWN": "cold", "PYTHONWARNINGS": ""}

    def run(*lines: str) -> subprocess.CompletedProcess[str]:
        argv = [sys.executable, "-m", "IPython", "--no-banner", "--colors=nocolor", "--simple-prompt"]
        script = "\n".join([*lines, "exit", ""])
        return subprocess.run(
            argv, input=script, env=environ, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
        )

    yield run
    home = StoreHome(tmp_path / "store")
    end_runs(home)
    dismiss_supervisors(home)


@pytest.mark.host(
    "IPython in a terminal",
    magics="yes",
    live="a line of text; with `--wait` one that is written over",
    buttons="no: verbs",
    reload="",
    saved="",
)
def test_runs_are_lines_of_text(ipython: Ipython) -> None:
    done = ipython(
        "%load_ext subagents_nb",
        "%subagent --model scripted:slow --name by-line -- hello from a terminal",
        "%subagent --model scripted:echo --name waited --wait -- the whole answer",
        "%subagent_attach waited",
        "%subagent --model scripted:fail --name doomed --wait -- x",
        "%subagent --modell x -- y",
        "%subagent_stop by-line",
        "%subagent_attach -h",
        "run = %subagent --model scripted:echo -- 6*7",
        "print('is', run.result(20))",
    )
    # It has been launched, and may have begun by the time that the line is made.
    begun = r"by-line \(delegate\) (queued|running) · attach again with %subagent_attach by-line"
    assert re.search(begun, done.stdout)
    # A wait that is over shows what came of it: a line of text can't change later.
    assert "waited (delegate) complete: the whole answer\n\nthe whole answer" in done.stdout
    assert "RunFailed: Run doomed (r-" in done.stdout
    assert "show this help and do nothing" in done.stdout
    assert "perhaps you mean --model" in done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr
    assert "<section" not in done.stdout
    assert "is 6*7" in done.stdout, "what a magic returns can be used in a script"
    assert done.returncode == 0
