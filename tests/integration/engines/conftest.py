"""Model servers on loopback that nobody here wrote: aimock, a node program; llmock brings its own fixture."""

from __future__ import annotations

import asyncio
import json
import os
import re
import selectors
import shutil
import subprocess
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from subagents_nb.domain.agents.models import parse_model
from subagents_nb.domain.agents.settings import Endpoint
from subagents_nb.domain.plans.plan import StepPlan
from subagents_nb.domain.runs.events import EngineEvent, StepFailed, StepOutcome, TextStreamed
from subagents_nb.runner.engines.engine import Engine, FixedLimits, StepContext

# How a wire of a provider's own is named here, and the model that speaks it; the other two are OpenAI's.
PROVIDERS = {"messages": "anthropic:claude-haiku-5-5", "gemini": "google:gemini-2.5-flash"}
KEY = "sk-very-secret-value"
PEERS = Path(__file__).parents[2] / "peers"
SPOKEN_BY = re.compile(r"listening on (http://127\.0\.0\.1:\d+)")


@dataclass
class Letters:
    """An inbox that a test fills."""

    steering: list[str] = field(default_factory=list)
    following: list[str] = field(default_factory=list)

    def steers(self) -> list[str]:
        taken, self.steering = self.steering, []
        return taken

    def follow_ups(self) -> list[str]:
        taken, self.following = self.following, []
        return taken


@dataclass
class Workshop:
    """One workspace, one step folder, and every event that was reported, with when."""

    cwd: Path
    step_dir: Path
    environ: dict[str, str] = field(default_factory=dict)
    events: list[EngineEvent] = field(default_factory=list)
    times: list[float] = field(default_factory=list)
    inbox: Letters = field(default_factory=Letters)
    history: Path | None = None
    on: Callable[[EngineEvent], None] = lambda _event: None

    def context(self, step: StepPlan) -> StepContext:
        def report(event: EngineEvent) -> None:
            self.events.append(event)
            self.times.append(time.perf_counter())
            self.on(event)

        return StepContext(
            report=report,
            cwd=self.cwd,
            step_dir=self.step_dir,
            store_home=self.step_dir,
            environ=self.environ,
            tool_environ={"PATH": "/usr/bin:/bin"},
            inbox=self.inbox,
            history=self.history,
            limits=FixedLimits(step.max_requests, step.tool_timeout_s),
        )

    def run(self, engine: Engine, step: StepPlan) -> StepOutcome:
        return asyncio.run(engine.run(step, self.context(step)))

    def fail(self, engine: Engine, step: StepPlan) -> StepFailed:
        with pytest.raises(StepFailed) as caught:
            self.run(engine, step)
        return caught.value

    def told(self, kind: type[Any]) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]

    @property
    def text(self) -> str:
        return "".join(event.text for event in self.told(TextStreamed))


@pytest.fixture
def workshop(tmp_path: Path) -> Workshop:
    cwd, step_dir = tmp_path / "work", tmp_path / "step"
    cwd.mkdir()
    step_dir.mkdir(mode=0o700)
    return Workshop(cwd, step_dir)


@pytest.fixture
def plan(workshop: Workshop) -> Callable[..., StepPlan]:
    """Make a step; `at` is the root of a server: an endpoint of the settings, or where a provider is said to be."""

    def make(task: str, model: str | None = None, *, at: str | None = None, api: str = "chat", **more: Any) -> StepPlan:
        key_env = more.pop("key_env", "LAB_KEY")
        endpoints = {}
        if api in PROVIDERS and at is not None:
            workshop.environ.update(ANTHROPIC_API_KEY=KEY, ANTHROPIC_BASE_URL=at)
            workshop.environ.update(GOOGLE_API_KEY=KEY, GOOGLE_GEMINI_BASE_URL=at)
        model = (model or PROVIDERS.get(api, "lab:gpt-5-mini")) + more.pop("level", "")
        if at is not None and api not in PROVIDERS:
            fields = {"base_url": f"{at}/v1", "api": api, "key_env": key_env}
            endpoints["lab"] = Endpoint.model_validate({**fields, **more.pop("endpoint", {})})
        choice = parse_model(model, origin="call", endpoints=endpoints)
        fields = {"agent": "scout", "agent_source": "builtin", "agent_digest": "d", "task": task, "model": choice}
        return StepPlan.model_validate({**fields, **more})

    return make


@pytest.fixture(scope="session")
def aimock_cli() -> Path:
    """The program, installed by its lockfile when it is not there."""
    cli = PEERS / "node_modules/@copilotkit/aimock/dist/cli.js"
    if not cli.exists():
        subprocess.run(["npm", "ci", "--prefix", str(PEERS), "--no-audit", "--no-fund"], check=True, timeout=170)
    return cli


