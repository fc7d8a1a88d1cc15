"""A run as a widget that a person holds."""

from __future__ import annotations

import functools
from typing import Any

import traitlets

from subagents_nb.domain.runs.snapshot import Snapshot
from subagents_nb.launching import Run
from subagents_nb.launching.following.watch import WATCHER
from subagents_nb.notebook.cards.reused import reused_line
from subagents_nb.notebook.cards.view import widget_state
from subagents_nb.notebook.held.held import Held
from subagents_nb.notebook.views.live import LiveView
from subagents_nb.notebook.views.notices import NOTICES
from subagents_nb.notebook.views.page_requests import PageRequests
from subagents_nb.notebook.views.show import card_of
from subagents_nb.notebook.views.widget import ChainWidget, RunWidget


class HeldRun(Held, RunWidget):
    """A run of one step. Besides what its page reads it says the sum of its tokens."""

    tokens = traitlets.Int(0, read_only=True, help="how many it has read and written")

    @traitlets.observe("tokens_in", "tokens_out")
    def _count(self, _change: Any = None) -> None:
        self.set_trait("tokens", self.tokens_in + self.tokens_out)


class HeldChain(HeldRun, ChainWidget):
    """A chain."""


def run_widget(run: Run) -> HeldRun:
    """Return a widget that shows this run, each time a new one."""
    first = run.status
    requests = PageRequests(run, card=lambda: card_of(run))
    state = widget_state(first, reused_line(run, first))
    widget = (HeldChain if first.stages else HeldRun)(state, on_request=requests.on_message)
    if first.ended:
        widget.hold(lambda: None, lambda: card_of(run))
        return widget
    view = LiveView(widget, first, publish_end=lambda _: None, reused=functools.partial(reused_line, run))
    requests.on_watch = view.watch

    def hear(snapshot: Snapshot) -> None:
        widget.soon("reading", lambda: view.on_snapshot(snapshot))

    NOTICES.shown(run.id)
    widget.hold(
        WATCHER.follow(run.home, run.id, hear, tick=lambda: widget.soon("tick", view.tick)), lambda: card_of(run)
    )
    return widget
