"""Show a comparison: as a table that can be sorted and filtered, which becomes a plain one before it is saved.

A notebook keeps what stands in it when it is saved, and a widget without a kernel is an empty box. So the plain table
takes its place when the page says that it is being saved, after some minutes in which nobody touched it, when another
comparison is shown, and when the extension goes away.
"""

from __future__ import annotations

import secrets
import sys
import threading
from typing import Any

import anywidget
import traitlets

from subagents_nb.experiments.comparing import Comparison
from subagents_nb.notebook.assets import asset, joined
from subagents_nb.notebook.compare_view import comparison_html, comparison_state
from subagents_nb.notebook.show import display_mode

IDLE_S = 300.0
_shown: list[ComparisonView] = []


class CompareWidget(anywidget.AnyWidget):
    """A comparison on the page. The trait is the contract with widgets/compare.js."""

    _esm = joined(asset("dom.js"), asset("compare.js"))
    _css = "\n".join(map(asset, ("run.css", "compare.css")))

    table = traitlets.Dict().tag(sync=True)

    def __repr__(self) -> str:
        return "<CompareWidget>"


class ComparisonView:
    """One comparison on the page, as long as it is alive."""

    def __init__(self, comparison: Comparison, shell: Any, *, idle_s: float = IDLE_S) -> None:
        self._comparison = self._left = comparison
        self._shell = shell
        self._idle_s = idle_s
        self._transient = {"display_id": f"subagents-nb-{secrets.token_hex(8)}"}
        self._widget: CompareWidget | None = CompareWidget(table=comparison_state(comparison))
        self._lock = threading.Lock()
        self._timer: threading.Timer | None = None

    def show(self) -> None:
        """Put it on the page."""
        if self._widget is None:
            return
        self._widget.on_msg(self._hear)
        bundle: Any = self._widget._repr_mimebundle_() or {}
        data, metadata = bundle if isinstance(bundle, tuple) else (bundle, {})
        data = {**data, "text/plain": self._comparison.text}
        self._shell.display_pub.publish(data=data, metadata=metadata, transient=self._transient)
        self._wait()

    def leave(self) -> None:
        """Put the plain table in its place, in the order that was chosen."""
        with self._lock:
            widget, self._widget = self._widget, None
            if self._timer is not None:
                self._timer.cancel()
        if widget is None:
            return
        if self in _shown:
            _shown.remove(self)
        data = bundle_of(self._left)
        self._shell.display_pub.publish(data=data, metadata={}, transient=self._transient, update=True)
        layout = getattr(widget, "layout", None)
        if layout is not None:
            layout.close()
        widget.close()

    def _wait(self) -> None:
        with self._lock:
            if self._timer is not None:
                self._timer.cancel()
            if self._widget is None:
                return
            self._timer = threading.Timer(self._idle_s, self.leave)
            self._timer.daemon = True
            self._timer.start()

    def _hear(self, _widget: Any, content: Any, _buffers: Any) -> None:
        kind = content.get("kind") if isinstance(content, dict) else None
        if kind == "leave":
            self.leave()
        elif kind == "order":
            self._left = reordered(self._comparison, content.get("order"))
            self._wait()


def reordered(comparison: Comparison, order: Any) -> Comparison:
    """Return a comparison in the order that the page asks for; an order that is none changes nothing."""
    places = list(range(len(comparison)))
    if not isinstance(order, list) or any(type(place) is not int for place in order):
        return comparison
    shown = set(order)
    if len(shown) != len(order) or not shown <= set(places):
        return comparison
    groups = [comparison.groups[place] for place in [*order, *(place for place in places if place not in shown)]]
    return comparison.with_groups(groups)


def bundle_of(comparison: Comparison) -> dict[str, str]:
    """Return what a saved notebook keeps."""
    return {"text/html": comparison_html(comparison), "text/plain": comparison.text}


def show_comparison(comparison: Comparison) -> None:
    """Show a comparison where it is: live on a page, a plain table elsewhere, text in a terminal."""
    from IPython.core.getipython import get_ipython

    shell = get_ipython()
    mode = display_mode(shell)
    if mode == "text":
        sys.stdout.write(comparison.text + "\n")
    elif mode == "html":
        shell.display_pub.publish(data=bundle_of(comparison), metadata={})  # type: ignore[union-attr]
    else:
        leave_all()
        view = ComparisonView(comparison, shell)
        _shown.append(view)
        view.show()


def leave_all() -> None:
    """Leave the plain table wherever a live one stands."""
    for view in list(_shown):
        view.leave()
