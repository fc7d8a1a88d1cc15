"""Memory under fire: `notes.py many FOLDER NOTES` writes from 8 processes at once, `killed FOLDER POINTS` is killed.

Each process is forked from this one, which has loaded all there is to load. Prints what came of it as JSON.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import sys
import time
from pathlib import Path

import pydantic_ai_harness.memory  # noqa: F401 - before the forks

from subagents_nb.domain.agents.memory import MAIN_FILE, MemoryPlan
from subagents_nb.runner.engines.memory_notes import add_note
from subagents_nb.runner.steps.remembering import Remembered
from subagents_nb.runner.tracking import ReadRecorder

WRITERS = 8
SIZE = 3_000


def memory(folder: Path) -> Remembered:
    return Remembered(MemoryPlan(scope="user", path="mine", folder=str(folder), writes=True), ReadRecorder())


def forked(work: object) -> int:
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            work()  # type: ignore[operator]
            code = 0
        finally:
            os._exit(code)
    return pid


def many(folder: Path, notes: int) -> dict[str, object]:
    def write(writer: int) -> None:
        async def all_of_them() -> None:
            for note in range(notes):
                await add_note(memory(folder), f"- {writer} {note}", call=f"{writer}-{note}")

        asyncio.run(all_of_them())

    began = time.monotonic()
    pids = [forked(lambda writer=writer: write(writer)) for writer in range(WRITERS)]
    codes = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids]
    lines = (folder / "mine" / MAIN_FILE).read_text().splitlines()
    whole = {f"- {writer} {note}" for writer in range(WRITERS) for note in range(notes)}
    orders = [[line for line in lines if line.startswith(f"- {w} ")] for w in range(WRITERS)]
    in_order = all(one == sorted(one, key=lambda line: int(line.split()[2])) for one in orders)
    seconds = round(time.monotonic() - began, 2)
    return {"codes": codes, "lines": len(lines), "all": set(lines) == whole, "in order": in_order, "s": seconds}


def killed(folder: Path, points: int) -> dict[str, object]:
    """A writer adds notes and says each that is kept; wherever it is killed, those are there, and at most one more."""
    wrong = []
    for point in range(points):
        file = f"{point}.md"
        read, said = os.pipe()

        def write(point: int = point, file: str = file, said: int = said) -> None:
            async def on_and_on() -> None:
                for note in range(20):
                    await add_note(memory(folder), "ab"[note % 2] * SIZE, call=f"{point}-{note}", file=file)
                    os.write(said, b".")

            asyncio.run(on_and_on())

        pid = forked(write)
        os.close(said)
        time.sleep(random.Random(point).uniform(0.02, 0.3))
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        kept = len(os.read(read, 100))
        os.close(read)
        path = folder / "mine" / file
        text = path.read_text() if path.exists() else ""
        sizes = [len(line) for line in text.splitlines()]
        if len(sizes) not in (kept, kept + 1) or set(sizes) - {SIZE} or (text and not text.endswith("\n")):
            wrong.append((point, kept, sizes))
        asyncio.run(add_note(memory(folder), "c", call=f"after-{point}", file=file))  # nothing is in its way
        if not path.read_text().endswith("\nc\n" if sizes else "c\n"):
            wrong.append((point, "after", len(path.read_text())))
    return {"wrong": wrong, "points": points}


if __name__ == "__main__":
    place = Path(os.path.realpath(sys.argv[2]))
    print(json.dumps({"many": many, "killed": killed}[sys.argv[1]](place, int(sys.argv[3]))))
