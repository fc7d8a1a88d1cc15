"""Show a run where it is: as a live widget, as a card, or as a line of text."""

from __future__ import annotations

import secrets
import sys
from typing import Any

from subagents_nb.domain.snapshot import Snapshot
from subagents_nb.launching import Run
from subagents_nb.launching.watch import WATCHER
from subagents_nb.notebook.card import card_html, card_text
from subagents_nb.notebook.live import CardView, LiveView, ask_to_stop
from subagents_nb.notebook.view import text_line, widget_state

_MODES = ("auto", "widget", "html", "text")
_settings: dict[str, str] = {"mode": "auto"}


def set_display_mode(mode: str) -> None:
    """Choose how runs are shown: `auto`, `widget`, `html` or `text`."""
    if mode not in _MODES:
        raise ValueError(f"there is no display mode {mode!r}; the modes are {', '.join(_MODES)}")
    _settings["mode"] = mode


def show_run(run: Run) -> None:
    """Show one run under a display id of its own: live while it works, a static card once it has ended."""
    shell = _shell()
    snapshot = run.status
    mode = _mode(shell)
    if mode == "text":
        sys.stdout.write((card_text(snapshot) if snapshot.ended else text_line(snapshot)) + "\n")
        return
    if snapshot.ended:
        _publish(shell, _card(run, shell))
        return
    display_id = f"subagents-nb-{secrets.token_hex(8)}"
    if mode == "widget":
        _show_widget(run, snapshot, shell, display_id)
    else:
        _show_html(run, snapshot, shell, display_id)


def _show_widget(run: Run, snapshot: Snapshot, shell: Any, display_id: str) -> None:
    from subagents_nb.notebook.widget import RunWidget

    state = widget_state(snapshot)
    widget = RunWidget(state, on_stop=lambda: ask_to_stop(run))
    bundle: Any = widget._repr_mimebundle_() or {}
    data, metadata = bundle if isinstance(bundle, tuple) else (bundle, {})
    shown = {**data, "text/plain": text_line(snapshot)}
    publisher = shell.display_pub
    publisher.publish(data=shown, metadata=metadata, transient={"display_id": display_id})

    def publish_end(_: Snapshot) -> None:
        publisher.publish(data=_card(run, shell), metadata={}, transient={"display_id": display_id}, update=True)

    view = LiveView(widget, state, publish_end=publish_end)
    WATCHER.follow(run.home, run.id, view.hear, tick=view.tick)


def _show_html(run: Run, snapshot: Snapshot, shell: Any, display_id: str) -> None:
    publisher = shell.display_pub
    publisher.publish(data=_bundle(snapshot, run, shell), metadata={}, transient={"display_id": display_id})

    def publish(later: Snapshot) -> None:
        publisher.publish(
            data=_bundle(later, run, shell), metadata={}, transient={"display_id": display_id}, update=True
        )

    view = CardView(publish)
    WATCHER.follow(run.home, run.id, view.hear, tick=view.tick)


def _card(run: Run, shell: Any) -> dict[str, str]:
    return _bundle(run.status, run, shell)


def _bundle(snapshot: Snapshot, run: Run, shell: Any) -> dict[str, str]:
    binding = _bound_to(run, shell)
    return {"text/html": card_html(snapshot, binding=binding), "text/plain": card_text(snapshot, binding=binding)}


def _bound_to(run: Run, shell: Any) -> str | None:
    """Return the variable that holds this run, if the user has one."""
    variables = dict(getattr(shell, "user_ns", {}))
    names = (name for name, value in variables.items() if isinstance(value, Run) and value.id == run.id)
    return next((name for name in names if not name.startswith("_")), None)


def _publish(shell: Any, data: dict[str, str]) -> None:
    shell.display_pub.publish(data=data, metadata={})


def _shell() -> Any:
    from IPython.core.getipython import get_ipython

    return get_ipython()


def _mode(shell: Any) -> str:
    if shell is None or getattr(shell, "kernel", None) is None:
        return "text"
    mode = _settings["mode"]
    if mode != "auto":
        return mode
    # Colab delivers later messages to earlier views unreliably (colabtools#498).
    return "html" if "google.colab" in sys.modules else "widget"
