"""The program that searches file contents: `python -I -S searcher.py REQUEST`, its answer one JSON object.

A regular expression of a model's can take for ever, and holds the interpreter's lock meanwhile: a process can be ended.
It loads the standard library and the list of secret files alone, and never holds more of a file than two megabytes.
"""

from __future__ import annotations

import fnmatch
import json
import os
import re
import sys

TYPE_CHECKING = False  # to load `typing` would take a fifth of the time
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any, BinaryIO

_BLOCK = 1 << 20
_MEMORY = 1 << 29
_SAMPLE = 8192
_SPECIAL = frozenset("\\.^$*+?{}[]|()")
_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)


def main() -> None:
    """Search as the request says and print what was found."""
    request = json.loads(sys.argv[1])
    _limit(request["seconds"])
    # The package's folder is all that is taken from it: this process starts for each search.
    sys.path.insert(0, request["package"])
    from subagents_nb.domain.agents.guarded import is_secret

    if request["unseen"]:  # what a policy denies, or has asked about, by whole paths
        from subagents_nb.domain.values.characters import loose

        unseen, root, guarded = re.compile(rf"(?:{request['unseen']})\Z", re.DOTALL).match, request["root"], is_secret

        def is_secret(path: str) -> bool:
            return guarded(path) or unseen(loose(os.path.join(root, path))) is not None

    try:
        answer = search(request, is_secret)
    except re.error as error:
        answer = {"error": f"Invalid regex pattern: {error}"}
    except (RecursionError, OverflowError, MemoryError):
        answer = {"error": "The pattern is too large"}
    print(json.dumps(answer))  # noqa: T201


def search(request: dict[str, Any], is_secret: Callable[[str], bool]) -> dict[str, Any]:
    """Return the lines that match, as `path:line:text`, and whether there are more."""
    lines: list[str] = []
    tests = _tests(request["pattern"])
    hidden = [re.compile(fnmatch.translate(one)).match for one in request["hidden"]]
    for path in _files(request["root"], request["path"], request["include"]):
        real = _real(request["root"], path)
        if real is None or is_secret(real) or any(test(real) for test in hidden):
            continue
        try:
            with open(os.open(os.path.join(request["root"], real), _FLAGS), "rb") as file:
                for number, line in _lines(file, *tests):
                    if len(lines) == request["most"]:
                        return {"found": lines, "more": True}
                    lines.append(f"{_plain(path)}:{number}:{line[: request['chars']]}")
        except OSError:
            continue
    return {"found": lines, "more": False}


def _tests(pattern: str) -> tuple[Callable[[str], object], bytes]:
    """Return what finds the pattern in a line, and what a block of bytes must hold for one of its lines to match."""
    if _SPECIAL.isdisjoint(pattern):
        return (lambda line: pattern in line), pattern.encode("utf-8", "surrogatepass")
    return re.compile(pattern).search, b""


def _files(root: str, start: str, include: str | None) -> Iterator[str]:
    """Give the files in a sorted order, relative to the root; what begins with a dot is left out."""
    matches = re.compile(fnmatch.translate(include)).match if include else None
    if os.path.isfile(os.path.join(root, start)):
        walk: Any = [(os.path.join(root, os.path.dirname(start)), [], [os.path.basename(start)])]
    else:
        walk = os.walk(os.path.join(root, start))
    for folder, folders, names in walk:
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        where = os.path.relpath(folder, root)
        for name in sorted(names):
            path = name if where == "." else f"{where}/{name}"
            if not any(part.startswith(".") for part in path.split("/")) and (matches is None or matches(path)):
                yield path


def _real(root: str, path: str) -> str | None:
    """Return where in the root a file really lies; None if it lies elsewhere or is no plain file."""
    real = os.path.realpath(os.path.join(root, path))
    inner = os.path.relpath(real, root)
    return inner if os.path.isfile(real) and inner.partition("/")[0] != ".." else None


def _lines(file: BinaryIO, matches: Callable[[str], object], needle: bytes) -> Iterator[tuple[int, str]]:
    """Give the lines that match, with their numbers; nothing of a binary file."""
    number = 1
    for cut, block in _blocks(file):
        number += cut
        if number == 1 and b"\0" in block[:_SAMPLE]:
            return
        if needle in block:
            lines = block.decode("utf-8", "replace").split("\n")
            if not lines[-1]:
                lines.pop()
            for further, line in enumerate(lines):
                if matches(line := line.removesuffix("\r")):
                    yield number + further, line
        number += block.count(b"\n")


def _blocks(file: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """Give whole lines, some at a time, and before them 1 if a line ended that was too long to be given whole."""
    rest, cut, skipping = b"", 0, False
    while chunk := file.read(_BLOCK):
        if skipping:
            at = chunk.find(b"\n")
            if at < 0:
                continue
            chunk, cut, skipping = chunk[at + 1 :], 1, False
        data = rest + chunk
        end = data.rfind(b"\n") + 1
        if end == 0 and len(data) >= _BLOCK:
            yield cut, data[:_BLOCK]
            rest, cut, skipping = b"", 0, True
        elif end:
            yield cut, data[:end]
            rest, cut = data[end:], 0
        else:
            rest = data
    if rest:
        yield cut, rest


def _plain(path: str) -> str:
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _limit(seconds: float) -> None:
    try:
        import resource
    except ImportError:  # Windows has no such limits
        return
    most = int(seconds) + 10  # whoever started this may be killed before it can end it
    resource.setrlimit(resource.RLIMIT_CPU, (most, most))
    if sys.platform == "linux":  # elsewhere address space is reserved that is never used
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))


if __name__ == "__main__":
    main()
