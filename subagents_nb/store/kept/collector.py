"""Find runs that are old, delete those that may go, empty the trash. `domain.kept.retention` decides what may go."""

from __future__ import annotations

import contextlib
import os
import re
import stat
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from pydantic import ValidationError

from subagents_nb.domain.kept.retention import (
    DAY_S,
    Collection,
    Deleted,
    Keep,
    Reading,
    RunObservation,
    clocks_agree,
    may_be_resumed,
    may_still_read,
    reason_to_keep,
)
from subagents_nb.domain.runs.snapshot import Snapshot
from subagents_nb.domain.runs.states import RunState
from subagents_nb.domain.values.ids import make_run_id
from subagents_nb.errors import StoreError, SubagentsError, Unreadable
from subagents_nb.store.clock import read_clocks
from subagents_nb.store.files.disk import DISK
from subagents_nb.store.files.lock import probe
from subagents_nb.store.kept.trash import GRACE_S, SESSION_LEASE, Trash, exclusive_trash, moment, run_of
from subagents_nb.store.layout import StoreHome
from subagents_nb.store.runs.reader import FileRuns
from subagents_nb.store.tree.tree_usage import forget_used

BATCH = 100
# What a step leaves in its run's directory while somebody still has to take it over.
UNRESOLVED_PREFIXES = ("unresolved", "worktree")
_AGAIN_S = 60.0
# Found in the bytes, so that a plan of a newer version still protects what it goes on from, or waits for.
_RESUMES = re.compile(rb'"resumes"[^}]*?"(r-[0-9a-z]{19})"')
_ATTACHED = re.compile(rb'"attached_run"\s*:\s*"(r-[0-9a-z]{19})"')
_ROOT = re.compile(rb'"root"\s*:\s*"(r-[0-9a-z]{19})"')

Judge = Callable[[list[str]], object]
_UsedBy = dict[str, list[tuple[str, Callable[[RunState | None], bool]]]]  # by whom, and whether that one needs it yet


def collect(
    home: StoreHome,
    *,
    keep_s: float,
    grace_s: float = GRACE_S,
    limit: int | None = None,
    dry_run: bool = False,
    judge: Judge | None = None,
) -> Collection:
    """Delete what may be deleted, remove what has been in the trash for `grace_s`, and say what was done and why not.

    `judge` gives dead runs their verdict: a run without a last word is never deleted. At most `limit` runs are deleted
    and as many removed. A dry run changes nothing.

    Raises:
        CollectorBusy: another pass is at work.
        StoreError: the store can't be used, or can't be looked at just now.
    """
    work = _Pass(home, Trash(home), FileRuns(home), keep_s, limit)
    if dry_run:
        return work.dry_run(grace_s)
    with exclusive_trash(home):
        try:
            return work.carry_out(grace_s, judge)
        except OSError as error:
            raise StoreError(f"No run can be deleted below {home.root}: {error.strerror}.") from error


def collect_daily(home: StoreHome, *, keep_days: Callable[[], float], judge: Judge) -> Collection | None:
    """Do a pass if the last one is a day ago, at most 100 runs at once; the next of them follow a minute later.

    Costs one look at a file otherwise. Never raises: it is called beside other work. `keep_days` is asked when due.
    Where the clock was set since the last pass, nothing is deleted: the next one, a day later, knows better.
    """
    marker, now = home.root / "retention.last", time.time()
    with contextlib.suppress(OSError, SubagentsError):
        if marker.exists() and 0 <= now - marker.stat().st_mtime < DAY_S:
            return None
        before, reading = _last_reading(marker), read_clocks()
        DISK.replace(marker, reading.model_dump_json().encode(), durable=False)  # first: what fails waits a day too
        if not clocks_agree(before, reading):
            return None
        done = collect(home, keep_s=keep_days() * DAY_S, limit=BATCH, judge=judge)
        if done.more:
            os.utime(marker, (now, now - DAY_S + _AGAIN_S))
        return done
    return None


def _last_reading(marker: Path) -> Reading | None:
    try:
        return Reading.model_validate_json(DISK.read(marker))
    except (Unreadable, ValidationError):
        return None


