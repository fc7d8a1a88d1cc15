"""A sweep as a widget that a person holds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import traitlets

from subagents_nb.experiments.sweeps.sweep import Sweep
from subagents_nb.experiments.sweeps.sweep_cells import SweepCell, tally
from subagents_nb.notebook.comparing.sweep_show import SweepView, bundle_of
from subagents_nb.notebook.comparing.sweep_view import live_picture
from subagents_nb.notebook.comparing.sweep_widget import SweepRequests, SweepWidget
from subagents_nb.notebook.held.held import Held


class HeldSweep(Held, SweepWidget):
    """A sweep. Besides what its page reads it says how far it is."""

    state = traitlets.Unicode("running", read_only=True, help="running, then complete; partial if runs are missing")
    done = traitlets.Int(0, read_only=True, help="how many runs ended with something to show")
    failed = traitlets.Int(0, read_only=True, help="how many ended without")
    total = traitlets.Int(0, read_only=True, help="how many there are to be")
    tokens = traitlets.Int(0, read_only=True, help="how many its runs have read and written")
    questions: Any = traitlets.List(read_only=True, help="the runs that ask: each with its name")

    def take(self, sweep: Sweep, places: Sequence[SweepCell]) -> None:
        """Say how the sweep stands."""
        picture = live_picture(sweep, places)
        said: dict[str, Any] = {"picture": picture, **figures(places, goes_on=picture["live"])}
        with self.hold_sync():
            for name, value in said.items():
                self.set_trait(name, value)


def figures(places: Sequence[SweepCell], *, goes_on: bool) -> dict[str, Any]:
    """Return what a sweep says besides its picture."""
    counts, known = tally(place.reading for place in places), [one.reading for one in places if one.reading is not None]
    over = "complete" if counts["done"] == counts["cells"] else "partial"
    return {
        "state": "running" if goes_on else over,
        "done": counts["done"],
        "failed": counts["failed"],
        "total": counts["cells"],
        "tokens": sum(reading.tokens for reading in known),
        "questions": [{"run": reading.run_id, "name": reading.name} for reading in known if reading.asks],
    }


class _Sheet:
    """What the view of a sweep draws on: the widget alone, so no plain table is ever behind it."""

    stands = True

    def __init__(self, sweep: Sweep, widget: HeldSweep) -> None:
        self._sweep, self._widget = sweep, widget
        self.places: Sequence[SweepCell] = ()

    def draw(self, places: list[SweepCell]) -> None:
        """Let it show how the sweep stands."""
        self.places = places
        self._widget.soon("places", lambda: self._widget.take(self._sweep, places))


def sweep_widget(sweep: Sweep) -> HeldSweep:
    """Return a widget that shows this sweep, each time a new one."""
    places = sweep.places()

    def plain() -> dict[str, str]:
        return bundle_of(sweep, sweep.places())

    requests = SweepRequests(sweep, lambda: sheet.places, plain)
    widget = HeldSweep(requests.hear)
    widget.take(sweep, places)
    sheet = _Sheet(sweep, widget)
    sheet.places = places
    view = SweepView(sweep, lambda _: None, sheet=sheet)
    view.start(lambda _: None)
    widget.hold(view.drop, plain)
    return widget
