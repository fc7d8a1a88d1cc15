"""The files of a memory as they are now: read, and hashed all together. They are written by pydantic-ai-harness."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path, PurePosixPath

from subagents_nb.domain.agents.memory import MOST_CHARS, MOST_FILES
from subagents_nb.domain.values.base import sha256_text
from subagents_nb.store.files.opener import open_below

_JOURNALS = ".subagents/memory-journals"
_MOST_BYTES = 4 * MOST_CHARS


def journal_folder(folder: Path) -> Path:
    """Return where lies what keeps a memory whole: its lock, and the journal of its writes.

    It is the person's, below their home folder and for all their stores: a memory folder comes with a project, and a
    database or a link that a project brings is opened by nobody.
    """
    return Path.home() / _JOURNALS / sha256_text(str(folder))[:24]


def link_within(folder: Path, path: str) -> str | None:
    """Return the first link among the folders and files of a memory, by its path in there; None: no link."""
    for depth, _ in enumerate(parts := PurePosixPath(path).parts, 1):
        if (place := folder.joinpath(*parts[:depth])).is_symlink():
            return str(place.relative_to(folder))
    with contextlib.suppress(OSError), os.scandir(folder / path) as entries:
        return next((f"{path}/{name}" for name in sorted(entry.name for entry in entries if entry.is_symlink())), None)
    return None


def memory_texts(folder: Path, path: str) -> dict[str, str]:
    """Return the texts of a memory by their names, each as far as a model may ever see it; a link is none.

    `folder` is the memory folder, which holds those of all agents.
    """
    texts: dict[str, str] = {}
    place = folder / path
    with contextlib.suppress(OSError):
        names = sorted(entry.name for entry in os.scandir(place) if entry.name.endswith(".md"))
        for name in names[:MOST_FILES]:
            with contextlib.suppress(OSError), open_below(folder, f"{path}/{name}") as handle:
                texts[name] = os.read(handle, _MOST_BYTES).decode("utf-8", "replace")[:MOST_CHARS]
    return texts


def memory_sha256(folder: Path, path: str) -> str | None:
    """Return the SHA-256 over all texts of a memory and their names; None if there is nothing in it."""
    texts = memory_texts(folder, path)
    return sha256_text("".join(f"{name}\0{len(text)}\0{text}" for name, text in texts.items())) if texts else None
