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
from subagents_nb.store.git.git import Git, git_environ
from subagents_nb.store.git.trees import checked, make_branch

# Its git obeys the repository's configuration; these two name programs, as a hook in .git/hooks does by lying there.
# git-config(1): given so they win over every file, also for a git that another program starts.
_NO_PROGRAMS = {
    "GIT_CONFIG_COUNT": "2",
    "GIT_CONFIG_KEY_0": "core.hooksPath",
    "GIT_CONFIG_VALUE_0": os.devnull,
    "GIT_CONFIG_KEY_1": "core.fsmonitor",
    "GIT_CONFIG_VALUE_1": "false",
}


def create_by_worktrunk(record: WorktreeRecord, *, within_s: float, ended: Callable[[], bool]) -> WorktreeRecord:
    """Make the branch and have `wt` make its tree; return the record with the path, and with what its hooks made.

    The branch is made by us, so that it begins at the commit of the plan. No approval is given in the person's name: a
    hook of the project that he has not allowed makes `wt` fail.

    Raises:
        HookFailed: it did not do its work.
        GitProblem: what it made is not what was asked for. What was made is for the caller to undo.
    """
    path = git_environ(os.environ).get("PATH", os.defpath)  # no relative place: that would be the repository
    program = shutil.which("wt", path=path)
    if program is None:
        raise HookFailed("worktrunk's command wt is not installed any more")
    make_branch(Git(cwd=Path(record.repo_root), tree=True), record)
    command = [program, "switch", record.branch, "--no-cd", "--format", "json"]
    variables = {**_NO_PROGRAMS, "PATH": path}
    try:
        answer = run_program(
            command, b"", cwd=Path(record.repo_root), within_s=within_s, ended=ended, variables=variables
        )
        made = worktrunk_path(answer, record.branch)
    except (HookFailed, ValueError) as error:
        raise HookFailed(f"wt switch {error}") from error
    created = record.model_copy(update={"path": os.path.normpath(made)})
    return created.model_copy(update={"synthetic": checked(created)})
