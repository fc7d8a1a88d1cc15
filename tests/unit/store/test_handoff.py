"""The hand-off of a run: written before things are done, and a mark that keeps the run as long as a tree is open."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest
from support import run_id

from subagents_nb.domain.plans.worktree import WorktreeRecord
from subagents_nb.errors import Unreadable
from subagents_nb.store import RunPaths, StoreHome
from subagents_nb.store.files.disk import Disk
from subagents_nb.store.runs.handoff import HandoffFile, read_handoff


@pytest.fixture
def paths(home: StoreHome) -> RunPaths:
    paths = home.run(run_id())
    paths.root.mkdir()
    return paths


def record(step: int, state: str) -> WorktreeRecord:
    return WorktreeRecord.model_validate(
        {"step": step, "path": f"/w/{step}", "branch": "b", "base_commit": "c", "repo_root": "/r", "state": state}
    )


def test_a_run_without_worktrees_has_an_empty_hand_off(paths: RunPaths) -> None:
    assert read_handoff(paths).worktrees == () and HandoffFile(paths).of(0) is None
    assert not HandoffFile(paths).marked


def test_what_one_notes_another_reads(paths: RunPaths) -> None:
    HandoffFile(paths).note(record(1, "planned"))
    HandoffFile(paths).note(record(0, "ready"))
    assert [one.step for one in read_handoff(paths).worktrees] == [0, 1]


def test_the_mark_is_there_while_any_tree_is_open(paths: RunPaths) -> None:
    file = HandoffFile(paths)
    for step, state, marked in [(0, "planned", True), (1, "ready", True), (0, "removed", True), (1, "failed", False)]:
        file.note(record(step, state))
        assert file.marked == marked
    (paths.root / "unresolved-worktrees").touch()  # of a process that was killed before it removed it
    file.tidy()
    assert not file.marked
    file.note(record(0, "preserved"))
    file.tidy()
    assert file.marked


def test_a_hand_off_that_can_not_be_read_is_never_overwritten(paths: RunPaths) -> None:
    (paths.root / "handoff.json").write_text('{"kind": "handoff", "worktrees": [')
    for attempt in (lambda: HandoffFile(paths).note(record(0, "planned")), lambda: HandoffFile(paths).of(0)):
        with pytest.raises(Unreadable, match="no whole JSON"):
            attempt()
    assert (paths.root / "handoff.json").read_text().endswith("[")


class Full(Disk):
    def write(self, handle: int, data: bytes) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")


def test_what_could_not_be_written_is_not_believed(paths: RunPaths) -> None:
    HandoffFile(paths).note(record(0, "planned"))
    file = HandoffFile(paths)
    file.disk = Full()
    with pytest.raises(OSError, match="No space"):
        file.note(record(0, "ready"))
    assert file.of(0) == record(0, "planned")
    assert [path.name for path in Path(paths.root).glob(".*")] == []
