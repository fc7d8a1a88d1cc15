"""Ended runs as their files have them, and a server on loopback that writes down what it is asked."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from support import make_plan, make_recovery, make_result, make_status, make_step

from subagents_nb import Run
from subagents_nb.domain.runs.records import Artifact
from subagents_nb.domain.values.usage import Usage
from subagents_nb.store import StoreHome
from subagents_nb.store.runs.writer import create_run

SESSION: list[Any] = [
    {
        "kind": "request",
        "parts": [{"part_kind": "user-prompt", "content": "count the rows"}],
        "instructions": "be brief",
    },
    {
        "kind": "response",
        "model_name": "m-1",
        "finish_reason": "tool_call",
        "usage": {"input_tokens": 7, "output_tokens": 3},
        "parts": [
            {"part_kind": "thinking", "content": "hm"},
            {"part_kind": "tool-call", "tool_name": "read", "args": {"path": "a"}, "tool_call_id": "c1"},
        ],
    },
    {
        "kind": "request",
        "parts": [{"part_kind": "tool-return", "tool_name": "read", "content": "x,y", "tool_call_id": "c1"}],
    },
    {
        "kind": "response",
        "model_name": "m-1",
        "finish_reason": "stop",
        "usage": {"input_tokens": 9, "output_tokens": 2},
        "parts": [{"part_kind": "text", "content": "three rows"}],
    },
]
EVENTS: list[dict[str, Any]] = [
    {"type": "run-started", "t": "2026-03-01T12:00:01.000Z"},
    {"type": "model-asked", "t": "2026-03-01T12:00:02.000Z", "step": 0, "request": 1},
    {"type": "tool-started", "t": "2026-03-01T12:00:03.000Z", "step": 0, "call": "c1", "tool": "read"},
    {"type": "tool-ended", "t": "2026-03-01T12:00:04.000Z", "step": 0, "call": "c1", "ok": True},
    {"type": "model-asked", "t": "2026-03-01T12:00:04.000Z", "step": 0, "request": 2},
    {"type": "text", "t": "2026-03-01T12:00:05.000Z", "step": 0, "text": "three rows"},
    {"type": "run-ended", "t": "2026-03-01T12:00:06.000Z", "state": "complete"},
]
Record = Callable[..., Run]


@pytest.fixture
def record(store_home: StoreHome) -> Record:
    """Make an ended run of one step."""

    def make(number: int = 1, *, ended: bool = True, plan: dict[str, Any] | None = None, **result: Any) -> Run:
        step = make_step(model="scripted:echo", tools=("read",))
        planned = make_plan(number, **{"steps": (step,), "tags": ("nightly",), **(plan or {})})
        writer = create_run(store_home, planned, make_recovery(number))
        for event in EVENTS:
            writer.events.append(event, keep=True)
        paths = writer.paths
        (paths.step(0) / "session.json").write_text(json.dumps(SESSION))
        (paths.root / "artifacts").mkdir()
        (paths.root / "artifacts" / "plot.png").write_bytes(b"png")
        artifact = Artifact(path="artifacts/plot.png", size=3, sha256=hashlib.sha256(b"png").hexdigest())
        usage = Usage(input_tokens=16, output_tokens=5, requests=2, tool_calls=1, cost_usd=0.25)
        fields = {"artifacts": (artifact,), "usage": usage, "ended_at": "2026-03-01T12:00:06.000Z", **result}
        writer.status(make_status(number), milestone=False)
        if ended:
            writer.result(make_result(number, **fields))
        return Run(store_home, planned.run_id)

    return make


@pytest.fixture
def files_of() -> Callable[[Run], dict[str, bytes]]:
    """Read every file of a run but the ledgers of its exports."""

    def read(run: Run) -> dict[str, bytes]:
        root = run.home.run(run.id).root
        found = {str(path.relative_to(root)): path for path in root.rglob("*") if path.is_file()}
        return {name: path.read_bytes() for name, path in found.items() if not name.startswith("exports/")}

    return read


class ParsedLaunch:
    """A server that answers by a function and keeps what it was asked."""

    def __init__(self, answer: Callable[[str, str, bytes], tuple[int, Any]]) -> None:
        self.answer = answer
        self.requests: list[tuple[str, str, bytes]] = []
        self.headers: list[dict[str, str]] = []
        asked = self

        class Handler(BaseHTTPRequestHandler):
            def handle_any(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                asked.requests.append((self.command, self.path, body))
                asked.headers.append(dict(self.headers.items()))
                status, content = asked.answer(self.command, self.path, body)
                data = content if isinstance(content, bytes) else json.dumps(content).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            do_GET = do_POST = do_PUT = handle_any

            def log_message(self, *_: Any) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join(10)
        self._server.server_close()


@pytest.fixture
def serve() -> Iterator[Callable[[Callable[[str, str, bytes], tuple[int, Any]]], ParsedLaunch]]:
    """Start servers that are gone after the test."""
    started: list[ParsedLaunch] = []

    def start(answer: Callable[[str, str, bytes], tuple[int, Any]]) -> ParsedLaunch:
        started.append(ParsedLaunch(answer))
        return started[-1]

    yield start
    for server in started:
        server.close()


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """A folder for what is written."""
    return tmp_path / "out"
