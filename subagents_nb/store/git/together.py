"""Whether what several steps changed fits together, before git is asked to apply it all as one patch.

Git merges hunks of one file and refuses what does not meet. But of two patches that both add a file it takes the later
one without a word, and a file in the place of a folder is found out half way.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from subagents_nb.domain.plans.worktree import WorktreeRecord
from subagents_nb.domain.values.words import one_line
from subagents_nb.store.git.capture import tree_of_patch
from subagents_nb.store.git.git import Git

_Left = dict[bytes, tuple[bytes, bytes]]  # by path: the status, and mode and object as they were left


def clash(git: Git, folder: Path, patches: Sequence[tuple[WorktreeRecord, Path]]) -> str | None:
    """Return which two steps leave what in one place that can't both lie there; None if there are none.

    Raises:
        GitProblem: a patch does not apply to its own base.
    """
    records = [record for record, _ in patches]
    if not _touch_the_same(records):
        return None
    applied: list[tuple[WorktreeRecord, _Left]] = []
    for record, patch in patches:
        change = _left(git, folder, record, patch)
        for other, before in applied:
            overlap = _between(before, change)
            if overlap is not None:
                path, what = one_line(os.fsdecode(overlap[0]).encode("utf-8", "replace").decode(), 120), overlap[1]
                return f"steps[{other.step}] and steps[{record.step}] {what} {path}"
        applied.append((record, change))
    return None


def _touch_the_same(records: Sequence[WorktreeRecord]) -> bool:
    seen: set[str] = set()
    folders: set[str] = set()
    for record in records:
        own = {path for one in record.changes for path in (one.path, one.source) if path is not None}
        above = {folder for path in own for folder in _above(path)}
        if own & (seen | folders) or above & seen:
            return True
        seen, folders = seen | own, folders | above
    return False


def _above(path: str) -> list[str]:
    parts = path.split("/")
    return ["/".join(parts[:count]) for count in range(1, len(parts))]


def _left(git: Git, folder: Path, record: WorktreeRecord, patch: Path) -> _Left:
    tree = tree_of_patch(git, folder, record, patch)
    raw = git("diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-commit-id", record.base_commit, tree).split(b"\0")
    changes: _Left = {}
    for about, path in zip(raw[::2], raw[1::2], strict=False):
        _, mode, _, oid, status = about.split(b" ")
        changes[path] = status, mode + b" " + oid
    return changes


def _between(one: _Left, other: _Left) -> tuple[bytes, str] | None:
    for path, (status, left) in other.items():
        if path in one:
            before, its = one[path]
            if its != left and before == status == b"A":
                return path, "both add, with different contents,"
            if its != left and b"D" in (before, status):
                return path, "change and remove"
    for here, there in ((one, other), (other, one)):
        for path in here:
            for folder in _above(os.fsdecode(path)):
                name = os.fsencode(folder)
                if name in there and there[name][0] != b"D":
                    return name, "make a file and a folder of"
    return None
