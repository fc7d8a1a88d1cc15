"""The files of a memory, as the memory of pydantic-ai-harness wants to have them.

Its own FileStore opens files by their paths, looked at before: a folder that is swapped for a link meanwhile leads it
out. Reading and writing are ours for that reason alone; what to write, and the tools, are the harness's.
"""

from __future__ import annotations

import contextlib
from pathlib import Path

from anyio import to_thread  # waits for the thread also when cancelled: the lock is held until it is done
from pydantic_ai_harness.memory import (
    MemoryConflictError,
    MemoryFile,
    MemoryMutation,
    MemoryOperation,
    MemoryOperationConflictError,
)

from subagents_nb.store.files.memory_files import memory_texts
from subagents_nb.store.files.note_receipts import NoteChanged, Notes, Receipt


class NoteStore:
    """A `MemoryStore` of the harness. Who writes holds the lock of the memory."""

    def __init__(self, folder: Path) -> None:
        self._notes = Notes(folder)

    async def read(self, path: str, *, max_chars: int) -> MemoryFile | None:
        """Return a file; None where no plain one can be read."""

        def read() -> MemoryFile | None:
            with contextlib.suppress(OSError):
                data, version = self._notes.current(path)
                if data is not None and version is not None:
                    text = data.decode("utf-8", "replace")
                    return MemoryFile(text[:max_chars], version, operation_id=None, truncated=len(text) > max_chars)
            return None

        return await to_thread.run_sync(read)

    async def get_operation(self, operation: MemoryOperation) -> MemoryMutation | None:
        """Return what came of a call, if it was carried out."""
        try:
            found = await to_thread.run_sync(lambda: self._notes.receipt(operation.id, operation.fingerprint))
        except NoteChanged as error:
            raise MemoryOperationConflictError(str(error)) from error
        return None if found is None else _mutation(found, replayed=True)

    async def write(
        self, path: str, content: str, *, expected_version: str | None, operation: MemoryOperation | None = None
    ) -> MemoryMutation:
        """Create or replace a file."""
        return await self._change(path, content, expected_version, operation)

    async def delete(
        self, path: str, *, expected_version: str | None, operation: MemoryOperation | None = None
    ) -> MemoryMutation:
        """Delete a file."""
        return await self._change(path, None, expected_version, operation)

    async def list_paths(self, prefix: str = "", *, limit: int) -> list[str]:
        """Return the files of one memory."""
        folder = prefix.rstrip("/")
        names = await to_thread.run_sync(lambda: list(memory_texts(self._notes.folder, folder)))
        return [f"{folder}/{name}" for name in names[:limit]]

    async def _change(
        self, path: str, text: str | None, before: str | None, operation: MemoryOperation | None
    ) -> MemoryMutation:
        if operation is not None and (done := await self.get_operation(operation)) is not None:
            return done
        call, fingerprint = (None, "") if operation is None else (operation.id, operation.fingerprint)
        try:
            made = await to_thread.run_sync(
                lambda: self._notes.change(path, text, before=before, call=call, fingerprint=fingerprint)
            )
        except NoteChanged as error:
            raise MemoryConflictError(str(error)) from error
        return _mutation(made, replayed=False)


def _mutation(receipt: Receipt, *, replayed: bool) -> MemoryMutation:
    return MemoryMutation(receipt.after, replayed=replayed, existed=receipt.before is not None)
