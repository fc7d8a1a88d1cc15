"""The acceptance of a group or fan-out as a whole: its members' reports as one, its commands run once, one verdict."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path

from pydantic import ValidationError

from subagents_nb.domain.acceptance.joining import MemberReport, joined
from subagents_nb.domain.acceptance.reports import Report
from subagents_nb.domain.acceptance.verdict import Evaluation, Observed, evaluate
from subagents_nb.domain.agents.environment import tool_environ
from subagents_nb.domain.plans.acceptance import Acceptance, Ledger, VerifyRun
from subagents_nb.domain.policy.sandbox_plan import SandboxPlan
from subagents_nb.domain.runs.events import EngineEvent, Noticed
from subagents_nb.domain.runs.records import StepResult
from subagents_nb.domain.runs.states import StepState
from subagents_nb.runner.engines.engine import Sandboxed, StepContext
from subagents_nb.runner.steps.input_paths import input_environ, visible_inputs
from subagents_nb.runner.steps.sandboxing import beside_of, in_sandbox
from subagents_nb.runner.steps.step_context import RunServices
from subagents_nb.runner.steps.step_run import StepWork
from subagents_nb.runner.steps.verifying import Verifier
from subagents_nb.runner.tracking import ReadRecorder
from subagents_nb.runner.workspace.gitstate import GitState
from subagents_nb.runner.workspace.own_folder import from_folder, from_root


class AcceptingAll:
    """From before the first member's work to the verdict."""

    def __init__(self, asked: Acceptance, services: RunServices) -> None:
        self._asked = asked
        self._services = services
        self._cwd = Path(services.plan.cwd)
        self._git = GitState(self._cwd)
        self._staged: dict[str, str] | None = None

    async def note_staged(self) -> None:
        """Note what is staged already: that is not the members' doing."""
        if "no-staged-files" in self._asked.evidence:
            self._staged = await self._git.staged()

    async def judge(
        self, works: Sequence[StepWork], results: Sequence[StepResult], ending: asyncio.Event
    ) -> Ledger | None:
        """Return what came of it; None if the run is ended meanwhile. A group that did not come to its end has none."""
        asked = self._asked
        short = [one for one in results if one.state is not StepState.COMPLETE]
        if short:
            said = ", ".join(f"steps[{one.index}] {one.state}" for one in short[:5])
            reason = f"not looked at, since not all of it is complete: {said}"
            return Ledger(level=asked.level, explicit=asked.explicit, status="skipped", reason=reason)
        seen = self._seen(works, results)
        staged = await self._git.newly_staged(self._staged) if "no-staged-files" in asked.evidence else None
        seen = seen.model_copy(update={"observed": Observed(changed_files=self._changed(works), staged=staged)})
        if asked.verify and not evaluate(asked, seen).rejected:
            task = asyncio.ensure_future(self._verified(works))
            end = asyncio.ensure_future(ending.wait())
            try:
                await asyncio.wait({task, end}, return_when=asyncio.FIRST_COMPLETED)
                if not task.done():
                    return None
                seen = seen.model_copy(update={"verify_runs": task.result()})
            finally:
                for one in (task, end):
                    one.cancel()
                await asyncio.wait({task, end})
        return evaluate(asked, seen)

    async def _verified(self, works: Sequence[StepWork]) -> tuple[VerifyRun, ...]:
        services = self._services
        given = input_environ(visible_inputs(services.plan, services.writer.paths, self._cwd))
        reads = services.reads.of(None)
        index = min((work.step.index for work in works), default=0)
        beside = beside_of(services.plan)
        async with in_sandbox(_strictest(works), self._cwd, services.writer.paths, index, beside=beside) as sandbox:
            return await self._run_all(given, reads, sandbox)

    async def _run_all(
        self, given: dict[str, str], reads: ReadRecorder, sandbox: Sandboxed | None
    ) -> tuple[VerifyRun, ...]:
        services, run_dir = self._services, self._services.writer.paths.root
        context = StepContext(
            report=self._told,
            cwd=self._cwd,
            step_dir=run_dir,
            store_home=run_dir.parents[1],
            environ=os.environ,
            tool_environ=tool_environ(os.environ, allowed=services.plan.tool_env) | given,
            sandbox=sandbox,
            reads=reads,
        )
        async with reads.watch.during(True):
            return await Verifier(context, run_dir).run_all(self._asked.verify)

    def _told(self, event: EngineEvent) -> None:
        if isinstance(event, Noticed):
            self._services.journal.status.note(self._services.journal.clean(event.text))

    def _seen(self, works: Sequence[StepWork], results: Sequence[StepResult]) -> Evaluation:
        if self._asked.report == "off":
            return Evaluation()
        told = [
            _told(result, work.step.cwd)
            for work, result in zip(works, results, strict=True)
            if work.step.acceptance is not None and work.step.acceptance.report != "off"
        ]
        report, problem = joined(self._asked, told)
        return Evaluation(report=report, report_problem=problem)

    def _changed(self, works: Sequence[StepWork]) -> tuple[str, ...]:
        journal = self._services.journal
        return tuple(dict.fromkeys(path for one in works for path in journal.accounts[one.step.index].changed_files))


def fails(asked: Acceptance, ledger: Ledger) -> bool:
    """Say whether a verdict is a failure of what it is about; under a contract it may only be reported."""
    return ledger.rejected and asked.explicit and not (asked.contract and asked.gate_on == "execution")


def _told(result: StepResult, folder: str | None) -> MemberReport:
    who, ledger = f"steps[{result.index}] ({result.label or result.agent})", result.acceptance
    if ledger is None or ledger.report is None:
        return MemberReport(who, None, ledger.report_problem if ledger is not None else None)
    try:
        report = Report.model_validate(ledger.report)
    except ValidationError:  # carried over from a run of another version
        return MemberReport(who, None, "its report can't be read")
    if folder is not None and report.changed_files is not None:
        files = tuple(from_root(from_folder(path, folder), folder) for path in report.changed_files)
        report = report.model_copy(update={"changed_files": files})
    return MemberReport(who, report)


def _strictest(works: Sequence[StepWork]) -> SandboxPlan | None:
    """Return the sandbox for commands that meet what all of these have made; None if none of them had one."""
    steps = [work.step for work in works]
    plans = [step.sandbox for step in steps if step.sandbox is not None]
    # A step that starts nothing has none, and is under the word of who wants one all the same.
    if plans or any(step.policy is not None and step.policy.wants_sandbox is not None for step in steps):
        return SandboxPlan(network=bool(plans) and all(one.network for one in plans))
    return None
