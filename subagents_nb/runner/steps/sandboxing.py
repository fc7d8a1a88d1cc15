"""The sandbox of a step, around its work: made before anything is started, gone afterwards."""

from __future__ import annotations

import contextlib
import os
from collections.abc import AsyncIterator
from pathlib import Path

from subagents_nb.domain.agents.skills import FOLDER as SKILLS
from subagents_nb.domain.plans.inputs import FOLDER as INPUTS
from subagents_nb.domain.plans.plan import LaunchPlan, StepPlan, everything
from subagents_nb.domain.policy.sandbox_plan import SandboxPlan
from subagents_nb.runner.engines.engine import Sandboxed
from subagents_nb.runner.processes.threads import in_thread
from subagents_nb.runner.workspace.step_files import FILES
from subagents_nb.store.layout import RunPaths


def sandbox_of_step(
    step: StepPlan, workspace: Path, paths: RunPaths, plan: LaunchPlan
) -> contextlib.AbstractAsyncContextManager[Sandboxed | None]:
    """Return the sandbox around the work of a step; in a worktree of its own it may commit."""
    kept = step.memory if step.memory is not None and step.memory.writes else None
    memory = Path(kept.folder) if kept is not None else None
    beside = beside_of(plan)
    commits = step.worktree is not None
    return in_sandbox(step.sandbox, workspace, paths, step.index, memory=memory, commits=commits, beside=beside)


def beside_of(plan: LaunchPlan) -> tuple[Path, ...]:
    """Return the folders in which steps of a run work, below its own."""
    named = {step.cwd for step in everything(plan.steps, plan.items) if step.cwd is not None}
    return tuple(Path(plan.cwd, one) for one in sorted(named))


@contextlib.asynccontextmanager
async def in_sandbox(
    plan: SandboxPlan | None,
    workspace: Path,
    paths: RunPaths,
    step: int,
    *,
    memory: Path | None = None,
    commits: bool = False,
    beside: tuple[Path, ...] = (),
) -> AsyncIterator[Sandboxed | None]:
    """Yield the sandbox that a plan asks for; None if it asks for none. `commits` is of a worktree of the step's own.

    Raises:
        StepFailed: it can't be made; nothing is started without it.
    """
    if plan is None:
        yield None
        return
    from subagents_nb.runner.sandbox.mounts import Place
    from subagents_nb.runner.sandbox.step_sandbox import sandbox_of

    place = Place(
        workspace=workspace,
        beside=beside,
        store=paths.root.parents[1],
        tmp=paths.step(step) / "tmp",
        reads=tuple(one for name in (INPUTS, SKILLS, FILES) if (one := paths.root / name).is_dir()),
        memory=memory,
        commits=commits,
        network=plan.network,
    )
    sandbox = await in_thread(lambda: sandbox_of(plan, place, os.environ))
    try:
        yield sandbox
    finally:
        await in_thread(sandbox.close)
