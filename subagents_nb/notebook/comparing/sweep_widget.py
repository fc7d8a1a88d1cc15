"""A sweep's kernel half on a live page: what it is sent, and what it may ask of the sweep's runs."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import traitlets

from subagents_nb.experiments.sweeps.sweep import Sweep
from subagents_nb.experiments.sweeps.sweep_cells import SweepCell
from subagents_nb.experiments.sweeps.sweep_picture import runs_of
from subagents_nb.launching import Run
from subagents_nb.notebook.full.full_view import OPEN, in_background
from subagents_nb.notebook.page.assets import asset, joined
from subagents_nb.notebook.views.widget import PageWidget, Reply, synced

HERE_S = 60.0  # a page says three times as often that it shows the sweep


class SweepWidget(PageWidget):
    """A sweep on the page. The traits are the contract with widgets/sweep.js."""

    _esm = joined(*map(asset, ("beat.js", "dom.js", "stand.js", "place.js", "sweep.js")))
    _css = "\n".join(map(asset, ("run.css", "sweep.css")))

    picture = synced(traitlets.Dict())  # see experiments/sweeps/sweep_picture.py
    token = synced(traitlets.Unicode(""))  # the class of the plain table before which it stands; the model's id
    version = synced(traitlets.Int(0))


class SweepRequests:
    """Carries out what a page asks. Only runs of this sweep can be meant."""

    def __init__(
        self,
        sweep: Sweep,
        places: Callable[[], Sequence[SweepCell]],
        card: Callable[[], dict[str, str]],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._sweep, self._places, self._card, self._clock = sweep, places, card, clock
        self._heard_at: float | None = None

    @property
    def stands(self) -> bool:
        """Whether a page shows it now."""
        return self._heard_at is not None and self._clock() - self._heard_at < HERE_S

    def hear(self, content: object, reply: Reply) -> None:
        """Take a message of the page."""
        if not isinstance(content, dict):
            return
        kind, run_id, number = content.get("kind"), content.get("run"), content.get("n")
        if kind == "here":
            self._heard_at = self._clock()
        elif kind == "card":
            reply({"kind": "card", "data": self._card()})
        elif kind == "shut":
            OPEN.shut(content)
        elif kind == "runs" and type(number) is int:
            in_background(lambda: reply({"kind": "runs", "n": number, **self._runs(number)}))
        elif isinstance(run_id, str) and run_id in self._sweep.ids:
            OPEN.hear(Run(self._sweep.home, run_id), content)

    def _runs(self, number: int) -> dict[str, Any]:
        return runs_of(self._places(), self._sweep.params, number)
