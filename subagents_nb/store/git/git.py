"""The one place that calls git: never through a shell, never led elsewhere, never made to start what a folder brings.

A folder may hold what only looks like a repository, planted by an agent that can write files or unpacked from an
archive, and git obeys the configuration of what it finds. So none is found by its looks alone, hooks and monitors are
off, and nothing is fetched. Filters (LFS, nbstripout) hold where a person asked for git; see `filters`. What would
change the bytes that we capture or prove is set on the command line, which wins over every file.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from subagents_nb.domain.agents.environment import absolute_entries, tool_environ
from subagents_nb.domain.values.words import one_line
from subagents_nb.signals import KILL, signal_child

QUICK_S = 60.0
LONG_S = 600.0
MOST_BYTES = 256 * 1024 * 1024
_ERROR_BYTES = 64 * 1024
_CHUNK = 1 << 16
_LOCKED = re.compile(r"\.lock'?: File exists|could not lock config|Unable to create .*\.lock")
_TRIES = 40
_PAUSE_S = 0.025
_EVERYWHERE = (
    f"core.hooksPath={os.devnull}",
    "core.fsmonitor=false",
    "core.untrackedCache=false",
    "core.ignoreStat=false",
    "core.quotePath=false",
    "safe.bareRepository=explicit",  # since git 2.38, git/git#1261; `_planted` does it for those before
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
_COMPARING = ("status", "diff")  # with files, which filters change
_PROTECTED = ("system", "global", "command")


class GitProblem(Exception):
    """Git could not do what was asked; the text is one plain line with its own last words."""


class GitTooMuch(GitProblem):
    """It took longer, or printed more, than was allowed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Git:
    """Git at one place. `tree` says that this is a worktree of ours, whose bytes must not depend on configuration."""

    cwd: Path
    tree: bool = False
    # Whether filters run that only the repository's own configuration names. Git that nobody asked for runs none.
    filters: bool = True
    variables: Mapping[str, str] = field(default_factory=dict)  # such as GIT_INDEX_FILE
    began: Callable[[subprocess.Popen[bytes]], None] | None = None  # told of each process, which leads its own session

    def __call__(
        self,
        *args: str,
        within_s: float = QUICK_S,
        into: int | None = None,
        limit: int = MOST_BYTES,
        fine: Sequence[int] = (0,),
    ) -> bytes:
        """Run one command and return what it printed, or write that `into` a file; a held lock is waited for a second.

        Raises:
            GitTooMuch: it took longer than `within_s`, or printed more than `limit` bytes.
            GitProblem: it failed, or git is not there.
        """
        environ = git_environ(os.environ)
        # Looked for by itself: an empty or relative place on the path means the folder in which git is to look.
        program = shutil.which("git", path=environ.get("PATH"))
        if program is None:
            raise GitProblem("git is not installed")
        if "GIT_DIR" not in self.variables and (planted := _planted(self.cwd)) is not None:
            raise GitProblem(f"{planted} is a bare repository or looks like one, so git is not used in it")
        git = self if self.filters else self._without_filters()
        settings = _EVERYWHERE + (_IN_TREES if self.tree else ())
        if not self.filters and args[0] in _COMPARING:
            # In each submodule a git of its own would be started, which obeys the configuration that lies there.
            args = (args[0], "--ignore-submodules=dirty", *args[1:])
        command = [program, *(part for one in settings for part in ("-c", one)), *args]
        for attempt in range(_TRIES):
            code, out, stderr = git._once(command, environ, _verb(args), within_s, into, limit)
            if code in fine:
                return out
            if not _LOCKED.search(stderr) or attempt == _TRIES - 1:
                break
            time.sleep(_PAUSE_S)
        raise GitProblem(f"git {_verb(args)}: {_error_lines(stderr) or f'exit code {code}'}")

    def line(self, *args: str) -> str:
        """Run one command and return the one line it prints.

        Raises:
            GitProblem: as when called.
        """
        return os.fsdecode(self(*args).removesuffix(b"\n"))

    def at(self, cwd: Path | None = None, **variables: str) -> Git:
        """Return git at another place, or with more variables."""
        return replace(self, cwd=cwd or self.cwd, variables={**self.variables, **variables})

    def _once(
        self,
        command: Sequence[str],
        environ: Mapping[str, str],
        verb: str,
        within_s: float,
        into: int | None,
        limit: int,
    ) -> tuple[int, bytes, str]:
        with tempfile.TemporaryFile() as errors:
            try:
                process = subprocess.Popen(
                    command,
                    cwd=self.cwd,
                    env={**environ, **self.variables},
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=errors,
                    start_new_session=self.began is not None,
                )
            except (OSError, ValueError) as error:
                raise GitProblem(f"git could not be started: {error}") from error
            if self.began is not None:
                self.began(process)
            listener = _Listener(process, into, limit)
            listener.start()
            try:
                listener.join(within_s)
                if listener.is_alive():
                    raise GitTooMuch(f"git {verb} took longer than {within_s:g} s")
                code = process.wait(within_s)
            except subprocess.TimeoutExpired as error:
                raise GitTooMuch(f"git {verb} took longer than {within_s:g} s") from error
            finally:
                if process.poll() is None:
                    signal_child(process.pid, KILL)
                    process.wait()
            if listener.problem:
                kind = GitTooMuch if listener.too_much else GitProblem
                raise kind(f"git {verb} {listener.problem}")
            errors.seek(0)
            return code, bytes(listener.out), errors.read(_ERROR_BYTES).decode("utf-8", "replace")

    def _without_filters(self) -> Git:
        """Return git for which the filters are empty that the repository's own configuration names."""
        listed = replace(self, filters=True)(
            "config", "--null", "--show-scope", "--name-only", "--get-regexp", r"^filter\..*\.", fine=(0, 1)
        )
        scopes, names = (listed.decode("utf-8", "surrogateescape").split("\0")[start:-1:2] for start in (0, 1))
        own = {name.rpartition(".")[0] for scope, name in zip(scopes, names, strict=True) if scope not in _PROTECTED}
        # Given by number and not by -c, which would end a name at its first `=`.
        empty = [(f"{name}.{key}", "") for name in sorted(own) for key in ("clean", "smudge", "process")]
        empty += [(f"{name}.required", "false") for name in sorted(own)]
        numbered = {f"GIT_CONFIG_KEY_{number}": name for number, (name, _) in enumerate(empty)}
        numbered |= {f"GIT_CONFIG_VALUE_{number}": value for number, (_, value) in enumerate(empty)}
        return replace(self, variables={**self.variables, "GIT_CONFIG_COUNT": str(len(empty)), **numbered})


