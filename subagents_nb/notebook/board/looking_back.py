"""After a restart: which runs the notebook's kernel before left, and how they stand, told under `%load_ext`."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from subagents_nb.notebook.page.idle import AfterFirstCell
from subagents_nb.notebook.views.notifications import has_person, is_of_a_notebook
from subagents_nb.plain_text import plain

if TYPE_CHECKING:
    from subagents_nb.domain.runs.snapshot import Snapshot

_MOST = 8
_log = logging.getLogger(__name__)


class LookingBack(AfterFirstCell):
    """What it needs takes a while to load, and no cell of the person's waits for it."""

    def __init__(self, shell: Any, look_back: Callable[[], str] | None = None) -> None:
        super().__init__(shell)
        self._look_back = look_back or left_before

    def _work(self) -> None:
        if not is_of_a_notebook(self._shell) or not has_person(self._parent):
            return
        try:
            if text := self._look_back():
                publisher = self._shell.display_pub
                content = {"data": {"text/plain": plain(text)}, "metadata": {}, "transient": {}}
                # Not `publish`: what is shown now belongs to no cell, or to one that began meanwhile.
                publisher.session.send(
                    publisher.pub_socket, "display_data", content, parent=self._parent, ident=publisher.topic
                )
        except Exception:  # noqa: BLE001 - news; the person's cells go on without
            _log.exception("what the kernel before left could not be told")


def left_before() -> str:
    """Return one line on the runs of this notebook's kernel before: each with its state. Empty if there are none."""
    from subagents_nb.errors import StoreError
    from subagents_nb.launching.gathering.lineage import left_by_the_kernel_before, notebook_here
    from subagents_nb.store import open_home

    notebook = notebook_here()
    try:
        snapshots = left_by_the_kernel_before(open_home(create=False), notebook) if notebook is not None else []
    except StoreError:
        snapshots = []
    return left_line(snapshots) if snapshots else ""


def left_line(snapshots: Sequence[Snapshot]) -> str:
    """Return these runs in one line, those that need the person first; each need newest first, as they are given."""
    from subagents_nb.notebook.board.board_rows import NEEDS, need_of
    from subagents_nb.notebook.cards.shown import shown_name, shown_state

    by_need = sorted(snapshots, key=lambda one: NEEDS.index(need_of(one, seen=False)))
    listing = ", ".join(f"{shown_name(one)} {shown_state(one)}" for one in by_need[:_MOST])
    more = f" and {len(snapshots) - _MOST} more" if len(snapshots) > _MOST else ""
    as_of = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime())  # it stays in the saved notebook
    return (
        f"Runs of this notebook's kernel before, as of {as_of}: {listing}{more}. Their board: %subagent_status --here"
    )
