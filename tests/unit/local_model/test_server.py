"""The clients' side, against real processes that are no language model."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from subagents_nb.domain.agents.environment import NO_RUN, RUN_MARK
from subagents_nb.local_model import LocalModelError, ensure, stop
from subagents_nb.local_model.server import _scrubbed
from subagents_nb.local_model.server_record import ServerPaths, ServerRecord, read_start_ticks, write_record
from subagents_nb.local_model.weights import SMOLLM2, _sealed


class Peer(BaseHTTPRequestHandler):
    """Answers as a server with another key would, or not at all."""

    silent = threading.Event()
    release = threading.Event()

    def do_GET(self) -> None:
        if self.silent.is_set():
            self.release.wait(30)
        body = json.dumps({"error": "wrong key"}).encode()
        self.send_response(401)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def peer_port() -> Iterator[int]:
    Peer.silent.clear()
    Peer.release.clear()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Peer)
    server.daemon_threads = False
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield server.server_address[1]
    Peer.release.set()
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def places(tmp_path: Path) -> ServerPaths:
    places = ServerPaths.under(tmp_path)
    places.directory.mkdir()
    return places


@pytest.fixture
def no_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUBAGENTS_NB_MODELS", str(tmp_path / "models"))


def record_of_this_process(port: int) -> ServerRecord:
    return ServerRecord(pid=os.getpid(), start_ticks=read_start_ticks(os.getpid()), port=port, api_key="k")


def test_without_weights_the_command_is_named(tmp_path: Path, no_weights: None) -> None:
    with pytest.raises(LocalModelError, match="run `subagents-nb local-model install`"):
        ensure(tmp_path)


def test_a_server_that_refuses_our_key_is_not_taken_for_ours(
    tmp_path: Path, places: ServerPaths, peer_port: int, no_weights: None
) -> None:
    write_record(places.record, record_of_this_process(peer_port))
    with pytest.raises(LocalModelError, match="not installed"):  # It goes on to start one of its own.
        ensure(tmp_path)


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
def test_a_server_of_ours_that_stays_silent_is_waited_for_and_then_named(
    tmp_path: Path, places: ServerPaths, peer_port: int
) -> None:
    Peer.silent.set()
    write_record(places.record, record_of_this_process(peer_port))
    with pytest.raises(LocalModelError, match=f"process {os.getpid()}.* does not answer"):
        ensure(tmp_path, deadline_s=0.3)
    assert places.record.exists()


def test_a_crash_while_loading_is_reported_with_the_end_of_the_log(
    tmp_path: Path, places: ServerPaths, monkeypatch: pytest.MonkeyPatch
) -> None:
    models = tmp_path / "models"
    models.mkdir()
    monkeypatch.setenv("SUBAGENTS_NB_MODELS", str(models))
    hollow = models / SMOLLM2.file_name
    hollow.touch()
    os.truncate(hollow, SMOLLM2.size)
    _sealed(hollow, SMOLLM2)
    with pytest.raises(LocalModelError, match=r"died while starting\.[^$]*invalid magic"):
        ensure(tmp_path)
    assert not places.record.exists()
    assert places.log.stat().st_mode & 0o777 == 0o600


def test_stopping_when_nothing_runs_is_false_and_kills_nobody(tmp_path: Path, places: ServerPaths) -> None:
    assert stop(tmp_path) is False
    write_record(places.record, ServerRecord(pid=os.getpid(), start_ticks=1, port=9, api_key="k"))
    assert stop(tmp_path) is False
    assert not places.record.exists()


def test_the_servers_environment_holds_no_secrets_and_nothing_of_the_notebook() -> None:
    unwanted = ["OPENAI_API_KEY", "HF_TOKEN", "db_password", "AWS_SECRET_ACCESS", "JPY_PARENT_PID"]
    unwanted += ["PYTHONSTARTUP"]
    wanted = ["PATH", "PYTHONPATH", "LANG", "SUBAGENTS_NB_MODELS"]
    kept = _scrubbed(dict.fromkeys([*unwanted, *wanted, "PYTHONDONTWRITEBYTECODE", RUN_MARK], "/x"))
    assert set(wanted) <= set(kept)
    assert kept[RUN_MARK] == NO_RUN  # whoever clears up after the run that needed it first leaves it alone
    assert not set(kept) & {*unwanted, "PYTHONDONTWRITEBYTECODE"}
    assert kept["GOMP_SPINCOUNT"] == "1000"  # or its threads take the cores of everybody else while they wait
