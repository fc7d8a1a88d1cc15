"""What a first launch needs, made ready behind the cell that loads the extension: modules, and a supervisor.

`%config SubagentMagics.prewarm = False` leaves it out. Nobody waits for it, and nothing is said where it fails: the
launch then does it itself.
"""

from __future__ import annotations

import contextvars
import logging
import threading

from subagents_nb.notebook.page.idle import AfterFirstCell

_log = logging.getLogger(__name__)


class Prewarming(AfterFirstCell):
    """Who only executes notebooks wants no spare process, and has none. What is up already leaves by itself."""

    def _work(self) -> None:
        try:
            magics = self._shell.magics_manager.registry.get("SubagentMagics")
            if magics is None or not magics.prewarm:
                return
            from subagents_nb.store import open_home
            from subagents_nb.supervisor.protocol.reaching import await_starters, ensure_queue_owner

            # It comes up in a process of its own while this one loads what a launch needs: the longer of both counts.
            ensure_queue_owner(open_home())
            # An empty context: a thread with that of a cell prints into it for ever, ipython/ipykernel#1491.
            alone = contextvars.Context().run
            threading.Thread(target=alone, args=(await_starters,), name="subagents-nb-warm", daemon=True).start()
            # Loaded here, and not in the thread: see page/idle.py.
            from subagents_nb import launching, local_model
            from subagents_nb.notebook.views import notices, show  # noqa: F401

            local_model.available()  # asked at each launch; the first time that loads what serves it
            launching.agents()  # likewise: those of the package and of installed ones are read once
        except Exception:  # noqa: BLE001 - a launch does all of it by itself
            _log.info("nothing was warmed up", exc_info=True)
