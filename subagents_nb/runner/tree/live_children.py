"""The children of one run: watched by one task, and ended with it. A run is not over before they are."""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterable

from subagents_nb.domain.runs.control import PARENT, ControlRequest, Retune, Verb
from subagents_nb.domain.runs.states import RunEvent, RunState
from subagents_nb.domain.runs.tree_rows import TreeRow
from subagents_nb.domain.values.words import one_line
from subagents_nb.runner.processes.threads import in_thread
from subagents_nb.runner.steps.causes import Cause
from subagents_nb.runner.tree.child_runs import Child
from subagents_nb.runner.tree.folder_news import FolderWatch
from subagents_nb.store.clock import utc_now
from subagents_nb.store.files.lock import probe
from subagents_nb.store.layout import StoreHome
from subagents_nb.store.processes.detached import bring_supervisor_up
from subagents_nb.store.runs.reader import FileRuns
from subagents_nb.store.runs.requests import Mailbox
from subagents_nb.store.tree.doorbell import NobodyThere, ring

SETTLE_S = 2.5  # how long the end of a run waits for those of its children; they were asked when it began to end
_TOGETHER_S = 0.01  # news that come this close are one
_READ_S = 0.25  # how often the status of one that works is read; its end is read at once
_LOOK_S = 5.0  # how often one that says nothing is looked after


class Children:
    """All of one run. `end` and `drain` may be called from any thread, all else belongs to the event loop."""

    def __init__(self, home: StoreHome, run_id: str, *, changed: Callable[[tuple[TreeRow, ...]], None]) -> None:
        self._home = home
        self._run_id = run_id
        self._changed = changed
        self._runs = FileRuns(home)
        self.all: list[Child] = []
        self._news: FolderWatch | None = None
        self._task: asyncio.Task[None] | None = None
        self._guard = threading.Lock()
        self.cause: Cause | None = None
        self.draining = False

    # --- from other threads ---

    def end(self, cause: Cause) -> None:
        """Ask the children to end, for the cause that ends this run."""
        self.cause = self.cause or cause
        self.ask("interrupt" if cause.event is RunEvent.PAUSE else "stop", cause.message, self._living())

    def drain(self) -> None:
        """Start nothing new, here and below."""
        self.draining = True
        self.ask("drain", "the run that delegated this is drained", self._living())

    def retune(self, change: Retune) -> None:
        """Give the children the new limits of the budget, which is that of the whole tree; the rest is their own."""
        budget = Retune(tokens=change.tokens, cost_usd=change.cost_usd)
        if budget.changes:
            self.ask("retune", "", self._living(), retune=budget)

    def ask(self, verb: Verb, reason: str, children: Iterable[Child], *, retune: Retune | None = None) -> None:
        """Ask children for something in the name of this run; whatever is not said anew each time, once."""
        for child in children:
            with self._guard:
                if verb in child.asked_to and retune is None:
                    continue
                child.asked_to.append(verb)
                number = child.asked_to.count(verb)
            request = ControlRequest(
                run_id=child.run_id,
                request_id=f"parent-{verb}-{number}-{self._run_id}",
                verb=verb,
                asked_at=utc_now(),
                asked_by=PARENT,
                reason=one_line(reason, 300),
                retune=retune,
            )
            with contextlib.suppress(OSError):  # it is gone, and so has ended
                Mailbox(self._home.run(child.run_id)).request(request)

    # --- on the event loop ---

    def add(self, child: Child) -> None:
        """Watch a child from now on, until it has ended."""
        self.all.append(child)
        if self._news is None:
            self._news = FolderWatch()
        self._news.watch(self._home.run(child.run_id).root)
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._watch(self._news))
        if self.cause is not None:  # it began while this run was asked to end
            self.end(self.cause)

    async def settle(self) -> None:
        """Wait for the ends of all children, and no longer for those that do not hear."""
        if self._task is None:
            return
        if self.cause is None:  # the work was done, and a child of a call that was ended is still at it
            await in_thread(lambda: self.ask("stop", "the run that delegated this has ended", self._living()))
        await asyncio.wait({self._task}, timeout=SETTLE_S)
        self._task.cancel()
        if self._news is not None:
            self._news.close()

    def _living(self) -> list[Child]:
        return [child for child in list(self.all) if not child.ended]

    async def _watch(self, news: FolderWatch) -> None:
        looked_after = time.monotonic()
        while living := self._living():
            await in_thread(lambda: self._look(living))
            self._show()
            for child in living:
                if child.ended:
                    child.over.set()
                if child.ended or child.asks is not None:
                    child.news.set()
            if time.monotonic() - looked_after > _LOOK_S:
                looked_after = time.monotonic()
                await in_thread(lambda: self._look_after(living))
            if all(child.ended for child in living):
                continue
            await news.wait()
            await asyncio.sleep(_TOGETHER_S)

    def _look(self, children: Iterable[Child]) -> None:
        for child in children:
            now = time.monotonic()
            if now - child.looked >= _READ_S or self._runs.has_terminal_record(child.run_id):
                child.looked = now
                child.snapshot = self._runs.snapshot(child.run_id, whole=True)

    def _look_after(self, children: Iterable[Child]) -> None:
        """See that somebody keeps the turn of a child that waits, and says how one ended that is gone."""
        for child in children:
            seen = child.snapshot
            waits = seen is not None and seen.state is RunState.QUEUED
            if child.ended or not (waits or probe(self._home.run(child.run_id).lock) == "free"):
                continue
            try:
                ring(self._home, self._run_id, child.ask_id, os.environ)
            except NobodyThere:
                bring_supervisor_up(self._home, now=True)

    def _show(self) -> None:
        self._changed(tuple(row for child in sorted(self.all, key=lambda one: one.turn) for row in child.rows()))
