"""What the text of a command or cell names: files and variables that it may ask about without opening anything. Pure.

A question whether a file is there, its size, and an open in vain leave no trace that inotify(7) could see, and what a
process finds in its environment leaves none at all.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import NamedTuple

_MOST = 100
_MOST_CHARS = 255
_WORDS = re.compile(r"[^\s'\"`;|&<>()=,\[\]{}$*?]+")
_ASKED_BY_TEST = re.compile(r"(?:^|\s)-[edfrswxL]\s+['\"]?([\w.\-/]+)")
_ASSIGNED = re.compile(r"(?:^|[\s;&|(])(\w+)(?==|\s+in\b)|\bread\s+(?:-r\s+)?(\w+)")
_EXPANDED = re.compile(r"\$\{?([A-Za-z_]\w*)")
_LOOKED_UP = re.compile(r"(?:environ(?:\.get)?\s*[\[(]|getenv\s*\()\s*['\"](\w+)['\"]")
# Those that look at commits alone depend on the last one, which the watch sees.
_GIT = re.compile(r"(?:^|[^\w./-])git(?![\w.-])(?!\s+(?:log|show|rev-parse|rev-list|cat-file|--version)\b)")
# The shell's own, and what differs from one session or machine to the next without meaning anything.
_OF_THE_MACHINE = frozenset(
    {"PWD", "OLDPWD", "SHLVL", "RANDOM", "SECONDS", "LINENO", "PPID", "UID", "EUID", "HOSTNAME", "IFS", "OPTARG",
     "OPTIND", "REPLY", "HOME", "PATH", "USER", "LOGNAME", "SHELL", "TERM", "TMPDIR", "LANG", "PIPESTATUS",
     "BASH_SOURCE", "FUNCNAME"}
)  # fmt: skip


class Mentions(NamedTuple):
    """What a text names."""

    files: tuple[str, ...] = ()
    variables: tuple[str, ...] = ()
    git: bool = False


def mentions_of_command(command: str) -> Mentions:
    """Return what a command of a shell names: files are words that look like one or are asked for by a test."""
    asked = _ASKED_BY_TEST.findall(command)
    words = [*_WORDS.findall(command), *asked]
    files = (word.rstrip(":") for word in words if word in asked or _looks_like_a_file(word))
    assigned = {name for match in _ASSIGNED.findall(command) for name in match if name}
    variables = (name for name in _EXPANDED.findall(command) if name not in assigned)
    return _mentions(files, variables, git=_GIT.search(command) is not None)


def mentions_of_code(code: str) -> Mentions:
    """Return what Python code names, in texts of its own that look like a file and where it asks its environment."""
    try:
        texts = list(_texts(ast.parse(code)))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return Mentions()  # magics of IPython, or no code at all
    files = (text for text in texts if _looks_like_a_file(text) and not any(map(str.isspace, text)))
    git = any(text == "git" or _GIT.search(text) is not None for text in texts)
    return _mentions(files, _LOOKED_UP.findall(code), git=git)


def _mentions(files: Iterator[str], variables: Iterator[str] | list[str], *, git: bool) -> Mentions:
    found = dict.fromkeys(one for one in files if 0 < len(one) <= _MOST_CHARS and not one.startswith(("-", "~")))
    named = dict.fromkeys(
        name for name in variables if name not in _OF_THE_MACHINE and not name.startswith("SUBAGENTS")
    )
    return Mentions(tuple(found)[:_MOST], tuple(named)[:_MOST], git)


def _looks_like_a_file(word: str) -> bool:
    plain = word.strip("./")
    return ("." in word or "/" in word) and any(map(str.isalnum, plain)) and "://" not in word and not _is_number(plain)


def _is_number(word: str) -> bool:
    return word.replace(".", "").replace("/", "").isdigit()


def _texts(tree: ast.AST) -> Iterator[str]:
    """Yield the texts in code, without the pieces of those that are put together."""
    if isinstance(tree, ast.JoinedStr):
        return
    if isinstance(tree, ast.Constant) and isinstance(tree.value, str):
        yield tree.value
    for child in ast.iter_child_nodes(tree):
        yield from _texts(child)
