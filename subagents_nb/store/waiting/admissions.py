"""The fan-out budget of one tree of runs: how many children may ever be started below one root.

    runs/<root>/budget/manifest.json    the limit; written once
                       000000.json ...  one claim each, created once; its number decides, not its content
                       lock             held while claims are made; the system releases it

A claim is never given back, so a loop that starts, fails and starts again comes to an end. A slot that can't be
read, or that somebody removed, is a used one.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
from pathlib import Path
from typing import Literal

from pydantic import Field

from subagents_nb.domain.values.base import Document
from subagents_nb.domain.values.ids import is_run_id
from subagents_nb.errors import RequestError, StoreError, Unreadable
from subagents_nb.store.clock import utc_now
from subagents_nb.store.files.codec import encode
from subagents_nb.store.files.disk import DISK, PRIVATE_DIR, Disk
from subagents_nb.store.files.lock import exclusive
from subagents_nb.store.layout import RunPaths
from subagents_nb.store.runs.reader import read_document

DEFAULT_LIMIT = 64
MAX_LIMIT = 100_000
RUN_FANOUT_LIMIT = "RUN_FANOUT_LIMIT"
_SLOT = re.compile(r"(\d{6})\.json\Z")
_PATIENCE_S = 10.0


class BudgetExceeded(RequestError):
    """More children were asked for than the tree of runs may still start; none of them was started."""

    code = RUN_FANOUT_LIMIT

    def __init__(self, *, path: str, requested: int, used: int, limit: int) -> None:
        self.path, self.requested, self.used, self.limit = path, requested, used, limit
        self.remaining = max(0, limit - used)
        super().__init__(
            f"{path} asked for {requested} more runs, and {self.remaining} of {limit} are left for the whole tree "
            f"({RUN_FANOUT_LIMIT}); none was started. Ask for fewer, or launch anew with a higher limit."
        )


class Budget(Document):
    """The limit of one tree, under its root; `run_id` is the root's."""

    kind: Literal["budget"] = "budget"
    root_run_id: str
    limit: int = Field(ge=0, le=MAX_LIMIT)
    carried: int = Field(default=0, ge=0)  # admissions of the runs that the root goes on from


class Claim(Document):
    """One admission; `run_id` is the root's, `path` says who was admitted."""

    kind: Literal["claim"] = "claim"
    path: str
    step: int | None = None
    at: str


def open_budget(paths: RunPaths, *, limit: int = DEFAULT_LIMIT, carried: int = 0, disk: Disk = DISK) -> int:
    """Make the budget of a root run, or find the one it has, whose limit then stands; return the limit.

    Of a root that goes on from another run, `carried` are used already.

    Raises:
        StoreError: it can't be made or read; nothing may be started then.
    """
    folder = _folder(paths)
    manifest = Budget(run_id=paths.root.name, root_run_id=paths.root.name, limit=limit, carried=carried)
    try:
        with contextlib.suppress(FileExistsError):
            folder.mkdir(mode=PRIVATE_DIR)
        _check_folder(folder)
        if not os.path.lexists(folder / "manifest.json"):  # else it would be written for nothing, to the device
            disk.create_once(folder / "manifest.json", encode(manifest))
    except OSError as error:
        raise StoreError(f"The budget of run {paths.root.name} can't be made: {error.strerror}.") from error
    return _manifest(paths, disk).limit


def admit(
    paths: RunPaths,
    count: int,
    *,
    path: str,
    step: int | None = None,
    patience_s: float = _PATIENCE_S,
    disk: Disk = DISK,
) -> tuple[int, ...]:
    """Claim `count` admissions of the root run's budget, all or none; return their slots.

    `path` names who asks, such as `r-…/steps/2`; `step` the step it is for. A root without a budget gets the default.

    Raises:
        BudgetExceeded: fewer are left; nothing was claimed.
        StoreError: the budget can't be used; nothing may be started.
    """
    if count < 0:
        raise ValueError(f"{count} is no number of admissions")
    open_budget(paths, disk=disk)
    folder = _folder(paths)
    what = f"The budget of run {paths.root.name}"
    busy = StoreError(f"Another process holds the budget of run {paths.root.name} for {patience_s:g} s.")
    with exclusive(folder / "lock", patience_s=patience_s, what=what, busy=busy):
        limit, used = _counts(paths, disk)
        if used + count > limit:
            raise BudgetExceeded(path=path, requested=count, used=used, limit=limit)
        slots = tuple(range(used, used + count))
        claim = Claim(run_id=paths.root.name, path=path, step=step, at=utc_now())
        _create(folder, slots, encode(claim), disk)
    return slots


def budget_used(paths: RunPaths, *, disk: Disk = DISK) -> tuple[int, int] | None:
    """Return how much of its budget a root run has used, and the limit; None if it has no budget.

    Raises:
        StoreError: it is there and can't be read.
    """
    if not os.path.lexists(_folder(paths) / "manifest.json"):  # nothing was started; the usage may lie there
        return None
    limit, used = _counts(paths, disk)
    return used, limit


def _create(folder: Path, slots: tuple[int, ...], data: bytes, disk: Disk) -> None:
    created: list[Path] = []
    try:
        for slot in slots:
            target = folder / f"{slot:06d}.json"
            if not disk.create_once(target, data, durable=False, entry=False):
                raise StoreError(f"Somebody else claimed {target.name} meanwhile; nothing was started. Try again.")
            created.append(target)
        if created:
            disk.sync_dir(folder)
    except BaseException as error:
        # Nobody was admitted by them yet. Where even this fails they stay used, which errs on the safe side.
        for target in created:
            with contextlib.suppress(OSError):
                target.unlink()
        if isinstance(error, OSError):
            raise StoreError(f"No admission could be written to {folder.name}: {error.strerror}.") from error
        raise


def _counts(paths: RunPaths, disk: Disk) -> tuple[int, int]:
    """Return the limit, and how many slots are used: what was carried over, and all up to the highest there is."""
    folder, manifest = _folder(paths), _manifest(paths, disk)
    try:
        numbers = [int(match[1]) for name in os.listdir(folder) if (match := _SLOT.match(name))]
    except OSError as error:
        raise StoreError(f"The budget {folder.parent.name}/{folder.name} can't be read: {error.strerror}.") from error
    return manifest.limit, max(manifest.carried, max(numbers, default=-1) + 1)


def _manifest(paths: RunPaths, disk: Disk) -> Budget:
    run_id = paths.root.name
    try:
        manifest = read_document(_folder(paths) / "manifest.json", Budget, run_id, disk=disk)
    except Unreadable as error:
        raise StoreError(f"The budget of run {run_id} can't be read, so nothing more is started: {error}.") from error
    if manifest.root_run_id != run_id:
        raise StoreError(f"The budget of run {run_id} names another root, so nothing more is started.")
    return manifest


def _folder(paths: RunPaths) -> Path:
    if not is_run_id(paths.root.name) or paths.root.parent.name != "runs":
        raise StoreError(f"{paths.root.name!r} is no run of a store, so it has no budget.")
    return paths.root / "budget"


def _check_folder(folder: Path) -> None:
    try:
        kinds = [(part, part.lstat()) for part in (folder.parent, folder)]
    except OSError as error:
        raise StoreError(f"The budget of run {folder.parent.name} can't be used: {error.strerror}.") from error
    for part, info in kinds:
        if not stat.S_ISDIR(info.st_mode) or (os.name == "posix" and info.st_uid != os.getuid()):
            raise StoreError(
                f"The budget of run {folder.parent.name} is refused: {part.name} is no directory of yours."
            )
