"""The one place that calls git: never through a shell, never led elsewhere by the environment, never running a hook.

The repository's own configuration holds (filters such as LFS among it); what would change the bytes that we
capture or prove is set on the command line, which wins over every file.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from subagents_nb.domain.environment import tool_environ
from subagents_nb.domain.words import one_line

QUICK_S = 60.0
LONG_S = 600.0
_LOCKED = re.compile(r"\.lock'?: File exists|could not lock config|Unable to create .*\.lock")
_TRIES = 40
_PAUSE_S = 0.025
_EVERYWHERE = (
    f"core.hooksPath={os.devnull}",
    "core.fsmonitor=false",
    "core.untrackedCache=false",
    "core.ignoreStat=false",
    "core.quotePath=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "submodule.recurse=false",
    "branch.autoSetupMerge=false",
    "advice.addEmbeddedRepo=false",
    "color.ui=false",
)
# Inside our own trees the bytes of the commit are what counts, and everything that is new is work.
_IN_TREES = (
    "core.autocrlf=false",
    "core.safecrlf=false",
    "core.eol=lf",
    f"core.excludesFile={os.devnull}",
    f"core.attributesFile={os.devnull}",
    "core.sparseCheckout=false",
    "index.sparse=false",
    "core.splitIndex=false",
    "add.ignoreErrors=false",
)


class GitProblem(Exception):
    """Git could not do what was asked; the text is one plain line with its own last words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Git:
    """Git at one place. `tree` says that this is a worktree of ours, whose bytes must not depend on configuration."""

    cwd: Path
    tree: bool = False
    variables: Mapping[str, str] = field(default_factory=dict)  # such as GIT_INDEX_FILE

    def __call__(
        self,
        *args: str,
        timeout: float = QUICK_S,
        stdout: int = subprocess.PIPE,
        feed: bytes = b"",
        fine: Sequence[int] = (0,),
    ) -> bytes:
        """Run one command and return what it printed; a lock that somebody holds is waited for a second.

        Raises:
            GitProblem: it failed, took longer than `timeout`, or git is not there.
        """
        program = shutil.which("git")
        if program is None:
            raise GitProblem("git is not installed")
        settings = _EVERYWHERE + (_IN_TREES if self.tree else ())
        command = [program, *(part for one in settings for part in ("-c", one)), *args]
        for attempt in range(_TRIES):
            try:
                end = subprocess.run(
                    command,
                    cwd=self.cwd,
                    env=git_environ(os.environ) | dict(self.variables),
                    input=feed,
                    stdout=stdout,
                    stderr=subprocess.PIPE,
                    timeout=timeout,
                    check=False,
                )
            except subprocess.TimeoutExpired as error:
                raise GitProblem(f"git {_verb(args)} took longer than {timeout:g} s") from error
            except (OSError, ValueError) as error:
                raise GitProblem(f"git could not be started: {error}") from error
            if end.returncode in fine:
                return end.stdout or b""
            said = end.stderr.decode("utf-8", "replace")
            if not _LOCKED.search(said) or attempt == _TRIES - 1:
                break
            time.sleep(_PAUSE_S)
        raise GitProblem(f"git {_verb(args)}: {_last_words(said) or f'exit code {end.returncode}'}")

    def line(self, *args: str) -> str:
        """Run one command and return the one line it prints.

        Raises:
            GitProblem: as when called.
        """
        return os.fsdecode(self(*args).removesuffix(b"\n"))

    def at(self, cwd: Path | None = None, **variables: str) -> Git:
        """Return git at another place, or with more variables."""
        return Git(cwd=cwd or self.cwd, tree=self.tree, variables={**self.variables, **variables})


def git_environ(environ: Mapping[str, str]) -> dict[str, str]:
    """Return what git may see: nothing that leads it to another repository, no secret, no language but one."""
    kept = {name: value for name, value in tool_environ(environ).items() if not name.startswith("GIT_")}
    plain = {"GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C", "GIT_PAGER": "cat"}
    return kept | plain


def _verb(args: Sequence[str]) -> str:
    return next((arg for arg in args if not arg.startswith("-") and "=" not in arg), "")


def _last_words(said: str) -> str:
    lines = [line for line in said.splitlines() if line.strip() and not line.startswith(("hint:", "warning:"))]
    return one_line("; ".join(lines[:3]), 400)
