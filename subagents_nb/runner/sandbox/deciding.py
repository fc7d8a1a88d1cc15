"""What lies in a workspace that decides what later runs, or programs of the person's, do: found before and after.

The walk is bounded, since a workspace may hold millions of files: the shallowest come first.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections import deque
from dataclasses import dataclass, field

from subagents_nb.domain.agents.guarded import decides_below, is_protected, is_secret

MOST_ENTRIES = 20_000
MOST_KEPT = 100  # each is a mount, of which every command is started with all
_NOT_ENTERED = frozenset({"node_modules", "__pycache__"})  # what a package manager unpacked, and moves about
_Stamp = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Deciding:
    """What was found, by its path, and whether all of the workspace was looked at."""

    at: dict[str, _Stamp] = field(default_factory=dict)
    whole: bool = True

    @property
    def could_be_kept(self) -> frozenset[str]:
        """Return what a mount can keep: a link can't be, and is looked at again."""
        return frozenset(path for path, (mode, *_) in self.at.items() if not stat.S_ISLNK(mode))

    def since(self, before: Deciding, kept: frozenset[str]) -> tuple[str, ...]:
        """Return what is new, or another one than before; what was `kept` as it was is neither."""
        return tuple(path for path, stamp in self.at.items() if path not in kept and before.at.get(path) != stamp)


def deciding_in(workspace: str, *, most: int = MOST_ENTRIES) -> Deciding:
    """Return what decides in a workspace, at any depth as far as so many files and folders reach.

    Nothing is looked for in what is found. Links are never followed.
    """
    found: dict[str, _Stamp] = {}
    left, folders = most, deque([workspace])
    while folders:
        folder = folders.popleft()
        is_top = folder == workspace
        with contextlib.suppress(OSError), os.scandir(folder) as entries:
            for entry in entries:
                left -= 1
                if left < 0:
                    return Deciding(found, whole=False)
                is_folder = entry.is_dir(follow_symlinks=False)
                if decides_below(entry.name) or (is_top and _decides_at_top(entry.name, is_folder)):
                    about = entry.stat(follow_symlinks=False)
                    # What a folder holds changes its times, and is nobody's news: it is the same folder.
                    changed = 0 if is_folder else about.st_mtime_ns
                    found[entry.path] = (about.st_mode, about.st_ino, changed)
                elif is_folder and entry.name not in _NOT_ENTERED:
                    folders.append(entry.path)
    return Deciding(found)


def _decides_at_top(name: str, is_folder: bool) -> bool:
    return is_protected(f"{name}/x" if is_folder else name) and not is_secret(name)
