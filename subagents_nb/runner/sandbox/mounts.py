"""What a sandbox shows: the system to read, the workspace to write, and of home folders nothing but what tools need.

All paths are where they really lie. What is kept as it is in the workspace is looked up before the first process of the
step begins, and is a mount in each: none of them can move it or what is above, rename(2). A step beside can, where that
came after it had begun: so what was mounted is looked at before anything is carried out.
"""

from __future__ import annotations

import contextlib
import os
import stat
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import subagents_nb
from subagents_nb.domain.agents.guarded import is_protected
from subagents_nb.domain.agents.memory import FOLDER as MEMORY
from subagents_nb.runner.sandbox.deciding import MOST_KEPT, deciding_in
from subagents_nb.runner.sandbox.mounted import HostMounts, looked_at, new
from subagents_nb.runner.sandbox.repository import repository_of
from subagents_nb.store.files.memory_files import make_memory

Mode = Literal["ro", "rw", "empty", "null", "link"]
TMP = "/tmp"  # noqa: S108 - a private one
# Of the system's own settings no capability keeps the user who owns them, if that is root: proc(5).
_SETTINGS = ("sys", "sysrq-trigger", "irq", "bus", "fs", "acpi", "scsi")
_CPUS = "/sys/devices/system/cpu"  # how many there are
_SOCKETS = "/proc/net/unix"
_MOST_SOCKETS, _MOST_LINKS = 200, 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a step works, and what of its run its processes may see."""

    workspace: Path
    beside: tuple[Path, ...] = ()  # the folders of other steps, which nobody here can move away
    store: Path
    tmp: Path  # a folder of the step's own, which is /tmp in its sandbox
    reads: tuple[Path, ...] = ()  # of the run: copies of skills and inputs
    memory: Path | None = None  # the folder of a memory that the step has, which the runner writes to from outside
    commits: bool = False  # the workspace is a git worktree of the step's own
    network: bool = False
    home: Path = field(default_factory=lambda: Path(os.path.expanduser("~")))


class Mounts:
    """What is where in the sandbox of a step; what is said first of a path stands."""

    def __init__(self, place: Place) -> None:
        self.workspace = os.path.realpath(place.workspace)
        self._place = place
        self._found: dict[str, tuple[Mode, str]] = {}
        self._homes = {os.path.realpath(one) for one in (place.home, "/home", "/root") if os.path.isdir(one)} - {"/"}
        self._hidden = {*self._homes, os.path.realpath(place.store), TMP, "/run"}
        if place.memory is not None:
            # Where there is none yet, a process could make it, or a link in its place, while the runner writes to it.
            make_memory(place.memory)
        self.deciding = deciding_in(self.workspace)
        self._set("rw", self.workspace)
        for folder in place.reads:
            self._set("ro", os.path.realpath(folder))
        for hidden in self._hidden - {TMP}:
            self._keep("empty", hidden)
        self._programs()
        self._workspace()
        self._repository()
        self._system()
        self._private_tmp()
        self._sockets = tuple(_sockets())
        self._host = HostMounts()
        self._gone: set[str] = set()

    @property
    def kept(self) -> frozenset[str]:
        """Return what of the workspace is mounted to be read alone."""
        return frozenset(path for path, (mode, _) in self._found.items() if mode == "ro" and path not in self._gone)

    def command(
        self, argv: Sequence[str], more: Iterable[tuple[str, str]] = (), between: Sequence[str] = ()
    ) -> list[str]:
        """Return what bubblewrap is told, `between`, and what it is to carry out once all stands as it is meant.

        `more` are folders to write, and what they are called in the sandbox.
        """
        # Somebody may have removed what was kept, or put a link in its place: such a thing can't be mounted.
        inner = [path for path in self._found if path != self.workspace and is_within(path, self.workspace)]
        gone = {path for path in inner if not _stands(path)}
        self._gone |= gone
        found = {path: one for path, one in self._found.items() if path not in gone}
        shown = [new(one) if found[one][0] == "empty" else self._host.shown(one) for one in inner if one in found]
        found |= {path: ("rw", source) for source, path in more}
        found |= {path: ("null", "") for path in self._sockets if path not in found and self._shows(path)}
        look = looked_at((self._host.shown(self.workspace), *shown))
        return [*self._arguments(found), *between, "--", *look, *argv]

    def _arguments(self, found: Mapping[str, tuple[Mode, str]]) -> list[str]:
        said = ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]
        for path, (mode, source) in sorted(found.items(), key=lambda one: one[0].count("/")):
            match mode:
                case "ro":
                    said += ["--ro-bind-try", source, path]
                case "rw":
                    said += ["--bind", source, path]
                case "empty":
                    said += ["--tmpfs", path]
                case "link":
                    said += ["--symlink", source, path]
                case "null":
                    said += ["--ro-bind", os.devnull, path]
        return said

    def _set(self, mode: Mode, path: str, source: str = "") -> None:
        self._found.setdefault(path, (mode, source or path))

    def _keep(self, mode: Mode, path: str) -> None:
        """Say what a path is, also where it lies in the workspace: then what is between can't be moved away either."""
        if is_within(path, self.workspace):
            for above in Path(path).parents:
                if str(above) == self.workspace:
                    break
                self._set("rw", str(above))
        self._set(mode, path)

    def _is_inner(self, path: str) -> bool:
        return path != self.workspace and is_within(path, self.workspace) and os.path.lexists(path)

    def _is_hidden(self, path: str) -> bool:
        return any(is_within(path, one) for one in self._hidden)

    def _opens(self, folder: str) -> bool:
        """Say whether to show a folder would show what is hidden in it."""
        return any(is_within(hidden, folder) for hidden in self._hidden)

    def _is_shown(self, path: str) -> bool:
        return any(mode in ("ro", "rw") and is_within(path, one) for one, (mode, _) in self._found.items())

    def _programs(self) -> None:
        """Show the Python that tools run with: nobody in a sandbox changes what this very process is made of."""
        package = os.path.dirname(os.path.abspath(subagents_nb.__file__))
        own = [os.path.realpath(one) for one in dict.fromkeys((sys.prefix, sys.base_prefix, sys.exec_prefix, package))]
        for folder in map(os.path.realpath, (*own, *filter(os.path.isabs, sys.path))):
            to_be_seen = self._is_hidden(folder) and not self._is_shown(folder)
            if not self._opens(folder) and (to_be_seen or (folder in own and is_within(folder, self.workspace))):
                self._keep("ro", folder)
        for path, target in _links(sys.executable):
            if self._is_hidden(path) and not self._is_shown(path):
                self._set("link", path, target)

    def _workspace(self) -> None:
        """Keep what decides there what later runs may do, or what begins with a program of the person's."""
        for entry in os.scandir(self.workspace):
            inner = f"{entry.name}/x" if entry.is_dir(follow_symlinks=False) else entry.name
            if (is_protected(entry.name) or is_protected(inner)) and not entry.is_symlink():
                self._keep("ro", entry.path)
        could = self.deciding.could_be_kept
        for path in [path for path in self.deciding.at if path in could and path not in self._found][:MOST_KEPT]:
            self._keep("ro", path)
        links = {path for path in self.deciding.at if os.path.islink(path)}
        for target in sorted(map(os.path.realpath, links)):  # a link is no mount, but what it leads to can be one
            if self._is_inner(target):
                self._keep("ro", target)
        for folder in map(os.path.realpath, self._place.beside):
            if self._is_inner(folder) and os.path.isdir(folder):
                self._keep("rw", folder)
        memory = os.path.join(self.workspace, MEMORY)
        if os.path.isdir(memory) and os.path.realpath(memory) == memory:
            self._keep("empty", memory)

    def _repository(self) -> None:
        """Show the repository, to be committed to from a worktree of the step's own alone; never its settings."""
        found = repository_of(self.workspace, {*self._homes, TMP, "/run"})
        if found is None or (found.common and self._opens(found.common)):
            return
        checkouts = [found.root]
        if found.root != self.workspace:
            self._set("ro", found.root)
        if found.common:
            checkouts.append(os.path.dirname(found.common))
            self._set("ro", found.common)
        if found.common and self._place.commits:
            for folder in (found.own, *(os.path.join(found.common, name) for name in ("objects", "refs", "logs"))):
                if os.path.isdir(folder) and os.path.realpath(folder) == folder:
                    self._set("rw", folder)
            for name in ("commondir", "gitdir", "config.worktree"):
                path = os.path.join(found.own, name)
                self._set("ro" if os.path.isfile(path) else "null", path)
        for checkout in checkouts:
            memory = os.path.join(checkout, MEMORY)
            if os.path.isdir(memory) and not is_within(memory, self.workspace):
                self._set("empty", os.path.realpath(memory))

    def _system(self) -> None:
        self._set("empty", "/sys")
        self._set("ro", _CPUS)
        for folder in ("/var/tmp", "/var/run"):  # noqa: S108 - not this one
            if os.path.isdir(folder) and not os.path.islink(folder):
                self._set("empty", folder)
        names = os.path.realpath("/etc/resolv.conf")
        if self._place.network and is_within(names, "/run"):
            self._set("ro", names)
        if os.geteuid() == 0:  # what its owner alone may read or set, this user may
            for name in _SETTINGS:
                self._set("ro", f"/proc/{name}")
            for path, is_folder in _private("/etc", "/etc/ssh", "/etc/ssl"):
                self._set("empty" if is_folder else "null", path)

    def _private_tmp(self) -> None:
        """Show the step's own folder as /tmp. What else must be seen below is there by mounts of which none can go."""
        if self.workspace == TMP:
            return
        self._set("rw", TMP, str(self._place.tmp))
        for path in [one for one in self._found if is_within(one, TMP) and one != TMP]:
            first = path.split("/")[2]
            os.makedirs(self._place.tmp / first, exist_ok=True)
            self._set("empty", f"{TMP}/{first}")

    def _shows(self, path: str) -> bool:
        """Say whether a socket would be there: not in the workspace, where one may be the step's own."""
        nearest = max((one for one in self._found if is_within(path, one)), key=len, default="")
        if self._found.get(nearest, ("ro", ""))[0] != "ro":
            return False
        with contextlib.suppress(OSError):
            return stat.S_ISSOCK(os.lstat(path).st_mode)
        return False


