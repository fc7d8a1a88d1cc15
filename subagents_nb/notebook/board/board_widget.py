"""The board's kernel half: traits that the page reads, and the way of what the page asks for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import traitlets

from subagents_nb.notebook.page.assets import asset, joined
from subagents_nb.notebook.views.widget import PageWidget, synced

Reply = Callable[[dict[str, Any]], None]


class BoardWidget(PageWidget):
    """Many runs on the page. The traits are the contract with widgets/board.js."""

    _esm = joined(
        *map(
            asset,
            ("beat.js", "dom.js", "asks.js", "stand.js", "place.js", "row.js", "group.js", "hand.js", "board.js"),
        )
    )
    _css = "\n".join(map(asset, ("run.css", "board.css")))

    rows = synced(traitlets.Dict())  # by run
    head = synced(traitlets.Dict())  # places, and what today has used
    fresh = synced(traitlets.Dict())  # the rows that changed, and the runs that are gone, since the last of them
    beat = synced(traitlets.Int(0))
    token = synced(traitlets.Unicode(""))  # the class of the plain table before which it stands; the model's id
    version = synced(traitlets.Int(0))

    def __init__(
        self, whole: Callable[[], dict[str, Any]], *, on_request: Callable[[Any, Reply], None], token: str
    ) -> None:
        self._whole = whole
        super().__init__(on_request, token, token=token)

    def get_state(self, key: Any = None, drop_defaults: bool = False) -> Any:
        """Return the traits; as a whole with the rows, which otherwise go out piece by piece."""
        state = super().get_state(key, drop_defaults)
        return {**state, **self._whole()} if key is None else state
