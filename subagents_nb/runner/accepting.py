"""Decide whether a step that came to an end is accepted: its report, the host's checks, a reviewer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

from subagents_nb.domain.acceptance import Ledger
from subagents_nb.domain.plan import StepPlan
from subagents_nb.domain.records import StepResult
from subagents_nb.runner.engines.base import Desk

Review = Callable[[str], Awaitable[StepResult]]


async def accept(
    step: StepPlan, result: StepResult, desk: Desk, *, changed_files: tuple[str, ...], run_dir: Path, review: Review
) -> tuple[Ledger | None, str]:
    """Return what came of the step's acceptance, and its text without the report.

    `review` carries the step's reviewer out on a task and returns its result.
    """
    del step, desk, changed_files, run_dir, review
    return None, result.text
