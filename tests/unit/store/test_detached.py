"""What outlives us by intent is no leak: nothing is said of it when we end, and it is reaped while we live."""

from __future__ import annotations

import subprocess
import sys

import pytest
from support import until

from subagents_nb.store import StoreHome
from subagents_nb.store.processes.detached import Detached
from subagents_nb.store.processes.process_list import look

HOST = """
from subagents_nb.supervisor.protocol.reaching import ensure_host, host_key
ensure_host(home, host_key("cold"))
"""
NOTICE = """
from subagents_nb.store.processes.notice import send_notice
send_notice(["cat"], run_id="r-1", name="n", text="t")
"""
DROPPED = """
from subagents_nb.store.processes.detached import Detached
Detached(["cat"], environ={}, stdin=-1).stdin.close()
"""


@pytest.mark.parametrize("start", [HOST, NOTICE, DROPPED], ids=["supervisor", "notice", "dropped"])
def test_who_starts_what_outlives_it_ends_without_a_warning(store_home: StoreHome, start: str) -> None:
    head = "import sys\nfrom subagents_nb.store import open_home\nhome = open_home()\n"
    script = [sys.executable, "-W", "error::ResourceWarning", "-c", head + start]
    ended = subprocess.run(script, capture_output=True, text=True, timeout=60, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")


def test_what_is_dropped_while_it_works_is_reaped_when_it_has_ended() -> None:
    pid = _drop_one_at_work()
    until(lambda: (process := look(pid)) is None or process.ended, 10, what="its end")
    subprocess.run(["true"], check=True)  # whoever starts a process reaps those that ended
    assert look(pid) is None


def _drop_one_at_work() -> int:
    process = Detached(["cat"], environ={}, stdin=subprocess.PIPE)
    assert process.stdin is not None
    with process.stdin:
        return process.pid
