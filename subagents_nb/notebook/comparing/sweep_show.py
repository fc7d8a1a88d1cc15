"""Show a sweep: a plain table that is published anew while its runs go on, so that a saved notebook is always right.

On a page a live view stands before it, which opens runs in full. While that is there, the plain table behind it is
published anew when a cell begins and at the end alone: a page draws an output anew each time.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from subagents_nb.blocks import Html
from subagents_nb.domain.runs.snapshot import Snapshot
from subagents_nb.experiments.sweeps.sweep import Sweep
from subagents_nb.experiments.sweeps.sweep_cells import Reading, SweepCell, reading_of, sweep_line, tally, whence_text
from subagents_nb.launching.following.watch import WATCHER
from subagents_nb.notebook.comparing.sweep_view import live_picture, said_of, sweep_html
from subagents_nb.notebook.page.html import element, to_page
from subagents_nb.notebook.views.notices import NOTICES, Notices
from subagents_nb.notebook.views.show import cell_id, display_mode
from subagents_nb.plain_text import plain
from subagents_nb.terminal import say

EVERY_S = 1.0
Bundle = dict[str, str]
_live: list[SweepView] = []
_ends: deque[SweepView] = deque(maxlen=100)
_shown: deque[SweepView] = deque(maxlen=4)  # the latest, whose runs may be judged after their end
_KEPT = 16
_kept: deque[Any] = deque()  # the widgets of the latest tables


class Drawn(Protocol):
    """What a view of a sweep draws on besides the plain table; while it `stands`, that is published seldom."""

    @property
    def stands(self) -> bool: ...
    def draw(self, places: list[SweepCell]) -> None: ...


class SweepView:
    """One table on the page, until nothing of the sweep goes on any more. `publish` puts a new one in its place.

    It reads a run once and is told by the watcher afterwards. `where` is the cell that shows it, and which execution
    of that cell.
    """

    def __init__(
        self,
        sweep: Sweep,
        publish: Callable[[Bundle], None],
        *,
        where: tuple[str | None, str] = (None, ""),
        sheet: Drawn | None = None,
        clock: Callable[[], float] = time.monotonic,
        notices: Notices = NOTICES,
    ) -> None:
        self._sweep = sweep
        self._notices = notices
        self._publish = publish
        self._clock = clock
        self.where = where
        self._guard = threading.RLock()
        self._heard: dict[str, Reading] = {}
        self._stops: dict[str, Callable[[], None]] = {}  # of the live runs
        self._unobserve: Callable[[], None] = _nothing
        self._stale = False
        self._behind = False  # the plain table is, behind the live view
        self._sheet = sheet
        self._judged: list[Mapping[str, float]] = []
        self._last = clock()
        self._over = False

    def start(self, show: Callable[[Bundle], None]) -> None:
        """Put the table on the page with `show`, and begin to follow the sweep if anything goes on."""
        with self._guard:
            for run_id in self._sweep.ids:
                self._heard[run_id] = self._sweep.read(run_id)
            places = self.places()
            first = bundle_of(self._sweep, places)
            show(first)
            self._draw(places)
            self._unobserve = self._sweep.observe(self.grow)
            self._follow()
            if self._is_idle():
                if self.bundle() != first:  # the last was launched, and ended, just now
                    self._show()
                self.drop()

    def bundle(self) -> Bundle:
        """Return what is shown now."""
        with self._guard:
            return bundle_of(self._sweep, self.places())

    def places(self) -> list[SweepCell]:
        """Return its cells as far as it has heard of them."""
        return self._sweep.places(dict(self._heard))

    @property
    def goes_on(self) -> bool:
        """Whether anything of it goes on, as far as it has heard."""
        return self._sweep.launching or any(reading.live for reading in self._heard.values())

    def grow(self) -> None:
        """Follow the runs that were not known before; end if nothing goes on any more."""
        with self._guard:
            if self._over:
                return
            self._stale = True
            self._follow()
            self._end_if_idle()

    def on_snapshot(self, snapshot: Snapshot) -> None:
        """Take a new reading of one run; what changed is shown with the next tick, the last of all at once."""
        with self._guard:
            if self._over:
                return
            reading = reading_of(snapshot)
            before = self._heard.get(snapshot.run_id)
            # Since when it works is known to the millisecond, and shown by nobody.
            self._stale |= before is None or before != reading._replace(working_since=before.working_since)
            self._heard[snapshot.run_id] = reading
            if snapshot.ended:
                self._stops.pop(snapshot.run_id, None)
                self._end_if_idle()

    def tick(self) -> None:
        """Show what changed, if the last change was shown a while ago."""
        with self._guard:
            if self._stale and not self._over and self._clock() - self._last >= EVERY_S:
                self._show()

    def again(self) -> None:
        """Publish once more how it stands."""
        with self._guard:
            places = self.places()
            self._draw(places)
            self._behind = False
        self._publish(bundle_of(self._sweep, places))

    def judge_anew(self) -> None:
        """Publish once more if runs were judged since."""
        if [place.scores for place in self.places()] != self._judged:
            self.again()

    def leave(self) -> None:
        """Show what changed, and nothing afterwards; the runs go on."""
        with self._guard:
            if self._over:
                return
            self.drop()
            if self._stale or self._behind:
                self._show()

    def drop(self) -> None:
        """Show nothing any more: the page has no place for it."""
        with self._guard:
            self._over = True
            for stop in self._stops.values():
                stop()
            self._stops.clear()
            self._unobserve()
            if self in _live:
                _live.remove(self)

    def _follow(self) -> None:
        for run_id in self._sweep.ids:
            reading = self._heard.get(run_id) or self._sweep.read(run_id)
            self._heard[run_id] = reading
            if run_id in self._stops:
                continue
            self._notices.shown(run_id)  # also of one that ended before its table came: the table tells it
            if not (reading.live or reading.state is None):
                continue
            run = self._sweep.handle(run_id)
            self._notices.expect(run)
            self._notices.shown(run_id)
            self._stops[run_id] = WATCHER.follow(run.home, run_id, self.on_snapshot, tick=self.tick)

    def _is_idle(self) -> bool:
        return not self._stops and not self._sweep.launching

    def _end_if_idle(self) -> None:
        if self._is_idle():
            _ends.append(self)  # first, or a cell that begins just now would miss it
            self.leave()

    def _show(self) -> None:
        self._stale, self._last = False, self._clock()
        places = self.places()
        self._draw(places)
        self._behind = self._sheet is not None and self._sheet.stands and not self._over
        if not self._behind:
            self._publish(bundle_of(self._sweep, places))

    def _draw(self, places: list[SweepCell]) -> None:
        self._judged = [place.scores for place in places]
        if self._sheet is not None:
            self._sheet.draw(places)


def bundle_of(sweep: Sweep, places: list[SweepCell]) -> Bundle:
    """Return what a saved notebook keeps."""
    counts = tally(place.reading for place in places)
    is_live = sweep.launching or any(place.reading is not None and place.reading.live for place in places)
    as_of = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime()) if is_live else ""
    return {"text/html": sweep_html(sweep, places, as_of=as_of), "text/plain": plain(_text(sweep, counts))}


def _text(sweep: Sweep, counts: Mapping[str, int]) -> str:
    whence = whence_text(sweep.found, sweep.launched)
    return sweep_line(sweep.name, counts, whence, sweep.note, launching=sweep.launching)


class Sheet:
    """The live view of one sweep, and the numbers of the plain tables behind it.

    A page that was loaded meanwhile knows no display ids, and asks for the last table by its number.
    """

    def __init__(self, sweep: Sweep) -> None:
        self._sweep = sweep
        self._token = secrets.token_hex(16)
        self._last: Bundle = {}
        self._version = -1
        self._places: list[SweepCell] = []
        self._widget: Any = None
        self._requests: Any = None

    @property
    def stands(self) -> bool:
        """Whether a page shows it."""
        return self._requests is not None and self._requests.stands

    def numbered(self, data: Bundle, *, live: bool = False) -> Bundle:
        """Return what is to be published; the page hears of its number.

        Of a `live` one it is known on the page by its class: where its kernel is gone, the next one's finder says so.
        """
        self._version += 1
        classes = f"{self._token} {self._token}-{self._version}{' subagents-nb-sweep' if live else ''}"
        self._last = {**data, "text/html": to_page(element("div", {"class": classes}, Html(data["text/html"])))}
        if self._widget is not None:
            self._widget.set_trait("version", self._version)
        return self._last

    def draw(self, places: list[SweepCell]) -> None:
        """Let the page show how the sweep stands."""
        self._places = places
        picture = live_picture(self._sweep, places)
        if self._widget is not None:
            self._widget.set_trait("picture", picture)
            return
        from subagents_nb.notebook.comparing.sweep_widget import SweepRequests, SweepWidget

        self._requests = SweepRequests(self._sweep, lambda: self._places, lambda: self._last)
        state = {"token": self._token, "version": max(0, self._version), "picture": picture}
        self._widget = SweepWidget(self._requests.hear, self._token, **state)
        _kept.append(self._widget)
        while len(_kept) > _KEPT:
            _kept.popleft().dispose()


def show_sweep(sweep: Sweep) -> bool:
    """Show a sweep where it is: a table that follows it, or a line of text in a terminal.

    A cell that is run again shows one: that of its last time is left alone. Return whether the view will show the end
    by itself; a line of text can't.
    """
    from IPython.core.getipython import get_ipython

    shell: Any = get_ipython()
    if display_mode(shell) == "text":
        say(said_of(sweep))
        return False
    transient = {"display_id": f"subagents-nb-{secrets.token_hex(8)}"}
    sheet = Sheet(sweep) if display_mode(shell) == "widget" else None

    def publish(data: Bundle) -> None:
        data = sheet.numbered(data, live=view.goes_on) if sheet is not None else data
        shell.display_pub.publish(data=data, metadata={}, transient=transient, update=True)

    def show(data: Bundle) -> None:
        data = sheet.numbered(data, live=view.goes_on) if sheet is not None else data
        shell.display_pub.publish(data=data, metadata={}, transient=transient)

    view = SweepView(sweep, publish, where=(cell_id(shell), _execution(shell)), sheet=sheet)
    for earlier in list(_live):
        if earlier.where[0] is not None and earlier.where[0] == view.where[0] and earlier.where != view.where:
            earlier.drop()
            if earlier in _shown:
                _shown.remove(earlier)
    _live.append(view)
    _shown.append(view)
    view.start(show)
    return True


def repeat_ends(*, publish: bool) -> None:
    """Publish once more the last tables of the sweeps that ended since the last call, or only forget them.

    A program that executes a notebook listens while a cell runs. What is published between two cells is lost to it.
    """
    while _ends:
        view = _ends.popleft()
        if publish:
            view.again()


def restate_all(*, begins: bool) -> None:
    """Let every table say how it stands, and as of when: a cell begins or ends."""
    for view in list(_live):
        if begins or view.where[0] is None:
            view.again()
    for view in _shown:
        if view not in _live:
            view.judge_anew()


def leave_all() -> None:
    """Leave every table as it stands and stop following its runs, which go on."""
    for view in list(_live):
        view.leave()
    _ends.clear()
    _shown.clear()
    while _kept:
        _kept.popleft().dispose()


def _execution(shell: Any) -> str:
    parent: Any = shell.get_parent() if hasattr(shell, "get_parent") else None
    header = parent.get("header") if isinstance(parent, dict) else None
    return str(header.get("msg_id", "")) if isinstance(header, dict) else ""


def _nothing() -> None:
    """Stop nothing."""
