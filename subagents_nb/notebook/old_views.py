"""Views that an earlier kernel left on the page: a widget without a view finds them, and this kernel goes on with them.

A plain output of a live run names its token and its run among its classes; see widgets/finder.js. All that a page says
is checked: it may hold outputs of strangers.
"""

from __future__ import annotations

import contextvars
import logging
import re
import sys
import threading
from typing import TYPE_CHECKING, Any

from subagents_nb.notebook.page.idle import AfterFirstCell

if TYPE_CHECKING:
    from subagents_nb.store import StoreHome

_MOST = 50
_TOKEN = re.compile(r"[0-9a-f]{32}")
_log = logging.getLogger(__name__)


class OldViews(AfterFirstCell):
    """Begins to look behind the first cell, and again behind later ones as long as there is no run."""

    def __init__(self, shell: Any) -> None:
        super().__init__(shell)
        self._finder: Any = None
        self._over = False

    def remove(self) -> None:
        """Look no more."""
        self._over = True
        super().remove()
        if self._finder is not None:
            self._finder.dispose()
            self._finder = None

    def _work(self) -> None:
        if "__vsc_ipynb_file__" in self._shell.user_ns:
            return  # no page that finds anything
        try:
            from subagents_nb.store import open_home

            home = open_home(create=False)
            if not home.runs.is_dir() or not any(home.runs.iterdir()) or "google.colab" in sys.modules:
                self._begun = "google.colab" in sys.modules
                return  # there is no run yet: the next cell may launch one
            from subagents_nb import launching  # noqa: F401 - what `_take_over` needs is loaded here, not in its thread
            from subagents_nb.notebook.board import board_show, board_widget  # noqa: F401
            from subagents_nb.notebook.full import full_view  # noqa: F401
            from subagents_nb.notebook.views import show  # noqa: F401
            from subagents_nb.notebook.views.widget import FinderWidget

            finder = FinderWidget(self._on_found)
            if self._over:
                finder.dispose()
            else:
                self._finder = finder
        except Exception:  # noqa: BLE001 - nothing of the person's depends on it
            _log.exception("views of an earlier kernel can't be looked for")

    def _on_found(self, content: Any) -> None:
        """Take what the page found or wants to open, off the kernel's own threads."""
        # An empty context: a thread with that of a cell prints into it for ever, ipython/ipykernel#1491.
        work = contextvars.Context().run
        threading.Thread(target=work, args=(self._take_over, content), name="find-old-views", daemon=True).start()

    def _take_over(self, content: Any) -> None:
        from subagents_nb.errors import SubagentsError
        from subagents_nb.launching import Run
        from subagents_nb.notebook.board.board_show import take_over_board
        from subagents_nb.notebook.views.show import take_over
        from subagents_nb.store import open_home

        home = open_home(create=False)
        if isinstance(content, dict) and content.get("kind") in ("full", "shut"):
            open_in_full(home, content)
        for token, run_id in parse_found(content):
            try:
                if not home.run(run_id).root.is_dir():
                    continue
                card = take_over(Run(home, run_id), token)
                if card is not None and self._finder is not None:
                    self._finder.send({"kind": "card", "token": token, "data": card})
            except SubagentsError as error:
                _log.info("the view of %s can't be taken over: %s", run_id, error)
        for token, word in found_boards(content):
            try:
                take_over_board(word, token)
            except SubagentsError as error:
                _log.info("a board can't be taken over: %s", error)


def open_in_full(home: StoreHome, content: dict[str, Any]) -> None:
    """Open the run that a page names, if there is one, or close what it has opened."""
    from subagents_nb.domain.values.ids import is_run_id
    from subagents_nb.launching import Run
    from subagents_nb.notebook.full.full_view import OPEN

    run_id = content.get("run")
    if content.get("kind") == "shut":
        OPEN.shut(content)
    elif isinstance(run_id, str) and is_run_id(run_id) and home.run(run_id).root.is_dir():
        OPEN.hear(Run(home, run_id), content)


def parse_found(content: object) -> list[tuple[str, str]]:
    """Return the tokens and runs that a message of the page names, as far as it is one that the page may send."""
    from subagents_nb.domain.values.ids import is_run_id

    return [(token, run) for token, run in _places(content, "places", "run") if is_run_id(run)]


def found_boards(content: object) -> list[tuple[str, str]]:
    """Return the tokens of boards that such a message names, and the words that say what they list."""
    return _places(content, "boards", "which")


def _places(content: object, kind: str, name: str) -> list[tuple[str, str]]:
    places = content.get(kind) if isinstance(content, dict) and content.get("kind") == "found" else None
    given = [place for place in places[:_MOST] if isinstance(place, dict)] if isinstance(places, list) else []
    pairs = [(place.get("token"), place.get(name)) for place in given]
    return [
        (token, said)
        for token, said in pairs
        if isinstance(token, str) and isinstance(said, str) and _TOKEN.fullmatch(token)
    ]
