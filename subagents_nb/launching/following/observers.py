"""Who in this process hears of its launches and waits. Front ends register here; this package knows none."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections import deque
from collections.abc import Callable, Iterable
from functools import partial
from typing import Protocol

from subagents_nb.store import StoreHome

_KEPT = 100
_log = logging.getLogger(__name__)


class Observer(Protocol):
    """Hears on the thread that launched or waited, and must not block."""

    def launched(self, home: StoreHome, run_id: str) -> None:
        """A run was launched by this process."""

    def awaited(self, run_id: str) -> None:
        """Somebody in this process waited for the end of a run, and has it."""


_guard = threading.Lock()
_observers: list[Observer] = []
# Nobody may listen yet: a front end is told of what was launched before it came, once.
_unheard: deque[tuple[StoreHome, str]] = deque(maxlen=_KEPT)


def observe(observer: Observer) -> Callable[[], None]:
    """Tell an observer of every launch and wait, and of the launches that nobody heard of; return how to stop it."""
    with _guard:
        _observers.append(observer)
        missed = list(_unheard)
        _unheard.clear()
    for home, run_id in missed:
        _call(partial(observer.launched, home, run_id))

    def stop() -> None:
        with _guard, contextlib.suppress(ValueError):
            _observers.remove(observer)

    return stop


def tell_launched(home: StoreHome, run_id: str) -> None:
    """Say that a run was launched."""
    with _guard:
        observers = list(_observers)
        if not observers:
            _unheard.append((home, run_id))
    for observer in observers:
        _call(partial(observer.launched, home, run_id))


def tell_awaited(run_ids: Iterable[str]) -> None:
    """Say that the ends of these runs were waited for, and came."""
    known = set(run_ids)
    with _guard:
        observers = list(_observers)
        left = [entry for entry in _unheard if entry[1] not in known]
        _unheard.clear()
        _unheard.extend(left)
    for observer in observers:
        for run_id in known:
            _call(partial(observer.awaited, run_id))


def _call(tell: Callable[[], None]) -> None:
    try:
        tell()
    except Exception:  # noqa: BLE001 - a fault of theirs must spoil neither a launch nor a wait
        _log.exception("an observer of launches failed")
