"""The skills of a run as files: copied by the launcher before there is a status, and only read afterwards."""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import shutil
import stat
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from subagents_nb.domain.agents.skills import FOLDER, LEFT_OUT, MOST_BYTES, MOST_FILES, SkillRecord, folder_sha256
from subagents_nb.errors import StoreError
from subagents_nb.store.files.disk import DISK, Disk
from subagents_nb.store.files.opener import open_below
from subagents_nb.store.layout import RunPaths

_MOST_ENTRIES = 10 * MOST_FILES
_DEPTH = 16
_READ_ONLY, _PROGRAM = 0o400, 0o500


class SkillRefused(Exception):
    """A skill's folder can't be copied; the text says why."""


@dataclass(frozen=True, slots=True)
class SkillFile:
    """One file of a skill."""

    path: str  # below its folder
    data: bytes
    runs: bool  # it may be executed

    @property
    def sha256(self) -> str:
        """Return the hash of what it holds."""
        return hashlib.sha256(self.data).hexdigest()


SkillFiles = tuple[SkillFile, ...]


def sha256_of(files: Iterable[SkillFile]) -> str:
    """Return the SHA-256 of a skill by its files."""
    return folder_sha256((one.path, one.runs, one.sha256) for one in files)


def read_folder(folder: Path, allowed: Callable[[os.stat_result], str | None] = lambda _about: None) -> SkillFiles:
    """Return all plain files below a folder, which may itself be reached through links. A link in it ends inside it.

    Raises:
        SkillRefused: something else lies there, too much of it, or what `allowed` gives a reason against.
        OSError: it can't be read.
    """
    root = os.path.realpath(folder)
    files: list[SkillFile] = []
    waiting, entries, left = [""], 0, MOST_BYTES
    while waiting:
        where = waiting.pop()
        with os.scandir(os.path.join(root, where)) as listed:
            names = sorted(entry.name for entry in listed if entry.name not in LEFT_OUT)
        entries += len(names)
        for name in names:
            path = f"{where}/{name}" if where else name
            if entries > _MOST_ENTRIES or path.count("/") > _DEPTH:
                raise SkillRefused("it has too many folders, or too deep ones")
            if not path.isprintable():
                raise SkillRefused(f"the name {path!a} is no plain text")
            about = os.lstat(os.path.join(root, path))
            if (why := allowed(about)) is not None:
                raise SkillRefused(f"{path} does not count: {why}")
            if stat.S_ISDIR(about.st_mode):
                waiting.append(path)
                continue
            if len(files) == MOST_FILES:
                raise SkillRefused(f"it has more than {MOST_FILES} files")
            files.append(_file(root, path, left, is_link=stat.S_ISLNK(about.st_mode)))
            left -= len(files[-1].data)
    return tuple(files)


def _file(root: str, path: str, left: int, *, is_link: bool) -> SkillFile:
    real = path
    if is_link:
        real = os.path.relpath(os.path.realpath(os.path.join(root, path)), root)
        if real.split(os.sep)[0] == "..":
            raise SkillRefused(f"{path} is a link that leads out of the skill's folder")
        if os.path.isdir(os.path.join(root, real)):
            raise SkillRefused(f"{path} is a link to a folder")
    if not os.path.isfile(os.path.join(root, real)):  # an opener would wait for who writes into a pipe
        raise SkillRefused(f"{path} is no plain file")
    with open_below(root, real) as handle:
        about = os.fstat(handle)
        parts, size = [], 0
        while size <= left and (piece := os.read(handle, 1 << 18)):
            parts.append(piece)
            size += len(piece)
    if size > left:
        raise SkillRefused(f"it has more than {MOST_BYTES // 1_000_000} MB")
    return SkillFile(path, b"".join(parts), bool(about.st_mode & stat.S_IXUSR))


def write_skills(paths: RunPaths, skills: Mapping[str, SkillFiles], *, disk: Disk = DISK) -> None:
    """Write the skills of a run by the names of their folders, each as a whole; one that is there is left as it is.

    Raises:
        OSError: the disk refuses.
    """
    for name, files in skills.items():
        with contextlib.suppress(FileExistsError):
            disk.make_dir(paths.root / FOLDER)
        if os.path.lexists(paths.root / FOLDER / name):
            continue
        temp = paths.root / FOLDER / f".{secrets.token_hex(6)}.part"
        try:
            disk.make_dir(temp)
            _write_folder(temp, files, disk)
            disk.rename(temp, paths.root / FOLDER / name)
        except OSError:
            if not os.path.lexists(paths.root / FOLDER / name):  # else somebody else was faster, with the same files
                raise
        finally:
            shutil.rmtree(temp, ignore_errors=True)


def _write_folder(folder: Path, files: SkillFiles, disk: Disk) -> None:
    folders = {""}
    for one in files:
        parts = one.path.split("/")[:-1]
        for depth in range(1, len(parts) + 1):
            if (inner := "/".join(parts[:depth])) not in folders:
                disk.make_dir(folder / inner)
                folders.add(inner)
        handle = disk.open(folder / one.path, os.O_CREAT | os.O_EXCL | os.O_WRONLY)
        try:
            disk.write(handle, one.data)
            os.fchmod(handle, _PROGRAM if one.runs else _READ_ONLY)
        finally:
            os.close(handle)


def kept_skills(paths: RunPaths, records: Iterable[SkillRecord]) -> dict[str, SkillFiles]:
    """Return the files of skills of an earlier run, or of a parent's, by the names of their folders.

    Raises:
        StoreError: some are gone, or are no longer what was copied; with all of them.
    """
    skills: dict[str, SkillFiles] = {}
    broken: dict[str, None] = {}
    for record in records:
        if record.folder in skills:
            continue
        try:
            skills[record.folder] = read_folder(paths.root / FOLDER / record.folder)
        except (OSError, SkillRefused):
            broken[record.name] = None
        else:
            if sha256_of(skills[record.folder]) != record.sha256:
                broken[record.name] = None
    if broken:
        raise StoreError(f"The copy of skill {', '.join(broken)} in run {paths.root.name} is gone, or was changed.")
    return skills
