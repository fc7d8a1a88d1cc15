"""What a sandbox adds to each command of an agent."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path

from benchmarks.figures import Figure
from subagents_nb.domain.policy.sandbox_plan import SandboxPlan
from subagents_nb.domain.runs.events import StepFailed
from subagents_nb.runner.engines.tools.shell import run_command
from subagents_nb.runner.sandbox.mounts import Place
from subagents_nb.runner.sandbox.step_sandbox import StepSandbox, sandbox_of


def sandboxed(folder: Path, times: int) -> list[Figure]:
    """Run `true` by turns without and in a sandbox; nothing where there is none."""
    step = folder / "store/runs/r/steps/0"
    for one in (folder / "work", step):
        one.mkdir(parents=True)
    place = Place(workspace=folder / "work", store=folder / "store", tmp=step / "tmp")
    try:
        sandbox = sandbox_of(SandboxPlan(), place, os.environ)
    except StepFailed:
        return []
    plain, boxed = asyncio.run(_by_turns(folder / "work", sandbox, times))
    more = tuple(one - other for one, other in zip(boxed, plain, strict=True))
    return [
        Figure("a command", "ms", None, plain),
        Figure("a command in a sandbox", "ms", None, boxed),
        Figure("what the sandbox adds", "ms", 60.0, more),
    ]


async def _by_turns(work: Path, sandbox: StepSandbox, times: int) -> tuple[tuple[float, ...], tuple[float, ...]]:
    found: tuple[list[float], list[float]] = ([], [])
    for _ in range(times):
        for samples, box in zip(found, (None, sandbox), strict=True):
            begin = time.perf_counter()
            await run_command("true", cwd=work, environ=os.environ, seconds=60, limit=100, sandbox=box)
            samples.append((time.perf_counter() - begin) * 1000)
    return tuple(found[0]), tuple(found[1])
