from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from subagents_nb.prctl import show_as


@pytest.mark.skipif(sys.platform != "linux", reason="as Linux shows it")
def test_a_fork_shows_a_command_line_of_its_own() -> None:
    before = Path("/proc/self/cmdline").read_bytes()
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        show_as("subagents_nb.runner", "r-1")
        os.write(writing, Path("/proc/self/cmdline").read_bytes())
        os._exit(0)
    os.close(writing)
    with open(reading, "rb") as pipe:
        assert pipe.read().rstrip(b"\0") == b"subagents_nb.runner\0r-1"
    os.waitpid(pid, 0)
    assert Path("/proc/self/cmdline").read_bytes() == before
