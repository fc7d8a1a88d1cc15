"""A board as a widget that a person holds."""

from __future__ import annotations

from typing import Any

import traitlets

from subagents_nb.notebook.board.board_feed import BoardFeed
from subagents_nb.notebook.board.board_requests import BoardRequests
from subagents_nb.notebook.board.board_show import Board, bundle
from subagents_nb.notebook.board.board_widget import BoardWidget
from subagents_nb.notebook.held.held import Held

_AT_ONCE = 8  # each looks into the store twice a second, and a cell that is run again leaves those of its last time
_open: list[HeldBoard] = []


class HeldBoard(Held, BoardWidget):
    """Many runs. Besides what its page reads it says what they need of the person, and what they used."""

    questions: Any = traitlets.List(read_only=True, help="what is asked: the run, its name and the text, oldest first")
    tokens = traitlets.Int(0, read_only=True, help="how many its runs have read and written")
    live = traitlets.Int(0, read_only=True, help="how many of them go on")
    failed = traitlets.Int(0, read_only=True, help="how many went wrong and were not looked at")
    feed: BoardFeed

    def leave(self) -> None:
        """Hear of nothing any more, and be gone: nobody could tell a board that stands still from one without news."""
        super().leave()
        if self in _open:
            _open.remove(self)
            self.close()

    def cell_runs(self, runs: bool) -> None:
        """Hear whether a cell is being run: its page can't know then who is silent."""
        self.feed.cell_runs = runs

    @traitlets.observe("fresh")
    def count(self, _change: Any = None) -> None:
        """Sum up its rows."""
        rows = list(self._whole()["rows"].values())
        asked = sorted((row for row in rows if "question" in row), key=lambda row: str(row["asked"]))
        said = [{"run": row["id"], "name": row["name"], "text": row["question"]["text"]} for row in asked]
        with self.hold_trait_notifications():
            self.set_trait("questions", said)
            self.set_trait("tokens", sum(row["tokens_in"] + row["tokens_out"] for row in rows))
            self.set_trait("live", sum(row["need"] in ("asks", "working", "waiting") for row in rows))
            self.set_trait("failed", sum(row["need"] == "failed" for row in rows))


def board_widget(board: Board) -> HeldBoard:
    """Return a widget that shows this board, each time a new one; the oldest of too many is closed."""
    while len(_open) >= _AT_ONCE:
        _open[0].close()
    which = board.which
    listed = which.list()
    fits = which.fits(listed.home) if which.may_hide_failures else None
    feed = BoardFeed(which.list, listed, by_state=which.by_state, fits=fits)

    def plain() -> dict[str, str]:
        return bundle(feed.snapshots, feed.hidden)

    widget = HeldBoard(feed.state, on_request=BoardRequests(feed, plain).hear, token="")
    widget.feed = feed
    widget.count()
    feed.begin(widget)
    widget.hold(feed.drop, plain)
    _open.append(widget)
    widget.cell_runs(_hears_of_cells())
    return widget


def _hears_of_cells() -> bool:
    """Whether the extension is loaded, which tells when this cell ends and another begins."""
    from IPython.core.getipython import get_ipython

    shell: Any = get_ipython()
    return shell is not None and "SubagentMagics" in shell.magics_manager.registry
