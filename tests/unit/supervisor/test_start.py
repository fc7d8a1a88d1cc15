"""What is kept of a supervisor that is gone when the next one starts."""

from __future__ import annotations

import os
from pathlib import Path

from subagents_nb.supervisor.protocol.reaching import _fresh_log


def test_the_last_words_of_a_supervisor_outlive_the_start_of_the_next_two(tmp_path: Path) -> None:
    log, before = tmp_path / "host.log", tmp_path / "host.log.1"
    for said in ("Traceback: it crashed", "", "another word"):
        handle = _fresh_log(log)
        os.write(handle, said.encode())
        os.close(handle)
        assert before.exists() is (said != "Traceback: it crashed")
        assert not before.exists() or before.read_text() == "Traceback: it crashed"
    os.close(_fresh_log(log))
    assert (log.read_text(), before.read_text()) == ("", "another word")
    assert log.stat().st_mode & 0o777 == 0o600
