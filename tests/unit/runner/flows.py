"""Carry out flows in this process: planned as a launch would, run by the runner's own parts, read from their files."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from support import make_recovery

from subagents_nb import chain
from subagents_nb.catalog import discover
from subagents_nb.domain.agents.settings import Settings
from subagents_nb.domain.plans.flow import Chain
from subagents_nb.domain.plans.plan import LaunchPlan, LaunchRequest
from subagents_nb.domain.runs.control import ControlRequest
from subagents_nb.domain.runs.records import RunResult, StepResult
from subagents_nb.domain.runs.snapshot import Snapshot
from subagents_nb.domain.values.ids import make_run_id
from subagents_nb.launching.starting.start_run import first_status
from subagents_nb.planning import LaunchEnvironment, draft
from subagents_nb.runner.main import Runner
from subagents_nb.store import FileRuns, RunWriter, StoreHome, create_run
from subagents_nb.store.files.disk import DISK, Disk
from subagents_nb.store.files.lock import hold

BUILTIN = frozenset({"echo", "slow", "fail", "hang", "steerable"})
_NUMBERS = itertools.count(1)


def write_script(work: Path, name: str, *steps: dict[str, Any]) -> str:
    """Put a script of the twin into the workspace; return the model that plays it."""
    folder = work / ".subagents/scripts"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.json").write_text(json.dumps(steps))
    return f"scripted:{name}"


def plan_flow(work: Path, flow: Chain, **more: Any) -> LaunchPlan:
    """Return the plan of a flow. Scripts of the workspace may be named."""
    own = {path.stem for path in (work / ".subagents/scripts").glob("*.json")}
    facts = LaunchEnvironment(cwd=str(work), scripts=BUILTIN | own)
    settings = more.pop("settings", Settings())
    request = LaunchRequest(task="", flow=flow, **{"model": "scripted:echo", **more})
    made = draft(request, catalog=discover(work, registered=()), settings=settings, environment=facts)
    return made.to_plan(run_id=make_run_id(next(_NUMBERS), 7), token="t" * 32, created_at="2026-01-01T00:00:00Z")


class Carried:
    """A flow that is carried out; ask of it what a person would."""

    def __init__(self, home: StoreHome, plan: LaunchPlan, *, disk: Disk = DISK) -> None:
        self.home = home
        self.disk = disk  # of the runner
        self.plan = plan
        self.writer = create_run(home, plan, make_recovery().model_copy(update={"run_id": plan.run_id}))
        self.writer.status(first_status(plan), milestone=True)
        self._asked = itertools.count(1)

    def look(self) -> Snapshot:
        """Read the run as it stands."""
        return FileRuns(self.home).snapshot(self.plan.run_id)

    def ask(self, verb: str, **fields: Any) -> str:
        """Put a request; return its id."""
        request_id = f"q{next(self._asked)}"
        known = {"run_id": self.plan.run_id, "request_id": request_id, "asked_at": "2026-01-01T00:00:00Z"}
        RunWriter(self.writer.paths).mail.request(ControlRequest.model_validate({**known, "verb": verb, **fields}))
        return request_id

    def answer(self, request_id: str) -> dict[str, Any] | None:
        """Return the answer to a request."""
        path = self.writer.paths.answers / f"{request_id}.json"
        found: dict[str, Any] | None = json.loads(path.read_bytes()) if path.exists() else None
        return found

    def carry_out(self, *meanwhile: Callable[[Carried], bool]) -> RunResult:
        """Do the work to its end. Each of `meanwhile` is called again and again until it says that it is done."""

        async def both() -> None:
            runner = Runner(self.plan, self.writer.paths, asyncio.get_running_loop(), self.disk)
            work = asyncio.ensure_future(runner.carry_out())
            for act in meanwhile:
                while not act(self) and not work.done():
                    await asyncio.sleep(0.005)
            await work

        lock = hold(self.writer.paths.lock)
        try:
            with keeping_signals():
                asyncio.run(asyncio.wait_for(both(), 30))
        finally:
            os.close(lock)
        result = self.look().result
        assert result is not None
        return result

    def events(self) -> list[dict[str, Any]]:
        """Return the lines of events.jsonl."""
        return [json.loads(line) for line in self.writer.paths.events.read_bytes().splitlines()]


@contextmanager
def keeping_signals() -> Iterator[None]:
    """Put the handlers back that a runner takes."""
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def run_flow(home: StoreHome, work: Path, *items: Any, **more: Any) -> tuple[Carried, RunResult]:
    """Plan and carry out a chain of these items."""
    task = more.pop("task", None)
    carried = Carried(home, plan_flow(work, chain(*items, task=task), **more))
    return carried, carried.carry_out()


def texts(result: RunResult) -> list[str]:
    """Return the answers of the steps by their numbers."""
    return [step.text for step in result.steps]


def overlap(steps: list[StepResult]) -> int:
    """Return how many of these steps were at work at the same time at most."""
    moments = [(s.started_s, 1) for s in steps if s.started_s is not None]
    moments += [(s.ended_s, -1) for s in steps if s.started_s is not None and s.ended_s is not None]
    most = now = 0
    # An end and a beginning at the same thousandth of a second follow one another.
    for _, change in sorted(moments, key=lambda m: (m[0] or 0.0, m[1])):
        now += change
        most = max(most, now)
    return most
