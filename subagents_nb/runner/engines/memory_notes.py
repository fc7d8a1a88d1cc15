"""The memory of a scripted step: the same files, kept by the same library, without a model."""

from __future__ import annotations

from pathlib import PurePosixPath

from subagents_nb.domain.agents.memory import MAIN_FILE, MOST_CHARS
from subagents_nb.domain.runs.events import StepFailed
from subagents_nb.domain.values.base import sha256_text, stable_json
from subagents_nb.runner.engines.engine import StepMemory


async def add_note(memory: StepMemory, text: str, *, call: str, file: str = MAIN_FILE) -> str:
    """Append a note; `call` names this call among all of all runs, so that the same one counts once.

    Raises:
        StepFailed: this step may only read ("setup").
    """
    from pydantic_ai_harness.memory import MemoryOperation  # a second, which only who writes waits for

    from subagents_nb.runner.engines.memory_store import NoteStore

    if not memory.plan.writes:
        raise StepFailed("setup", "The script writes into memory, and its agent has no tool that writes.")
    path = str(PurePosixPath(memory.plan.path, file))
    async with memory.writing():
        store = NoteStore(memory.folder)
        now = await store.read(path, max_chars=MOST_CHARS)
        before = f"{now.content.rstrip()}\n" if now is not None and now.content.strip() else ""
        text_with_note = f"{before}{text.rstrip()}\n"
        if len(text_with_note) > MOST_CHARS:
            raise StepFailed(
                "setup", f"The script writes more into {file} than the {MOST_CHARS:,} characters it may have."
            )
        operation = MemoryOperation(id=call, fingerprint=sha256_text(stable_json([path, text])))
        version = now.version if now is not None else None
        await store.write(path, text_with_note, expected_version=version, operation=operation)
    return f"noted in {file}"
