"""Nobody is signalled but by one module, and never by a number whose owner was reaped."""

from __future__ import annotations

import ast
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from support import until

import subagents_nb
from subagents_nb import signals

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="what Linux proves of a process")
PACKAGE = Path(subagents_nb.__file__).parent
SENDING = {"kill", "killpg", "pidfd_send_signal", "terminate", "send_signal", "pthread_kill", "raise_signal"}


def calls_that_signal(path: Path) -> list[str]:
    found, text = [], path.read_text()
    for node in ast.walk(ast.parse(text)) if any(word in text for word in SENDING) else ():
        if isinstance(node, ast.Attribute) and node.attr in SENDING:
            found.append(f"{path.relative_to(PACKAGE)}:{node.lineno}: .{node.attr}")
        if isinstance(node, ast.ImportFrom) and node.module in ("os", "signal"):
            found += [f"{path.name}: {name.name}" for name in node.names if name.name in SENDING]
    return found


def test_one_module_signals_and_no_other_does() -> None:
    found = [call for path in PACKAGE.rglob("*.py") if path.name != "signals.py" for call in calls_that_signal(path)]
    assert found == []
    assert len(calls_that_signal(PACKAGE / "signals.py")) > 4, "the look itself works"


def test_a_number_is_a_childs_until_it_is_reaped_and_not_afterwards() -> None:
    child = subprocess.Popen(["sleep", "300"], start_new_session=True)
    assert signals.signal_group(child.pid, signal.SIGKILL)
    until(lambda: signals.has_ended(child.pid))
    assert signals.is_unreaped(child.pid) and signals.signal_group(child.pid, 0), "ended, and still its own"
    assert child.wait() == -signal.SIGKILL
    for send in (signals.signal_group, signals.signal_child):
        assert not send(child.pid, signal.SIGKILL)
    assert not signals.exists(child.pid)


def test_whoever_is_no_child_of_ours_is_signalled_by_the_time_it_began_only() -> None:
    code = "import subprocess, sys; p = subprocess.Popen(['sleep', '300'], stdout=2); print(p.pid, flush=True)"
    child = subprocess.run([sys.executable, "-c", code], capture_output=False, stdout=subprocess.PIPE, check=True)
    pid = int(child.stdout)
    ticks = signals.ticks_of(pid)
    assert ticks is not None
    assert not signals.signal_child(pid, signal.SIGKILL) and not signals.signal_group(pid, signal.SIGKILL)
    assert not signals.signal_process(pid, ticks + 1, signal.SIGKILL), "another had the number before"
    assert not signals.signal_process(pid, None, signal.SIGKILL), "nothing is known of it"
    assert os.path.exists(f"/proc/{pid}")
    assert signals.signal_process(pid, ticks, signal.SIGKILL)
    until(
        lambda: signals.ticks_of(pid) is None or Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2][1:2] == b"Z"
    )
