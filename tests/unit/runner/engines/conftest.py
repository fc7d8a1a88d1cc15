"""A desk that remembers what it was told, and a way to carry out one step at it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from subagents_nb.domain.events import EngineEvent, StepFailed, StepOutcome, TextStreamed
from subagents_nb.domain.models import parse_model
from subagents_nb.domain.plan import StepPlan
from subagents_nb.runner.engines.base import Desk, Engine


@dataclass
class Workshop:
    """One workspace, one step folder, and every event that was reported."""

    cwd: Path
    step_dir: Path
    environ: dict[str, str] = field(default_factory=dict)
    events: list[EngineEvent] = field(default_factory=list)

    def desk(self, report: Callable[[EngineEvent], None] | None = None) -> Desk:
        def both(event: EngineEvent) -> None:
            self.events.append(event)
            if report is not None:
                report(event)

        return Desk(
            report=both,
            cwd=self.cwd,
            step_dir=self.step_dir,
            store_home=self.step_dir,
            environ=self.environ,
            tool_environ={"PATH": "/usr/bin:/bin", "RUN_TOKEN": "t-1"},
        )

    def run(self, engine: Engine, step: StepPlan) -> StepOutcome:
        return asyncio.run(engine.run(step, self.desk()))

    def fail(self, engine: Engine, step: StepPlan) -> StepFailed:
        with pytest.raises(StepFailed) as caught:
            self.run(engine, step)
        return caught.value

    def stop_at(self, engine: Engine, step: StepPlan, moment: Callable[[EngineEvent], bool]) -> None:
        """Cancel the step as soon as it reports such an event, and expect the cancellation to come through."""

        async def main() -> None:
            reached = asyncio.Event()
            desk = self.desk(lambda event: reached.set() if moment(event) else None)
            task = asyncio.ensure_future(engine.run(step, desk))
            async with asyncio.timeout(20):
                await reached.wait()
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task

        asyncio.run(main())

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
    def make(model: str = "openai:gpt-5-mini", **more: Any) -> StepPlan:
        fields = {"agent": "scout", "agent_source": "builtin", "agent_digest": "d", "task": "count the rows"}
        choice = parse_model(model, origin="call", endpoints={})
        return StepPlan.model_validate({**fields, "model": choice, **more})

    return make