def is_within(path: str, folder: str) -> bool:
    """Say whether a path is a folder or lies in it."""
    return path == folder or path.startswith(f"{folder.rstrip('/')}/")


def _stands(path: str) -> bool:
    """Say whether something is at a path that leads through no link."""
    with contextlib.suppress(OSError):  # it may become one between two looks of realpath's
        return os.path.lexists(path) and os.path.realpath(path) == path
    return False


def _sockets() -> Iterator[str]:
    """Yield the socket files of this machine: a mount that can't be written to does not keep from them, connect(2)."""
    with contextlib.suppress(OSError, UnicodeDecodeError), open(_SOCKETS, encoding="utf-8") as file:
        lines = (line.rstrip("\n").partition(" /")[2] for line in file)
        yield from list({f"/{one}": None for one in lines if one})[:_MOST_SOCKETS]


def _private(*folders: str) -> Iterator[tuple[str, bool]]:
    for folder in folders:
        with contextlib.suppress(OSError):
            for entry in os.scandir(folder):
                mode = entry.stat(follow_symlinks=False).st_mode
                if stat.S_ISDIR(mode) and not mode & stat.S_IXOTH:
                    yield entry.path, True
                elif stat.S_ISREG(mode) and not mode & stat.S_IROTH:
                    yield entry.path, False


def _links(path: str) -> Iterator[tuple[str, str]]:
    """Yield the links by which a path leads where it leads, and what each names."""
    left, here = [part for part in path.split("/") if part], ""
    for _ in range(_MOST_LINKS * 20):
        if not left:
            return
        step = f"{here}/{left.pop(0)}"
        if not os.path.islink(step):
            here = step
            continue
        target = os.readlink(step)
        yield step, target
        parts = [part for part in os.path.normpath(os.path.join(here, target)).split("/") if part]
        left, here = parts + left, ""
