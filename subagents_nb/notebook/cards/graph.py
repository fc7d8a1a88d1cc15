"""A chain as people see it: its stages from left to right, the steps within them. Plain data from one reading."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from subagents_nb.domain.plans.acceptance import Ledger
from subagents_nb.domain.plans.worktree import WorktreeRecord
from subagents_nb.domain.runs.records import RunHead, SavedOutput, StepHead, StepResult, StepStatus
from subagents_nb.domain.runs.snapshot import Snapshot
from subagents_nb.domain.runs.stages import Stage
from subagents_nb.domain.runs.states import StepState
from subagents_nb.domain.values import words
from subagents_nb.launching.controlling.step_handles import CARRIED, CUT_SHORT, left_behind
from subagents_nb.notebook.page.lines import line, plural

NAME_CHARS = 80
_MAX_LINES = 32
_QUIET = {"complete", "pending", "skipped"}  # what need not catch the eye
_OPEN = (StepState.PENDING, StepState.RUNNING)
_TREES = {"preserved": "kept", "planned": "not made yet", "ready": "at work"}
_ASIDE = {"expand": "for each item", "parallel": "side by side", "attached": "another run"}


@dataclass(frozen=True, slots=True)
class StepRow:
    """One step in a line: its number, what it is called, how it stands. Seconds are those of the run's own clock."""

    number: int
    name: str
    agent: str
    state: str
    started_s: float | None = None
    ended_s: float | None = None
    tokens: int = 0
    activity: str = ""
    output_name: str = ""
    stopping: bool = False
    about: str = ""  # what a person said beside its task

    @property
    def took_s(self) -> float | None:
        """Return how long it worked, if it has ended."""
        return self.ended_s - self.started_s if self.started_s is not None and self.ended_s is not None else None


@dataclass(frozen=True, slots=True)
class StageRow:
    """One stage: its title and state, how many of its steps are done, and what a person may want to know besides."""

    title: str
    kind: str
    state: str
    steps: tuple[int, ...] = ()
    aside: str = ""
    output_name: str = ""
    error: str = ""
    accepted: Ledger | None = None  # the verdict over all of it


def is_chain(snapshot: Snapshot) -> bool:
    """Whether the run has stages to draw."""
    return bool(snapshot.stages)


def step_rows(snapshot: Snapshot) -> tuple[StepRow, ...]:
    """Return the steps in the order of their numbers."""
    gone = snapshot.ended and snapshot.result is None
    return tuple(_row(step, gone=gone) for step in snapshot.steps)


def stage_rows(snapshot: Snapshot) -> tuple[StageRow, ...]:
    """Return the stages in their order."""
    gone = snapshot.ended and snapshot.result is None
    return tuple(_stage(stage, gone=gone) for stage in snapshot.stages)


def counts(rows: Iterable[StepRow]) -> tuple[int, int]:
    """Return how many steps have begun and are over, and how many there are; what is paused goes on some day."""
    states = [row.state for row in rows]
    return sum(state not in (*_OPEN, "skipped", "paused") for state in states), len(states)


def so_far(rows: Sequence[StepRow]) -> str:
    """Say how far it is: `6 of 9 steps`."""
    done, total = counts(rows)
    return f"{done} of {plural(total, 'step')}"


def tally(states: Iterable[str], *, more: bool = False) -> str:
    """Say how many are in which state: `40 complete, 2 failed`; with `more`, `40 more complete, 2 more failed`."""
    word = " more " if more else " "
    return ", ".join(f"{number:,}{word}{state}" for state, number in Counter(states).items())


def mode_of(snapshot: Snapshot) -> tuple[str, str]:
    """Return what kind of run it is and how long: `chain`, `3 stages`."""
    mode = snapshot.head.mode if snapshot.head is not None else ""
    stages = len(snapshot.stages)
    return (mode if mode in ("chain", "parallel") else "chain"), plural(stages, "stage")


def chosen(snapshot: Snapshot, most: int, *, of_many: int) -> set[int]:
    """Return which steps are shown each: all up to `most`, of more `of_many`; those that went wrong first."""
    rows = step_rows(snapshot)
    ranked = sorted(rows, key=lambda row: row.state in _QUIET)  # stable: else in their order
    return {row.number for row in (ranked if len(ranked) <= most else ranked[:of_many])}


def stages_text(snapshot: Snapshot, *, figures: bool = False) -> str:
    """Return the stages as indented lines. Without `figures` the same course of a run gives the same lines."""
    rows = {row.number: row for row in step_rows(snapshot)}
    shown = chosen(snapshot, _MAX_LINES, of_many=_MAX_LINES)
    lines = []
    for stage in stage_rows(snapshot):
        steps = [rows[number] for number in stage.steps if number in rows]
        alone = len(steps) == 1 and stage.kind == "step"
        about = ", ".join(filter(None, [stage.aside, so_far(steps) if steps else ""]))
        notes = _row_notes(steps[0], figures=figures) if alone else about
        named = f" as {stage.output_name}" if stage.output_name else ""
        number = f"{steps[0].number:>4}" if alone else "    "
        lines.append(f"{number}  {stage.state:<9} {stage.title}{named}{f' ({notes})' if notes else ''}")
        if stage.error:
            lines.append(f"{'':16}{line(stage.error, 200)}")
        elif notes := accepted_line(stage.accepted):
            lines.append(f"{'':16}{notes}")
        for row in () if alone else steps:
            if row.number in shown:
                notes = _row_notes(row, figures=figures)
                lines.append(f"{row.number:>6}  {row.state:<9} {row.name}{f' ({notes})' if notes else ''}")
        left = [row.state for row in steps if row.number not in shown and not alone]
        if left:
            lines.append(f"{'':8}… and {tally(left, more=len(left) < len(steps))}")
    return "\n".join(lines)


