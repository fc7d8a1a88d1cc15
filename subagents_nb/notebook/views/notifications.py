"""Tell with each cell that the person runs what ended meanwhile, and never with another.

Where no person is, nothing is told; instead the kernel waits a moment for its runs before it leaves.
"""

from __future__ import annotations

import atexit
import logging
import math
import os
import re
import sys
from collections.abc import Callable
from typing import Any

DRAIN_VARIABLE = "SUBAGENTS_NB_DRAIN_S"
NONINTERACTIVE_VARIABLE = "SUBAGENTS_NB_NONINTERACTIVE"
# A host that runs notebooks without a person ends a kernel about five seconds after it asked it to leave.
DRAIN_S = 3.0
_MOST = 8
_LOOKS = re.compile(r"\s*(?:\w+\s*=\s*)?%%?subagent_")  # a cell that looks at runs, or answers them, by itself
_log = logging.getLogger(__name__)


class Notifier:
    """The hooks of one shell. They keep no cell waiting for what has to be loaded first."""

    def __init__(self, shell: Any, notices: Callable[[], Any] | None = None) -> None:
        self._shell = shell
        self._notices = notices or _notices
        self._person = has_person(None)
        self._broken = False
        self._leave: Callable[[], None] | None = None

    def install(self) -> None:
        """Begin to tell."""
        self._shell.events.register("pre_run_cell", self.before_cell)
        self._shell.events.register("post_run_cell", self.after_cell)
        self._shell.events.register("post_run_cell", self.restate)
        atexit.register(self.at_exit)

    def remove(self) -> None:
        """Tell nothing any more."""
        self._shell.events.unregister("pre_run_cell", self.before_cell)
        self._shell.events.unregister("post_run_cell", self.after_cell)
        self._shell.events.unregister("post_run_cell", self.restate)
        atexit.unregister(self.at_exit)
        if self._leave is not None:
            self._leave()
            self._leave = None
        if (notices := self._notices()) is not None:
            notices.close()

    def after_cell(self, *_: Any) -> None:
        """Begin to listen once this kernel has launched anything: before that nothing of it need be loaded."""
        if self._leave is not None or "subagents_nb.launching.following.observers" not in sys.modules:
            return
        try:
            from subagents_nb.launching.following.observers import observe
            from subagents_nb.notebook.views.notices import NOTICES

            if (magics := self._shell.magics_manager.registry.get("SubagentMagics")) is not None:
                NOTICES.enabled = magics.notices
                NOTICES.hook, NOTICES.attention_hook = magics.on_end, magics.on_attention
            self._leave = observe(NOTICES)
        except Exception:  # noqa: BLE001 - as in before_cell
            self._leave = _nothing
            _log.exception("launches of this kernel can't be heard of")

    def restate(self, *_: Any, begins: bool = False) -> None:
        """Let plain outputs of live runs say how they stand: what executes a notebook listens while a cell runs."""
        try:
            for name in ("views.show", "comparing.sweep_show", "board.board_show", "held.held"):
                if (shown := sys.modules.get(f"subagents_nb.notebook.{name}")) is not None:
                    shown.restate_all(begins=begins)
        except Exception:  # noqa: BLE001 - as in before_cell
            _log.exception("live runs could not be shown anew")

    def before_cell(self, info: Any = None) -> None:
        """Show what there is to tell in the cell that begins now, if it is one that the person runs."""
        self.after_cell()
        self.restate(begins=True)
        try:
            self._person = has_person(self._shell.get_parent() if hasattr(self._shell, "get_parent") else None)
            for name in ("views.show", "comparing.sweep_show", "board.board_show"):
                if (shown := sys.modules.get(f"subagents_nb.notebook.{name}")) is not None:
                    shown.repeat_ends(publish=not self._person)
            if self._broken or not getattr(info, "store_history", True):
                return
            if _LOOKS.match(getattr(info, "raw_cell", "")):
                return
            if (notices := self._notices()) is None:
                return
            news = notices.take(person=self._person)
            if news:
                self._shell.display_pub.publish(data=bundle_of(news), metadata={})
        except Exception:  # noqa: BLE001 - a hook that raises spoils every cell: wandb/wandb#6546
            self._broken = True
            _log.exception("telling of ended runs failed; nothing more is told")

    def at_exit(self) -> None:
        """Give the runs of a kernel without a person a moment to end.

        They would go on anyway; what runs notebooks often ends its whole machine afterwards. The cells that launched
        them were saved before: a card that was published too late for them stays as it was. A notebook that needs the
        end of its runs waits for it, with `%subagent_wait` or `--wait`. A host that kills a kernel after a few seconds
        does so whatever is set here.
        """
        notices = self._notices()
        if notices is not None and not self._person:
            notices.drain(drain_s())
            self.restate()


def is_of_a_notebook(shell: Any) -> bool:
    """Say whether a notebook stands before this shell, by what its host tells a kernel."""
    return bool(os.environ.get("JPY_SESSION_NAME")) or "__vsc_ipynb_file__" in getattr(shell, "user_ns", {})


def _nothing() -> None:
    """Undo nothing."""


def _notices() -> Any:
    module = sys.modules.get("subagents_nb.notebook.views.notices")
    return module.NOTICES if module is not None else None


def has_person(parent: Any) -> bool:
    """Say whether somebody sits before the shell that got this request: who only executes notebooks allows no input."""
    content = parent.get("content") if isinstance(parent, dict) else None
    takes_input = bool(content.get("allow_stdin", True)) if isinstance(content, dict) else True
    return takes_input and os.environ.get(NONINTERACTIVE_VARIABLE) != "1"


def drain_s() -> float:
    """Return how long a kernel without a person waits at its end."""
    try:
        seconds = float(os.environ.get(DRAIN_VARIABLE, DRAIN_S))
    except ValueError:
        return DRAIN_S
    return max(0.0, seconds) if math.isfinite(seconds) else DRAIN_S


def bundle_of(news: Any) -> dict[str, str]:
    """Return what is shown of the news: a line for each run, and what to do about it."""
    from subagents_nb.blocks import Either, to_text
    from subagents_nb.notebook.cards.end_notes import next_action
    from subagents_nb.notebook.cards.shown import shown_name, shown_state
    from subagents_nb.notebook.cards.tables import state_badge
    from subagents_nb.notebook.cards.view import now, text_line
    from subagents_nb.notebook.page.html import SOFT, code, element, safe, soft, styled, to_page
    from subagents_nb.notebook.page.lines import line, plural

    lines = [*news.asking, *news.ended]
    rows: list[Any] = []
    for snapshot in lines[:_MOST]:
        what = now(snapshot, 160)
        row = safe(state_badge(shown_state(snapshot)), " ", element("strong", None, shown_name(snapshot)), " ", what)
        todo = next_action(snapshot)
        if snapshot.state != "complete":
            row = safe(row, soft(f" · {todo[0]} "), code(todo[1]))
        rows.append(Either(row, text_line(snapshot)))
    if len(lines) > _MOST:
        rows.append(f"… and {plural(len(lines) - _MOST, 'more run')}: %subagent_status")
    if news.fault:
        rows.append(line(news.fault, 330))
    style = "font:12px/1.5 var(--jp-ui-font-family,system-ui,sans-serif)"
    listed = [styled("li", "margin:0", row) for row in rows]
    title = styled("p", f"margin:0;{SOFT}", "Meanwhile:")
    listing = styled("ul", "margin:0;padding:0;list-style:none", *listed)
    section = element("section", {"aria-label": "Runs, meanwhile", "style": style}, title, listing)
    return {"text/plain": to_text(section), "text/html": to_page(section)}
