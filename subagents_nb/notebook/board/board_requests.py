"""What the page may ask of a board: what it may ask of one run, to look into one, and to have seen how one ended."""

from __future__ import annotations

import contextvars
import logging
import threading
from collections.abc import Callable
from typing import Any

from subagents_nb.domain.values.ids import is_run_id
from subagents_nb.errors import SubagentsError
from subagents_nb.launching import Run
from subagents_nb.notebook.board.board_detail import board_detail
from subagents_nb.notebook.board.board_feed import BoardFeed
from subagents_nb.notebook.views.page_requests import PageRequests
from subagents_nb.store.runs.seen import mark_seen

_OF_ONE_RUN = ("stop", "steer", "answer")
_log = logging.getLogger(__name__)

Reply = Callable[[dict[str, Any]], None]


class BoardRequests:
    """Carries out what a page asks, off the kernel's own threads. Only runs that stand on the board can be meant."""

    def __init__(self, feed: BoardFeed, card: Callable[[], dict[str, str]]) -> None:
        self._feed = feed
        self._card = card
        self._runs: dict[str, PageRequests] = {}

    def hear(self, content: object, reply: Reply) -> None:
        """Take a message from the page; `reply` is called with what it shall show, from another thread."""
        if not isinstance(content, dict):
            return
        kind, run_id = content.get("kind"), content.get("run")
        if kind == "card":
            reply({"kind": "card", "data": self._card()})
        if not (isinstance(run_id, str) and is_run_id(run_id) and self._feed.knows(run_id)):
            return
        if kind in _OF_ONE_RUN:

            def answer(told: dict[str, Any]) -> None:
                reply({**told, "run": run_id})
                self._feed.look_again(run_id)

            requests = self._runs.get(run_id) or PageRequests(Run(self._feed.home, run_id))
            self._runs[run_id] = requests
            requests.on_message(content, answer)
        elif kind in ("open", "seen"):
            # An empty context: a thread with that of a cell prints into it for ever, ipython/ipykernel#1491.
            work = contextvars.Context().run
            target = self._open if kind == "open" else self._see
            threading.Thread(target=work, args=(target, run_id, reply), name="subagents-nb-page", daemon=True).start()

    def _open(self, run_id: str, reply: Reply) -> None:
        try:
            told = board_detail(Run(self._feed.home, run_id))
        except SubagentsError as error:
            told = {"kind": "detail", "error": str(error)}
        except Exception:  # noqa: BLE001 - the page must not wait for an answer that never comes
            _log.exception("a run could not be looked into")
            told = {"kind": "detail", "error": "That failed inside subagents_nb; the kernel's log has the reason."}
        reply({**told, "run": run_id})

    def _see(self, run_id: str, _: Reply) -> None:
        mark_seen(self._feed.home.run(run_id))
        self._feed.look_again(run_id)
