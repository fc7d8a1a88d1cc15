"""The files of a memory, as pydantic-ai-harness keeps them, with its journal apart from them."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from pydantic_ai_harness.memory import FileStore

from subagents_nb.store.files.memory_files import journal_folder


class NoteStore(FileStore):
    """A store whose journal lies with the person: SQLite opens what a project put in its place."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._journal = FileStore(journal_folder(folder))

    def _connect(self) -> sqlite3.Connection:
        return self._journal._connect()  # the harness names no place for it: a test looks where it comes to lie
