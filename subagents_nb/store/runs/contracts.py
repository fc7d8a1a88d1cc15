"""Which runs carry out which contract: an index, so that a launch finds those like it without reading all plans.

    contracts/<key>/<run_id>    an empty marker, made by the launcher before its run is there
                    lock        held around look-and-create, so that two launchers at once come to one run
              models/<digest>   a model that runs used and that not every machine comes to by itself
              .complete         all runs of the store are in it

A cache: deleted, it is made again from the plans.
"""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

from pydantic import ValidationError

from subagents_nb.domain.agents.models import ModelChoice, depends_on_machine
from subagents_nb.domain.plans.plan import LaunchPlan, choices_of
from subagents_nb.domain.runs.reuse import contract_key, key_but_for_skills
from subagents_nb.domain.values.base import sha256_text
from subagents_nb.domain.values.ids import is_run_id
from subagents_nb.errors import StoreError, Unreadable
from subagents_nb.store.files.disk import DISK, PRIVATE_DIR
from subagents_nb.store.files.lock import exclusive, hold
from subagents_nb.store.layout import StoreHome
from subagents_nb.store.runs.reader import FileRuns, read_document

_KEY = re.compile(r"[0-9a-f]{64}\Z")
_PATIENCE_S, _SWEEP_PATIENCE_S = 60.0, 120.0
_WHOLE = ".complete"
_MOST_MODELS = 50


@contextlib.contextmanager
def locked(home: StoreHome, key: str, *, patience_s: float = _PATIENCE_S) -> Iterator[None]:
    """Be the only launcher of this contract for the moment.

    Raises:
        StoreError: another one was at it all the time.
    """
    handle: int | None = None
    try:
        handle = hold(_index_folder(home, key) / "lock", owner=str(os.getpid()), patience_s=patience_s)
    except BlockingIOError:
        raise StoreError(
            f"Another process has been launching the same work for {patience_s:g} s. Wait for it, or launch "
            "with reuse='never'."
        ) from None
    except OSError:
        pass  # a file system without locks: two launchers at once may come to two runs
    try:
        yield
    finally:
        if handle is not None:
            os.close(handle)


def lock_sweep(home: StoreHome, sweep: str) -> AbstractContextManager[None]:
    """Hold a sweep while one of its runs is looked for and launched: two kernels with one grid launch each run once.

    Raises:
        StoreError: another process holds it for longer than our patience, or it can't be taken.
    """
    if len(sweep) < 16 or not sweep.isalnum():
        raise StoreError(f"{sweep[:40]!r} is no digest of a sweep.")
    with contextlib.suppress(OSError):
        home.sweeps.mkdir(mode=PRIVATE_DIR, exist_ok=True)
    busy = StoreError(f"Another process launches runs of this sweep for {_SWEEP_PATIENCE_S:g} s already; wait for it.")
    return exclusive(home.sweeps / f"{sweep[:32]}.lock", patience_s=_SWEEP_PATIENCE_S, what="The sweep", busy=busy)


def sweep_mark(home: StoreHome, sweep: str) -> int:
    """Return what changes with each run that is launched for a sweep; for its holder."""
    try:
        return _last_launch(home, sweep).stat().st_mtime_ns
    except OSError:
        return 0


def mark_sweep(home: StoreHome, sweep: str) -> int:
    """Say that a run is about to be launched for a sweep, and return the mark; for its holder."""
    with contextlib.suppress(OSError):
        _mark(_last_launch(home, sweep))
        now = time.time_ns()  # the system's own stamp is of its last tick: two holders may have the same
        os.utime(_last_launch(home, sweep), ns=(now, now))
    return sweep_mark(home, sweep)


def _last_launch(home: StoreHome, sweep: str) -> Path:
    return home.sweeps / f"{sweep[:32]}.last"


def index_run(home: StoreHome, plan: LaunchPlan) -> None:
    """Put a run into the index; where that fails, it is only never found again by its contract."""
    with contextlib.suppress(OSError):
        if (key := contract_key(plan)) is None:
            return
        _mark(_index_folder(home, key) / plan.run_id)
        if (kin := key_but_for_skills(plan)) is not None:
            _mark(_index_folder(home, kin) / plan.run_id)
        _note_models(home, plan)


def runs_of(home: StoreHome, key: str) -> list[str]:
    """Return the runs of a contract that are there, newest first."""
    if not _KEY.match(key):
        return []
    _be_whole(home)
    folder = _folder(home) / key
    with contextlib.suppress(OSError):
        marked = [name for name in os.listdir(folder) if is_run_id(name)]
        existing = [run_id for run_id in marked if os.path.isdir(home.run_folder(run_id))]
        if len(existing) < len(marked):
            _forget(home, folder, set(marked) - set(existing))
        return sorted(existing, reverse=True)
    return []


def models_of(home: StoreHome) -> list[ModelChoice]:
    """Return the models that runs of this store came to by a default, and those of endpoints, newest first."""
    _be_whole(home)
    choices: list[tuple[int, str, ModelChoice]] = []
    folder = _folder(home) / "models"
    with contextlib.suppress(OSError):
        for name in filter(_KEY.match, os.listdir(folder)):
            with contextlib.suppress(Unreadable, OSError, ValidationError):
                choice = ModelChoice.model_validate_json(DISK.read(folder / name))
                choices.append(((folder / name).lstat().st_mtime_ns, name, choice))
    return [choice for _, _, choice in sorted(choices, key=lambda one: one[:2], reverse=True)[:_MOST_MODELS]]


def rebuild(home: StoreHome) -> None:
    """Make the index from the plans of all runs."""
    for run_id in FileRuns(home).ids():
        with contextlib.suppress(Unreadable):
            index_run(home, read_document(home.run(run_id).plan, LaunchPlan, run_id))
    with contextlib.suppress(OSError):
        _make(_folder(home))
        _mark(_folder(home) / _WHOLE)


def _be_whole(home: StoreHome) -> None:
    if not (_folder(home) / _WHOLE).exists() and FileRuns(home).ids():
        rebuild(home)


def _note_models(home: StoreHome, plan: LaunchPlan) -> None:
    for choice in choices_of(plan.steps, plan.items):
        if depends_on_machine(choice):
            data = choice.model_dump_json(exclude_none=True)
            path = _folder(home) / "models" / sha256_text(data)
            if not path.exists():
                _make(path.parent)
                DISK.replace(path, data.encode(), durable=False)


def _forget(home: StoreHome, folder: Path, gone: set[str]) -> None:
    """Take away the markers of runs that are neither there nor in the trash, from where they can come back."""
    with contextlib.suppress(OSError):
        trash = os.listdir(home.root / "trash") if (home.root / "trash").is_dir() else []
        for run_id in gone:
            if not any(name.startswith(run_id) for name in trash):
                (folder / run_id).unlink(missing_ok=True)


def _folder(home: StoreHome) -> Path:
    return home.root / "contracts"


def _index_folder(home: StoreHome, key: str) -> Path:
    _make(_folder(home))
    _make(_folder(home) / key)
    return _folder(home) / key


def _make(folder: Path) -> None:
    with contextlib.suppress(FileExistsError):
        folder.mkdir(mode=PRIVATE_DIR)


def _mark(path: Path) -> None:
    os.close(DISK.open(path, os.O_CREAT | os.O_WRONLY))
