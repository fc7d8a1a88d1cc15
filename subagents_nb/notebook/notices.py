"""Tell the person that runs of this kernel have ended, without ever printing into a stranger's cell.

A run that is on the page as a live view tells it there. Others are told with the next cell that the person runs, all
together. What is not told has a reason, kept in `Notices.suppressed`.
"""

from __future__ import annotations

import atexit
import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from subagents_nb.domain.snapshot import Snapshot
from subagents_nb.launching import Run
from subagents_nb.launching.watch import WATCHER
from subagents_nb.notebook.html import element
from subagents_nb.notebook.view import text_line

DRAIN_VARIABLE = "SUBAGENTS_NB_DRAIN_S"
# A host that runs notebooks without a person ends a kernel about five seconds after it asked it to leave.
_DRAIN_S = 3.0
# Runs that end together are told together; a failure is told at once.
_SETTLE_S = 0.15

Why = Literal["shown-live", "asked-for", "turned-off", "already-told"]


@dataclass(frozen=True, slots=True)
class _Ended:
    snapshot: Snapshot
    at: float

    @property
    def failed(self) -> bool:
        return self.snapshot.state != "complete"


class Notices:
    """What this kernel has to tell. `hook` is called on a thread of its own for each run that ended."""

    def __init__(self, *, hook: Callable[[Snapshot], None] | None = None) -> None:
        self.enabled = True
        self.hook = hook
        self.suppressed: dict[str, Why] = {}
        self._guard = threading.Lock()
        self._ended: list[_Ended] = []
        self._expected: dict[str, Run] = {}

    def expect(self, run: Run, *, shown: bool) -> None:
        """Tell of this run when it ends, unless it is shown live where it was launched."""
        with self._guard:
            self._expected[run.id] = run
        if shown:
            self.suppressed[run.id] = "shown-live"
        WATCHER.follow(run.home, run.id, self._hear)

    def asked_for(self, run_id: str) -> None:
        """Somebody waited for this run and knows."""
        self.suppressed.setdefault(run_id, "asked-for")

    def take(self) -> list[Snapshot]:
        """Take what is to be told now: everything, but for successes that others may still join."""
        if not self.enabled:
            with self._guard:
                for ended in self._ended:
                    self.suppressed[ended.snapshot.run_id] = "turned-off"
                self._ended.clear()
            return []
        now = time.monotonic()
        with self._guard:
            ripe = any(e.failed or now - e.at >= _SETTLE_S for e in self._ended)
            told = [e.snapshot for e in self._ended if e.snapshot.run_id not in self.suppressed] if ripe else []
            if ripe:
                self._ended.clear()
            for snapshot in told:
                self.suppressed[snapshot.run_id] = "already-told"
        return told

    def drain(self, within_s: float) -> list[str]:
        """Wait for the runs of this kernel that are live, at most so long; return the ids of those that go on."""
        deadline = time.monotonic() + within_s
        with self._guard:
            runs = list(self._expected.values())
        return [run.id for run in runs if not run.wait(max(0.0, deadline - time.monotonic()))]

    def _hear(self, snapshot: Snapshot) -> None:
        if not snapshot.ended:
            return
        with self._guard:
            self._expected.pop(snapshot.run_id, None)
            self._ended.append(_Ended(snapshot, time.monotonic()))
        if self.hook is not None:
            threading.Thread(target=self.hook, args=(snapshot,), daemon=True).start()


NOTICES = Notices()


def install(shell: Any) -> Callable[[], None]:
    """Tell with each cell the person runs, and drain at the end where there is no person. Return how to undo it."""

    def before_cell(_info: Any = None) -> None:
        try:
            told = NOTICES.take()
            if told:
                shell.display_pub.publish(data=_bundle(told), metadata={})
        except Exception:  # noqa: BLE001 - a fault here must never disturb the user's cells
            NOTICES.enabled = False

    def at_exit() -> None:
        if not _has_person(shell):
            NOTICES.drain(float(os.environ.get(DRAIN_VARIABLE, _DRAIN_S)))

    shell.events.register("pre_run_cell", before_cell)
    atexit.register(at_exit)

    def undo() -> None:
        shell.events.unregister("pre_run_cell", before_cell)
        atexit.unregister(at_exit)

    return undo


def _has_person(shell: Any) -> bool:
    """Say whether somebody sits at the notebook: hosts that only execute it allow no input."""
    if os.environ.get("SUBAGENTS_NB_NONINTERACTIVE") == "1":
        return False
    kernel = getattr(shell, "kernel", None)
    return bool(getattr(kernel, "_allow_stdin", True)) if kernel is not None else True


def _bundle(told: list[Snapshot]) -> dict[str, str]:
    lines = [text_line(snapshot) for snapshot in told]
    rows = [element("li", None, line) for line in lines]
    html = element("div", {"role": "status"}, element("strong", None, "Ended meanwhile:"), element("ul", None, *rows))
    return {"text/plain": "Ended meanwhile:\n" + "\n".join(f"  {line}" for line in lines), "text/html": html}
