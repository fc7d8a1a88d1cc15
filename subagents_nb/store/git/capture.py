"""What a worktree holds, as a patch that is proved to apply.

The state of a tree is read into an index of our own, with the repository's object store and never through the tree's
`.git`: whatever the agent did to the tree's own index, branch or locks, its files are what counts.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from subagents_nb.domain.plans.worktree import WorktreeRecord, parse_numstat
from subagents_nb.domain.values.words import one_line
from subagents_nb.errors import Unreadable
from subagents_nb.store.files.disk import DISK, Disk
from subagents_nb.store.git.git import LONG_S, Git, GitProblem

PATCH_BYTES = 64 * 1024 * 1024
_PATCH = (
    "diff-tree", "-r", "--no-commit-id", "--find-renames", "-l1000", "--no-relative", f"-O{os.devnull}",
    "--ignore-submodules=none", "--no-ext-diff", "--no-textconv",
)  # fmt: skip
_AS_PATCH = (
    "-p", "--binary", "--full-index", "--no-color", "--src-prefix=a/", "--dst-prefix=b/", "--unified=3",
    "--inter-hunk-context=0", "--diff-algorithm=myers", "--submodule=short",
)  # fmt: skip
APPLY = ("-c", "apply.ignoreWhitespace=no", "apply", "--whitespace=nowarn", "--binary", "-p1")
_GITLINK = b"160000"
_SPECIAL, _ESCAPED = re.compile(r"[\\*?\[ ]"), r"\\\g<0>"


class Kept(Exception):
    """The tree must stay, since its work is not proved to be on record; the text says why."""


def read_patch(record: WorktreeRecord, run_root: Path) -> bytes:
    """Return the recorded patch of a step; nothing, if it changed nothing.

    Raises:
        Unreadable: it is not there, or not what was recorded.
    """
    if record.patch is None:
        return b""
    path = run_root / record.patch
    data = DISK.read(path, PATCH_BYTES)
    if hashlib.sha256(data).hexdigest() != record.patch_sha256:
        raise Unreadable(f"the patch {path} is not what was recorded", kind="torn")
    return data


class HalfKept(Kept):
    """The tree must stay, although something of it is on record."""

    def __init__(self, why: str, record: WorktreeRecord) -> None:
        super().__init__(why)
        self.record = record


@dataclass(frozen=True, slots=True)
class Capture:
    """One tree, read into an index of our own."""

    record: WorktreeRecord
    run_root: Path
    folder: Path
    main: Git  # at the repository
    git: Git  # at the tree, with the index
    disk: Disk
    first: str  # the id of what the tree held at first

    @classmethod
    @contextlib.contextmanager
    def of(cls, record: WorktreeRecord, run_root: Path, disk: Disk) -> Iterator[Capture]:
        path = Path(record.path)
        if path.is_symlink() or not path.is_dir():
            raise Kept("its directory is gone")
        step_dir = run_root / "steps" / str(record.step)
        step_dir.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".capture-", dir=step_dir, ignore_cleanup_errors=True) as name:
            main = Git(cwd=Path(record.repo_root), tree=True)
            common = main.line("rev-parse", "--path-format=absolute", "--git-common-dir")
            # With both given git(1) looks for nothing: not even a repository that the agent put in place of its own.
            index = {"GIT_DIR": common, "GIT_WORK_TREE": str(path), "GIT_INDEX_FILE": str(Path(name) / "index")}
            git = main.at(path, **index)
            git("read-tree", record.base_commit)
            yield cls(record, run_root, Path(name), main, git, disk, _tree(git, record, Path(name)))

    def tree(self) -> str:
        """Return the id of what the tree holds now."""
        return _tree(self.git, self.record, self.folder)

    def recorded(self) -> WorktreeRecord:
        """Store the patch, prove it, and return the record of that.

        Raises:
            Kept, GitProblem, OSError, ValueError: the tree must stay.
        """
        base, first = self.main.line("rev-parse", f"{self.record.base_commit}^{{tree}}"), self.first
        fields: dict[str, object] = {"state": "captured", "applies": True, "note": self._ignored(), "reason": ""}
        if base != first:
            changes = parse_numstat(self.git(*_PATCH, "--numstat", "-z", base, first))
            data = self._patch(base)
            name = f"steps/{self.record.step}/changes.patch"
            self.disk.replace(self.run_root / name, data, durable=True)
            proved = tree_of_patch(self.git, self.folder, self.record, self.run_root / name) == first
            digest = hashlib.sha256(data).hexdigest()
            fields |= {"patch": name, "patch_sha256": digest, "patch_bytes": len(data), "changes": changes}
            fields["applies"] = proved
        done = self.record.model_copy(update=fields)
        if not done.applies:
            raise HalfKept("its patch does not give the same files when it is applied", done)
        why = self._nested(base) or self._hidden_commits()
        if why:
            raise HalfKept(why, done)
        return done

    def remove_branch(self) -> None:
        """Remove the branch as it stood when its commits were found to be in the files."""
        ref = f"refs/heads/{self.record.branch}"
        tip = self.main.line("for-each-ref", "--format=%(objectname)", ref)
        if tip:
            self.main("update-ref", "-d", ref, tip)

    def _patch(self, base: str) -> bytes:
        path = self.folder / "patch"
        handle = self.disk.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY)
        try:
            self.git(*_PATCH, *_AS_PATCH, base, self.first, within_s=LONG_S, into=handle, limit=PATCH_BYTES)
        finally:
            os.close(handle)
        return self.disk.read(path, PATCH_BYTES)

    def _nested(self, base: str) -> str:
        rows = self.git(*_PATCH, "--raw", "-z", "--no-renames", base, self.first).split(b"\0")
        if any(row.startswith(b":") and _GITLINK in row[1:].split()[:2] for row in rows):
            return "it holds a git repository of its own, which no patch can carry"
        for entry in self.git("ls-files", "-s", "-z").split(b"\0"):
            mode, _, name = entry.partition(b"\t")
            inside = Path(self.record.path) / os.fsdecode(name)
            if mode.startswith(_GITLINK) and inside.is_dir() and any(inside.iterdir()):
                return f"its submodule {one_line(os.fsdecode(name), 80)} was filled, and no patch can carry that"
        return ""

    def _hidden_commits(self) -> str:
        ref = f"refs/heads/{self.record.branch}"
        tip = self.main.line("for-each-ref", "--format=%(objectname)", ref)
        if not tip or tip == self.record.base_commit:
            return ""
        head = self.main.at(Path(self.record.path)).line("rev-parse", "--verify", "HEAD")
        try:
            self.main("merge-base", "--is-ancestor", tip, head)
        except GitProblem:
            return "its branch holds commits that its files are not based on"
        return ""

    def _ignored(self) -> str:
        listed = self.git("ls-files", "--others", "--ignored", "--exclude-standard", "--directory", "-z").split(b"\0")
        names = [os.fsdecode(name) for name in listed if name]
        names = [name for name in names if name.rstrip("/") not in self.record.synthetic]
        if not names:
            return ""
        shown = ", ".join(one_line(name.encode("utf-8", "replace").decode(), 60) for name in names[:3])
        return f"ignored, so not kept: {shown}" + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def _tree(git: Git, record: WorktreeRecord, folder: Path) -> str:
    # As ignored files they are not even read; but a .gitignore may take that back, gitignore(5): dropped besides.
    ignored = folder / "ignored"
    ignored.write_text("".join(f"/{_SPECIAL.sub(_ESCAPED, path)}\n" for path in record.synthetic), encoding="utf-8")
    # In a submodule that holds a repository git would start a git of its own, which obeys what was configured there.
    filled = (
        f":(exclude,top,literal){name}" for name in _submodules(git) if os.path.lexists(Path(record.path, name, ".git"))
    )
    git("-c", f"core.excludesFile={ignored}", "add", "-A", "--", ".", *filled, within_s=LONG_S)
    if record.synthetic:
        literal = (f":(top,literal){path}" for path in record.synthetic)
        git("rm", "-r", "-f", "-q", "--cached", "--ignore-unmatch", "--", *literal)
    return git.line("write-tree")


def _submodules(git: Git) -> Iterator[str]:
    for entry in git("ls-files", "-s", "-z").split(b"\0"):
        mode, _, name = entry.partition(b"\t")
        if mode.startswith(_GITLINK):
            yield os.fsdecode(name)


def tree_of_patch(git: Git, folder: Path, record: WorktreeRecord, patch: Path | None) -> str:
    """Apply the patch as it lies on the disk to an index of its own, and return the id of what that gives."""
    trial = git.at(GIT_INDEX_FILE=str(folder / "trial"))
    trial("read-tree", record.base_commit)
    if patch is not None:
        trial(*APPLY, "--cached", "--", str(patch), within_s=LONG_S)
    return trial.line("write-tree")
