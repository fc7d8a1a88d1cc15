"""A desk that remembers what it was told, and a way to carry out one step at it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from subagents_nb.domain.agents.models import parse_model
from subagents_nb.domain.plans.plan import StepPlan
from subagents_nb.domain.runs.events import EngineEvent, StepFailed, StepOutcome, TextStreamed
from subagents_nb.runner.engines.engine import Engine, FixedLimits, StepContext


@dataclass
class Letters:
    """An inbox that a test fills, and what was taken from it in its order."""

    waiting: dict[str, list[str]] = field(default_factory=lambda: {"steer": [], "follow-up": []})
    taken: list[str] = field(default_factory=list)

    def put(self, *texts: str, mode: str = "steer") -> None:
        self.waiting[mode].extend(texts)

    def steers(self) -> list[str]:
        return self._take("steer")

    def follow_ups(self) -> list[str]:
        return self._take("follow-up")

    def _take(self, mode: str) -> list[str]:
        taken, self.waiting[mode] = self.waiting[mode], []
        self.taken.extend(taken)
        return taken


@dataclass
class Workshop:
    """One workspace, one step folder, and every event that was reported."""

    cwd: Path
    step_dir: Path
    environ: dict[str, str] = field(default_factory=dict)
    events: list[EngineEvent] = field(default_factory=list)
    inbox: Letters = field(default_factory=Letters)
    limits: FixedLimits | None = None  # None: those of the step
    open_tools: dict[str, Any] = field(default_factory=dict)
    more: dict[str, Any] = field(default_factory=dict)  # what else lies on the desk
    on: Callable[[EngineEvent], None] = lambda _event: None  # told of each event when it has been noted

    def context(self, step: StepPlan | None = None) -> StepContext:
        def report(event: EngineEvent) -> None:
            self.events.append(event)
            self.on(event)

        planned = FixedLimits(step.max_requests, step.tool_timeout_s) if step else FixedLimits()
        return StepContext(
            report=report,
            cwd=self.cwd,
            step_dir=self.step_dir,
            environ=self.environ,
            tool_environ={"PATH": "/usr/bin:/bin", "RUN_TOKEN": "t-1"},
            inbox=self.inbox,
            limits=self.limits or planned,
            open_tools=self.open_tools,
            **{"store_home": self.step_dir, **self.more},
        )

    def run(self, engine: Engine, step: StepPlan) -> StepOutcome:
        async def main() -> StepOutcome:
            async with asyncio.timeout(30):
                return await engine.run(step, self.context(step))

        return asyncio.run(main())

    def fail(self, engine: Engine, step: StepPlan) -> StepFailed:
        with pytest.raises(StepFailed) as caught:
            self.run(engine, step)
        return caught.value

    def stop_at(self, engine: Engine, step: StepPlan, moment: Callable[[EngineEvent], bool]) -> None:
        """Cancel the step as soon as it reports such an event, and expect the cancellation to come through."""

        async def main() -> None:
            reached = asyncio.Event()
            self.on = lambda event: reached.set() if moment(event) else None
            task = asyncio.ensure_future(engine.run(step, self.context(step)))
            async with asyncio.timeout(20):
                await reached.wait()
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task

        asyncio.run(main())

    def told(self, kind: type[Any]) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]

    @property
    def messages(self) -> list[Any]:
        """The session that was saved."""
        from pydantic_ai.messages import ModelMessagesTypeAdapter

        return ModelMessagesTypeAdapter.validate_json((self.step_dir / "session.json").read_bytes())

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


@pytest.fixture
def plays() -> Callable[..., Any]:
    """Make a model that answers its requests with these turns: pieces of text, or (tool, args), or a thought.

    A turn may be a function of the messages that returns such pieces, and a piece an error to raise.
    """
    from pydantic_ai.models.function import AgentInfo, DeltaThinkingPart, DeltaToolCall, FunctionModel

    def make(*turns: Any, called: str | None = None, profile: Any = None) -> FunctionModel:
        asked = 0

        async def stream(messages: Any, info: AgentInfo) -> AsyncIterator[Any]:
            nonlocal asked
            turn = turns[min(asked, len(turns) - 1)]
            asked += 1
            for index, piece in enumerate(turn(messages) if callable(turn) else turn):
                if isinstance(piece, str):
                    yield piece
                elif isinstance(piece, Exception):
                    raise piece
                elif piece[0] == "think":
                    yield {index: DeltaThinkingPart(content=piece[1])}
                else:
                    name = info.output_tools[0].name if piece[0] == "answer" else piece[0]
                    yield {index: DeltaToolCall(name, json.dumps(piece[1]), tool_call_id=f"c{asked}-{index}")}

        return FunctionModel(stream_function=stream, model_name=called, profile=profile)

    return make
