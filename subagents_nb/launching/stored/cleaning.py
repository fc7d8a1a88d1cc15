"""Delete old runs by the user's settings, and bring one back."""

from __future__ import annotations

import contextlib
import functools
import math
import os
from pathlib import Path

from subagents_nb.catalog import load_settings
from subagents_nb.domain.agents.models import PROVIDER_NAMES
from subagents_nb.domain.kept.retention import DAY_S, Collection
from subagents_nb.domain.runs.tree_rows import ids_of_rows
from subagents_nb.errors import RequestError, SubagentsError
from subagents_nb.launching.controlling.within_run import refuse_runs
from subagents_nb.launching.handle import Run
from subagents_nb.store import FileRuns, open_home
from subagents_nb.store.kept.collector import collect
from subagents_nb.store.kept.trash import GRACE_S, Trash, exclusive_trash
from subagents_nb.supervisor.warm.reconcile import reconcile


def gc(*, dry_run: bool = False, days: float | None = None, now: bool = False) -> Collection:
    """Move runs older than `days` (the settings' `keep_days`) to the trash and empty it of what lies there for a day.

    Live, paused, partial, unreadable, tagged (`keep`) and still needed runs stay; the answer counts them by reason. It
    shows itself as text.

    Args:
        dry_run: change nothing and say what would be done.
        days: delete what is older than so many days.
        now: empty the trash at once.

    Raises:
        RequestError: `days` is no number of days.
        SettingsProblem: the settings can't be used.
        StoreError: the store can't be used, or another process is at it.
    """
    if not dry_run:
        refuse_runs("runs are the person's to delete")
    if days is not None and not (math.isfinite(days) and days >= 0):
        raise RequestError(f"{days!r} is no number of days to keep runs for.")
    keep_for = keep_days() if days is None else days
    home = open_home(create=False)
    grace = 0.0 if now else GRACE_S
    if not home.runs.is_dir():
        return Collection(dry_run=dry_run, grace_s=grace)
    return collect(
        home, keep_s=keep_for * DAY_S, grace_s=grace, dry_run=dry_run, judge=functools.partial(reconcile, home)
    )


def restore(text: str) -> Run:
    """Bring a run back from the trash by its id, name or 8 characters of its id, and return its handle.

    The runs below it come back too, as far as they are still there.

    Raises:
        UnknownRun, AmbiguousRun: not exactly one run in the trash fits.
        StoreError: it can't be moved.
    """
    refuse_runs("runs are the person's to bring back")
    home = open_home(create=False)
    with exclusive_trash(home):
        trash = Trash(home)
        run = Run(home, trash.restore(text))
        for below in ids_of_rows(FileRuns(home).snapshot(run.id).tree):
            with contextlib.suppress(SubagentsError):  # it is gone for good, or was not deleted
                trash.restore(below)
        return run


def keep_days() -> float:
    """Return for how long runs are kept: the user's own word. A project must not decide about all the user's runs.

    Raises:
        SettingsProblem: the user's settings can't be used.
    """
    return load_settings(Path.home(), environ=os.environ, reserved=PROVIDER_NAMES).keep_days
