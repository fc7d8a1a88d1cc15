"""What has to be loaded behind a cell is loaded on the kernel's own thread: two that import can meet crosswise."""

from __future__ import annotations

import asyncio
import contextvars
import re
import threading
from pathlib import Path

import subagents_nb
from subagents_nb.notebook.page.idle import when_idle

CELL: contextvars.ContextVar[str] = contextvars.ContextVar("cell", default="none")


def test_work_waits_for_the_end_of_the_cell_and_is_done_on_its_thread_in_no_context_of_its() -> None:
    done: list[tuple[int, str]] = []

    async def cell() -> None:
        CELL.set("the cell's")
        over = asyncio.Event()

        def work() -> None:
            done.append((threading.get_ident(), CELL.get()))
            over.set()

        assert when_idle(work)
        assert done == []
        await asyncio.wait_for(over.wait(), 10)

    asyncio.run(cell())
    assert done == [(threading.get_ident(), "none")]


def test_a_shell_without_a_loop_says_that_nothing_will_be_done() -> None:
    assert when_idle(lambda: None) is False


def test_no_hook_of_a_cell_starts_a_thread_that_would_load_our_modules() -> None:
    folder = Path(subagents_nb.__file__).parent / "notebook"
    begun = {path.name for path in folder.glob("*.py") if re.search(r"\bThread\(", path.read_text("utf-8"))}
    # These begin when their modules are loaded already: a page asks, a run has ended.
    assert begun <= {"page_requests.py", "notices.py", "old_views.py"}
