"""Whether what stands in a workspace's sandbox is what was meant: bubblewrap opens each path again when it mounts it.

A step beside, in a sandbox of its own, may turn a folder into a link at any moment; what that leads to, a home folder
perhaps, would stand here to be written. A mount stays what it became, so it is looked at once they all stand and before
anything is carried out: mountinfo in proc(5) says of each which folder of which file system it is.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

_MOUNTS = "/proc/self/mountinfo"
_CHANGED = 126  # of a shell that may not execute what it was told to
_LOOK = (
    f'there=" $(/bin/cat {_MOUNTS}) "; '
    'while [ "$1" != -- ]; do case $there in *" $1 "*) shift ;; *) '
    'echo "Nothing was started: ${1##* } changed while its sandbox was made. Try again." >&2; '
    f'exit {_CHANGED} ;; esac; done; shift; exec "$@"'
)
_ESCAPED = {" ": "\\040", "\t": "\\011", "\n": "\\012", "\\": "\\134"}


class HostMounts:
    """The mounts that this process sees."""

    def __init__(self) -> None:
        self._roots: dict[str, str] = {}
        with open(_MOUNTS, encoding="utf-8", errors="surrogateescape") as file:
            for line in file:
                fields = line.split(" ")
                self._roots[fields[4]] = fields[3]  # of several at one place the last one is on top

    def shown(self, path: str) -> str:
        """Return a path that is bound to where it lies, as the mounts of a sandbox have to show it."""
        path = _escaped(path)
        above = path
        while above not in self._roots and above != "/":
            above = above.rpartition("/")[0] or "/"
        root, below = self._roots.get(above, "/"), path.removeprefix(above).strip("/")
        return f"{os.path.join(root, below) if below else root} {path}"


def new(path: str) -> str:
    """Return an empty folder at a path, likewise."""
    return f"/ {_escaped(path)}"


def looked_at(shown: Iterable[str]) -> list[str]:
    """Return the beginning of a command line that carries out the rest of it where all of these stand."""
    return ["/bin/sh", "-c", _LOOK, "sh", *shown, "--"]


def _escaped(path: str) -> str:
    return "".join(_ESCAPED.get(char, char) for char in path)
