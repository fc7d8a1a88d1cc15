"""What the two sides of the server agree on."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from subagents_nb.local_model.server_record import (
    ServerRecord,
    is_running,
    read_record,
    read_start_ticks,
    remove_record_of,
    write_record,
)

RECORD = ServerRecord(pid=41, start_ticks=7, port=8080, api_key="hush")


def test_a_record_is_read_as_it_was_written_and_is_private(tmp_path: Path) -> None:
    path = tmp_path / "server.json"
    write_record(path, RECORD)
    assert read_record(path) == RECORD
    assert path.stat().st_mode & 0o777 == 0o600
    assert [each.name for each in tmp_path.iterdir()] == ["server.json"]


@pytest.mark.parametrize(
    "content", ["", "{", "[]", '{"pid": 1}', '{"pid": "1", "port": 2, "api_key": "", "start_ticks": 3}']
)
def test_a_damaged_record_counts_as_none(tmp_path: Path, content: str) -> None:
    path = tmp_path / "server.json"
    path.write_text(content)
    assert read_record(path) is None


def test_a_missing_record_counts_as_none(tmp_path: Path) -> None:
    assert read_record(tmp_path / "server.json") is None


def test_only_the_record_of_the_named_process_is_removed(tmp_path: Path) -> None:
    path = tmp_path / "server.json"
    write_record(path, RECORD)
    remove_record_of(path, 42)
    assert path.exists()
    remove_record_of(path, 41)
    assert not path.exists()


def test_the_key_is_not_shown_when_printed() -> None:
    assert "hush" not in repr(RECORD)
    assert "hush" not in repr(RECORD.endpoint)
    assert RECORD.endpoint.base_url == "http://127.0.0.1:8080/v1"


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
def test_a_process_is_known_by_its_start_and_a_zombie_is_gone() -> None:
    mine = replace(RECORD, pid=os.getpid(), start_ticks=read_start_ticks(os.getpid()))
    assert is_running(mine) is True
    assert is_running(replace(mine, start_ticks=1)) is False
    assert is_running(replace(mine, start_ticks=None)) is None
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        theirs = replace(RECORD, pid=child.pid, start_ticks=read_start_ticks(child.pid))
        assert is_running(theirs) is True
        child.kill()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert is_running(theirs) is False
