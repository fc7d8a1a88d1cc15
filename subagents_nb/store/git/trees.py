"""Git worktrees as directories: made, settled when the work in them is over, recovered when nobody settled them."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from subagents_nb.domain.plans.worktree import WorktreeRecord
from subagents_nb.domain.values.words import one_line
from subagents_nb.errors import Unreadable
from subagents_nb.store.files.disk import DISK, Disk
from subagents_nb.store.git.capture import Capture, HalfKept, Kept, read_patch, tree_of_patch
from subagents_nb.store.git.git import LONG_S, Git, GitProblem

MODULES = "node_modules"
Note = Callable[[WorktreeRecord], None]


def free_names(repo_root: str, names: Iterator[tuple[str, str]]) -> tuple[str, str]:
    """Return the first path and branch that nobody has taken.

    Raises:
        GitProblem: all are taken.
    """
    git, taken = Git(cwd=Path(repo_root)), ""
    for path, branch in names:
        if not os.path.lexists(path) and not git("for-each-ref", f"refs/heads/{branch}"):
            return path, branch
        taken = taken or path
    raise GitProblem(f"there is a worktree {taken} already")


def side_files(repo_root: str) -> tuple[str, ...]:
    """Return what a new tree will hold that is no part of the work: the installed modules of the repository."""
    return (MODULES,) if (Path(repo_root) / MODULES).is_dir() else ()


def create(record: WorktreeRecord) -> tuple[str, ...]:
    """Make the branch and the tree of a record, and return what of its `synthetic` paths really was made.

    Raises:
        GitProblem: it can't be made; what was begun is undone.
        OSError: the same.
    """
    path, git = Path(record.path), Git(cwd=Path(record.repo_root), tree=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    if Path(os.path.realpath(path.parent)).is_relative_to(os.path.realpath(record.repo_root)):
        raise GitProblem(f"{path} lies inside the checkout")
    make_branch(git, record)
    try:
        git("worktree", "add", "--quiet", "--", str(path), record.branch, within_s=LONG_S)
        created = []
        for name in record.synthetic:
            if not os.path.lexists(path / name):
                (path / name).symlink_to(Path(record.repo_root) / name, target_is_directory=True)
                created.append(name)
    except BaseException:
        roll_back(record)
        raise
    return tuple(created)


def make_branch(git: Git, record: WorktreeRecord) -> None:
    """Make the branch of a record at the commit it begins from.

    Raises:
        GitProblem: there is one of this name.
    """
    git("update-ref", f"refs/heads/{record.branch}", record.base_commit, "0" * len(record.base_commit))


def checked(record: WorktreeRecord) -> tuple[str, ...]:
    """Return what lies in a tree that another program made and is no part of its commit, once the tree is proved.

    Raises:
        GitProblem: it is not the tree of its branch, at its commit, in its repository, outside of the checkout.
    """
    path, main = Path(record.path), Git(cwd=Path(record.repo_root), tree=True)
    real = Path(os.path.realpath(path))
    if path.is_symlink() or not path.is_dir() or not _registered(main, path):
        raise GitProblem(f"{path} is no worktree of {record.repo_root}")
    if real.is_relative_to(os.path.realpath(record.repo_root)):
        raise GitProblem(f"{path} lies inside the checkout")
    git = Git(cwd=path, tree=True)
    if git.line("symbolic-ref", "HEAD") != f"refs/heads/{record.branch}":
        raise GitProblem(f"{path} is not on the branch {record.branch}")
    if git.line("rev-parse", "HEAD") != record.base_commit:
        raise GitProblem(f"{path} does not begin from the commit {record.base_commit[:12]}")
    others = git("ls-files", "--others", "--directory", "--exclude-standard", "-z").split(b"\0")[:-1]
    return tuple(os.fsdecode(name).rstrip("/") for name in others)


def located_by_branch(record: WorktreeRecord) -> WorktreeRecord:
    """Return a record with the path at which its branch is checked out; as it is where that is nowhere.

    Raises:
        GitProblem: git can't tell.
    """
    listed = Git(cwd=Path(record.repo_root), tree=True)("worktree", "list", "--porcelain")
    for entry in os.fsdecode(listed).split("\n\n"):
        lines = entry.splitlines()
        if f"branch refs/heads/{record.branch}" in lines:
            return record.model_copy(update={"path": lines[0].removeprefix("worktree ")})
    return record


def roll_back(record: WorktreeRecord) -> None:
    """Undo `create`, wholly or partly done; no work was begun in the tree.

    Raises:
        GitProblem: something of it is left.
    """
    git = Git(cwd=Path(record.repo_root), tree=True)
    _remove_tree(git, record if record.provider == "native" else located_by_branch(record))
    with contextlib.suppress(GitProblem):  # a branch that moved is somebody's
        git("update-ref", "-d", f"refs/heads/{record.branch}", record.base_commit)


def untracked(record: WorktreeRecord, paths: Sequence[str]) -> bool:
    """Say whether these paths are inside the tree, through no link, and no part of the commit it began from.

    Raises:
        GitProblem: that can't be told.
    """
    root = Path(os.path.realpath(record.path))
    if any(not Path(os.path.realpath((root / path).parent)).is_relative_to(root) for path in paths):
        return False
    literal = [f":(top,literal){path}" for path in paths]
    return not literal or not Git(cwd=root, tree=True)("ls-files", "-z", "--", *literal)


def settle(record: WorktreeRecord, run_root: Path, note: Note, *, keep: str = "", disk: Disk = DISK) -> WorktreeRecord:
    """Put what a tree holds on record, and remove it if nothing can be lost by that. Return how it stands now.

    `note` is told before the tree is removed. With `keep`, the tree stays for that reason. Never raises for what git
    or the disk does: then the tree stays, and the record says why.
    """
    done = record
    try:
        with Capture.of(record, run_root, disk) as capture:
            done = capture.recorded()
            if keep:
                return _preserved(done, keep)
            note(done)
            if capture.tree() != capture.first:
                raise Kept("its files were still changing")
            _remove_tree(capture.main, record)
            capture.remove_branch()
            return done.model_copy(update={"state": "removed"})
    except HalfKept as half:
        return _preserved(half.record, str(half))
    except (Kept, GitProblem, Unreadable, OSError, ValueError) as error:
        return _preserved(done, str(error))


def recover(record: WorktreeRecord, run_root: Path, note: Note) -> WorktreeRecord:
    """Do for a run that has ended what its runner did not come to. Return how the tree stands now; never raises."""
    exists = os.path.lexists(record.path)
    for left in (run_root / "steps" / str(record.step)).glob(".capture-*"):
        shutil.rmtree(left, ignore_errors=True)  # of one that was killed
    try:
        match record.state:
            case "planned":  # no agent works in a tree that is not on record as ready
                roll_back(record)
                reason = record.reason or "the run ended before any work began in it"
                return record.model_copy(update={"state": "failed", "reason": reason})
            case "ready" if exists:
                return settle(record, run_root, note)
            case "preserved" if exists and not record.captured:
                return settle(record, run_root, note)
            case "captured" if exists:
                return _finish_removal(record, run_root, DISK)
            case "ready" | "captured" | "preserved" if not exists:
                roll_back(record)
                gone = "" if record.captured else "its files were removed by somebody else"
                return record.model_copy(update={"state": "removed", "reason": gone})
            case _:
                return record
    except (Kept, GitProblem, Unreadable, OSError, ValueError) as error:
        return _preserved(record, str(error))


def discard(record: WorktreeRecord) -> WorktreeRecord:
    """Remove the tree and the branch of a record with all that they hold, since a person asked for it.

    Raises:
        GitProblem: something of it is left.
    """
    git = Git(cwd=Path(record.repo_root), tree=True)
    try:
        _remove_tree(git, record)
    except GitProblem:  # such as: its `.git` is not what git put there
        path = Path(record.path)
        if not _registered(git, path) or path.is_symlink():
            raise
        _open_up(path)
        shutil.rmtree(path, ignore_errors=True)
        _remove_tree(git, record)
    if git("for-each-ref", f"refs/heads/{record.branch}"):
        git("update-ref", "-d", f"refs/heads/{record.branch}")
    return record.model_copy(update={"state": "removed", "reason": "discarded on request"})


def _finish_removal(record: WorktreeRecord, run_root: Path, disk: Disk) -> WorktreeRecord:
    """Remove a captured tree, perhaps half removed: nothing may stand in it that is not in the patch."""
    read_patch(record, run_root)
    with Capture.of(record, run_root, disk) as capture:
        patch = run_root / record.patch if record.patch is not None else None
        then = tree_of_patch(capture.git, capture.folder, record, patch)
        rows = capture.git("diff-tree", "-r", "--name-status", "-z", "--no-renames", then, capture.first)
        if any(kind != b"D" for kind in rows.split(b"\0")[:-1:2]):
            raise Kept("its files were changed after they were captured")
        _remove_tree(capture.main, record)
        capture.remove_branch()
    return record.model_copy(update={"state": "removed"})


def _remove_tree(git: Git, record: WorktreeRecord) -> None:
    path = Path(record.path)
    if not _registered(git, path):
        # Made by a git that was killed before it wrote the entry down: nothing, or the file `.git` alone.
        if path.is_dir() and not path.is_symlink() and {entry.name for entry in path.iterdir()} <= {".git"}:
            shutil.rmtree(path)
        elif os.path.lexists(path):
            text = f"{path} is no worktree of {record.repo_root} any more"
            raise GitProblem(f"{text}; remove it yourself if nothing in it is needed")
        return
    try:  # twice: a locked one too, git-worktree(1)
        git("worktree", "remove", "--force", "--force", "--", str(path), within_s=LONG_S)
    except GitProblem:
        if not path.is_dir():
            raise
        _open_up(path)
        git("worktree", "remove", "--force", "--force", "--", str(path), within_s=LONG_S)
    with contextlib.suppress(OSError):
        path.parent.rmdir()  # only if no other tree is in it


def _registered(git: Git, path: Path) -> bool:
    entry = f"worktree {os.path.realpath(path)}"
    return any(os.fsdecode(line) == entry for line in git("worktree", "list", "--porcelain").splitlines())


def _open_up(path: Path) -> None:
    """Let directories be emptied that were made read-only."""
    for folder, names, _ in os.walk(path):
        for name in [folder, *(os.path.join(folder, one) for one in names)]:
            if not os.path.islink(name):
                with contextlib.suppress(OSError):
                    os.chmod(name, 0o700)


def _preserved(record: WorktreeRecord, why: str) -> WorktreeRecord:
    reason = f"{one_line(why, 400)}. Its files are in {record.path}, on branch {record.branch}."
    return record.model_copy(update={"state": "preserved", "reason": reason})
