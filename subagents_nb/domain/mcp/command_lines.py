"""What the command line of a server may mean by its words: paths, and what nobody can tell from them. Pure.

It says too much rather than too little: nobody knows what a program makes of its arguments.
"""

from __future__ import annotations

import contextlib
import itertools
import posixpath
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from subagents_nb.domain.values.words import one_line

# A text of a shell names files as well, and so do search paths and settings: --config=a.json, ./lib:./more.
_BETWEEN = re.compile(r"""[\s:;=,'"`|&<>(){}$]+""")
_QUOTED = re.compile(r"""['"`=\n;&|]+""")  # a name with blanks in it
_MODULE = re.compile(r"(?:\A|\s)-[A-Za-z]*m\s*([A-Za-z_]\w*(?:\.\w+)*)")
_IMPORT = re.compile(r"\b(?:import|from)\s+([A-Za-z_][\w.]*(?:\s*,\s*[A-Za-z_][\w.]*)*)")
_SHELL = re.compile(r"(?:sh|bash|dash|zsh|ksh|fish|ash|busybox)\Z")
_SCRIPTED = re.compile(r"(?:(?:python|pypy|node|bun|deno|tsx|perl|ruby|php|lua)[\d.]*w?|ts-node|Rscript)\Z")
_OF_NODE = re.compile(r"(?:node|nodejs|bun|deno|tsx|ts-node)\d*\Z")
_CODE = re.compile(r"(?:-[A-Za-z]{0,2}[ceEp]|--eval|--print|eval|-S|--split-string|--call)\Z")
_LOADED = re.compile(r"-[A-Za-z]*[MIr]\S")  # modules of perl and ruby
_LEFT = re.compile(r"`|\$(?![@*#?!$\s\"]|\Z)[{(']?\w*|\{[^{}\s]*(?:,|\.\.)[^{}\s]*\}|\beval\b")
_GIVEN = re.compile(r"\$(?:\{(\w+)\}|(\w+))")
_DATA = re.compile(r"(?:\A|[-_])(?:db|database|sqlite3?|duckdb)(?:[-_]|\Z)", re.IGNORECASE)
_OF_A_MODULE = (".py", "/__init__.py", "/__main__.py")
_OF_A_FOLDER = ("__main__.py", "index.js", "package.json")  # what is started by its name alone
_ENDINGS = (".js", ".mjs", ".cjs", ".ts", ".mts", ".json")
_MOST_PARTS = 8
_NPM = ("package.json", "package-lock.json", "npm-shrinkwrap.json", "pnpm-lock.yaml", "yarn.lock", ".npmrc")
_BUN = (*_NPM, "bun.lock", "bun.lockb", "bunfig.toml")
_UV = ("pyproject.toml", "uv.lock", "uv.toml", "poetry.lock", "pdm.lock", "setup.py", "setup.cfg")
_DENO = ("deno.json", "deno.jsonc", "deno.lock", "import_map.json", "package.json")
_MAKE = ("GNUmakefile", "makefile", "Makefile")
# What a runner reads to know what it starts, and where what it starts may lie.
_RUNNERS: Mapping[str, tuple[tuple[str, ...], str]] = {
    **dict.fromkeys(("npm", "npx", "pnpm", "pnpx", "yarn"), (_NPM, "node_modules/.bin")),
    **dict.fromkeys(("bun", "bunx"), (_BUN, "node_modules/.bin")),
    **dict.fromkeys(("uv", "uvx", "poetry", "pdm", "hatch", "pipx"), (_UV, ".venv/bin")),
    "deno": (_DENO, "node_modules/.bin"),
    "make": (_MAKE, ""),
    "just": (("justfile", "Justfile", ".justfile"), ""),
}
# Of these, the ones that say which other files are started.
STARTING = frozenset({"package.json", "pyproject.toml", "setup.py", "setup.cfg", "deno.json", "deno.jsonc"}) | {
    name for runner in ("make", "just") for name in _RUNNERS[runner][0]
}


@dataclass(frozen=True, slots=True)
class CommandLine:
    """A command with what it is given, as far as its words tell."""

    words: tuple[str, ...]  # each may be a path
    data: tuple[str, ...]  # stand where a program is told its database; nothing starts these
    entries: tuple[str, ...]  # what its runner reads, where it starts or in a folder above
    unseen: tuple[str, ...]  # what can't be told, in words


