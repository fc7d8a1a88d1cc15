"""Working on a copy: which git worktree a step gets, and what became of it."""

from __future__ import annotations

from typing import Literal

from subagents_nb.domain.base import Document, Value


class WorktreePlan(Value):
    """A git worktree of the step's own, made from a commit that planning resolved."""

    repo_root: str  # absolute
    base_ref: str = "HEAD"
    base_commit: str  # full object id
    subdir: str = ""  # where in the repository the run works, relative to its root
    branch_prefix: str = "subagents/"
    root: str | None = None  # where worktrees are made; None: beside the repository
    setup_hook: str | None = None  # an executable: absolute, or relative to the repository
    hook_timeout_s: float = 30.0


class Change(Value):
    """One changed file of a worktree's diff; None for binary files."""

    path: str
    added: int | None = None
    removed: int | None = None


class WorktreeRecord(Value):
    """One worktree through its life. Planned before it is made, so that no crash leaves one that nobody knows of."""

    step: int
    label: str = ""
    path: str
    branch: str
    base_commit: str
    repo_root: str
    state: Literal["planned", "ready", "captured", "removed", "preserved", "failed"]
    synthetic: tuple[str, ...] = ()  # made by us or the hook, no part of the work
    patch: str | None = None  # inside the run directory
    patch_sha256: str | None = None
    patch_bytes: int = 0
    applies: bool | None = None  # proved by a trial; None: not tried
    changes: tuple[Change, ...] = ()
    reason: str = ""  # why it is preserved, or failed


class Handoff(Document):
    """All worktrees of a run: `handoff.json`, written by the runner before each change of any of them."""

    kind: Literal["handoff"] = "handoff"
    worktrees: tuple[WorktreeRecord, ...] = ()
