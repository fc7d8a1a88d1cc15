"""The sandbox of one step, made by bubblewrap around each process that its tools start."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from subagents_nb.domain.policy.sandbox_plan import SANDBOX_MARK, SandboxPlan
from subagents_nb.domain.runs.events import Noticed, StepFailed
from subagents_nb.domain.values.words import one_line
from subagents_nb.runner.sandbox.deciding import MOST_ENTRIES, MOST_KEPT, deciding_in
from subagents_nb.runner.sandbox.mounts import TMP, Mounts, Place
from subagents_nb.runner.sandbox.repository import author_of
from subagents_nb.store.processes.bubblewrap import Bubblewrap, NoSandbox, bubblewrap, workspace_problem

# What leads to programs of the person's session.
_OF_THE_SESSION = ("XDG_RUNTIME_DIR", "DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "SESSION_MANAGER")
_SHOWN = 8


def _of_loader(name: str) -> bool:
    """Say whether bubblewrap itself would load what a variable names, before there is a sandbox: ld.so(8)."""
    return name.startswith(("LD_", "GCONV_PATH", "GLIBC_TUNABLES", "LOCPATH"))


class StepSandbox:
    """Wraps what is started. All its processes end with the one that was started, and see only one another."""

    def __init__(self, plan: SandboxPlan, program: Bubblewrap, place: Place) -> None:
        self._plan = plan
        self._program = program
        self._tmp = place.tmp
        self.close()  # what a runner that was killed left there may be links by now
        self._tmp.mkdir(mode=0o700)
        self._mounts = Mounts(place)
        self._author = author_of(self._mounts.workspace) if place.commits else {}

    def argv(
        self,
        argv: Sequence[str],
        *,
        cwd: Path,
        also: Iterable[tuple[str, str]] = (),
        environ: Mapping[str, str] | None = None,
    ) -> list[str]:
        """Return the command line that starts `argv` in the sandbox, in a folder of the workspace.

        Start it as any other: with the variables that `environ` returns, in a session of its own, and **without a
        descriptor of a folder**, by which a process would be outside again. Its process group and the run's mark are
        what they would be without; a signal to the leader ends all, so what is to be interrupted has to be found below
        it. `also` are folders to write, and what they are called there.
        """
        flags = list(self._program.flags) + ([] if self._plan.network else ["--unshare-net"])
        loader = [
            part for name, text in (environ or {}).items() if _of_loader(name) for part in ("--setenv", name, text)
        ]
        between = ["--chdir", os.path.realpath(cwd), *loader]
        return [self._program.program, *flags, *self._mounts.command(argv, also, between)]

    def environ(self, environ: Mapping[str, str]) -> dict[str, str]:
        """Return the variables of a process in the sandbox, from those that it would have without."""
        kept = {
            name: value
            for name, value in environ.items()
            if name not in _OF_THE_SESSION and not _of_loader(name) and not name.startswith(("DBUS_", "SSH_"))
        }
        return {**self._author, **kept, "TMPDIR": TMP, SANDBOX_MARK: self._plan.kind}

    def notices(self) -> Iterator[Noticed]:
        """Yield what a person should know when its work is over: what acts later and was made, or was not kept."""
        before = self._mounts.deciding
        if made := deciding_in(self._mounts.workspace).since(before, self._mounts.kept):
            names = [one_line(os.path.relpath(one, self._mounts.workspace), 100) for one in made]
            more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
            yield Noticed(
                "acts-later",
                f"While its commands could write, {', '.join(names[:_SHOWN])}{more} appeared or changed: agents, git, "
                "an editor or a shell begin with these. Look at them before you use them.",
            )
        if not before.whole or not before.could_be_kept <= self._mounts.kept:
            yield Noticed(
                "not-all-kept",
                f"The sandbox looks at {MOST_ENTRIES:,} files and folders of a workspace and keeps {MOST_KEPT} below "
                "its top; this one has more: what lies deeper, as a .git of its own, could be written.",
            )

    def close(self) -> None:
        """Remove its /tmp; nobody of it is left."""
        shutil.rmtree(self._tmp, ignore_errors=True)


def sandbox_of(plan: SandboxPlan, place: Place, environ: Mapping[str, str]) -> StepSandbox:
    """Return the sandbox that a plan asks for, once it is seen again that it can be made here.

    Raises:
        StepFailed: it can't; nothing is started without it.
    """
    if problem := workspace_problem(place.workspace, place.home):
        raise StepFailed("setup", f"The sandbox can't be made: {problem}.")
    try:
        return StepSandbox(plan, bubblewrap(place.store, environ, cwd=place.workspace, kind=plan.kind), place)
    except NoSandbox as error:
        raise StepFailed("setup", f"The sandbox can't be made: {error}.") from error
    except OSError as error:
        raise StepFailed("setup", f"The sandbox can't be made: {error.strerror}.") from error
