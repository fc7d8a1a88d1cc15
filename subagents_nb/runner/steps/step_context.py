"""What a step at work is given: the services of its run, and around its engine and tools a context of its own."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from subagents_nb.domain.agents.environment import tool_environ
from subagents_nb.domain.plans.plan import LaunchPlan, StepPlan
from subagents_nb.domain.runs.events import (
    ChangedMeanwhile,
    EngineEvent,
    FileChanged,
    ModelAsked,
    ToolEnded,
    UsageChanged,
)
from subagents_nb.runner.engines.engine import CancelTool, Delegate, Sandboxed, StepContext
from subagents_nb.runner.engines.kernel.tool import PythonTool, Surroundings
from subagents_nb.runner.journal.journal import Journal
from subagents_nb.runner.journal.work_clock import WorkClock
from subagents_nb.runner.steps.inbox import RunInbox
from subagents_nb.runner.steps.input_paths import input_environ, visible_inputs, visible_skills
from subagents_nb.runner.steps.limits_in_force import LiveLimits, StepLimits, TimeLeft
from subagents_nb.runner.steps.open_questions import Questions
from subagents_nb.runner.steps.remembering import Remembered
from subagents_nb.runner.tracking import ReadRecorder
from subagents_nb.runner.tracking.folder_accounts import FolderReads
from subagents_nb.runner.workspace.artifact_files import ArtifactWriter
from subagents_nb.runner.workspace.own_folder import seen_from_root
from subagents_nb.runner.workspace.step_files import FILES, OutputFile
from subagents_nb.runner.workspace.worktrees import Worktrees
from subagents_nb.store.files.disk import Disk
from subagents_nb.store.runs.writer import RunWriter

if TYPE_CHECKING:
    from subagents_nb.runner.tree.delegating import Delegating  # imported by a run that delegates


@dataclass(frozen=True, slots=True, kw_only=True)
class RunServices:
    """What the steps of one run share."""

    plan: LaunchPlan
    writer: RunWriter
    disk: Disk
    journal: Journal
    clock: WorkClock
    limits: LiveLimits
    questions: Questions
    worktrees: Worktrees
    reads: FolderReads = field(default_factory=lambda: FolderReads(ReadRecorder(), Path()))
    keep_reads: Callable[[], None] = lambda: None
    artifacts: ArtifactWriter | None = None  # None: nothing is kept, and no step has a kernel
    # Called when it may have used more, with True when a response was paid for: of a run in a tree it is written down.
    spent: Callable[[bool], None] = lambda _: None
    delegating: Callable[[], Delegating] | None = None  # asked by a step that delegates


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnParts:
    """What a step has of its own while it works."""

    inbox: RunInbox
    limits: StepLimits
    open_tools: dict[str, CancelTool]
    history: Path | None
    output: Callable[[], OutputFile | None]  # None: its file is not known yet
    left: Callable[[], TimeLeft | None]


def context_of(
    step: StepPlan,
    services: RunServices,
    own: OwnParts,
    *,
    root: Path,
    cwd: Path,
    clock: WorkClock,
    sandbox: Sandboxed | None,
) -> StepContext:
    """Return the context in which a step works in `cwd`, of the workspace or worktree at `root`."""
    # In a worktree of its own a step sees and changes nothing of the workspace but what its contract binds.
    reads = services.reads.of(step.cwd) if step.worktree is None else ReadRecorder()

    def report(event: EngineEvent) -> None:
        if isinstance(event, FileChanged):
            reads.changed(event.path)
            if (output := own.output()) is not None:
                output.wrote(event.path)
        elif isinstance(event, ChangedMeanwhile):
            reads.changed(event.path, meanwhile=True)
            if (output := own.output()) is not None:
                output.changed_meanwhile(event.path)
        services.journal.report(step.index, seen_from_root(event, step.cwd))
        if isinstance(event, ToolEnded | ModelAsked | FileChanged | ChangedMeanwhile):
            services.keep_reads()
        if isinstance(event, UsageChanged | ModelAsked | ToolEnded):
            services.spent(isinstance(event, UsageChanged) and event.context_tokens > 0)

    delegate: Delegate | None = None
    if services.delegating is not None and step.delegates:
        times = lambda: (own.left(), services.limits.time_left(services.journal.elapsed_s))  # noqa: E731
        delegate = services.delegating().of_step(step, cwd=str(cwd), clock=clock, times=times)

    inputs = visible_inputs(services.plan, services.writer.paths, cwd)
    skills = visible_skills(step, services.writer.paths, cwd)
    tools = tool_environ(os.environ, allowed=services.plan.tool_env) | input_environ(inputs, skills)
    python = None
    if services.artifacts is not None and "python" in step.tools:
        around = Surroundings(
            step=step.index,
            cwd=cwd,
            step_dir=services.writer.paths.step(step.index),
            environ=tools,
            inputs=inputs,
            memory_mb=services.plan.python_memory_mb,
            disk=services.disk,
            sandbox=sandbox,
            alone=step.worktree is not None,
        )
        python = PythonTool(around, services.artifacts, report, reads)
    return StepContext(
        report=report,
        reads=reads,
        inputs=inputs,
        skills=skills,
        memory=Remembered.of(step, services.reads.of(None)),
        files=services.writer.paths.root / FILES,
        python=python,
        sandbox=sandbox,
        cwd=cwd,
        workspace=root,
        step_dir=services.writer.paths.step(step.index),
        store_home=services.writer.paths.root.parents[1],
        environ=os.environ,
        tool_environ=tools,
        history=own.history,
        inbox=own.inbox,
        limits=own.limits,
        ask=services.questions.ask_for(step, clock),
        delegate=delegate,
        permit=services.questions.permit_for(step, clock),
        waiting=clock.waiting,
        open_tools=own.open_tools,
    )
