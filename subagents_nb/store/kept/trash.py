"""Where deleted runs lie for a day, whole, before they are removed for good.

    trash/<run_id>.<time>         the run as it was
          <run_id>.<time>.json    why and when; written before the run is moved
          .gone-<run_id>.<time>   being removed for good; never brought back

Each move is one rename, so whoever dies in between leaves a whole run in one of two places, and the next pass goes on.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import stat
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from pathlib import Path

from subagents_nb.domain.kept.retention import DAY_S, Deleted, Tombstone
from subagents_nb.domain.values.ids import MIN_PREFIX
from subagents_nb.errors import AmbiguousRun, StoreError, UnknownRun, Unreadable
from subagents_nb.store.clock import utc_now
from subagents_nb.store.files.codec import encode
from subagents_nb.store.files.disk import DISK, PRIVATE_DIR, Disk
from subagents_nb.store.files.lock import exclusive, hold_now
from subagents_nb.store.layout import StoreHome
from subagents_nb.store.runs.reader import read_document

GRACE_S = DAY_S
SESSION_LEASE = "session.lease"
_TOMB = re.compile(r"(r-[0-9a-z]{19})\.\d{8}T\d{9}Z\Z")
_GONE = ".gone-"


class CollectorBusy(StoreError):
    """Another process is deleting old runs of this store just now."""


def exclusive_trash(home: StoreHome) -> AbstractContextManager[None]:
    """Be the only one who deletes or restores runs of this store.

    Raises:
        CollectorBusy: somebody else is at it.
        StoreError: the store can't be written.
    """
    busy = CollectorBusy("Another process is deleting old runs of this store; try again in a moment.")
    return exclusive(home.root / "retention.lock", what=f"What is deleted below {home.root}", busy=busy)


class Trash:
    """The trash of one store. Whoever changes it has `exclusive_trash`."""

    def __init__(self, home: StoreHome, *, disk: Disk = DISK) -> None:
        self._home = home
        self._disk = disk
        self.root = home.root / "trash"

    def tombs(self) -> list[str]:
        """Return the names of what lies in the trash, oldest run first."""
        try:
            return sorted(name for name in os.listdir(self.root) if _TOMB.match(name))
        except FileNotFoundError:
            return []

    def move(self, run: Deleted, *, now_s: float) -> bool:
        """Move a run to the trash. False, changing nothing, if another run goes on from its session just now.

        Raises:
            OSError: it can't be moved; it is where it was.
        """
        root = self._home.run(run.run_id).root
        stamp = datetime.fromtimestamp(now_s, UTC).strftime("%Y%m%dT%H%M%S%f")[:-3]
        tomb = self.root / f"{run.run_id}.{stamp}Z"
        try:
            lease = hold_now(root / SESSION_LEASE, owner="retention")  # nobody can begin to go on from it meanwhile
        except BlockingIOError:
            return False
        try:
            self._mark(tomb, name=run.name, reason=run.reason)
            self._disk.rename(root, tomb)
        finally:
            os.close(lease)
        return True

    def finish_interrupted(self) -> list[tuple[str, str]]:
        """Make the trash if there is none and finish what an earlier pass began; return what could not be removed.

        Raises:
            StoreError: it is a link or not ours.
            OSError: it can't be written.
        """
        self.root.mkdir(mode=PRIVATE_DIR, exist_ok=True)
        info = self.root.lstat()
        if not stat.S_ISDIR(info.st_mode) or (os.name == "posix" and info.st_uid != os.getuid()):
            raise StoreError(f"{self.root} is no directory of yours; nothing was deleted.")
        tombs, failed = self.tombs(), []
        for name in sorted(os.listdir(self.root)):
            if name.startswith(_GONE):
                failed += self._remove_folder(self.root / name)
            elif name.endswith(".tmp") or (name.endswith(".json") and name.removesuffix(".json") not in tombs):
                (self.root / name).unlink(missing_ok=True)
        for name in sorted(os.listdir(self._home.runs)):
            if name.startswith(_GONE):  # a launch that was rolled back halfway
                failed += self._remove_folder(self._home.runs / name)
        for tomb in tombs:
            if self.mark_of(tomb) is None:  # its day begins now
                self._mark(self.root / tomb, name="", reason="an earlier pass did not say")
        return failed

    def remove(self, tomb: str) -> list[tuple[str, str]]:
        """Remove one run from the trash for good; return what could not be removed. The next pass goes on with that.

        Raises:
            OSError: it could not even be begun.
        """
        doomed = self.root / f"{_GONE}{tomb}"
        self._disk.rename(self.root / tomb, doomed)
        _marker(self.root / tomb).unlink(missing_ok=True)
        return self._remove_folder(doomed)

    def restore(self, text: str) -> str:
        """Bring a run back by its id, name, or 8 characters of its id; return its id. It counts as young again.

        Raises:
            UnknownRun, AmbiguousRun: not exactly one run in the trash fits.
            StoreError: there is a run with its id, or it can't be moved.
        """
        tomb = self.root / self._find(text)
        paths = self._home.run(run_of(tomb.name))
        if os.path.lexists(paths.root):
            raise StoreError(f"There is a run {paths.root.name} already; it would be replaced.")
        try:
            self._disk.replace(tomb / "restored", utc_now().encode(), durable=False)
            self._disk.rename(tomb, paths.root)
            _marker(tomb).unlink(missing_ok=True)
        except OSError as error:
            raise StoreError(f"Run {paths.root.name} could not be brought back: {error.strerror}.") from error
        return paths.root.name

    def mark_of(self, tomb: str) -> Tombstone | None:
        """Return why and when a run came here; None if that can't be read."""
        try:
            return read_document(_marker(self.root / tomb), Tombstone, run_of(tomb), disk=self._disk)
        except Unreadable:
            return None

    def due(self, grace_s: float, *, now_s: float) -> list[str]:
        """Return what has been here for `grace_s`, by what its note says and by when that was written."""
        tombs = self.tombs()
        return [tomb for tomb in tombs if grace_s <= 0 or now_s - self._since(tomb, now_s) >= grace_s]

    def sync(self) -> None:
        """Bring the moves so far to the device. Until then a power cut may undo some, never halve one."""
        for folder in (self.root, self._home.runs):
            with contextlib.suppress(OSError):
                self._disk.sync_dir(folder)

    def _find(self, text: str) -> str:
        tombs = self.tombs()
        names = {tomb: mark.name for tomb in tombs if (mark := self.mark_of(tomb)) is not None}
        fitting = [tomb for tomb in tombs if text and text in (run_of(tomb), names.get(tomb))]
        if not fitting and len(text) >= MIN_PREFIX:
            fitting = [tomb for tomb in tombs if run_of(tomb).startswith(text)]
        if not fitting:
            raise UnknownRun(f"No run in the trash is {text!r}; what was deleted more than a day ago is gone for good.")
        if len(fitting) > 1:
            raise AmbiguousRun(f"Several runs in the trash fit {text!r}: {', '.join(map(run_of, fitting))}.")
        return fitting[0]

    def _since(self, tomb: str, now_s: float) -> float:
        mark = self.mark_of(tomb)
        deleted_at = moment(mark.deleted_at) if mark is not None else None
        try:
            written = _marker(self.root / tomb).lstat().st_mtime
        except OSError:
            return now_s
        return max(deleted_at, written) if deleted_at is not None else now_s

    def _mark(self, tomb: Path, *, name: str, reason: str) -> None:
        mark = Tombstone(run_id=run_of(tomb.name), name=name, reason=reason, deleted_at=utc_now())
        self._disk.replace(_marker(tomb), encode(mark), durable=False)

    @staticmethod
    def _remove_folder(path: Path) -> list[tuple[str, str]]:
        try:
            if path.is_symlink():
                path.unlink()
                return []
            try:
                shutil.rmtree(path)
            except PermissionError:
                _open_folders(path)
                shutil.rmtree(path)
        except FileNotFoundError:
            return []  # somebody else removes it
        except OSError as error:
            return [(path.name, error.strerror or str(error))]
        return []


def run_of(tomb: str) -> str:
    """Return the id of the run that lies under this name in the trash."""
    return tomb.partition(".")[0]


def moment(text: str) -> float | None:
    """Return an ISO 8601 moment with its zone in seconds since 1970; None if the text is none."""
    try:
        when = datetime.fromisoformat(text)
        return when.timestamp() if when.tzinfo is not None else None
    except (ValueError, OverflowError):
        return None


def _marker(tomb: Path) -> Path:
    return tomb.with_name(f"{tomb.name}.json")


def _open_folders(path: Path) -> None:
    """Give ourselves the rights to empty folders that an agent's tools closed; no link is followed."""
    path.chmod(PRIVATE_DIR)
    for folder, names, _ in os.walk(path):
        for name in names:
            inner = Path(folder) / name
            if not inner.is_symlink():
                inner.chmod(PRIVATE_DIR)