@dataclass(frozen=True)
class Aimock:
    url: str

    def requests(self, about: str) -> list[dict[str, Any]]:
        """The bodies of the requests that hold this text, oldest first."""
        with urllib.request.urlopen(f"{self.url}/__aimock/journal", timeout=10) as answer:
            entries = json.load(answer)
        return [entry["body"] for entry in entries if about in json.dumps(entry["body"])]


@pytest.fixture(scope="session")
def aimock(aimock_cli: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Aimock]:
    """aimock with the fixtures that lie beside this file."""
    node = shutil.which("node")
    assert node is not None, "node is needed for these tests"
    fixtures = tmp_path_factory.mktemp("aimock") / "fixtures.json"
    fixtures.write_text(json.dumps({"fixtures": json.loads((Path(__file__).parent / "aimock.json").read_text())}))
    command = [node, str(aimock_cli), "-p", "0", "-f", str(fixtures), "--strict", "--validate-on-load"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        try:
            yield Aimock(_address(process))
        finally:
            process.kill()


def _address(process: subprocess.Popen[bytes]) -> str:
    deadline, said = time.monotonic() + 20, ""
    assert process.stdout is not None
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while time.monotonic() < deadline and process.poll() is None:
            if selector.select(timeout=1):
                # Of a reader's own buffer the selector knows nothing: two lines that came at once would be one.
                said += os.read(process.stdout.fileno(), 4096).decode()
                if found := SPOKEN_BY.search(said):
                    return found[1]
    raise AssertionError(f"aimock did not start: {said}")


class Wire:
    """Answers each request with the next of `turns`, the last one again and again."""

    def __init__(self) -> None:
        self.turns: list[str] = []
        self.bodies: list[Any] = []
        self.url = ""

    def says(self, text: str = "", *, calls: Any = (), end: str | None = "stop", done: bool = True) -> None:
        """Add a turn; `calls` are (id, name, arguments as they stand on the wire)."""
        deltas: list[dict[str, Any]] = [{"content": text}] if text else []
        for index, (call_id, name, arguments) in enumerate(calls):
            function = {"name": name, "arguments": arguments}
            deltas.append({"tool_calls": [{"index": index, "id": call_id, "type": "function", "function": function}]})
        choices = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
        if end is not None:
            choices.append({"index": 0, "delta": {}, "finish_reason": end})
        head = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
        lines = [json.dumps({**head, "choices": [choice]}) for choice in choices]
        self.turns.append("".join(f"data: {line}\n\n" for line in lines + ["[DONE]"] * done))

    def says_as(self, api: str, *parts: dict[str, Any], end: str | None, **more: Any) -> None:
        """Add a turn of a provider's own wire. `parts` are its own; `more` is said beside the end."""
        if api == "gemini":
            chunks = [{"candidates": [{"content": {"role": "model", "parts": [part]}, "index": 0}]} for part in parts]
            if end is not None:
                chunks.append({"candidates": [{"content": {"role": "model"}, "finishReason": end, "index": 0}]})
            if more:
                chunks.append(more)
            self.turns.append("".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks))
            return
        usage = {"input_tokens": 9, "output_tokens": 1}
        head = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": []}
        events: list[dict[str, Any]] = [{"type": "message_start", "message": {**head, "usage": usage}}]
        for index, part in enumerate(parts):
            deltas = part.pop("deltas", [])
            events.append({"type": "content_block_start", "index": index, "content_block": part})
            events += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
            events.append({"type": "content_block_stop", "index": index})
        if end is not None:
            delta = {"stop_reason": end, "stop_sequence": None, **more}
            events += [{"type": "message_delta", "delta": delta, "usage": usage}, {"type": "message_stop"}]
        self.turns.append("".join(f"event: {e['type']}\ndata: {json.dumps(e)}\n\n" for e in events))


@pytest.fixture(scope="module")
def server() -> Iterator[tuple[ThreadingHTTPServer, dict[str, Wire]]]:
    held: dict[str, Wire] = {}

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: Any) -> None:
            pass

        def do_POST(self) -> None:
            wire = held["wire"]
            wire.bodies.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
            turn = wire.turns[min(len(wire.bodies), len(wire.turns)) - 1]
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.end_headers()
            self.wfile.write(turn.encode())

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield server, held
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def wire(loopback: Wire, workshop: Any) -> Wire:
    workshop.environ.update(LAB_KEY="k")
    return loopback


@pytest.fixture
def loopback(server: tuple[ThreadingHTTPServer, dict[str, Wire]]) -> Wire:
    """A model for a run as a whole, which has no workshop."""
    listening, held = server
    held["wire"] = made = Wire()
    made.url = f"http://127.0.0.1:{listening.server_address[1]}"
    return made
