"""What the runs of one tree, or of one sweep with a budget, used: a file for each, written by that run alone.

    runs/<root>/budget/usage-RUN.json
    sweeps/<pool>.budget/usage-RUN.json

So all of them together can be held to one budget: each adds the files up before it asks its model again.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Collection
from pathlib import Path
from typing import Literal

from subagents_nb.domain.values.base import Document
from subagents_nb.domain.values.ids import is_run_id
from subagents_nb.domain.values.usage import Usage, total
from subagents_nb.errors import Unreadable
from subagents_nb.store.files.codec import encode
from subagents_nb.store.files.disk import DISK, PRIVATE_DIR, Disk
from subagents_nb.store.layout import RunPaths, StoreHome
from subagents_nb.store.runs.reader import read_document

_BEGIN, _END = "usage-", ".json"
_EVERY_S, _MOMENT_S = 0.1, 0.5


class UsedByRun(Document):
    """What one run used so far; its children have files of their own."""

    kind: Literal["usage"] = "usage"
    usage: Usage


class SharedUsage:
    """One run's share in what several used, and that of the others; of these only of such as have a later id."""

    def __init__(self, folder: Path, run_id: str, *, since: str = "", disk: Disk = DISK) -> None:
        self._folder = folder
        self._run_id = run_id
        self._since = since
        self._disk = disk
        self._said: Usage | None = None
        self._others: list[Usage] = []
        self._looked = self._wrote = float("-inf")
        with contextlib.suppress(OSError):
            self._folder.parent.mkdir(mode=PRIVATE_DIR, exist_ok=True)
            self._folder.mkdir(mode=PRIVATE_DIR)

    def say(self, own: Usage, *, at_once: bool = False) -> None:
        """Write down what this run used so far, ten times a second at most unless it is to be there at once.

        A disk that refuses is asked again at the next change.
        """
        now = time.monotonic()
        if own == self._said or (now - self._wrote < _EVERY_S and not at_once):
            return
        self._wrote = now
        with contextlib.suppress(OSError):
            record = UsedByRun(run_id=self._run_id, usage=own)
            self._disk.replace(self._folder / f"{_BEGIN}{self._run_id}{_END}", encode(record), durable=False)
            self._said = own

    def in_tree(self, own: Usage, now: bool) -> Usage:
        """Return what the whole tree used, with so much by this run: as of `now`, or of a moment ago.

        It is asked ten times a second, so what `say` left out is soon written.
        """
        self.say(own, at_once=now)
        return self.with_others(own, within_s=0.0 if now else _MOMENT_S)

    def with_others(self, own: Usage, *, within_s: float = 0.0) -> Usage:
        """Return what all used, with so much by this run; the others' may be read so long ago."""
        return total((own, *self.of_others(within_s=within_s)))

    def of_others(self, *, within_s: float = 0.0) -> list[Usage]:
        """Return what each of the others used, as it was read so long ago at most."""
        if time.monotonic() - self._looked > within_s:
            self._looked = time.monotonic()
            self._others = list(used_in(self._folder, but=self._run_id, since=self._since).values())
        return self._others


def of_tree(root: RunPaths) -> Path:
    """Return the folder of what a tree used."""
    return root.root / "budget"


def of_pool(home: StoreHome, pool: str) -> Path:
    """Return the folder of what the runs of a sweep used; a pool's name is of letters and digits alone."""
    if not pool.isalnum():
        raise ValueError(f"{pool[:40]!r} names no pool")
    return home.sweeps / f"{pool}.budget"


def forget_used(home: StoreHome, run_ids: Collection[str]) -> None:
    """Take away what runs that are gone for good used of pools, and pools of which nothing is left."""
    with contextlib.suppress(OSError):
        for pool in home.sweeps.glob("*.budget") if run_ids else ():
            for run_id in filter(is_run_id, run_ids):
                (pool / f"{_BEGIN}{run_id}{_END}").unlink(missing_ok=True)
            with contextlib.suppress(OSError):  # it is not empty
                pool.rmdir()


def used_by(root: RunPaths) -> Usage:
    """Return what a whole tree used, as its runs wrote it down."""
    return total(used_in(of_tree(root)).values())


def used_in(folder: Path, *, but: str = "", since: str = "") -> dict[str, Usage]:
    """Return by id what each run used whose file lies in a folder, of those with a later id.

    One that can't be read counts for nothing.
    """
    usages = {}
    with contextlib.suppress(OSError):
        for name in os.listdir(folder):
            run_id = name.removeprefix(_BEGIN).removesuffix(_END)
            if not (name.startswith(_BEGIN) and is_run_id(run_id)) or run_id == but or run_id < since:
                continue
            with contextlib.suppress(Unreadable):
                usages[run_id] = read_document(folder / name, UsedByRun, run_id).usage
    return usages
