"""The memory of a scripted step: the same files, kept in the same way, without a model."""

from __future__ import annotations

from pathlib import PurePosixPath

from subagents_nb.domain.agents.memory import MAIN_FILE, MOST_CHARS
from subagents_nb.domain.runs.events import StepFailed
from subagents_nb.domain.values.base import sha256_text, stable_json
from subagents_nb.runner.engines.engine import StepMemory
from subagents_nb.runner.processes.threads import to_its_end
from subagents_nb.store.files.note_receipts import NoteChanged, Notes


async def add_note(memory: StepMemory, text: str, *, call: str, file: str = MAIN_FILE) -> str:
    """Append a note; `call` names this call among all of all runs, so that the same one counts once.

    Raises:
        StepFailed: this step may only read, or memory can't be written ("setup").
    """
    if not memory.plan.writes:
        raise StepFailed("setup", "The script writes into memory, and its agent has no tool that writes.")
    path = str(PurePosixPath(memory.plan.path, file))
    try:
        async with memory.writing():
            await to_its_end(lambda: _add(Notes(memory.folder), path, text.rstrip(), call=call))
    except (OSError, NoteChanged) as error:
        raise StepFailed("setup", f"Memory can't be written: {getattr(error, 'strerror', None) or error}.") from error
    return f"noted in {file}"


def _add(notes: Notes, path: str, text: str, *, call: str) -> None:
    fingerprint = sha256_text(stable_json([path, text]))
    if notes.receipt(call, fingerprint) is not None:
        return
    now, version = notes.current(path)
    kept = (now or b"").decode("utf-8", "replace")
    before = f"{kept.rstrip()}\n" if kept.strip() else ""
    if len(text_with_note := f"{before}{text}\n") > MOST_CHARS:
        file = PurePosixPath(path).name
        raise StepFailed("setup", f"The script writes more into {file} than the {MOST_CHARS:,} characters it may have.")
    notes.change(path, text_with_note, before=version, call=call, fingerprint=fingerprint)
