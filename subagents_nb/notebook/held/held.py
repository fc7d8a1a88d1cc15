"""What is common to the widgets that a person holds: fed until they are closed, heard of by trait, plain when saved."""

from __future__ import annotations

import contextlib
import contextvars
import logging
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any

from subagents_nb.notebook.views.notices import NOTICES
from subagents_nb.notebook.views.widget import PageWidget

Bundle = dict[str, str]
_IDLE_S = 5.0
_log = logging.getLogger(__name__)
_live: weakref.WeakSet[Held] = weakref.WeakSet()


class Teller:
    """One thread on which held widgets hear of their runs: who observes them may take its time, and may wait for runs.

    Of what a widget has not heard yet the latest alone is told. Nothing else of ours waits for it.
    """

    def __init__(self) -> None:
        self._guard = threading.Condition()
        self._due: dict[object, Callable[[], None]] = {}
        self._works = False

    def tell(self, what: object, work: Callable[[], None]) -> None:
        """Have it done soon; what is due already under this key is not done any more."""
        with self._guard:
            self._due[what] = work
            self._guard.notify()
            if not self._works:
                self._works = True
                # An empty context: a thread with that of a cell prints into it for ever, ipython/ipykernel#1491.
                work_off = contextvars.Context().run
                threading.Thread(target=work_off, args=(self._loop,), name="subagents-nb-held", daemon=True).start()

    def _loop(self) -> None:
        while True:
            with self._guard:
                while not self._due:
                    if not self._guard.wait(_IDLE_S):
                        self._works = False
                        return
                work = self._due.pop(next(iter(self._due)))
            try:
                work()
            except Exception:  # noqa: BLE001 - one view's fault must not blind the others
                _log.exception("a held view failed")
            del work  # or it would keep its widget until there is other work


TELLER = Teller()


class Held(PageWidget):
    """A widget that a person puts where they like. Closing it ends its feed; a run that ended leaves its last state."""

    _unfeed: Callable[[], None] = staticmethod(lambda: None)
    _over = False
    _plain: Callable[[], Bundle] = staticmethod(dict)

    def hold(self, unfeed: Callable[[], None], plain: Callable[[], Bundle]) -> None:
        """Say how its feed ends, and what stands for it where no widget is shown."""
        self._unfeed, self._plain = unfeed, plain
        _live.add(self)

    def soon(self, what: str, work: Callable[[], None]) -> None:
        """Have it told soon, unless its feed has ended by then."""
        TELLER.tell((self, what), lambda: None if self._over else work())

    def cell_runs(self, runs: bool) -> None:
        """Hear whether a cell is being run."""

    def leave(self) -> None:
        """Hear of nothing any more; what it says stays, and a page sees that it gets old."""
        self._over = True
        unfeed, self._unfeed = self._unfeed, _nothing
        _live.discard(self)
        unfeed()

    def close(self) -> None:
        """End the feed and take it from every page."""
        self.leave()
        layout = getattr(self, "layout", None)
        if layout is not None and layout.comm is not None:
            layout.close()  # it would stay in ipywidgets' registry, jupyter-widgets/ipywidgets#2308
        super().close()

    @contextlib.contextmanager
    def hold_sync(self) -> Iterator[None]:
        """Send what changes in one message, and tell who observes it of a trait when all of them have changed."""
        with super().hold_sync(), self.hold_trait_notifications():
            yield

    def notify_change(self, change: Any) -> None:
        """Tell who observes it; what fails there is the person's own, and must not blind the page."""
        try:
            super().notify_change(change)
        except Exception as error:  # noqa: BLE001 - told with the next cell
            NOTICES.fail("observing", error)

    def _repr_mimebundle_(self, **how: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        bundle: Any = super()._repr_mimebundle_(**how) or {}
        data, metadata = bundle if isinstance(bundle, tuple) else (bundle, {})
        return {**data, **self._plain()}, metadata


def restate_all(*, begins: bool) -> None:
    """A cell begins or ends."""
    for widget in list(_live):
        widget.cell_runs(begins)


def leave_all() -> None:
    """Let every held widget stand as it is."""
    for widget in list(_live):
        widget.leave()


def _nothing() -> None:
    """End nothing."""
