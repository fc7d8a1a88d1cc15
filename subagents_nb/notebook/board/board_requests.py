"""What the page may ask of a board: what it may ask of one run, to look into one, and to have seen how one ended."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from subagents_nb.domain.values.ids import is_run_id
from subagents_nb.launching import Run
from subagents_nb.notebook.board.board_feed import BoardFeed
from subagents_nb.notebook.full.full_view import OPEN, in_background
from subagents_nb.notebook.views.page_requests import PAGE, PageRequests
from subagents_nb.store.runs.seen import mark_seen

_OF_ONE_RUN = ("stop", "steer", "answer")

Reply = Callable[[dict[str, Any]], None]


class BoardRequests:
    """Carries out what a page asks, off the kernel's own threads. Only runs that stand on the board can be meant."""

    def __init__(self, feed: BoardFeed, card: Callable[[], dict[str, str]], *, asked_by: str = PAGE) -> None:
        self._feed, self._asked_by = feed, asked_by
        self._card = card
        self._runs: dict[str, PageRequests] = {}

    def hear(self, content: object, reply: Reply) -> None:
        """Take a message from the page; `reply` is called with what it shall show, from another thread."""
        if not isinstance(content, dict):
            return
        kind, run_id = content.get("kind"), content.get("run")
        if kind == "card":
            reply({"kind": "card", "data": self._card()})
        if kind == "shut":
            OPEN.shut(content)
        if not (isinstance(run_id, str) and is_run_id(run_id) and self._feed.knows(run_id)):
            return
        if kind in _OF_ONE_RUN:

            def answer(told: dict[str, Any]) -> None:
                reply({**told, "run": run_id})
                self._feed.look_again(run_id)

            requests = self._runs.get(run_id) or PageRequests(Run(self._feed.home, run_id), asked_by=self._asked_by)
            self._runs[run_id] = requests
            requests.on_message(content, answer)
        elif kind == "seen":
            in_background(lambda: self._see(run_id))
        else:
            OPEN.hear(Run(self._feed.home, run_id), content)
            if kind == "full" and self._feed.needs(run_id) == "failed":  # read in place is seen; a live run has no end
                in_background(lambda: self._see(run_id))

    def _see(self, run_id: str) -> None:
        mark_seen(self._feed.home.run(run_id))
        self._feed.look_again(run_id)
