"""Keep one shown run up to date until it has ended, then leave a static card in its place.

Called on the watcher's thread: sets traits, sends deltas, updates a display by its id, and never prints.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Protocol

from subagents_nb.domain.runs.snapshot import Snapshot
from subagents_nb.notebook.cards.graph_feed import GraphFeed
from subagents_nb.notebook.cards.shown import shown_state
from subagents_nb.notebook.cards.view import widget_state

EVERY_S = 0.25
_TAIL_TRAIT_S = 5.0
_BEAT_S = 5.0
_STREAMED = ("tail", "tail_end")
_FED = "graph"  # has a feed of its own


class ViewWidget(Protocol):
    """What a live view needs of a widget."""

    def send(self, content: Any) -> None: ...
    def hold_sync(self) -> Any: ...
    def set_trait(self, name: str, value: Any) -> None: ...
    def dispose(self) -> None: ...

    missing: Callable[[], dict[str, Any]]


class LiveView:
    """Feeds one widget. `publish_end` puts the final card where it stood, `publish_state` what holds until then.

    `reused` says of each reading how the launch came by the run; its words may change with the time.
    """

    def __init__(
        self,
        face: ViewWidget,
        first: Snapshot,
        *,
        publish_end: Callable[[Snapshot], None],
        publish_state: Callable[[Snapshot], None] = lambda _: None,
        reused: Callable[[Snapshot], str] = lambda _: "",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._face = face
        self._reused = reused
        self._clock = clock
        self._publish_end, self._publish_state = publish_end, publish_state
        self._said = shown_state(first)
        self._sent = self._now = widget_state(first, reused(first))
        self._streamed = int(self._sent["tail_end"])
        self._graph = GraphFeed(face, self._sent[_FED], clock) if self._sent[_FED] else None
        self._latest = first
        self._waiting: Snapshot | None = None
        self._last = self._last_tail = self._last_beat = self._clock()
        self._beat = 0
        self._over = False
        face.missing = self._missing

    def on_snapshot(self, snapshot: Snapshot) -> None:
        """Take a new reading of the run; show it now, or with the next tick if the last was just shown."""
        if self._over:
            return
        self._latest = snapshot
        if snapshot.ended:
            self.leave()
            return
        self._waiting = snapshot
        if self._clock() - self._last >= EVERY_S:
            self._show()

    def tick(self) -> None:
        """Show what waits, and prove to the page now and then that somebody still watches."""
        if self._over:
            return
        now = self._clock()
        if self._waiting is not None and now - self._last >= EVERY_S:
            self._show()
        if self._graph is not None:
            self._graph.renew()
        if now - self._last_beat >= _BEAT_S:
            self._last_beat = now
            self._beat += 1
            self._face.set_trait("beat", self._beat)

    def restate(self) -> None:
        """Say anew in the plain output how it stands, if that is not what it says."""
        if not self._over and shown_state(self._latest) != self._said:
            self._said = shown_state(self._latest)
            self._publish_state(self._latest)

    def watch(self, step: int | None, told: dict[str, Any] | None = None) -> None:
        """Tell the page about one step of a chain from now on, beginning with what it was told; None: about none."""
        if self._graph is not None:
            self._graph.watch(step, told)

    def leave(self) -> None:
        """Put the card of the last reading in the view's place; nothing is shown afterwards.

        The view of a run that has ended stays with its end, for a page that was loaded meanwhile and can't hear of the
        card: `publish_end` says what becomes of it.
        """
        if self._over:
            return
        self._over = True
        try:
            if self._latest.ended:
                self._waiting = self._latest
                self._show(version=1)
            self._publish_end(self._latest)
        finally:
            if not self._latest.ended:
                self._face.dispose()

    def _missing(self) -> dict[str, Any]:
        graph = {} if self._graph is None else {_FED: self._graph.whole}
        return {name: self._now[name] for name in _STREAMED} | graph

    def _show(self, **more: Any) -> None:
        snapshot, self._waiting = self._waiting, None
        if snapshot is None:
            return
        self._last = self._clock()
        state = self._now = widget_state(snapshot, self._reused(snapshot))
        fresh, with_tail = self._stream(state)
        changed = {
            name: value
            for name, value in state.items()
            if self._sent.get(name) != value and (with_tail or name not in _STREAMED) and name != _FED
        }
        self._sent.update(changed)
        if self._graph is not None:
            self._graph.show(snapshot)
        if not (changed := {**changed, **fresh, **more}):
            return
        with self._face.hold_sync():  # all in one message
            for name, value in changed.items():
                self._face.set_trait(name, value)

    def _stream(self, state: dict[str, Any]) -> tuple[dict[str, Any], bool]:
        """Return what is new of the text, and whether the whole tail must go out besides."""
        tail, end = str(state["tail"]), int(state["tail_end"])
        begin, self._streamed = self._streamed, max(self._streamed, end)
        missed = end - begin > len(tail)
        fresh = {"fresh": {"at": begin, "text": tail[begin - end :]}} if begin < end and not missed else {}
        if with_tail := missed or self._last - self._last_tail >= _TAIL_TRAIT_S:
            self._last_tail = self._last
        return fresh, with_tail


class CardView:
    """The same for hosts without widgets: the card itself is published anew, at most once a second."""

    def __init__(
        self,
        publish: Callable[[Snapshot], None],
        *,
        first: Snapshot | None = None,
        every_s: float = 1.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._publish = publish
        self._clock = clock
        self._every_s = every_s
        self._waiting: Snapshot | None = None
        self._shown = first  # or about to be
        self._last = self._clock()
        self._over = False

    def on_snapshot(self, snapshot: Snapshot) -> None:
        """Take a new reading; the last one is shown at once."""
        if self._over:
            return
        self._waiting = self._shown = snapshot
        if snapshot.ended:
            self.leave()

    def leave(self) -> None:
        """Show what waits, and nothing afterwards."""
        self._over = True
        if self._waiting is not None:
            snapshot, self._waiting = self._waiting, None
            self._publish(snapshot)

    def restate(self) -> None:
        """Show how it stands now, though nothing changed: the card says as of when that is."""
        if not self._over and self._shown is not None:
            self._waiting, self._last = None, self._clock()
            self._publish(self._shown)

    def tick(self) -> None:
        """Show what waits."""
        if self._waiting is not None and self._clock() - self._last >= self._every_s:
            snapshot, self._waiting, self._last = self._waiting, None, self._clock()
            self._publish(snapshot)