class _Listener(threading.Thread):
    """Reads what a process prints, to its end or to the limit; then it is ended."""

    def __init__(self, process: subprocess.Popen[bytes], into: int | None, limit: int) -> None:
        super().__init__(name="git", daemon=True)
        self._process = process
        self._into = into
        self._limit = limit
        self.out = bytearray()
        self.problem = ""
        self.too_much = False

    def run(self) -> None:
        """Listen."""
        stream, size = self._process.stdout, 0
        assert stream is not None  # noqa: S101 - a pipe was asked for
        with stream:
            while chunk := os.read(stream.fileno(), _CHUNK):
                size += len(chunk)
                if size > self._limit:
                    self.problem, self.too_much = f"printed more than {self._limit:,} bytes", True
                elif self._into is None:
                    self.out += chunk
                else:
                    try:
                        os.write(self._into, chunk)
                    except OSError as error:
                        self.problem = f"could not be written down: {error}"
                if self.problem:
                    signal_child(self._process.pid, KILL)
                    return


def git_environ(environ: Mapping[str, str]) -> dict[str, str]:
    """Return what git may see: nothing that leads it to another repository, no secret, no language but one."""
    environment = {name: value for name, value in tool_environ(environ).items() if not name.startswith("GIT_")}
    return environment | {
        **({"PATH": absolute_entries(environment.get("PATH", os.defpath))} if os.name == "posix" else {}),
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_PAGER": "cat",
        "LC_ALL": "C",
        # git(1): a repository may say that its objects are to be fetched, and how. The second stops it in any version.
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_ALLOW_PROTOCOL": "none",
    }


def _planted(cwd: Path) -> str | None:
    """Return the folder that git would take for a bare repository by its looks, at `cwd` or above it."""
    here = Path(os.path.realpath(cwd))
    for folder in (here, *here.parents):
        if os.path.lexists(folder / ".git"):
            return None
        if all(os.path.lexists(folder / name) for name in ("HEAD", "objects", "refs")) or all(
            os.path.lexists(folder / name) for name in ("HEAD", "commondir")
        ):
            return str(folder)
    return None


def _verb(args: Sequence[str]) -> str:
    return next((arg for arg in args if not arg.startswith("-") and "=" not in arg), "")


def _error_lines(stderr: str) -> str:
    lines = [line for line in stderr.splitlines() if line.strip() and not line.startswith(("hint:", "warning:"))]
    return one_line("; ".join(lines[:3]), 400)