def command_line(argv: Sequence[str], environ: Mapping[str, str]) -> CommandLine:
    """Return what a command may mean; `environ` are the variables of its definition."""
    whole = tuple(dict.fromkeys(token for text in argv for token in (text, *_tokens(text))))
    commands = {posixpath.basename(token).removesuffix(".exe").removesuffix(".cmd") for token in whole}
    codes = [text for option, text in itertools.pairwise(argv) if _CODE.match(option)]
    shell = any(map(_SHELL.match, commands)) or "env" in commands
    scripts = [_filled(text, environ) for text in codes] if shell else []
    data: dict[int | str, str] = {} if codes else dict(_data(argv, environ))
    given: list[tuple[int | str, str]] = [*enumerate(argv), *environ.items()]
    texts = (*(text for place, text in given if place not in data), *scripts)
    words = (*words_of(texts), *_modules(texts), *_entries(argv), *_imports(codes))
    if any(map(_OF_NODE.match, commands)):
        words = (*words, *(token + ending for token in whole if " " not in token for ending in _ENDINGS))
    runners = [_RUNNERS[name] for name in _RUNNERS if name in commands]
    programs = [token for token in whole if token and "/" not in token and not token.startswith("-")]
    entries = [name for names, _ in runners for name in names]
    entries += [f"{folder}/{program}" for _, folder in runners if folder for program in programs]
    return CommandLine(
        tuple(dict.fromkeys(word for word in words if word and "\0" not in word)),
        tuple(text for text in data.values() if text and "\0" not in text),
        tuple(dict.fromkeys(entry for entry in entries if "\0" not in entry)),
        tuple(dict.fromkeys(_unseen(argv, commands, scripts))),
    )


def _unseen(argv: Sequence[str], commands: Iterable[str], scripts: Sequence[str]) -> Iterator[str]:
    for script in scripts:
        if (left := _LEFT.search(script)) is not None:
            yield f"what a shell makes of {one_line(left[0] + script[left.end() :], 40)}"
    if _has_code(argv) or any(map(_has_code, map(_tokens, scripts))):
        yield "what the code in its command line reads"
    if any(name.startswith(("perl", "ruby")) for name in commands) and any(map(_LOADED.search, argv)):
        yield "the modules that it is told to load"


def _has_code(words: Sequence[str]) -> bool:
    """Say whether an interpreter is given a program word by word, instead of a file."""
    first = next((number for number, word in enumerate(words) if _SCRIPTED.match(posixpath.basename(word))), len(words))
    return any(map(_CODE.match, words[first:]))


def _filled(script: str, environ: Mapping[str, str]) -> str:
    """Return a text of a shell with the variables that are known, unless it sets them itself."""

    def put(match: re.Match[str]) -> str:
        name = match[1] or match[2]
        known = {"PWD": ".", **environ}
        return known[name] if name in known and not re.search(rf"\b{name}=", script) else match[0]

    return _GIVEN.sub(put, script)


def _data(argv: Sequence[str], environ: Mapping[str, str]) -> Iterator[tuple[int | str, str]]:
    """Yield what stands behind an option, or in a variable, that is named for a database, by number or name.

    An interpreter might take what stands there for its program unless it was told one before.
    """
    for number, word in enumerate(argv):
        option, given, value = word.partition("=")
        starts = posixpath.basename(argv[0])
        told = not (_SCRIPTED.match(starts) or _SHELL.match(starts) or starts in _RUNNERS or starts == "env")
        told = told or any(not one.startswith("-") for one in argv[1:number])
        if told and option.startswith("--") and _DATA.search(option[2:]):
            if given:
                yield number, value
            elif number + 1 < len(argv):
                yield number + 1, argv[number + 1]
    for name, value in environ.items():
        if _DATA.search(name) and not any(re.search(rf"\$\{{?{re.escape(name)}\b", text) for text in argv):
            yield name, value


def words_of(texts: Iterable[str]) -> Iterator[str]:
    """Yield whatever of some texts may be a path."""
    yield from (end for text in texts for word in _parts(text) for end in _ends(word))


def _parts(text: str) -> Iterator[str]:
    yield text
    yield from _BETWEEN.split(text)
    yield from (part.strip() for part in _QUOTED.split(text))
    with contextlib.suppress(ValueError):  # a quotation that does not end
        yield from shlex.split(text)
    yield from _tokens(text)


def _tokens(text: str) -> list[str]:
    """Return the words of a text as a shell has them, also those that a sign of it ends."""
    words = shlex.shlex(text, posix=True, punctuation_chars=True)
    words.whitespace_split, words.commenters = True, ""
    found: list[str] = []
    with contextlib.suppress(ValueError):
        found.extend(words)
    return found


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
            yield from (match[1].replace(".", "/") + ending for ending in _OF_A_MODULE)


def _imports(codes: Iterable[str]) -> Iterator[str]:
    for match in (match for code in codes for match in _IMPORT.finditer(code)):
        for name in match[1].split(","):
            yield from (name.strip().replace(".", "/") + ending for ending in _OF_A_MODULE)


def _entries(argv: Sequence[str]) -> Iterator[str]:
    """Yield what an interpreter starts of a folder."""
    if argv and _SCRIPTED.match(posixpath.basename(argv[0])):
        first = next((word for word in argv[1:] if not word.startswith("-")), None)
        yield from (posixpath.join(first, name) for name in _OF_A_FOLDER if first is not None)