class _Pass:
    """One pass over the store, with what it found so far."""

    def __init__(self, home: StoreHome, trash: Trash, runs: FileRuns, keep_s: float, limit: int | None) -> None:
        self._home, self._trash, self._runs = home, trash, runs
        self._keep_s, self._limit = keep_s, limit
        self._now = time.time()
        self._deleted: dict[str, Deleted] = {}
        self._removed: list[str] = []
        self._failed: list[tuple[str, str]] = []
        self._kept: Counter[Keep] = Counter()
        self._used_by: _UsedBy = {}
        self._roots: dict[str, str] = {}  # of each run below another one that is there

    def dry_run(self, grace_s: float) -> Collection:
        """Find out what a pass would do."""
        more = self._decide_all(None, self._note)
        due = self._trash.due(grace_s, now_s=self._now)
        self._removed = [run_of(tomb) for tomb in due]
        return self._report(grace_s, in_grace=len(self._trash.tombs()) - len(due), more=more, dry_run=True)

    def carry_out(self, grace_s: float, judge: Judge | None) -> Collection:
        """Do it."""
        self._failed += self._trash.finish_interrupted()
        more = self._decide_all(judge, self._move_to_trash)
        due = self._trash.due(grace_s, now_s=self._now)
        for tomb in due[: self._limit]:
            try:
                self._failed += self._trash.remove(tomb)
            except OSError as error:
                self._failed.append((tomb, error.strerror or str(error)))
            else:
                self._removed.append(run_of(tomb))
        self._trash.sync()
        forget_used(self._home, self._removed)
        more = more or len(due) > len(due[: self._limit])
        return self._report(grace_s, in_grace=len(self._trash.tombs()), more=more, dry_run=False)

    def _report(self, grace_s: float, *, in_grace: int, more: bool, dry_run: bool) -> Collection:
        return Collection(
            dry_run=dry_run,
            grace_s=grace_s,
            deleted=tuple(self._deleted.values()),
            kept=dict(self._kept),
            removed=tuple(self._removed),
            in_grace=in_grace,
            failed=tuple(self._failed),
            more=more,
        )

    def _decide_all(self, judge: Judge | None, delete: Callable[[Deleted], None]) -> bool:
        """Decide on every run, newest first: what goes on from a run comes before it. True: cut at the limit.

        A root comes before the runs below it, though it is older: they stay with it, and go with it.
        """
        ids = self._runs.ids()
        self._used_by, self._roots = _references(self._runs, ids)
        ids.sort(key=lambda one: (self._roots.get(one, one), one not in self._roots), reverse=True)
        # An id begins with the time of its launch: a run launched within the time kept need not be read.
        young = make_run_id(int((self._now - self._keep_s) * 1000), 0) if self._keep_s < self._now else ""
        for run_id in ids:
            if run_id >= young:
                self._kept[Keep.YOUNG] += 1
                continue
            if self._limit is not None and len(self._deleted) >= self._limit:
                return True
            try:
                doomed = self._decide(run_id, judge)
                if doomed is not None:
                    delete(doomed)
            except (OSError, StoreError) as error:
                self._failed.append((run_id, str(error)))
        return False

    def _decide(self, run_id: str, judge: Judge | None) -> Deleted | None:
        facts = self._observe(run_id)
        state = facts.snapshot.state
        if judge is not None and state is not None and state.live and facts.lock != "held":
            judge([run_id])
            facts = self._observe(run_id)
        reason = reason_to_keep(facts, keep_s=self._keep_s)
        if reason is not None:
            self._kept[reason] += 1
            return None
        reason_text = f"{facts.snapshot.state}, {(facts.age_s or 0.0) / DAY_S:.0f} days old"
        return Deleted(run_id=run_id, name=facts.snapshot.name, reason=reason_text)

    def _note(self, run: Deleted) -> None:
        self._deleted[run.run_id] = run

    def _move_to_trash(self, run: Deleted) -> None:
        if self._trash.move(run, now_s=self._now):
            self._note(run)
        else:
            self._kept[Keep.LEASED] += 1

    def _observe(self, run_id: str) -> RunObservation:
        paths = self._home.run(run_id)
        lock, lease = probe(paths.lock), probe(paths.root / SESSION_LEASE)
        snapshot = self._runs.snapshot(run_id, whole=True)
        used = [(run, needs) for run, needs in self._used_by.get(run_id, ()) if run not in self._deleted]
        linked, unresolved, touched = _look_around(paths.root)
        return RunObservation(
            snapshot=snapshot,
            age_s=_age(snapshot, touched, self._now),
            lock=lock,
            lease=lease,
            root_stays=run_id in self._roots and self._roots[run_id] not in self._deleted,
            referenced=any(needs(self._runs.snapshot(run).state) for run, needs in used),
            unresolved=unresolved,
            linked=linked,
        )


def _references(runs: FileRuns, ids: list[str]) -> tuple[_UsedBy, dict[str, str]]:
    """Return which runs go on from which, and which are attached to which, each with what says if it still needs it;
    and the root of each run below one.

    Those that live hold the lease of what they go on from besides.
    """
    used_by: _UsedBy = {}
    roots: dict[str, str] = {}
    here = set(ids)
    for run_id in ids:
        try:
            data = DISK.read(f"{runs.home.run_folder(run_id)}{os.sep}plan.json")
        except Unreadable as error:
            if error.kind == "busy":
                raise StoreError(f"Run {run_id} can't be looked at just now: {error}. Nothing was deleted.") from error
            continue
        if (match := _RESUMES.search(data)) is not None:
            used_by.setdefault(match[1].decode(), []).append((run_id, may_be_resumed))
        for attached in set(_ATTACHED.findall(data)):
            used_by.setdefault(attached.decode(), []).append((run_id, may_still_read))
        if (match := _ROOT.search(data)) is not None and (root := match[1].decode()) in here and root != run_id:
            roots[run_id] = root
    return used_by, roots


def _look_around(root: Path) -> tuple[bool, bool, float | None]:
    """Return whether a run's directory is or holds a link, whether files wait to be taken over, and its last change."""
    try:
        info = root.lstat()
        if not stat.S_ISDIR(info.st_mode) or (os.name == "posix" and info.st_uid != os.getuid()):
            return True, False, None
        with os.scandir(root) as scanned:
            entries = list(scanned)
        # Deleting begins with taking the lease: its file is no sign of life.
        files = [e for e in entries if e.is_file(follow_symlinks=False) and e.name != SESSION_LEASE]
        touched = max((e.stat(follow_symlinks=False).st_mtime for e in files), default=None)
    except OSError:
        return False, False, None
    unresolved = any(entry.name.startswith(UNRESOLVED_PREFIXES) for entry in entries)
    return any(entry.is_symlink() for entry in entries), unresolved, touched


def _age(snapshot: Snapshot, touched: float | None, now: float) -> float | None:
    """Return the seconds since a run's youngest sign; None if a document tells no time or there is no file."""
    signs_given = []
    if snapshot.result is not None:
        signs_given.append(snapshot.result.ended_at)
    if snapshot.verdict is not None:
        signs_given.append(snapshot.verdict.judged_at)
    if snapshot.status is not None:
        signs_given.append(snapshot.status.updated_at)
    signs = [touched, *(moment(text) for text in signs_given)]
    known = [sign for sign in signs if sign is not None]
    return now - max(known) if len(known) == len(signs) else None
