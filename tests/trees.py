"""Agents that delegate to one another, each with a script, and a model on loopback that never comes to an end."""

from __future__ import annotations

import itertools
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from support import until

from subagents_nb import Run
from subagents_nb.domain.runs.states import RunState


def agent(name: str, *steps: dict[str, Any], agents: str = "", **more: str) -> None:
    """Write an agent whose model plays these steps."""
    scripts, files = Path(".subagents/scripts"), Path.home() / ".subagents/agents"
    for folder in (scripts, files):
        folder.mkdir(parents=True, exist_ok=True)
    (scripts / f"{name}.json").write_text(json.dumps(steps))
    said = {"name": name, "description": "d", "model": f"scripted:{name}", "tools": "read", "agents": agents, **more}
    (files / f"{name}.md").write_text(
        "---\n" + "".join(f"{key}: {value}\n" for key, value in said.items() if value) + "---\nWork.\n"
    )


def to(name: str, *tasks: str) -> dict[str, Any]:
    """Return a step that delegates these tasks at once, and says what came of them."""
    return {"delegate": [{"agent": name, "task": task} for task in tasks], "say": True}


def rows(run: Run) -> dict[str, RunState]:
    """Return how the runs below one stand, by their paths."""
    return {row.path: row.state for row in run.status.tree}


def below(run: Run) -> list[Run]:
    """Return the runs below one."""
    return [Run(run.home, row.run_id) for row in run.status.tree]


def at_work(run: Run, *paths: str) -> list[Run]:
    """Wait until these runs of a tree are at work; return all that are below its root."""
    until(lambda: all(rows(run).get(path) is RunState.RUNNING for path in paths), 60, what=f"{paths} at work")
    return below(run)


_SLEEP = {"name": "bash", "arguments": json.dumps({"command": "sleep 0.2"})}


class Spender:
    """Answers every request with a call of bash, which takes longer than it: each costs the same, none is the last."""

    def __init__(self, tokens: int) -> None:
        self.tokens = tokens
        self.url = ""
        self.answered = self.open = self.most_open = 0
        self._guard = threading.Lock()
        self._numbers = itertools.count()

    def reply(self) -> bytes:
        """Return one answer."""
        number = next(self._numbers)
        with self._guard:
            self.open += 1
            self.most_open = max(self.most_open, self.open)
        time.sleep(0.02 + number % 5 * 0.01)
        with self._guard:
            self.open -= 1
            self.answered += 1
        call = {"index": 0, "id": f"c{number}", "type": "function", "function": dict(_SLEEP)}
        head: dict[str, Any] = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "told"}
        usage = {"prompt_tokens": self.tokens - 1, "completion_tokens": 1, "total_tokens": self.tokens}
        parts: list[dict[str, Any]] = [
            {"choices": [{"index": 0, "delta": {"tool_calls": [call]}, "finish_reason": None}]},
            {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]},
            {"choices": [], "usage": usage},
        ]
        return b"".join(b"data: %s\n\n" % json.dumps(head | part).encode() for part in parts) + b"data: [DONE]\n\n"


@contextmanager
def spending(tokens: int) -> Iterator[Spender]:
    """Serve such a model, as the endpoint `told` of the user's settings."""
    spender = Spender(tokens)

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: Any) -> None:
            pass

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            body = spender.reply()
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.end_headers()
            self.wfile.write(body)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    spender.url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    own = Path.home() / ".subagents"
    own.mkdir(exist_ok=True)
    (own / "settings.toml").write_text(f'[endpoints.told]\nbase_url = "{spender.url}"\n')
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield spender
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
