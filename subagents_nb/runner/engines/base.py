"""The seam between the runner and the ways to carry out a step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from subagents_nb.domain.events import EngineEvent, StepOutcome
from subagents_nb.domain.plan import StepPlan


class Report(Protocol):
    """Take one event; returns at once and never raises."""

    def __call__(self, event: EngineEvent, /) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    """What an engine works with: where, with which variables, and whom to tell."""

    report: Report
    cwd: Path  # the workspace; tools are confined to it
    step_dir: Path  # exists, private; session.json (the whole history) goes here
    store_home: Path  # where the shared embedded model server keeps its address
    environ: Mapping[str, str]  # the runner's own variables: provider keys are read from here
    tool_environ: Mapping[str, str] = field(default_factory=dict)  # what tools' processes may see: no keys


class Engine(Protocol):
    """One way to carry out a step."""

    async def run(self, step: StepPlan, desk: Desk) -> StepOutcome:
        """Carry the step out and return what it came to.

        Stopping and deadlines arrive as task cancellation: an engine saves its history, ends every process it started
        and lets the cancellation through.

        Raises:
            StepFailed: the step ended without a result.
        """
        ...
