"""The files of a project that the command line of a server names, with their hashes.

One reader for who is asked whether it may be started and for who starts it: variables are put in, folders and links are
followed as they are then. It sees more than is started, since nobody knows what a program makes of its arguments; what
a file reads in its turn it does not see.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from subagents_nb.domain.agents.mcp_servers import McpServer, ReadyServer, ready
from subagents_nb.domain.values.base import sha256_text
from subagents_nb.store.files.opener import chunks, open_plain

# A text of a shell names files as well, and so do search paths and settings: --config=a.json, ./lib:./more.
_BETWEEN = re.compile(r"""[\s:;=,'"`|&<>(){}$]+""")
_QUOTED = re.compile(r"""['"`=\n;&|]+""")  # a name with blanks in it
_MODULE = re.compile(r"(?:\A|\s)-[A-Za-z]*m\s*([A-Za-z_]\w*(?:\.\w+)*)")
_INTERPRETER = re.compile(r"(?:python|pypy|node|bun|deno|tsx)[\d.]*\Z")
_OF_A_MODULE = (".py", "/__init__.py", "/__main__.py")
_OF_A_FOLDER = ("__main__.py", "index.js", "package.json")  # what is started by its name alone
_MOST_PARTS = 8
_ZIP_TAIL = 1 << 17  # more than the end of an archive may hold: 22 bytes and a remark of 64 KiB


def started_in(made: ReadyServer, here: Path) -> Path:
    """Return where a server is started that a step has which works `here`."""
    return Path(os.path.join(here, os.path.expanduser(made.cwd or ".")))


def files_named(
    server: McpServer, variables: Mapping[str, str], *, here: Path, roots: Sequence[Path]
) -> dict[str, str]:
    """Return the hashes of files below `roots` that a server's command line and variables name, by their paths there.

    `variables` are the person's. Of a link that leads out, where it leads is hashed.
    """
    if server.command is None:
        return {}
    made = ready(server, variables, {}, whole=False)
    tops = tuple(os.path.realpath(root) for root in roots)
    texts = (*made.argv, *(made.environ or {}).values())
    words = (*_words(texts), *_modules(texts), *_entries(made.argv))
    start = (os.path.realpath(started_in(made, here)), os.path.realpath(here))
    named = (os.path.join(place, word) for place in start for word in words)
    folders = (os.path.realpath(path) for path in named if os.path.isdir(path))
    places = dict.fromkeys((*start, *(place for place in folders if _top_of(place, tops) is not None)))
    found = (_hashed(os.path.join(place, word), tops) for place in places for word in words)
    return dict(sorted(filter(None, found)))


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


def _words(texts: Iterable[str]) -> tuple[str, ...]:
    found = (os.path.expanduser(end) for text in texts for word in _parts(text) for end in _ends(word))
    return tuple(dict.fromkeys(word for word in found if word and "\0" not in word))


def _parts(text: str) -> Iterator[str]:
    yield text
    yield from _BETWEEN.split(text)
    yield from (part.strip() for part in _QUOTED.split(text))
    with contextlib.suppress(ValueError):  # a quotation that does not end
        yield from shlex.split(text)


def _ends(word: str) -> Iterator[str]:
    """Yield a path, and its ends: what stands before them may be a variable that only a shell knows."""
    yield word
    for _ in range(_MOST_PARTS):
        word = word.partition("/")[2]
        if not word:
            return
        yield word


def _modules(texts: Sequence[str]) -> Iterator[str]:
    for text in (" ".join(texts), *texts):
        for match in _MODULE.finditer(text):
            yield from (match[1].replace(".", os.sep) + ending for ending in _OF_A_MODULE)


def _entries(argv: Sequence[str]) -> Iterator[str]:
    """Yield what an interpreter starts of a folder."""
    if argv and _INTERPRETER.match(os.path.basename(argv[0])):
        first = next((word for word in argv[1:] if not word.startswith("-")), None)
        yield from (os.path.join(first, name) for name in _OF_A_FOLDER if first is not None)


def _hashed(path: str, tops: Sequence[str]) -> tuple[str, str] | None:
    if not os.path.isfile(path):
        return None
    place = os.path.realpath(path)
    if (top := _top_of(place, tops)) is not None:
        if _is_database(place):
            return None
        sha = hash_of(Path(place), Path(top))
        return (os.path.relpath(place, top), sha) if sha else None
    path = os.path.normpath(path)
    top = _top_of(path, tops)
    return None if top is None else (os.path.relpath(path, top), sha256_text(where_it_leads(path)))


def _is_database(place: str) -> bool:
    """Say whether a file is what servers themselves write all day, and nobody starts.

    A program may be put behind any beginning, so that Python runs it: zipapp, whose directory stands at its end.
    """
    with contextlib.suppress(OSError), open_plain(Path(place)) as fd:
        head = os.read(fd, 16)
        if head == b"SQLite format 3\0" or head[8:12] == b"DUCK":
            os.lseek(fd, max(0, os.fstat(fd).st_size - _ZIP_TAIL), os.SEEK_SET)
            return b"PK\5\6" not in b"".join(chunks(fd))
    return False


def _top_of(place: str, tops: Sequence[str]) -> str | None:
    return next((top for top in tops if place == top or place.startswith(top.rstrip(os.sep) + os.sep)), None)
