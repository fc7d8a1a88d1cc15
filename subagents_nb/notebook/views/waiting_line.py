"""What a terminal shows while it waits for runs: one line that is written over, and is gone with the wait."""

from __future__ import annotations

import contextlib
import contextvars
import os
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TextIO

from subagents_nb.domain.runs.snapshot import Snapshot
from subagents_nb.domain.values import words
from subagents_nb.errors import SubagentsError
from subagents_nb.notebook.cards.shown import shown_name, shown_state
from subagents_nb.notebook.cards.view import now
from subagents_nb.notebook.page.lines import line
from subagents_nb.plain_text import shortened

EVERY_S = 0.25
_CLEAR = "\r\x1b[K"  # to the beginning of the line, and nothing behind it
_LEAST_TEXT = 12


@contextlib.contextmanager
def waiting_line(read: Callable[[], Sequence[Snapshot]], stream: TextIO | None = None) -> Iterator[None]:
    """Show how the runs that are read stand while the block waits; nothing where no person looks at a screen."""
    screen = sys.stdout if stream is None else stream
    if not screen.isatty() or os.environ.get("TERM") == "dumb":
        yield
        return
    over = threading.Event()
    # An empty context: a thread with that of a cell prints into it for ever, ipython/ipykernel#1491.
    thread = threading.Thread(
        target=contextvars.Context().run, args=(_write, read, screen, over), name="subagents-waiting-line", daemon=True
    )
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join(2 * EVERY_S)


def _write(read: Callable[[], Sequence[Snapshot]], screen: TextIO, over: threading.Event) -> None:
    began = time.monotonic()
    with contextlib.suppress(OSError, ValueError, SubagentsError):  # the wait goes on, whatever can't be shown
        while not over.is_set():
            columns = shutil.get_terminal_size().columns - 1
            screen.write(_CLEAR + waiting_text(read(), time.monotonic() - began, columns))
            screen.flush()
            over.wait(EVERY_S)
        screen.write(_CLEAR)
        screen.flush()


def waiting_text(snapshots: Sequence[Snapshot], waited_s: float, columns: int) -> str:
    """Say who is waited for and how long it works, its tool, and the end of what it wrote; of several, how many too."""
    live = [one for one in snapshots if not one.ended]
    if not live:
        return ""
    first = next((one for one in live if one.questions), live[0])
    many = f"{len(live)} of {len(snapshots)} go on" if len(snapshots) > 1 else ""
    tool = first.open_tools[-1] if first.open_tools and not first.questions else None
    doing = f"{tool.name} {tool.args}" if tool is not None else now(first, 80) or shown_state(first)
    name = f"{shown_name(first)} {words.elapsed(max(first.elapsed_s, waited_s))}"
    head = " · ".join(filter(None, [many, name, line(doing, 80)]))
    text = " ".join(line(first.tail[-columns:], columns).split())
    room = columns - len(head) - 3
    if text and room >= _LEAST_TEXT:
        head += f" · {text if len(text) <= room else '…' + text[1 - room :]}"
    return shortened(head, max(1, columns))
