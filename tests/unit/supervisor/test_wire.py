"""The key that supervisors and launchers share, and addresses that are too long."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

import subagents_nb
from subagents_nb.errors import LaunchError
from subagents_nb.supervisor.protocol import wire

PACKAGE = Path(subagents_nb.__file__).parent


def key_of(package_parent: Path) -> str:
    code = "from subagents_nb.supervisor.protocol.wire import supervisor_key; print(supervisor_key())"
    environ = {**os.environ, "PYTHONPATH": str(package_parent), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, "-P", "-c", code], env=environ, capture_output=True, text=True, timeout=60, check=True
    )
    return done.stdout.strip()


def test_the_key_changes_with_an_edit_and_is_the_same_without(tmp_path: Path) -> None:
    copy = tmp_path / "subagents_nb"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__", "static"))
    first = key_of(tmp_path)
    assert key_of(tmp_path) == first
    module = copy / "domain" / "values" / "words.py"
    module.write_text(module.read_text() + "\n")
    second = key_of(tmp_path)
    assert second != first
    (copy / "domain" / "new.py").write_text("")
    assert key_of(tmp_path) not in (first, second)


@pytest.mark.parametrize("line", [b"", b"{", b"[]", b"null", b"\xff\xfe", b"1", b"{}{}", b'"x"'])
def test_what_is_no_message_is_refused(line: bytes) -> None:
    with pytest.raises(LaunchError, match="no message"):
        wire.decode(line)


def test_a_socket_at_any_depth_can_be_bound_and_reached(tmp_path: Path) -> None:
    deep = tmp_path / ("d" * 80) / ("e" * 80)
    deep.mkdir(parents=True)
    before = len(os.listdir("/proc/self/fd"))
    with socket.socket(socket.AF_UNIX) as server, socket.socket(socket.AF_UNIX) as client:
        with wire.SocketName(deep / "x.sock") as address:
            server.bind(address)
        server.listen()
        with wire.SocketName(deep / "x.sock") as address:
            client.connect(address)
        accepted, _ = server.accept()
        assert wire.peer_uid(accepted) == os.getuid()
        accepted.close()
    assert len(os.listdir("/proc/self/fd")) == before
