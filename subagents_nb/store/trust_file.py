"""What the person said to projects: `~/.subagents/trust/answers.json`, beside copies of the texts that they allowed.

It is the person's own: in their home folder, readable by them alone, never in a project. A file that others may write,
or that can't be read, allows nothing.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from pathlib import Path

from pydantic import Field

from subagents_nb.domain.agents.acting import Answer
from subagents_nb.domain.values.base import SCHEMA_VERSION, Value, sha256_text
from subagents_nb.errors import StoreError
from subagents_nb.store.files.disk import DISK, PRIVATE_DIR
from subagents_nb.store.files.lock import exclusive
from subagents_nb.store.files.opener import read_plain

SHOWN = "~/.subagents/trust/answers.json"
_FOLDER = ".subagents/trust"
_MOST_BYTES = 16 * 1024 * 1024
MOST_TEXT_BYTES = 64 * 1024
_SHA = re.compile(r"[0-9a-f]{64}\Z")
_PATIENCE_S = 5.0


class Answers(Value):
    """All answers, by the folder of the project."""

    schema_version: int = Field(default=SCHEMA_VERSION, le=SCHEMA_VERSION)
    kind: str = "trust"
    projects: dict[str, Answer] = Field(default_factory=dict)


def read_answers(home: Path) -> Answers:
    """Return what the person said; nothing if there is no such file.

    Raises:
        StoreError: the file is there and can't be used.
    """
    try:
        about = (home / _FOLDER / "answers.json").stat()
    except OSError:
        return Answers()
    return _read(home, about.st_ino, about.st_size, about.st_mtime_ns, about.st_ctime_ns)


@lru_cache(maxsize=8)
def _read(home: Path, *_identity: int) -> Answers:
    try:
        path = home / _FOLDER / "answers.json"
        data = read_plain(path, _MOST_BYTES)
        if os.name == "posix" and (path.stat().st_uid not in (0, os.getuid()) or path.stat().st_mode & 0o022):
            raise ValueError("others may write it")
    except (OSError, ValueError) as error:
        raise _unusable(str(error)) from error
    try:
        return Answers.model_validate_json(data)
    except ValueError as error:
        raise _unusable("it is not as this version writes it") from error


def _unusable(why: str) -> StoreError:
    return StoreError(f"{SHOWN} can't be used: {why}. Mend it or take it away; nothing is allowed by it.")


def change_answer(
    home: Path, project: str, change: Callable[[Answer], Answer], texts: Callable[[], Mapping[str, str]] = dict
) -> Answer:
    """Put another answer to one project in the place of the one there is; return it.

    `texts` are kept beside, by hash, so that a later difference can be shown; those that no answer names go.

    Raises:
        StoreError: the file can't be used or written; it is as it was.
    """
    folder = home / _FOLDER
    busy = StoreError(f"Another process has been writing {SHOWN} for {_PATIENCE_S:g} s; try again.")
    try:
        folder.mkdir(mode=PRIVATE_DIR, parents=True, exist_ok=True)
        with exclusive(folder / "lock", what=SHOWN, busy=busy, patience_s=_PATIENCE_S):
            answers = read_answers(home)
            answer = change(answers.projects.get(project, Answer()))
            projects = {**answers.projects, project: answer}
            if not answer.says_anything:
                del projects[project]
            changed = answers.model_copy(update={"projects": projects})
            _keep(folder, texts(), changed.projects.values())
            DISK.replace(folder / "answers.json", changed.model_dump_json().encode(), durable=True)
            return answer
    except OSError as error:
        raise StoreError(f"{SHOWN} can't be written: {error.strerror or error}.") from error


def kept_text(home: Path, sha256: str) -> str | None:
    """Return a text that was allowed, by its hash; None if it is not kept."""
    if not _SHA.match(sha256):
        return None
    with contextlib.suppress(OSError, UnicodeDecodeError):
        text = read_plain(home / _FOLDER / f"{sha256}.txt", MOST_TEXT_BYTES).decode()
        return text if sha256_text(text) == sha256 else None
    return None


def _keep(folder: Path, texts: Mapping[str, str], answers: Iterable[Answer]) -> None:
    named: set[str] = set()
    for answer in answers:
        for files in (*answer.contents.values(), *answer.seen.values()):
            named.update(files.values())
    present = {name.removesuffix(".txt") for name in os.listdir(folder) if _SHA.match(name.removesuffix(".txt"))}
    for sha in present - named:
        with contextlib.suppress(OSError):
            DISK.remove(folder / f"{sha}.txt")
    for sha, text in texts.items():
        if sha in named - present and sha256_text(text) == sha and len(text.encode()) <= MOST_TEXT_BYTES:
            DISK.replace(folder / f"{sha}.txt", text.encode(), durable=False)
