"""Working on a copy: which git worktree a step gets, and what became of it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Literal

from subagents_nb.domain.values.base import Document, Value
from subagents_nb.domain.values.ids import short_id

DEFAULT_PREFIX = "subagents/"
DEFAULT_HOOK_TIMEOUT_S = 30.0
HOOK_VERSION = 1
HOOK_ANSWER_BYTES = 128 * 1024

Provider = Literal["native", "worktrunk"]  # git itself, or the command `wt` over it
WorktreeState = Literal["planned", "ready", "captured", "removed", "preserved", "failed"]

_NO_REF = re.compile(r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|//|/\.|\.lock(?:/|\Z)")
_OBJECT_ID = re.compile(r"[0-9a-fA-F]{40}(?:[0-9a-fA-F]{24})?\Z")


class WorktreePlan(Value):
    """A git worktree of the step's own, made from a commit that planning resolved."""

    repo_root: str  # absolute
    base_ref: str = "HEAD"
    base_commit: str  # full object id
    subdir: str = ""  # where in the repository the run works, relative to its root
    branch_prefix: str = DEFAULT_PREFIX
    root: str | None = None  # where worktrees are made; None: beside the repository
    setup_hook: str | None = None  # an executable: absolute, or relative to the repository
    hook_sha256: str = ""  # of one in the repository, as it was when the run was planned
    hook_timeout_s: float = DEFAULT_HOOK_TIMEOUT_S
    provider: Provider = "native"

    def names(self, run_id: str, step: int) -> Iterator[tuple[str, str]]:
        """Yield what path and branch may be called, the shortest first: four characters of an id may be taken."""
        repo = PurePosixPath(self.repo_root)
        below = PurePosixPath(self.root) if self.root else repo.parent
        for word in (short_id(run_id), run_id):
            yield str(below / f"{repo.name}-worktrees" / f"{word}-s{step}"), f"{self.branch_prefix}{word}/s{step}"


class Change(Value):
    """One changed file of a worktree's diff; None for binary files."""

    path: str
    added: int | None = None
    removed: int | None = None
    source: str | None = None  # what it was called before, if it was renamed


class WorktreeRecord(Value):
    """One worktree through its life. Planned before it is made, so that no crash leaves one that nobody knows of."""

    step: int
    label: str = ""
    path: str
    branch: str
    base_commit: str
    repo_root: str
    state: WorktreeState
    synthetic: tuple[str, ...] = ()  # made by us or the hook, no part of the work
    patch: str | None = None  # inside the run directory; None: nothing was changed, or nothing could be captured
    patch_sha256: str | None = None
    patch_bytes: int = 0
    applies: bool | None = None  # proved by a trial; None: not tried
    changes: tuple[Change, ...] = ()
    reason: str = ""  # why it is preserved, or failed
    note: str = ""  # what a person should know of it besides
    provider: Provider = (
        "native"  # worktrunk says where a tree lies only when it has made it: until then, by its branch
    )

    @property
    def resolved(self) -> bool:
        """Whether nothing of it is left that somebody would have to look after."""
        return self.state in ("removed", "failed")

    @property
    def captured(self) -> bool:
        """Whether its work is on record: as a proved patch, or as the proof that there is none."""
        return self.applies is True


class Handoff(Document):
    """All worktrees of a run: `handoff.json`, written by the runner before each change of any of them.

    When the run has ended, whoever captures late or removes a tree on request writes it, under a lock.
    """

    kind: Literal["handoff"] = "handoff"
    worktrees: tuple[WorktreeRecord, ...] = ()

    def of(self, step: int) -> WorktreeRecord | None:
        """Return the worktree of one step, if it has one."""
        return next((record for record in self.worktrees if record.step == step), None)

    def noting(self, record: WorktreeRecord) -> Handoff:
        """Return the hand-off with this record in place of the step's earlier one."""
        others = [one for one in self.worktrees if one.step != record.step]
        return self.model_copy(update={"worktrees": tuple(sorted([*others, record], key=lambda one: one.step))})


