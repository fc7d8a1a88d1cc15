"""Decide whether a step that came to an end is accepted: its report, the host's checks, a reviewer."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

from subagents_nb.domain.acceptance.reports import (
    MAX_REPORT_CHARS,
    ReportProblem,
    ReportSource,
    find_report,
    parse_report,
)
from subagents_nb.domain.acceptance.verdict import Evaluation, Observed, evaluate
from subagents_nb.domain.plans.acceptance import Acceptance, Judgement, Ledger
from subagents_nb.domain.plans.plan import StepPlan
from subagents_nb.domain.runs.events import StepOutcome
from subagents_nb.domain.runs.records import StepResult
from subagents_nb.runner.engines.engine import StepContext
from subagents_nb.runner.steps.reviewing import review_task
from subagents_nb.runner.steps.verifying import Verifier
from subagents_nb.runner.workspace.gitstate import GitState
from subagents_nb.runner.workspace.step_files import output_path
from subagents_nb.store.files.opener import open_plain

Reviewing = Callable[[str], Awaitable[Judgement]]

# Its words are examples that no reader takes for an answer: a model that says them back has reported nothing.
_SHAPE = """\
```acceptance-report
{
  "criteriaSatisfied": [{"id": "ID", "status": "satisfied | not-satisfied | not-applicable", "evidence": "PROOF"}],
  "changedFiles": ["PATH"],
  "testsAddedOrUpdated": ["PATH"],
  "commandsRun": [{"command": "COMMAND", "result": "passed | failed | not-run", "summary": "IN SHORT"}],
  "validationOutput": ["WHAT A CHECK SAID"],
  "residualRisks": ["RISK, or none"],
  "noStagedFiles": "true | false",
  "diffSummary": "IN SHORT",
  "reviewFindings": ["blocker: WHERE - WHAT, or no blockers"],
  "manualNotes": "WHAT ELSE MATTERS"
}
```"""


class Accepting:
    """The acceptance of one step, from before its work to the decision. A step without one costs nothing."""

    def __init__(self, step: StepPlan, context: StepContext) -> None:
        asked = step.acceptance
        self._step = step
        self._context = context
        self._asked: Acceptance | None = asked if asked is not None and asked.level != "none" else None
        self._git = GitState(context.cwd)
        self._staged: dict[str, str] | None = None
        self._found: ReportSource | None = None

    def instructions(self) -> str:
        """Return what is added to the task: what must hold, and how to report that it does."""
        return "" if self._asked is None else instructions(self._asked)

    async def note_staged(self) -> None:
        """Note what is staged already: that is not the step's doing."""
        if self._asked is not None and "no-staged-files" in self._asked.evidence:
            self._staged = await self._git.staged()

    def take_report(self, outcome: StepOutcome) -> StepOutcome:
        """Return the outcome without the report in its text. An answer that is nothing but a report stays."""
        if self._asked is None or self._asked.report == "off":
            return outcome
        self._found = find_report(outcome.text)
        if self._found is None or not self._found.answer:
            return outcome
        return replace(outcome, text=self._found.answer)

    async def judge(
        self,
        result: StepResult,
        *,
        changed_files: tuple[str, ...],
        changed_meanwhile: tuple[str, ...] = (),
        run_dir: Path,
        review: Reviewing,
    ) -> Ledger | None:
        """Return what came of the step's acceptance, or None when nothing was asked.

        `review` carries the step's reviewer out on a task. What costs more is only done when all before it went well.
        """
        if self._step.acceptance is None:
            return None
        asked = self._asked
        if asked is None:
            return evaluate(self._step.acceptance, Evaluation())
        seen = self._reported(asked)
        staged = await self._git.newly_staged(self._staged) if "no-staged-files" in asked.evidence else None
        seen = seen.model_copy(update={"observed": Observed(changed_files=changed_files, staged=staged)})
        if asked.verify and not evaluate(asked, seen).rejected:
            runs = await Verifier(self._context, run_dir).run_all(asked.verify)
            seen = seen.model_copy(update={"verify_runs": runs})
        if asked.review is not None and not evaluate(asked, seen).rejected:
            task = review_task(
                asked,
                task=self._step.task,
                answer=result.text,
                changed_files=changed_files,
                changed_meanwhile=[path for path in changed_meanwhile if path not in changed_files],
                diff=await self._git.diff(60_000),
                verify_runs=seen.verify_runs or (),
            )
            seen = seen.model_copy(update={"judgement": await review(task)})
        return evaluate(asked, seen)

    def _reported(self, asked: Acceptance) -> Evaluation:
        if asked.report == "off":
            return Evaluation()
        report_source = self._found or self._in_output_file()
        if report_source is None:
            return Evaluation(report_problem="the answer has no acceptance report")
        try:
            return Evaluation(report=parse_report(report_source))
        except ReportProblem as problem:
            return Evaluation(report_problem=f"the acceptance report can't be used: {problem}")

    def _in_output_file(self) -> ReportSource | None:
        """Return the report that the step wrote into its output file instead of its answer."""
        planned = self._step.output
        if planned is None:
            return None
        try:
            root, path = output_path(self._step, self._context.cwd, self._context.files)
            with open_plain(root / path, within=root) as fd, open(fd, "rb", closefd=False) as file:
                file.seek(max(0, os.fstat(fd).st_size - 2 * MAX_REPORT_CHARS))
                return find_report(file.read(2 * MAX_REPORT_CHARS).decode("utf-8", "replace"))
        except OSError:
            return None


def instructions(asked: Acceptance) -> str:
    """Return what an agent is told of its acceptance."""
    lines = []
    if asked.criteria:
        lines += ["The work counts as done only if this holds:"]
        lines += [
            f"- {one.id}: {one.must}{'' if one.severity == 'required' else ' (recommended)'}" for one in asked.criteria
        ]
    if asked.stop_rules:
        lines += ["Stop and say so in your answer, instead of going on, in these cases:"]
        lines += [f"- {rule}" for rule in asked.stop_rules]
    if asked.verify:
        lines += ["When you have answered, these commands are run on the result and must succeed:"]
        lines += [f"- {one.command}" for one in asked.verify if not one.allow_failure]
    if asked.review is not None:
        lines += ["A reviewer then reads your answer and what you changed."]
    if asked.report != "off":
        lines += [
            "",
            "End your answer with one fenced JSON block like this one, with your own values. Leave out what has no "
            "place in this work; use empty lists where there was nothing.",
            *([f"It must show: {', '.join(asked.evidence)}."] if asked.evidence else []),
            _SHAPE,
        ]
    return "\n".join(lines).strip()
