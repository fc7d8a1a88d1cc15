"""Show a comparison: a plain table in the notebook, which the page lets its reader sort and filter.

The cell's output is the plain table and nothing else, so the file is right whenever and by whatever it is saved. Beside
it a widget is opened that is never displayed. anywidget runs a module's `initialize` as soon as the page hears of the
model, which finds the table by its class and puts a live one in its place; nothing is sent back. A front end that
opens no model without a view (VS Code, perhaps) goes on showing the plain table, and so does a page opened later,
without the kernel.
"""

from __future__ import annotations

import secrets
from collections import deque

import anywidget
import traitlets

from subagents_nb.experiments.comparing import Comparison
from subagents_nb.notebook.comparing.compare_view import comparison_html, comparison_state
from subagents_nb.notebook.page.assets import asset, joined
from subagents_nb.notebook.views.show import display_mode
from subagents_nb.plain_text import plain
from subagents_nb.terminal import say

MOST_LIVE = 8  # the tables of older ones are plain again
_live: deque[CompareWidget] = deque()


class CompareWidget(anywidget.AnyWidget):
    """What makes a comparison live on the page. The traits are the contract with widgets/compare.js."""

    _esm = joined(asset("dom.js"), asset("compare.js"))
    _css = "\n".join(map(asset, ("run.css", "compare.css")))

    token = traitlets.Unicode("").tag(sync=True)  # the class of the element that holds the plain table
    table = traitlets.Dict().tag(sync=True)

    def dispose(self) -> None:
        """Close it and its layout; the page shows the plain table again."""
        layout = getattr(self, "layout", None)
        if layout is not None:
            layout.close()
        self.close()


def bundle_of(comparison: Comparison, *, token: str = "") -> dict[str, str]:
    """Return what a saved notebook keeps; with a token, the page can find the table in it."""
    return {"text/html": comparison_html(comparison, token=token), "text/plain": plain(comparison.text)}


def show_comparison(comparison: Comparison) -> None:
    """Show a comparison where it is: live on a page, a plain table elsewhere, text in a terminal."""
    from IPython.core.getipython import get_ipython

    shell = get_ipython()
    mode = display_mode(shell)
    if mode == "text":
        say(comparison.text)
        return
    token = f"subagents-nb-compare-{secrets.token_hex(8)}" if mode == "widget" else ""
    shell.display_pub.publish(data=bundle_of(comparison, token=token), metadata={})  # type: ignore[union-attr]
    if token:
        make_live(comparison, token)


def make_live(comparison: Comparison, token: str) -> None:
    """Let the page make the table of this class live, and leave the oldest one plain when there are too many."""
    while len(_live) >= MOST_LIVE:
        _live.popleft().dispose()
    _live.append(CompareWidget(token=token, table=comparison_state(comparison)))


def leave_all() -> None:
    """Leave the plain table wherever a live one stands."""
    while _live:
        _live.popleft().dispose()
