"""The files that go along with a run: what it left, and on demand what was said in it."""

from __future__ import annotations

import os

from subagents_nb.domain.kept.archives import stays_inside
from subagents_nb.domain.texts.redaction import Redactor
from subagents_nb.domain.values.base import Value
from subagents_nb.errors import Unreadable
from subagents_nb.exporters.run_record import RunRecord
from subagents_nb.launching.handle import Run
from subagents_nb.launching.results.transcript_notebook import transcript
from subagents_nb.store import StoreHome
from subagents_nb.store.files.codec import lenient_json
from subagents_nb.store.files.disk import DISK

MAX_FILE_BYTES = 200 * 1024 * 1024
TRANSCRIPT, ANSWER = "transcript.ipynb", "answer.md"


class Attachment(Value):
    """One file, by its name over there."""

    name: str
    sha256: str
    media_type: str = "application/octet-stream"
    path: str | None = None  # inside the run's directory; None: made from what was said


def attachments(record: RunRecord, *, prompts: bool) -> tuple[Attachment, ...]:
    """Return the files of a run. Names that lead out of its directory are left out."""
    files = [
        Attachment(name=one.path, sha256=one.sha256, media_type=one.media_type, path=one.path)
        for one in record.artifacts
        if stays_inside(one.path)
    ]
    if prompts:
        # What they say follows from the run, which does not change any more.
        files.append(Attachment(name=TRANSCRIPT, sha256=record.run_id, media_type="application/x-ipynb+json"))
        files.append(Attachment(name=ANSWER, sha256=record.run_id, media_type="text/markdown"))
    return tuple(files)


def read_attachment(record: RunRecord, attachment: Attachment) -> bytes:
    """Return what a file holds.

    Raises:
        Unreadable: it is gone, no file, or too large to be sent.
    """
    if attachment.path is None:
        return _transcript(record) if attachment.name == TRANSCRIPT else _answer(record)
    if not stays_inside(attachment.path):
        raise Unreadable("it does not lie in the run's directory", kind="foreign")
    return DISK.read(record.root / attachment.path, MAX_FILE_BYTES)


def _transcript(record: RunRecord) -> bytes:
    run = Run(StoreHome(record.root.parent.parent), record.run_id)
    return lenient_json(transcript(run))


def _answer(record: RunRecord) -> bytes:
    return Redactor(os.environ, shapes=True)(record.text).encode("utf-8", "replace")
