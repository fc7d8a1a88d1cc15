"""Model servers on loopback that nobody here wrote: aimock, a node program; llmock brings its own fixture."""

from __future__ import annotations

import asyncio
import json
import re
import selectors
import shutil
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from subagents_nb.domain.events import EngineEvent, StepFailed, StepOutcome, TextStreamed
from subagents_nb.domain.models import parse_model
from subagents_nb.domain.plan import StepPlan
from subagents_nb.domain.settings import Endpoint
from subagents_nb.runner.engines.base import Desk, Engine, FixedLimits

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

    def desk(self, step: StepPlan) -> Desk:
        def report(event: EngineEvent) -> None:
            self.events.append(event)
            self.times.append(time.perf_counter())
            self.on(event)

        return Desk(
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
        return asyncio.run(engine.run(step, self.desk(step)))

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
def plan() -> Callable[..., StepPlan]:
    """Make a step; `at` is the root of a server, reached as an endpoint of the settings."""

    def make(
        task: str, model: str = "lab:gpt-5-mini", *, at: str | None = None, api: str = "chat", **more: Any
    ) -> StepPlan:
        key_env = more.pop("key_env", "LAB_KEY")
        endpoints = {}
        if at is not None:
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
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        try:
            yield Aimock(_address(process))
        finally:
            process.kill()


def _address(process: subprocess.Popen[str]) -> str:
    deadline, said = time.monotonic() + 20, ""
    assert process.stdout is not None
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while time.monotonic() < deadline and process.poll() is None:
            if selector.select(timeout=1):
                said += process.stdout.readline()
                if found := SPOKEN_BY.search(said):
                    return found[1]
    raise AssertionError(f"aimock did not start: {said}")
