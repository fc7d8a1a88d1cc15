"""What the worktrees of a run hold, for a person: look at it, take it over, throw it away."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from subagents_nb.domain.plans.plan import everything
from subagents_nb.domain.plans.worktree import Handoff, WorktreeRecord
from subagents_nb.domain.runs.snapshot import Snapshot
from subagents_nb.errors import RequestError, StoreError
from subagents_nb.launching.controlling.within_run import refuse_strangers
from subagents_nb.store import FileRuns, StoreHome
from subagents_nb.store.files.disk import DISK
from subagents_nb.store.files.lock import exclusive
from subagents_nb.store.git.capture import APPLY, read_patch
from subagents_nb.store.git.git import Git, GitProblem
from subagents_nb.store.git.together import clash
from subagents_nb.store.git.trees import discard as discard_tree
from subagents_nb.store.git.trees import recover
from subagents_nb.store.layout import RunPaths
from subagents_nb.store.runs.handoff import LOCK, HandoffFile, read_handoff


def remaining_worktrees(home: StoreHome, run_id: str) -> tuple[WorktreeRecord, ...]:
    """Return the worktrees of a run that are still there, and what is known of each. Changes nothing.

    Raises:
        UnknownRun: the text is no run id.
        StoreError: the run's record of its worktrees can't be read.
    """
    return tuple(one for one in read_handoff(home.run(run_id)).worktrees if os.path.lexists(one.path))


def diff(home: StoreHome, run_id: str, step: int | None = None) -> str:
    """Return what the steps changed, as patches one after another, or what one step changed.

    Of a run that was cut short, what its trees hold is captured first. Bytes that are no UTF-8 are shown as question
    marks; the patch itself, `steps/N/changes.patch` in the run's directory, has them as they were.

    Raises:
        RequestError: there is no such step, it is still at work, or its changes could not be captured.
        StoreError: what was recorded can't be read.
    """
    records = _captured(home, run_id, step)
    return b"".join(_patch(home, run_id, record) for record in records).decode("utf-8", "replace")


def kept_patch(home: StoreHome, run_id: str, record: WorktreeRecord, most: int) -> str:
    """Return the patch that is on record for a step, to be shown; empty if it has more than `most` bytes, or is gone.

    Changes nothing, and looks at no repository.
    """
    if record.patch is None or record.patch_bytes > most:
        return ""
    with contextlib.suppress(OSError, StoreError):
        return _patch(home, run_id, record).decode("utf-8", "replace")
    return ""


def apply(home: StoreHome, run_id: str, step: int | None = None, *, check: bool = False) -> tuple[str, ...]:
    """Bring the changes of the steps, or of one step, into the repository they were made from, all or nothing.

    Nothing is committed. With `check` it is only tried. Return the paths of the changed files, relative to the root of
    the repository.

    Raises:
        RequestError: there is nothing to apply, or it does not apply cleanly; then nothing was changed.
        StoreError: what was recorded can't be read.
    """
    if not check:
        refuse_strangers(home, run_id)
    records = [record for record in _captured(home, run_id, step) if record.patch is not None]
    if not records:
        raise RequestError(f"There are no changes of {_named(home, run_id, step)} to apply.")
    root = Path(records[0].repo_root)
    git = Git(cwd=root)
    with tempfile.TemporaryDirectory(prefix="subagents-nb-") as folder:
        # One file: git applies it whole or not at all. And the very bytes that were just checked.
        patches = [_patch(home, run_id, record) for record in records]
        patch = _joined(folder, "all", patches)
        each = [
            Path(_joined(folder, f"step-{record.step}", [one])) for record, one in zip(records, patches, strict=True)
        ]
        try:
            if (why := clash(git, Path(folder), list(zip(records, each, strict=True)))) is not None:
                raise RequestError(
                    f"The changes do not fit together: {why}. Nothing was changed. Apply one of the two with step=, "
                    "and take over from the other by hand: run.diff(step=…) shows it."
                )
            git(*APPLY, *(["--check"] if check else []), "--", patch)
        except GitProblem as error:
            backwards = _joined(folder, "back", patches[::-1])
            raise RequestError(_refusal(git, records, backwards, error)) from error
    if not check:
        with contextlib.suppress(OSError):  # who asks what runs wrote into a project looks at its time
            DISK.replace(home.run(run_id).applied, b"", durable=False)
    changed = (path for record in records for one in record.changes for path in (one.source, one.path))
    return tuple(dict.fromkeys(path for path in changed if path is not None))


def discard(home: StoreHome, run_id: str, step: int | None = None) -> tuple[str, ...]:
    """Remove the trees of a run that are still there, with all that is in them. A patch that was captured stays.

    Return their paths.

    Raises:
        RequestError: the run is still at work, there is no such tree, or it can't be removed.
        StoreError: what was recorded can't be read.
    """
    refuse_strangers(home, run_id)
    with _exclusive(home, run_id) as handoff:
        remaining = [one for one in remaining_worktrees(home, run_id) if step is None or one.step == step]
        if not remaining:
            raise RequestError(f"There is no worktree of {_named(home, run_id, step)} any more.")
        for record in remaining:
            try:
                handoff.note(discard_tree(record))
            except GitProblem as error:
                raise RequestError(f"The worktree {record.path} could not be removed: {error}.") from error
            except OSError as error:
                raise StoreError(f"What became of {record.path} could not be written down: {error}.") from error
    return tuple(one.path for one in remaining)


def _captured(home: StoreHome, run_id: str, step: int | None) -> list[WorktreeRecord]:
    paths = home.run(run_id)
    handoff = read_handoff(paths)
    incomplete = HandoffFile(paths).marked or not all(one.resolved for one in handoff.worktrees)
    if incomplete and FileRuns(home).snapshot(run_id).ended:
        handoff = _recovered(home, run_id)
    if step is None:
        chosen = list(handoff.worktrees)
        if not chosen and not _planned(FileRuns(home).snapshot(run_id, whole=True)):
            raise RequestError(
                f"R{_named(home, run_id, None)[1:]} worked in no worktree: what it changed is in the directory itself, "
                "and no patch of it was kept. Launch with --worktree, or worktree=True, to have one."
            )
    else:
        one = handoff.of(step)
        if one is None:
            raise RequestError(f"S{_named(home, run_id, step)[1:]} has no worktree{_which(handoff)}.")
        chosen = [one]
    for record in chosen:
        if step is not None and record.state in ("planned", "ready"):
            raise RequestError(f"steps[{record.step}] is still at work; wait for its end.")
        if record.state == "preserved" and not record.captured:
            raise RequestError(
                f"The changes of steps[{record.step}] could not be captured as a patch: {record.reason} Take over what "
                "you need from there, then discard it."
            )
    return [record for record in chosen if record.captured]


def _planned(snapshot: Snapshot) -> bool:
    """Say whether a run works, or may yet, in a worktree."""
    plan = snapshot.plan
    return (
        not snapshot.ended
        or plan is None
        or any(step.worktree is not None for step in everything(plan.steps, plan.items))
    )


def _recovered(home: StoreHome, run_id: str) -> Handoff:
    with _exclusive(home, run_id) as handoff:
        paths = handoff.paths
        for record in read_handoff(paths).worktrees:
            if record.resolved:
                continue
            now = recover(record, paths.root, handoff.note)
            if now != record:
                try:
                    handoff.note(now)
                except OSError as error:
                    raise StoreError(f"What became of {record.path} could not be written down: {error}.") from error
        handoff.tidy()
        return read_handoff(paths)


@contextlib.contextmanager
def _exclusive(home: StoreHome, run_id: str) -> Iterator[HandoffFile]:
    """Be the one who writes the hand-off of a run whose runner has gone."""
    paths: RunPaths = home.run(run_id)
    snapshot = FileRuns(home).snapshot(run_id)
    if not snapshot.ended:
        raise RequestError(f"Run {snapshot.name} is still at work; wait for its end, or stop it.")
    busy = RequestError(f"Somebody else looks after the worktrees of run {snapshot.name} just now; try again.")
    with exclusive(paths.root / LOCK, what=f"The worktrees of run {snapshot.name}", busy=busy):
        yield HandoffFile(paths)


def _patch(home: StoreHome, run_id: str, record: WorktreeRecord) -> bytes:
    return read_patch(record, home.run(run_id).root)


def _joined(folder: str, name: str, patches: list[bytes]) -> str:
    path = Path(folder) / name
    path.write_bytes(b"".join(patches))
    return str(path)


def _refusal(git: Git, records: list[WorktreeRecord], backwards: str, error: GitProblem) -> str:
    root = records[0].repo_root
    try:
        git(*APPLY, "--check", "--reverse", "--", backwards)
    except GitProblem:
        steps = "the step" if len(records) == 1 else f"{len(records)} steps together"
        more = "" if len(records) == 1 else " Apply them one by one, with step=."
        return f"The changes of {steps} do not apply cleanly to {root}; nothing was changed. {error}.{more}"
    return f"These changes are in {root} already; nothing was changed."


def _named(home: StoreHome, run_id: str, step: int | None) -> str:
    name = FileRuns(home).snapshot(run_id).name
    return f"run {name}" if step is None else f"steps[{step}] of run {name}"


def _which(handoff: Handoff) -> str:
    steps = ", ".join(str(one.step) for one in handoff.worktrees)
    return f"; those that have are {steps}" if steps else ""
