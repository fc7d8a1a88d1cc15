"""What work came to beside its answer: whether it was accepted, what it changed in a worktree, which files it left."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from subagents_nb.blocks import Child, to_text
from subagents_nb.domain.plans.acceptance import Ledger
from subagents_nb.domain.plans.worktree import Change, WorktreeRecord
from subagents_nb.domain.runs.records import StepResult
from subagents_nb.domain.runs.snapshot import Snapshot
from subagents_nb.notebook.cards.diffs import changes
from subagents_nb.notebook.cards.graph import accepted_line, remarks, saved_line, skills_line, worktree_line
from subagents_nb.notebook.cards.ledgers import acceptance
from subagents_nb.notebook.page.html import code, element, note, safe, say, soft, styled
from subagents_nb.notebook.page.lines import cut, line, plural

MAX_TEXT_CHARS = 6_000
_FILES = 8
_NAMED, _NAME_CHARS = 6, 60
_CHARS_A_LINE = 12  # of the output of commands, for each line of a diff that there is room for
_STEP_LINES = 40
_OF_ALL = 2_000  # characters, of all steps of a chain in plain text


@dataclass(slots=True)
class Work:
    """Shows the work of steps on one card. `lines` of changes are left for all of them; 0: nothing is shown whole."""

    lines: int
    run: str = "run"  # the variable that holds the run
    patches: Mapping[int, str] = field(default_factory=dict)

    def answer_notes(self, step: StepResult, *, alone: bool) -> list[Child]:
        """Return what stands beside a step's answer; `alone`: the run has no other step."""
        number = None if alone else step.index
        parts = [
            note(skills_line(step)),
            note(saved_line(step.saved)),
            self.accepted(step),
            self._changed(step.worktree, number),
        ]
        return [part for part in parts if part]

    def accepted(self, step: StepResult) -> Child:
        """Return what came of the acceptance: all of it where it was asked for or failed, else a line."""
        text = accepted_line(step.acceptance)
        if step.acceptance is None or not text:
            return None
        if self.lines > 0 and _matters(step.acceptance):
            self.lines -= len(step.acceptance.verify_runs)
            return acceptance(step.acceptance, room=max(0, self.lines * _CHARS_A_LINE))
        return note(text)

    def _changed(self, record: WorktreeRecord | None, number: int | None) -> Child:
        if record is None:
            return None
        patch = self.patches.get(record.step, "") if self.lines > 0 else ""
        kept = record.state in ("preserved", "failed")
        text = "It worked in a git worktree of its own" if patch and not kept else worktree_line(record)
        lead: list[Child] = [text]
        for what, to_type in _to_type(record, self.run, number):
            lead += [". ", soft(f"{what}: "), code(to_type)]
        first = say("warn", safe(*lead)) if kept else styled("p", "margin:0", *lead)
        if not patch:
            return first
        most = min(self.lines, _STEP_LINES)
        self.lines -= min(most, patch.count("\n"))
        return element("div", None, first, changes(patch, most, files=2 + most // 4))


def left_in_trees(trees: int, run: str) -> Child:
    """Say that a run without a last word left worktrees behind, and how to see what is in them."""
    if not trees:
        return None
    there = "git worktree of its own is" if trees == 1 else "git worktrees of its own are"
    return safe(f"{trees:,} {there} still there, with what was done: ", code(f"{run}.diff()"))


def work_text(step: StepResult, run: str = "run", *, alone: bool) -> str:
    """Return the same as plain lines: findings, figures of the changes, the call that takes them over."""
    ledger, record = step.acceptance, step.worktree
    rows = [skills_line(step), saved_line(step.saved)]
    rows.append(to_text(acceptance(ledger)) if ledger is not None and _matters(ledger) else accepted_line(ledger))
    if record is not None:
        rows += [worktree_line(record), *_files(record.changes)]
        rows += [f"{what}: {call}" for what, call in _to_type(record, run, None if alone else step.index)]
    return cut("\n".join(filter(None, rows)), MAX_TEXT_CHARS)[0]


def works_text(snapshot: Snapshot, run: str = "run") -> str:
    """Return the work of all steps of an ended run as plain lines; under each step's number, if it is a chain."""
    steps = snapshot.result.steps if snapshot.result is not None else ()
    if not snapshot.stages:
        return work_text(steps[-1], run, alone=True) if steps else ""
    rows: list[str] = []
    for step in steps:
        if remarks(step):
            rows.append(f"steps[{step.index}], {line(step.label or step.agent, 80)}:")
            rows += [f"  {row}" for row in work_text(step, run, alone=False).split("\n")]
    text, more = cut("\n".join(rows), _OF_ALL)
    return f"{text}\n  … see {run}.steps" if more else text


def _matters(ledger: Ledger) -> bool:
    return ledger.explicit or ledger.rejected


def _files(changes: tuple[Change, ...]) -> list[str]:
    rows = [f"  {line(one.path, 120)} {_counts(one)}" for one in changes[:_FILES]]
    more = len(changes) - _FILES
    return [*rows, f"  … and {plural(more, 'more file')}"] if more > 0 else rows


def _counts(change: Change) -> str:
    return "(binary)" if change.added is None else f"+{change.added:,} -{change.removed or 0:,}"


def _to_type(record: WorktreeRecord, run: str, number: int | None) -> list[tuple[str, str]]:
    """Return what can be done with the work, and the call that does it."""
    step = "" if number is None else f"step={number}"
    commands = []
    if record.captured and record.patch is not None:
        commands.append(("Take it over", f"{run}.apply({step})"))
    if record.state == "preserved":
        commands.append(("Throw the tree away", f"{run}.discard({step})"))
    return commands


def work_line(snapshot: Snapshot, run: str = "run") -> str:
    """Return the line, where `run` is the variable that holds it; empty where it left nothing or is still at work."""
    artifacts = snapshot.result.artifacts if snapshot.result is not None else ()
    names = _names([one.name or one.path for one in artifacts])
    unclear = _names(snapshot.changed_meanwhile)
    parts = [f"Made {names}: {run}.artifacts" if names else ""]
    parts += [f"Changed meanwhile, by this run or by others: {unclear}"] if unclear else []
    return ". ".join(filter(None, parts))


def _names(names: Sequence[str]) -> str:
    shown = ", ".join(line(name, _NAME_CHARS) for name in names[:_NAMED])
    return f"{shown} and {len(names) - _NAMED:,} more" if len(names) > _NAMED else shown
