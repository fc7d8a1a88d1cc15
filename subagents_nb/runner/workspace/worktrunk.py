"""Worktrees made by worktrunk: its command `wt` says where a tree lies, and runs the hooks that the person allowed it.

Only the making is its own. What it made is proved before any work begins there, and a tree is captured and removed as
those are that git made: worktrunk keeps no list but git's.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

from subagents_nb.domain.plans.worktree import WorktreeRecord, worktrunk_path
from subagents_nb.runner.processes.hooks import HookFailed, run_program
from subagents_nb.store.git.git import Git
from subagents_nb.store.git.trees import checked, make_branch


def create_by_worktrunk(record: WorktreeRecord, *, within_s: float, ended: Callable[[], bool]) -> WorktreeRecord:
    """Make the branch and have `wt` make its tree; return the record with the path, and with what its hooks made.

    The branch is made by us, so that it begins at the commit of the plan. No approval is given in the person's name: a
    hook of the project that he has not allowed makes `wt` fail.

    Raises:
        HookFailed: it did not do its work.
        GitProblem: what it made is not what was asked for. What was made is for the caller to undo.
    """
    program = shutil.which("wt")
    if program is None:
        raise HookFailed("worktrunk's command wt is not installed any more")
    make_branch(Git(cwd=Path(record.repo_root), tree=True), record)
    command = [program, "switch", record.branch, "--no-cd", "--format", "json"]
    try:
        answer = run_program(command, b"", cwd=Path(record.repo_root), within_s=within_s, ended=ended)
        path = worktrunk_path(answer, record.branch)
    except (HookFailed, ValueError) as error:
        raise HookFailed(f"wt switch {error}") from error
    created = record.model_copy(update={"path": os.path.normpath(path)})
    return created.model_copy(update={"synthetic": checked(created)})