def ref_problem(name: str) -> str | None:
    """Return why a text can't name a commit to begin from, or None. Only HEAD and the names of refs can."""
    if _OBJECT_ID.match(name):
        return f"{name[:12]}… is a commit id; name HEAD, a branch or a tag"
    if not name or _NO_REF.search(name) or name == "@" or name.startswith(("-", "/", ".")) or name.endswith(("/", ".")):
        return f"{name!r} is no name of a branch or tag; revision expressions are not taken"
    return None


def prefix_problem(prefix: str) -> str | None:
    """Return why a text can't begin the names of branches, or None."""
    if not prefix.endswith("/"):
        return f"{prefix!r} must end with a slash, as {DEFAULT_PREFIX!r} does"
    if ref_problem(prefix + "s0") is not None or len(prefix) > 80 or prefix.startswith("refs/"):
        return f"{prefix!r} can't begin the name of a branch"
    return None


def parse_numstat(data: bytes) -> tuple[Change, ...]:
    """Read `git diff --numstat -z`: a rename has its two names behind an empty one.

    Raises:
        ValueError: it is something else.
    """
    parts = iter(data.split(b"\0")[:-1])
    changes = []
    for part in parts:
        counts = part.split(b"\t", 2)
        if len(counts) != 3:
            raise ValueError(f"no line of numstat: {part[:80]!r}")
        source = None
        name = counts[2]
        if not name:
            source, name = next(parts, b""), next(parts, b"")
        added, removed = (None if one == b"-" else int(one) for one in counts[:2])
        was = None if source is None else source.decode("utf-8", "replace")
        changes.append(Change(path=name.decode("utf-8", "replace"), added=added, removed=removed, source=was))
    return tuple(changes)


def synthetic_of(answer: bytes) -> tuple[str, ...]:
    """Return the paths that a setup hook says it made, relative to the worktree.

    Raises:
        ValueError: it said something else; the message says what.
    """
    if len(answer) > HOOK_ANSWER_BYTES:
        raise ValueError(f"it printed more than {HOOK_ANSWER_BYTES // 1024} KiB")
    try:
        value = json.loads(answer)
    except (ValueError, RecursionError) as error:
        raise ValueError("it did not print one JSON object") from error
    if not isinstance(value, dict):
        raise ValueError("it did not print one JSON object")
    named = {key: str(key).replace("-", "_") for key in value}
    known = {
        key for key, name in named.items() if name in ("synthetic_paths", "syntheticPaths")
    }  # the origin's spelling
    if unknown := sorted(repr(key)[:60] for key in value if key not in known):
        raise ValueError(f"it said {', '.join(unknown)}, which means nothing; it may say synthetic_paths")
    if len(known) > 1:
        raise ValueError(f"it said {' and '.join(sorted(known))}, which mean the same")
    paths = value[next(iter(known))] if known else []
    if not isinstance(paths, list) or not all(isinstance(path, str) for path in paths):
        raise ValueError("synthetic_paths is no list of paths")
    for path in paths:
        parts = path.split("/")
        bad = "\\" in path or not path.isprintable() or any(p in ("", ".", "..") or p.lower() == ".git" for p in parts)
        if bad:
            raise ValueError(f"synthetic_paths holds {path[:80]!r}, which is no plain path inside the worktree")
    return tuple(dict.fromkeys(paths))


def worktrunk_path(answer: bytes, branch: str) -> str:
    """Return where `wt switch --format json` says that it made the worktree of a branch.

    Raises:
        ValueError: it says something else.
    """
    try:
        reply = json.loads(answer)
    except (ValueError, RecursionError) as error:
        raise ValueError("printed no JSON") from error
    if not isinstance(reply, dict) or reply.get("action") != "created" or reply.get("branch") != branch:
        raise ValueError(f"did not say that it made a worktree of {branch}")
    path = reply.get("path")
    if not isinstance(path, str) or not PurePosixPath(path).is_absolute():
        raise ValueError("named no absolute path")
    return path
