"""Writes into a memory, each counted once: who asks for the same again is told what came of it, also after a kill."""

from __future__ import annotations

import contextlib
import hashlib
from dataclasses import dataclass
from pathlib import Path

from pydantic import Field, ValidationError

from subagents_nb.domain.values.base import Value
from subagents_nb.errors import Unreadable
from subagents_nb.store.files.disk import DISK
from subagents_nb.store.files.memory_files import journal_folder, note_bytes, put_note, remove_note
from subagents_nb.store.files.opener import NotPlain

_FILE = "receipts.json"
_MOST = 500  # those of calls that may still be asked for again are the newest


class NoteChanged(Exception):
    """A file is not what its writer read, or a call of this name was another one."""


class Receipt(Value):
    """One write: what it was asked for by, and the versions of its file before and after."""

    fingerprint: str
    path: str
    before: str | None = None
    after: str | None = None


class _Receipts(Value):
    kept: dict[str, Receipt] = Field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Notes:
    """The files of a memory folder, to be written by who holds its lock."""

    folder: Path

    def current(self, path: str) -> tuple[bytes | None, str | None]:
        """Return what a file holds and its version; None, None: it is not there. Raises as `note_bytes`."""
        data = note_bytes(self.folder, path)
        return data, None if data is None else hashlib.sha256(data).hexdigest()

    def receipt(self, call: str, fingerprint: str) -> Receipt | None:
        """Return what came of a call, if it was carried out.

        Raises:
            NoteChanged: it was asked for other things then.
        """
        found = self._receipts().get(call)
        if found is not None and found.fingerprint != fingerprint:
            raise NoteChanged(f"the call {call} was another one")
        return found

    def change(
        self, path: str, text: str | None, *, before: str | None, call: str | None = None, fingerprint: str = ""
    ) -> Receipt:
        """Put a text in the place of a file whose version is `before`; None removes it.

        Raises:
            NoteChanged: the file has another version.
            NotPlain: a link stands in the path, or what is there is no text.
            OSError: it can't be written.
        """
        there, version = self.current(path)
        if version != before:
            raise NoteChanged(f"{path} changed before it could be written")
        if text is not None and there is not None:
            try:
                there.decode()
            except UnicodeDecodeError:
                raise NotPlain(path, "is not text in UTF-8, and is not written over") from None
        data = None if text is None else text.encode("utf-8", "replace")
        after = None if data is None else hashlib.sha256(data).hexdigest()
        made = Receipt(fingerprint=fingerprint, path=path, before=before, after=after)
        if call is not None:
            kept = self._receipts() | {call: made}
            while len(kept) > _MOST:
                del kept[next(iter(kept))]
            document = _Receipts(kept=kept).model_dump_json().encode()
            DISK.replace(journal_folder(self.folder) / _FILE, document, durable=False)
        if data is None:
            remove_note(self.folder, path)
        else:
            put_note(self.folder, path, data)
        return made

    def _receipts(self) -> dict[str, Receipt]:
        """Return those of what was done. The last was written before its file, which a kill between left as it was."""
        kept: dict[str, Receipt] = {}
        with contextlib.suppress(Unreadable, ValidationError):
            kept = dict(_Receipts.model_validate_json(DISK.read(journal_folder(self.folder) / _FILE)).kept)
        if kept:
            last = kept[call := next(reversed(kept))]
            if last.before != last.after and self.current(last.path)[1] == last.before:
                del kept[call]
        return kept
