"""The files of a memory: read, hashed all together, and replaced, below a held folder and through no link.

What an agent starts, in a sandbox or not, may turn any folder of a project into a link at any moment. So each folder is
opened from the one above it, from the project or home folder down, and nothing is looked at first and opened later.
"""

from __future__ import annotations

import contextlib
import os
import secrets
from pathlib import Path, PurePosixPath

from subagents_nb.domain.agents.memory import MAIN_FILE, MOST_CHARS, MOST_FILES
from subagents_nb.domain.values.base import sha256_text
from subagents_nb.store.files.disk import DISK
from subagents_nb.store.files.opener import NO_LINK, NotPlain, folder_of, open_in

_JOURNALS = ".subagents/memory-journals"
_MOST_BYTES = 4 * MOST_CHARS
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | NO_LINK
# A project's memory may be committed; what a killed writer left is nobody's business. Journals lay here once.
_IGNORED = b".memory-tmp-*\n/.lock\n/.memory-store.sqlite3*\n/.gitignore\n"


def journal_folder(folder: Path) -> Path:
    """Return where lies what keeps a memory whole: its lock, and the receipts of its writes.

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
    with contextlib.suppress(OSError), _held(folder, f"{path}/{MAIN_FILE}") as (place, _):
        for name in sorted(name for name in os.listdir(place) if name.endswith(".md"))[:MOST_FILES]:
            with contextlib.suppress(OSError), open_in(place, name, name) as handle:
                texts[name] = os.read(handle, _MOST_BYTES).decode("utf-8", "replace")[:MOST_CHARS]
    return texts


def memory_sha256(folder: Path, path: str) -> str | None:
    """Return the SHA-256 over all texts of a memory and their names; None if there is nothing in it."""
    texts = memory_texts(folder, path)
    return sha256_text("".join(f"{name}\0{len(text)}\0{text}" for name, text in texts.items())) if texts else None


def note_bytes(folder: Path, path: str) -> bytes | None:
    """Return what a file of a memory holds, one byte more than it may if it is longer; None: it is not there.

    Raises:
        NotPlain: a link stands in the path, or no plain file at its end.
        OSError: it can't be read.
    """
    try:
        with _held(folder, path) as (place, name), open_in(place, name, path) as handle:
            return os.read(handle, _MOST_BYTES + 1)
    except FileNotFoundError:
        return None


def put_note(folder: Path, path: str, data: bytes) -> None:
    """Put `data` in the place of a file of a memory in one step; folders are made. Raises as `note_bytes`."""
    with _held(folder, path, make=True) as (place, name):
        temp = f".memory-tmp-{secrets.token_hex(8)}"
        fd = os.open(temp, _NEW, 0o600, dir_fd=place)
        try:
            try:
                DISK.write(fd, data)
            finally:
                os.close(fd)
            os.rename(temp, name, src_dir_fd=place, dst_dir_fd=place)
        except BaseException as error:
            with contextlib.suppress(OSError):
                os.unlink(temp, dir_fd=place)
            if isinstance(error, IsADirectoryError):
                raise NotPlain(path, "is no plain file") from None
            raise


def remove_note(folder: Path, path: str) -> None:
    """Remove a file of a memory, if it is there. Raises as `note_bytes`."""
    with contextlib.suppress(FileNotFoundError), _held(folder, path) as (place, name):
        os.unlink(name, dir_fd=place)


def make_memory(folder: Path) -> None:
    """Make a memory folder, and what keeps git from what lies in it for a moment. Raises as `note_bytes`."""
    with _held(folder, ".gitignore", make=True) as (place, name), contextlib.suppress(FileExistsError):
        fd = os.open(name, _NEW, 0o600, dir_fd=place)
        try:
            DISK.write(fd, _IGNORED)
        finally:
            os.close(fd)


def _held(folder: Path, path: str, *, make: bool = False) -> contextlib.AbstractContextManager[tuple[int, str]]:
    """Open the folder that a path below the memory folder is in, from the project or the home folder down."""
    top = folder.parent.parent
    return folder_of(top, f"{folder.relative_to(top).as_posix()}/{path}", make=make)