def _row_notes(row: StepRow, *, figures: bool) -> str:
    took = words.elapsed(row.took_s) if row.took_s is not None else ""
    known = [took, f"{words.count(row.tokens)} tokens" if row.tokens else ""] if figures else []
    return " · ".join(filter(None, [row.about, row.activity if row.activity in (CUT_SHORT, CARRIED) else "", *known]))


def remarks(step: StepResult) -> list[str]:
    """Say in a line each which skills it had, where its answer was kept, if it was accepted, what of its worktree."""
    lines = [skills_line(step), saved_line(step.saved), accepted_line(step.acceptance), worktree_line(step.worktree)]
    return [remark for remark in lines if remark]


def skills_line(step: StepResult) -> str:
    """Say which skills a step could load."""
    return f"skills: {line(', '.join(step.skills), 200)}" if step.skills else ""


def saved_line(saved: SavedOutput | None) -> str:
    """Say where an answer was kept."""
    if saved is None:
        return ""
    if saved.error:
        return f"not saved to {line(saved.path, 120)}: {line(saved.error, 200)}"
    size = f" ({plural(saved.lines, 'line')})" if saved.lines is not None else ""
    where = " of the run" if saved.place == "run" else ""
    return f"saved to {line(saved.path, 120)}{where}{size}"


def accepted_line(ledger: Ledger | None) -> str:
    """Say what came of an acceptance, if one was asked for."""
    if ledger is None or ledger.status == "not-asked":
        return ""
    checks = [*ledger.criteria, *ledger.checks]
    held = f", {sum(one.ok for one in checks)} of {plural(len(checks), 'check')} held" if checks else ""
    runs = ledger.verify_runs
    verified = f", {sum(one.passed for one in runs)} of {plural(len(runs), 'command')} passed" if runs else ""
    why = f": {line(ledger.reason, 200)}" if ledger.reason else ""
    return f"acceptance {ledger.status}{held}{verified}{why}"


def worktree_line(record: WorktreeRecord | None) -> str:
    """Say what a step did in its worktree, or what became of that tree."""
    if record is None:
        return ""
    if record.captured and record.state != "preserved":
        added, removed = (sum(counts) for counts in _changed_lines(record))
        figures = f"{plural(len(record.changes), 'file')} changed, +{added:,} −{removed:,}" if record.changes else ""
        return f"{figures or 'nothing changed'}, in a git worktree of its own"
    changed = f", {plural(len(record.changes), 'changed file')}" if record.changes else ""
    why = f": {line(record.reason, 160)}" if record.reason else ""
    return f"worktree {_TREES.get(record.state, record.state)} on {line(record.branch, 80)}{changed}{why}"


def _changed_lines(record: WorktreeRecord) -> tuple[list[int], list[int]]:
    return [one.added or 0 for one in record.changes], [one.removed or 0 for one in record.changes]


def _row(step: StepResult | StepStatus, *, gone: bool) -> StepRow:
    if gone and isinstance(step, StepStatus):
        step = left_behind(step)
    live = step if isinstance(step, StepStatus) else None
    state = str(step.state)
    running = [row.name for row in step.tools if row.state == "running"] if live is not None else []
    doing = running[-1] if running else live.activity if live is not None else ""
    aside = CARRIED if step.carried_from is not None else CUT_SHORT if step.error == CUT_SHORT else ""
    return StepRow(
        number=step.index,
        name=line(step.label or step.agent, NAME_CHARS),
        agent=line(step.agent, NAME_CHARS),
        state=state,
        started_s=step.started_s,
        ended_s=step.ended_s,
        tokens=step.usage.input_tokens + step.usage.output_tokens,
        activity=line(doing, 60) if step.state is StepState.RUNNING else aside,
        output_name=step.output_name or "",
        about=words_of(step),
        stopping=bool(live is not None and live.stopping and step.state in _OPEN),
    )


def launch_notes(snapshot: Snapshot) -> str:
    """Return the same of a launch."""
    return words_of(snapshot.head) if snapshot.head is not None else ""


def words_of(said: StepHead | RunHead) -> str:
    """Return what a person said beside a task: its phase and lane, what it does, what for, what it is part of."""
    lane = f"lane {line(said.lane, 60)}" if said.lane else ""
    part = [line(one, 80) for one in (said.workflow, said.workflow_key) if one] if isinstance(said, RunHead) else []
    goal = f"for: {line(said.goal, 160)}" if said.goal else ""
    of = f"of workflow {'/'.join(part)}" if part else ""
    return " · ".join(filter(None, [line(said.phase, 60), lane, line(said.description, 160), goal, of]))


def _stage(stage: Stage, *, gone: bool) -> StageRow:
    state = str(stage.state)
    if gone and stage.state in _OPEN:
        state = "failed" if stage.state is StepState.RUNNING else "skipped"
    aside = _ASIDE.get(stage.kind, "")
    if stage.kind == "expand" and stage.source:
        aside = f"for each of {line(stage.source, 60)}"
        if not stage.steps and stage.state is StepState.PENDING and stage.max_items is not None:
            aside += f", at most {stage.max_items}"
    if stage.kind == "attached" and stage.attached_run:
        aside = line(stage.attached_run, 60)
    if stage.phase and stage.kind != "step":  # of a step it stands with the step
        aside = " · ".join(filter(None, [line(stage.phase, 60), aside]))
    return StageRow(
        title=line(stage.label, NAME_CHARS),
        kind=stage.kind,
        state=state,
        steps=stage.steps,
        aside=aside,
        output_name=stage.output_name or "",
        error=line(stage.error or "", 400),
        accepted=stage.acceptance,
    )
