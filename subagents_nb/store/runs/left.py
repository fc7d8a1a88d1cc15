"""What runs left in a workspace, by files: so that a later run knows an output of ours from a source of the person's.

    left/<workspace>/<path>     both as hashes: the path, the content that was left there last, and which run left it

Written by the runner of that run, whole each time. A cache: without it, what lies there counts as a source.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from pydantic import ValidationError

from subagents_nb.domain.values.base import Value, sha256_text
from subagents_nb.domain.values.ids import is_run_id
from subagents_nb.errors import Unreadable
from subagents_nb.store.files.disk import DISK, PRIVATE_DIR
from subagents_nb.store.files.fingerprints import Unsettled, file_sha256
from subagents_nb.store.layout import StoreHome

_MOST = 1000
_MOST_BYTES = 256 * 1024 * 1024


class Left(Value):
    """One file as a run left it."""

    path: str
    sha256: str
    run_id: str


class LeftFiles:
    """The files that runs left in one workspace; `run_id` is the run that notes its own, if one does."""

    def __init__(self, home: StoreHome, cwd: Path, run_id: str = "") -> None:
        self._home = home
        self.cwd = cwd
        self._run_id = run_id
        self._folder = home.root / "left" / sha256_text(os.path.realpath(cwd))

    def note(self, path: str, sha256: str | None) -> None:
        """Remember what the run leaves at a path; where that fails, it is a source to later runs."""
        place = self._path(path)
        with contextlib.suppress(OSError):
            if sha256 is None:
                place.unlink(missing_ok=True)
                return
            for folder in (self._folder.parent, self._folder):
                with contextlib.suppress(FileExistsError):
                    folder.mkdir(mode=PRIVATE_DIR)
            entry = Left(path=path, sha256=sha256, run_id=self._run_id)
            DISK.replace(place, entry.model_dump_json().encode(), durable=False)

    def last(self, path: str) -> Left | None:
        """Return what was left at a path last, by a run that is still in the store."""
        return self._read(self._path(path))

    def here(self) -> frozenset[str]:
        """Return the paths where lies what a run left there."""
        paths: set[str] = set()
        taken = 0
        with contextlib.suppress(OSError):
            for name in sorted(os.listdir(self._folder))[:_MOST]:
                entry = self._read(self._folder / name)
                if entry is None:
                    with contextlib.suppress(OSError):
                        (self._folder / name).unlink()
                    continue
                with contextlib.suppress(OSError, Unsettled):
                    taken += os.lstat(self.cwd / entry.path).st_size
                    if taken > _MOST_BYTES:
                        break
                    if file_sha256(self.cwd, entry.path) == entry.sha256:
                        paths.add(entry.path)
        return frozenset(paths)

    def _path(self, path: str) -> Path:
        return self._folder / sha256_text(path)

    def _read(self, place: Path) -> Left | None:
        try:
            entry = Left.model_validate_json(DISK.read(place))
        except (Unreadable, ValidationError, OSError, ValueError):
            return None
        exists = is_run_id(entry.run_id) and os.path.isdir(self._home.run_folder(entry.run_id))
        return entry if exists else None
