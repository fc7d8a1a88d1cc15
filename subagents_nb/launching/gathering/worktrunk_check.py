"""Whether trees can be made by worktrunk here: its command, asked what it can do."""

from __future__ import annotations

import os
import shutil
import subprocess

from subagents_nb.store.git.git import git_environ

_HELP_S = 10.0


def no_worktrunk() -> str | None:
    """Return why worktrunk can't be asked for trees: another program may be called wt, too."""
    program = shutil.which("wt", path=git_environ(os.environ).get("PATH", os.defpath))  # never one of the repository
    if program is None:
        return (
            "worktrunk makes trees by its command wt, which is not installed; leave provider out to have git make them"
        )
    try:
        help_text = subprocess.run(
            [program, "switch", "--help"], stdin=subprocess.DEVNULL, capture_output=True, timeout=_HELP_S, check=False
        ).stdout
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"the command wt can't be asked what it can do: {error}"
    if any(flag not in help_text for flag in (b"--no-cd", b"--format")):
        return "the command wt knows no `switch --no-cd --format json`: it is another program, or a worktrunk too old"
    return None
