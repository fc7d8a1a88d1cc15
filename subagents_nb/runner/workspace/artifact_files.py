"""What steps made beside their answers, kept in the run's directory: figures, tables, new files of the workspace."""

from __future__ import annotations

import contextlib
import hashlib
import mimetypes
import os
import re
import struct
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal

from subagents_nb.domain.agents.guarded import is_secret
from subagents_nb.domain.runs.records import Artifact
from subagents_nb.domain.values.characters import sayable
from subagents_nb.store.files.disk import Disk
from subagents_nb.store.files.opener import NotPlain, chunks, open_below

FOLDER = "artifacts"
PARQUET = "application/vnd.apache.parquet"
MOST_FILE_BYTES = 20_000_000
MOST_TABLE_BYTES = 50_000_000
MOST_BYTES = 60_000_000  # of all together: a run may take 100 MB in all
MOST_NAMED_BYTES = 4_000_000_000  # a file may say of itself that it has terabytes, and take no room
MOST = 200
_TOLD_NAME = re.compile(r"[0-9]{1,4}\.parquet\Z")
_ODD = re.compile(r"[^A-Za-z0-9._-]+")


class ArtifactWriter:
    """Keeps the artifacts of one run and numbers them. What can't be kept is said once and left out."""

    def __init__(self, root: Path, disk: Disk) -> None:
        self._root = root
        self._disk = disk
        self._guard = threading.RLock()
        self._counts: dict[str, int] = {}
        self._files: dict[tuple[str, str], Artifact] = {}  # by directory and path in it: the latest
        self._bytes = 0
        self._made = False

    def figure(self, step: int, data: bytes) -> Artifact | None:
        """Keep a PNG."""
        width, height = struct.unpack(">II", data[16:24]) if len(data) >= 24 else (0, 0)
        return self._keep(step, "figure", data, ".png", "image/png", shape=(height, width))

    def table(self, step: int, folder: Path, told: Mapping[str, Any]) -> Artifact | None:
        """Keep a table that the kernel says it wrote into `folder`. Its word is checked."""
        name, shape = told.get("file"), told.get("shape")
        if not isinstance(name, str) or not _TOLD_NAME.match(name):
            return None
        data = _content(folder, name, MOST_TABLE_BYTES)
        with contextlib.suppress(OSError):
            (folder / name).unlink()
        if data is None or not (data.startswith(b"PAR1") and data.endswith(b"PAR1")):
            return None
        numbers = shape if isinstance(shape, list) and all(isinstance(n, int) for n in shape) else []
        return self._keep(step, "table", data, ".parquet", PARQUET, shape=tuple(numbers[:2]) or None)

    def answer(self, step: int, data: bytes, name: str, media_type: str) -> Artifact | None:
        """Keep what a tool of a server answered and no model is told whole."""
        return self._keep(step, "file", data, f"-{_plain(name)}", media_type)

    def has(self, cwd: Path, path: str) -> bool:
        """Say whether a file of this directory is an artifact already."""
        return (str(cwd), path) in self._files

    def file(self, step: int, cwd: Path, path: str, *, still: Callable[[], bool] = lambda: True) -> Artifact | None:
        """Keep a file of the workspace, unless its name is a secret's or no text; one that is too large is named only.

        Kept again by its step, it is replaced. Nothing is kept that is not `still` as it was when it has been read.
        """
        if is_secret(path) or sayable(path) != path:
            return None
        artifact = self._file(step, cwd, path, still)
        if artifact is not None:
            self._files[str(cwd), path] = artifact
        return artifact

    def _file(self, step: int, cwd: Path, path: str, still: Callable[[], bool]) -> Artifact | None:
        media_type = mimetypes.guess_type(path)[0] or "application/octet-stream"
        data = _content(cwd, path, MOST_FILE_BYTES)
        if data is not None:
            if not still():
                return None
            before = self._files.get((str(cwd), path))
            before = before if before is not None and before.path and before.step == step else None
            return self._keep(step, "file", data, f"-{_plain(path)}", media_type, workspace=path, before=before)
        try:
            with open_below(cwd, path) as handle:
                size, digest, read = os.fstat(handle).st_size, hashlib.sha256(), 0
                for piece in chunks(handle):
                    read += len(piece)
                    if max(size, read) > MOST_NAMED_BYTES:
                        self._say(f"{path} is no artifact: it is too large to be read through")
                        return None
                    digest.update(piece)
        except OSError:
            return None
        if not still():
            return None
        return Artifact(
            path="", size=size, sha256=digest.hexdigest(), media_type=media_type, name=path, step=step, workspace=path
        )

    def _keep(
        self,
        step: int,
        kind: Literal["figure", "table", "file"],
        data: bytes,
        ending: str,
        media_type: str,
        *,
        shape: tuple[int, ...] | None = None,
        workspace: str | None = None,
        before: Artifact | None = None,
    ) -> Artifact | None:
        with self._guard:
            more = len(data) - (before.size if before is not None else 0)
            count = self._counts.get(kind, 0) + (before is None)
            if self._bytes + more > MOST_BYTES or (before is None and sum(self._counts.values()) >= MOST):
                self._say(f"a {kind} was not kept: the run has as many artifacts as it may have")
                return None
            short = {"figure": "fig", "table": "table", "file": "file"}[kind]
            path = before.path if before is not None else f"{FOLDER}/{step}-{short}-{count}{ending}"
            try:
                self._start()
                self._disk.replace(self._root / path, data, durable=False)
            except OSError as error:
                self._say(f"a {kind} was not kept: {error.strerror}")
                return None
            self._counts[kind] = count
            self._bytes += more
        return Artifact(
            path=path,
            size=len(data),
            sha256=hashlib.sha256(data).hexdigest(),
            media_type=media_type,
            name=workspace or f"{short}{count}",
            step=step,
            kind=kind,
            shape=shape,
            workspace=workspace,
        )

    def _start(self) -> None:
        if not self._made:
            with contextlib.suppress(FileExistsError):
                self._disk.make_dir(self._root / FOLDER)
            self._made = True

    @staticmethod
    def _say(text: str) -> None:
        print(text, file=sys.stderr, flush=True)  # noqa: T201


def _content(root: Path, path: str, most: int) -> bytes | None:
    """Return what a plain file holds; None if it is larger than `most`, or can't be read without following a link."""
    try:
        with open_below(root, path) as handle:
            if os.fstat(handle).st_size > most:
                return None
            data = b"".join(chunks(handle))
    except (NotPlain, OSError):
        return None
    return data if len(data) <= most else None


def _plain(path: str) -> str:
    """Return a file's last name, reduced to what any disk takes."""
    return _ODD.sub("_", path.rpartition("/")[2])[-80:].lstrip(".") or "file"
