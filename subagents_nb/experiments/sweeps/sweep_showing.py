"""How a sweep shows itself: what does it, the notebook has registered from above."""

from __future__ import annotations

import abc
from typing import Any

from subagents_nb.above import above


class SweepShowing(abc.ABC):
    """What hosts ask of a sweep."""

    def widget(self) -> Any:
        """Return a widget of ipywidgets that shows it: see `Run.widget`. `done` and `total` are traits of it, too."""
        return above("sweep_widget")(self)

    def _display_(self) -> Any:
        return above("marimo_display")(self, live=self._goes_on())

    @abc.abstractmethod
    def _goes_on(self) -> bool:
        """Say whether any of its runs may still move, or is still to be launched."""

    def _ipython_display_(self) -> None:
        above("show_sweep")(self)

    def _repr_html_(self) -> str:
        return str(above("sweep_html")(self))
