"""The files of a project that the command line of a server names, with their hashes.

One reader for who is asked whether it may be started and for who starts it: variables are put in, folders, links and
patterns are followed as they are then. It sees more than is started; what a file reads in its turn it does not see.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from glob import has_magic, iglob
from pathlib import Path

from subagents_nb.domain.agents.mcp_servers import McpServer, ReadyServer, ready
from subagents_nb.domain.mcp.command_lines import STARTING, command_line, words_of
from subagents_nb.domain.values.base import sha256_text
from subagents_nb.store.files.opener import chunks, open_plain

_MOST_PATTERNS, _MOST_OF_A_PATTERN, _MOST_STARS = 100, 200, 2  # a launch waits while folders are listed
_DATABASES = (".db", ".db3", ".sqlite", ".sqlite3", ".duckdb", ".ddb")
_ZIP_TAIL = 1 << 17  # more than the end of an archive may hold: 22 bytes and a remark of 64 KiB


def started_in(made: ReadyServer, here: Path) -> Path:
    """Return where a server is started that a step has which works `here`."""
    return Path(os.path.join(here, os.path.expanduser(made.cwd or ".")))


@dataclass(frozen=True, slots=True)
class NamedFiles:
    """What a server's command line names of a project."""

    files: dict[str, str]  # by path: the SHA-256
    unseen: tuple[str, ...]  # what it may start or read besides, that can't be compared; in words


def files_named(
    server: McpServer, variables: Mapping[str, str], *, here: Path, roots: Sequence[Path]
) -> dict[str, str]:
    """Return the hashes of files below `roots` that a server's command line and variables name, by their paths there.

    `variables` are the person's. Of a link that leads out, where it leads is hashed.
    """
    return look_at(server, variables, here=here, roots=roots).files


def look_at(server: McpServer, variables: Mapping[str, str], *, here: Path, roots: Sequence[Path]) -> NamedFiles:
    """Return `files_named`, and what of the command line can't be followed to files."""
    if server.command is None:
        return NamedFiles({}, ())
    made = ready(server, variables, {}, whole=False)
    line = command_line(made.argv, made.environ or {})
    tops = tuple(os.path.realpath(root) for root in roots)
    start = (os.path.realpath(started_in(made, here)), os.path.realpath(here))
    apart = {text: [path for path in _joined(start, (text,)) if _is_database(path, tops)] for text in line.data}
    words = (*line.words, *words_of(text for text, paths in apart.items() if not paths))
    named = (path for path in _joined(start, words) if os.path.isdir(path))
    folders = (os.path.realpath(path) for path in named)
    places = dict.fromkeys((*start, *(place for place in folders if _top_of(place, tops) is not None)))
    globs = _joined(places, (word for word in words if has_magic(word)))
    patterns = [_expanded(path, tops) for path in globs[:_MOST_PATTERNS]]
    above = dict.fromkeys(up for place in places for up in _upward(place, tops))
    entries = dict(filter(None, (_hashed(path, tops) for path in _joined(above, line.entries))))
    paths = (*_joined(places, words), *(path for found, _ in patterns for path in found))
    found = dict(filter(None, (_hashed(path, tops) for path in paths))) | entries
    unseen = [*line.unseen, *(f"what {path} starts" for path in found if os.path.basename(path) in STARTING)]
    unseen += ["what its patterns mean"] if len(globs) > _MOST_PATTERNS or any(cut for _, cut in patterns) else []
    databases = (os.path.realpath(path) for paths in apart.values() for path in paths)
    unseen += [os.path.relpath(path, _top_of(path, tops) or path) for path in databases]
    return NamedFiles(dict(sorted(found.items())), tuple(dict.fromkeys(unseen)))


def _joined(places: Iterable[str], words: Iterable[str]) -> list[str]:
    listed = tuple(map(os.path.expanduser, words))
    return [os.path.join(place, word) for place in places for word in listed]


def _upward(place: str, tops: Sequence[str]) -> Iterator[str]:
    """Yield a folder and those above it, up to the project's: where runners look for their files."""
    while _top_of(place, tops) is not None:
        yield place
        place = os.path.dirname(place)


def _expanded(pattern: str, tops: Sequence[str]) -> tuple[list[str], bool]:
    """Return the paths of the project that a pattern stands for, and whether there may be more."""
    parts = pattern.split(os.sep)
    stars = [number for number, part in enumerate(parts) if has_magic(part)]
    if not stars or _top_of(os.path.realpath(os.sep.join(parts[: stars[0]]) or os.sep), tops) is None:
        return [], False
    if len(stars) > _MOST_STARS or ".." in parts[stars[0] :]:
        return [], True
    found = list(itertools.islice(iglob(pattern), _MOST_OF_A_PATTERN + 1))
    return found[:_MOST_OF_A_PATTERN], len(found) > _MOST_OF_A_PATTERN


def where_it_leads(path: str | Path) -> str:
    """Return what is hashed of a link that leads out of its project."""
    return f"a link to {os.path.realpath(path)}\n"


def hash_of(path: Path, within: Path | None = None) -> str:
    """Return the SHA-256 of a plain file; nothing if it is none, or can't be read."""
    try:
        digest = hashlib.sha256()
        with open_plain(path, within=within) as fd:
            for piece in chunks(fd):
                digest.update(piece)
        return digest.hexdigest()
    except OSError:
        return ""


def _hashed(path: str, tops: Sequence[str]) -> tuple[str, str] | None:
    if not os.path.isfile(path):
        return None
    place = os.path.realpath(path)
    if (top := _top_of(place, tops)) is not None:
        sha = hash_of(Path(place), Path(top))
        return (os.path.relpath(place, top), sha) if sha else None
    path = os.path.normpath(path)
    top = _top_of(path, tops)
    return None if top is None else (os.path.relpath(path, top), sha256_text(where_it_leads(path)))


def _is_database(path: str, tops: Sequence[str]) -> bool:
    """Say whether a file is what servers themselves write all day, by its name, its rights and its beginning.

    None of these keeps anybody from starting it, so this is asked only of what stands where a database is named. A
    program may be put behind any beginning, so that Python runs it: zipapp, whose directory stands at its end.
    """
    place = os.path.realpath(path)
    if _top_of(place, tops) is None or not place.endswith(_DATABASES) or os.access(place, os.X_OK):
        return False
    with contextlib.suppress(OSError), open_plain(Path(place)) as fd:
        head = os.read(fd, 16)
        if head == b"SQLite format 3\0" or head[8:12] == b"DUCK":
            os.lseek(fd, max(0, os.fstat(fd).st_size - _ZIP_TAIL), os.SEEK_SET)
            return b"PK\5\6" not in b"".join(chunks(fd))
    return False


def _top_of(place: str, tops: Sequence[str]) -> str | None:
    return next((top for top in tops if place == top or place.startswith(top.rstrip(os.sep) + os.sep)), None)
