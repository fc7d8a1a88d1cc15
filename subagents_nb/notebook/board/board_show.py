"""Show a board where it is: live on a page, as a plain table that says as of when it is, or as text."""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping
from typing import Any

from subagents_nb.above import above
from subagents_nb.blocks import Html, to_text
from subagents_nb.domain.runs.snapshot import Snapshot
from subagents_nb.launching import Runs
from subagents_nb.notebook.board.board_feed import BoardFeed
from subagents_nb.notebook.board.board_list import BoardList, parse_word
from subagents_nb.notebook.board.board_requests import BoardRequests
from subagents_nb.notebook.cards.tables import runs_table
from subagents_nb.notebook.page.html import element, note, to_page
from subagents_nb.notebook.views.show import cell_id, display_mode
from subagents_nb.plain_text import plain
from subagents_nb.terminal import say

MAX_BYTES = 20_000  # of a saved notebook
_AT_ONCE = 4  # boards that are live; an earlier one stays as a table
_live: list[_LiveBoard] = []
_tokens: set[str] = set()  # of the boards that this kernel made


class Board(Runs):
    """Runs that show themselves as a live board; as a sequence they are those that were there when it was made."""

    def __init__(self, which: Mapping[str, Any], listed: Runs | None = None) -> None:
        """Begin with what was `listed` already, if it was; `which` are the arguments of `runs`."""
        self.which = BoardList(which)
        listed = self.which.list(listed)
        super().__init__(listed.home, listed.snapshots, hidden=listed.hidden)

    def widget(self) -> Any:
        """Return a widget, as `Run.widget` does; its traits are `live`, `failed`, `questions` and `tokens`."""
        return above("board_widget")(self)

    def _repr_html_(self) -> str:
        return bundle(self.snapshots, self.hidden)["text/html"]

    def _display_(self) -> Any:
        return above("marimo_display")(self, live=True)

    def _ipython_display_(self) -> None:
        show_board(self)


def board(**which: Any) -> Board:
    """Return runs that show themselves as a live board, grouped by what they need, to be answered and stopped there.

    Takes the arguments of `runs`; without `limit`, the 20 newest that have ended stand beside all that live.

    Raises:
        RequestError: there is no such state.
    """
    return Board({"limit": 20, **which})


def show_board(board: Board) -> None:
    """Show it. A cell that is run again shows one board: that of its last time is left as a table."""
    from IPython.core.getipython import get_ipython

    shell: Any = get_ipython()
    mode = display_mode(shell)
    if mode == "text":
        say(to_text(runs_table(board.snapshots, hidden=board.hidden)))
        return
    if mode == "html":
        shell.display_pub.publish(data=bundle(board.snapshots, board.hidden), metadata={})
        return
    where = cell_id(shell)
    for earlier in [one for one in _live if where is not None and one.where == where]:
        earlier.leave()
    while len(_live) >= _AT_ONCE:
        _live[0].leave()
    _live.append(_LiveBoard(board.which, board, shell, where))
    _live[-1].cell_runs(True)


def take_over_board(word: str, token: str) -> None:
    """Go on with a board that an earlier kernel made, where a page has found its token. Nothing is displayed."""
    from IPython.core.getipython import get_ipython

    which = parse_word(word)
    if which is None or token in _tokens or len(_live) >= _AT_ONCE:
        return
    _live.append(_LiveBoard(which, which.list(), get_ipython(), None, token))


class _LiveBoard:
    """One board on the page: before a plain table, where a page finds it by its token."""

    def __init__(self, which: BoardList, listed: Runs, shell: Any, where: str | None, token: str = "") -> None:
        """Show it; one whose `token` is given stands on the page already."""
        from subagents_nb.notebook.board.board_widget import BoardWidget

        self.where = where
        self._which, self._shell = which, shell
        fits = which.fits(listed.home) if which.may_hide_failures else None
        self._feed = BoardFeed(which.list, listed, by_state=which.by_state, fits=fits)
        self._token, self._version = token or secrets.token_hex(16), 0
        self._transient = {"display_id": f"subagents-nb-{secrets.token_hex(8)}"}
        _tokens.add(self._token)
        self._said = self._feed.changes
        if not token:
            self._publish(update=False)
        requests = BoardRequests(self._feed, self._bundle)
        self._widget = BoardWidget(self._feed.state, on_request=requests.hear, token=self._token)
        self._feed.begin(self._widget)

    def cell_runs(self, runs: bool) -> None:
        """Hear whether a cell is being run."""
        self._feed.cell_runs = runs

    def restate(self) -> None:
        """Let the plain table say how the runs stand now. A page that knows no display ids is told to ask for it."""
        if self._feed.changes != self._said:
            self._version += 1
            self._publish(update=True)
            self._widget.set_trait("version", self._version)

    def leave(self) -> None:
        """Leave a plain table."""
        self._feed.drop()
        if self._feed.changes != self._said:
            self._publish(update=True)
        self._widget.set_trait("version", 0)  # or the page would wait for a newer table instead of showing this one
        self._widget.dispose()
        _live.remove(self)

    def _publish(self, *, update: bool) -> None:
        self._said = self._feed.changes
        self._shell.display_pub.publish(data=self._bundle(), metadata={}, transient=self._transient, update=update)

    def _bundle(self) -> dict[str, str]:
        classes = f"{self._token} {self._token}-{self._version} subagents-nb-board {self._which.word}"
        return bundle(self._feed.snapshots, self._feed.hidden, classes)


def bundle(snapshots: list[Snapshot] | tuple[Snapshot, ...], hidden: int, classes: str = "") -> dict[str, str]:
    """Return what a saved notebook keeps: as many rows as fit into its bound, and as of when they are."""
    as_of = note(f"as of {time.strftime('%Y-%m-%d %H:%M:%S UTC', time.gmtime())} · live again: %subagent_status")
    shown = len(snapshots)
    while True:
        table = runs_table(snapshots[:shown], hidden=hidden + len(snapshots) - shown)
        html = to_page(element("div", {"class": classes}, Html(to_page(table)), as_of))
        if shown <= 1 or len(html.encode()) <= MAX_BYTES:
            return {"text/html": html, "text/plain": plain(to_text(table))}
        shown = max(1, shown * MAX_BYTES // (len(html.encode()) + 1))


def restate_all(*, begins: bool) -> None:
    """Let every plain table say how the runs stand when a cell begins, and boards know when one is run."""
    for board in list(_live):
        board.cell_runs(begins)
        if begins:
            board.restate()


def repeat_ends(*, publish: bool) -> None:
    """Nothing of a board is said but once."""


def leave_all() -> None:
    """Leave a plain table where a board stands."""
    for board in list(_live):
        board.leave()
