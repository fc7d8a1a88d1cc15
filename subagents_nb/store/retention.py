"""Delete what is old, in two moves: a run's directory goes to the trash whole, and from there for good a day later.

    trash/<run_id>.<time>         the run as it was
          <run_id>.<time>.json    why and when; written before the run is moved
          .gone-<run_id>.<time>   being removed for good; never brought back

Each move is one rename, so whoever dies in between leaves a whole run in one of two places, and the next pass goes on.
What may be deleted is decided in `domain.retention`.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import stat
import time
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

from subagents_nb.domain.ids import MIN_PREFIX, make_run_id
from subagents_nb.domain.retention import DAY_S, Collection, Deleted, Facts, Keep, Tombstone, may_go_on, reason_to_keep
from subagents_nb.domain.snapshot import Snapshot
from subagents_nb.domain.states import RunState
from subagents_nb.errors import AmbiguousRun, StoreError, SubagentsError, UnknownRun, Unreadable
from subagents_nb.store.clock import utc_now
from subagents_nb.store.codec import encode
from subagents_nb.store.disk import DISK, PRIVATE_DIR, Disk
from subagents_nb.store.layout import RunPaths, StoreHome
from subagents_nb.store.lock import hold_now, probe
from subagents_nb.store.reader import FileRuns, read_document

GRACE_S = DAY_S
BATCH = 100
SESSION_LEASE = "session.lease"
# What a step leaves in its run's directory while somebody still has to take it over.
UNRESOLVED_PREFIXES = ("unresolved", "worktree")
_RESTORED = "restored"
_AGAIN_S = 60.0
_TOMB = re.compile(r"(r-[0-9a-z]{19})\.\d{8}T\d{9}Z\Z")
# Found in the bytes, so that a plan of a newer version still protects what it goes on from.
_RESUMES = re.compile(rb'"resumes"[^}]*?"(r-[0-9a-z]{19})"')

Judge = Callable[[list[str]], object]


class CollectorBusy(StoreError):
    """Another process is deleting old runs of this store just now."""


def trash_of(home: StoreHome) -> Path:
    """Return where deleted runs lie until they are removed for good."""
    return home.root / "trash"


def collect(
    home: StoreHome,
    *,
    keep_s: float,
    grace_s: float = GRACE_S,
    limit: int | None = None,
    dry_run: bool = False,
    judge: Judge | None = None,
    disk: Disk = DISK,
) -> Collection:
    """Delete what may be deleted, remove what has been in the trash for `grace_s`, and say what was done and why not.

    `judge` gives dead runs their verdict; a run without a last word is never deleted. At most `limit` runs are deleted
    and as many removed. A dry run changes nothing.

    Raises:
        CollectorBusy: another pass is at work.
        StoreError: the store can't be used, or can't be looked at just now.
    """
    work = _Pass(home, keep_s, grace_s, limit, dry_run, None if dry_run else judge, disk)
    if dry_run:
        return work.run()
    with _alone(home):
        return work.run()


def collect_daily(home: StoreHome, *, keep_days: Callable[[], float], judge: Judge) -> Collection | None:
    """Do a pass if the last one is a day ago, at most 100 runs at once; the next of them follows a minute later.

    Costs one look at a file otherwise. Never raises: it is called beside other work. `keep_days` is asked when it is due.
    """
    marker, now = home.root / "retention.last", time.time()
    try:
        if 0 <= now - marker.lstat().st_mtime < DAY_S:
            return None
    except OSError:
        pass
    with contextlib.suppress(OSError, SubagentsError):
        marker.touch(0o600)  # first, so that a pass that fails is not tried all the time
        done = collect(home, keep_s=keep_days() * DAY_S, limit=BATCH, judge=judge)
        if done.more:
            os.utime(marker, (now, now - DAY_S + _AGAIN_S))
        return done
    return None


def restore(home: StoreHome, text: str, *, disk: Disk = DISK) -> str:
    """Bring a run back from the trash by its id, name or 8 characters of its id; return its id. It is young again.

    Raises:
        UnknownRun, AmbiguousRun: not exactly one run in the trash fits.
        StoreError: a run with its id is there, or it can't be moved.
    """
    with _alone(home):
        names = {tomb: mark.name for tomb in _tombs(home) if (mark := _mark_of(home, tomb, disk))}
        fitting = [t for t in _tombs(home) if text in (_id_of(t), names.get(t))]
        if not fitting and len(text) >= MIN_PREFIX:
            fitting = [t for t in _tombs(home) if t.startswith(text)]
        if not fitting:
            raise UnknownRun(f"No run in the trash is {text!r}; what was deleted a day ago is gone for good.")
        if len(fitting) > 1:
            raise AmbiguousRun(f"Several runs in the trash fit {text!r}: {', '.join(map(_id_of, fitting))}.")
        tomb = trash_of(home) / fitting[0]
        paths = home.run(_id_of(tomb.name))
        if os.path.lexists(paths.root):
            raise StoreError(f"There is a run {paths.root.name} already; it would be replaced.")
        try:
            disk.replace(tomb / _RESTORED, utc_now().encode(), durable=False)
            disk.rename(tomb, paths.root)
            _marker(tomb).unlink(missing_ok=True)
        except OSError as error:
            raise StoreError(f"Run {paths.root.name} could not be brought back: {error.strerror}.") from error
        return paths.root.name


class _Pass:
    """One pass over the store."""

    def __init__(
        self, home: StoreHome, keep_s: float, grace_s: float, limit: int | None, dry_run: bool, judge: Judge | None,
        disk: Disk,
    ) -> None:  # fmt: skip
        self._home, self._trash, self._disk = home, trash_of(home), disk
        self._keep_s, self._grace_s, self._limit = keep_s, grace_s, limit
        self._dry_run, self._judge = dry_run, judge
        self._now = time.time()
        self._runs = FileRuns(home, disk=disk)
        self._deleted: list[Deleted] = []
        self._removed: list[str] = []
        self._failed: list[tuple[str, str]] = []
        self._kept: Counter[Keep] = Counter()

    def run(self) -> Collection:
        if not self._dry_run:
            self._finish_interrupted()
        more = self._bury_all()
        waiting = self._remove_all()
        return Collection(
            dry_run=self._dry_run,
            grace_s=self._grace_s,
            deleted=tuple(self._deleted),
            kept=dict(self._kept),
            removed=tuple(self._removed),
            in_grace=waiting,
            failed=tuple(self._failed),
            more=more,
        )

    def _bury_all(self) -> bool:
        """Decide on every run, newest first, so that what went on from a run is decided on before it."""
        ids = self._runs.ids()
        used_by = _references(self._home, ids, self._disk)
        # An id holds the time of its launch: a run launched within the time kept need not be read.
        young = make_run_id(max(0, int((self._now - self._keep_s) * 1000)), 0) if self._keep_s < self._now else ""
        for run_id in ids:
            if run_id >= young:
                self._kept[Keep.YOUNG] += 1
                continue
            if self._limit is not None and len(self._deleted) >= self._limit:
                return True
            try:
                self._consider(run_id, used_by.get(run_id, []))
            except (OSError, StoreError) as error:
                self._failed.append((run_id, _why(error)))
        return False

    def _consider(self, run_id: str, used_by: list[str]) -> None:
        gone = {run.run_id for run in self._deleted}
        referenced = any(run not in gone and may_go_on(self._runs.snapshot(run).state) for run in used_by)
        facts = self._look(run_id, referenced)
        reason = reason_to_keep(facts, keep_s=self._keep_s)
        if reason in (Keep.LIVE, Keep.QUEUED) and facts.lock != "held" and self._judge is not None:
            self._judge([run_id])
            facts = self._look(run_id, referenced)
            reason = reason_to_keep(facts, keep_s=self._keep_s)
        if reason is not None:
            self._kept[reason] += 1
            return
        days = (facts.age_s or 0.0) / DAY_S
        doomed = Deleted(run_id=run_id, name=facts.snapshot.name, reason=f"{facts.snapshot.state}, {days:.0f} days old")
        if self._dry_run or self._bury(doomed):
            self._deleted.append(doomed)

    def _look(self, run_id: str, referenced: bool) -> Facts:
        paths = self._home.run(run_id)
        snapshot = self._runs.snapshot(run_id, whole=True)
        linked, unresolved, touched = _look_around(paths.root)
        return Facts(
            snapshot=snapshot,
            age_s=_age(snapshot, touched, self._now),
            lock=probe(paths.lock),
            lease=probe(paths.root / SESSION_LEASE),
            referenced=referenced,
            open_questions=_has_open_question(paths),
            unresolved=unresolved,
            linked=linked,
        )

    def _bury(self, run: Deleted) -> bool:
        """Move a run to the trash. While that happens nobody can begin to go on from its session."""
        paths = self._home.run(run.run_id)
        stamp = datetime.fromtimestamp(self._now, UTC).strftime("%Y%m%dT%H%M%S%f")[:-3] + "Z"
        tomb = self._trash / f"{run.run_id}.{stamp}"
        try:
            lease = hold_now(paths.root / SESSION_LEASE, owner="retention")
        except BlockingIOError:
            self._kept[Keep.LEASED] += 1
            return False
        try:
            self._mark(tomb, name=run.name, reason=run.reason)
            self._disk.rename(paths.root, tomb)
        finally:
            os.close(lease)
        return True

    def _mark(self, tomb: Path, *, name: str, reason: str) -> None:
        mark = Tombstone(run_id=_id_of(tomb.name), name=name, reason=reason, deleted_at=utc_now())
        self._disk.replace(_marker(tomb), encode(mark), durable=False)

    def _finish_interrupted(self) -> None:
        """Finish what an earlier pass began, and make sure that every run in the trash says when it came there."""
        self._trash.mkdir(mode=PRIVATE_DIR, exist_ok=True)
        info = self._trash.lstat()
        if not stat.S_ISDIR(info.st_mode) or (os.name == "posix" and info.st_uid != os.getuid()):
            raise StoreError(f"{self._trash} is no directory of yours; nothing was deleted.")
        tombs = set(_tombs(self._home))
        for name in sorted(os.listdir(self._trash)):
            path = self._trash / name
            if name.startswith(".gone-"):
                self._remove_for_good(path)
            elif name.endswith(".tmp") or (name.endswith(".json") and name.removesuffix(".json") not in tombs):
                path.unlink(missing_ok=True)
        for tomb in sorted(tombs):
            if _mark_of(self._home, tomb, self._disk) is None:
                self._mark(self._trash / tomb, name="", reason="an earlier pass did not say")

    def _remove_all(self) -> int:
        """Remove what has been in the trash long enough; return how many runs stay there."""
        tombs = _tombs(self._home)
        for tomb in tombs:
            if self._limit is not None and len(self._removed) >= self._limit:
                break
            if self._grace_s > 0 and not self._in_trash_for(tomb) >= self._grace_s:
                continue
            if not self._dry_run:
                gone = self._trash / f".gone-{tomb}"
                try:
                    self._disk.rename(self._trash / tomb, gone)
                    _marker(self._trash / tomb).unlink(missing_ok=True)
                except OSError as error:
                    self._failed.append((tomb, _why(error)))
                    continue
                self._remove_for_good(gone)
            self._removed.append(_id_of(tomb))
        return len(tombs) - len(self._removed)

    def _in_trash_for(self, tomb: str) -> float:
        mark = _mark_of(self._home, tomb, self._disk)
        told = _moment(mark.deleted_at) if mark is not None else None
        try:
            written = _marker(self._trash / tomb).lstat().st_mtime
        except OSError:
            return -1.0
        return self._now - max(written, told) if told is not None else -1.0

    def _remove_for_good(self, path: Path) -> None:
        try:
            try:
                shutil.rmtree(path)
            except PermissionError:
                _open_folders(path)
                shutil.rmtree(path)
        except OSError as error:
            self._failed.append((path.name, _why(error)))


@contextlib.contextmanager
def _alone(home: StoreHome) -> Iterator[None]:
    try:
        handle = hold_now(home.root / "retention.lock", owner=str(os.getpid()))
    except BlockingIOError:
        raise CollectorBusy("Another process is deleting old runs of this store; try again in a moment.") from None
    except OSError as error:
        raise StoreError(f"Old runs can't be deleted below {home.root}: {error.strerror}.") from error
    try:
        yield
    finally:
        os.close(handle)


def _references(home: StoreHome, ids: list[str], disk: Disk) -> dict[str, list[str]]:
    """Return which runs go on from which. One that lives besides holds the lease of what it goes on from."""
    found: dict[str, list[str]] = {}
    for run_id in ids:
        try:
            data = disk.read(f"{home.run_folder(run_id)}{os.sep}plan.json")
        except Unreadable as error:
            if error.kind == "busy":
                raise StoreError(f"Run {run_id} can't be looked at just now ({error}); nothing was deleted.") from error
            continue
        if (match := _RESUMES.search(data)) is not None:
            found.setdefault(match[1].decode(), []).append(run_id)
    return found


def _look_around(root: Path) -> tuple[bool, bool, float | None]:
    """Return whether a run's directory is or holds a link, whether files wait to be taken over, and its last change."""
    try:
        info = root.lstat()
        if not stat.S_ISDIR(info.st_mode) or (os.name == "posix" and info.st_uid != os.getuid()):
            return True, False, None
        with os.scandir(root) as scanned:
            entries = list(scanned)
        # Taking the lease touches its file: that is no sign of life of the run.
        touched = [e.stat(follow_symlinks=False).st_mtime for e in entries if e.is_file() and e.name != SESSION_LEASE]
    except OSError:
        return False, False, None
    unresolved = any(entry.name.startswith(UNRESOLVED_PREFIXES) for entry in entries)
    return any(entry.is_symlink() for entry in entries), unresolved, max(touched, default=None)


def _age(snapshot: Snapshot, touched: float | None, now: float) -> float | None:
    """Return the seconds since the youngest sign of a run; None if one of its documents tells no time."""
    said = [
        _moment(text)
        for text in (
            snapshot.result.ended_at if snapshot.result else None,
            snapshot.verdict.judged_at if snapshot.verdict else None,
            snapshot.status.updated_at if snapshot.status else None,
        )
        if text is not None
    ]
    known = [moment for moment in (*said, touched) if moment is not None]
    return now - max(known) if len(known) == len(said) + 1 else None


def _moment(text: str) -> float | None:
    try:
        when = datetime.fromisoformat(text.replace("Z", "+00:00"))
        return when.timestamp() if when.tzinfo is not None else None
    except (ValueError, OverflowError):
        return None
