"""The harness's confined files, read and searched in our own way: neither a large file nor a pattern costs the run."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

from pydantic_ai.exceptions import ModelRetry
from pydantic_ai_harness.filesystem import FileSystemToolset

import subagents_nb
from subagents_nb.domain.agents.guarded import NEVER_READ, NEVER_WRITTEN, below, is_protected
from subagents_nb.domain.policy.policy import Policy
from subagents_nb.domain.policy.policy_rules import hiding
from subagents_nb.domain.values.characters import loose
from subagents_nb.domain.values.words import duration
from subagents_nb.runner.engines.clean_text import one_line
from subagents_nb.runner.engines.engine import judged_place
from subagents_nb.runner.engines.tools.shell import run_program
from subagents_nb.runner.processes.threads import in_thread
from subagents_nb.store.files.globbing import Allowance, TooMuch, walk
from subagents_nb.store.files.opener import OPENS_BELOW, NotPlain, open_below, open_to_write_below

OUTPUT_CHARS = 50_000
_READ_LINES = 2000
_NOTICE_CHARS = 200
_SAMPLE = 8192
_CHUNK = 1 << 20
_MOST_FOUND = 1000
_MOST_MATCHES = 300
_LINE_CHARS = 500
_PATTERN_CHARS = 10_000
_EDIT_BYTES = 8 * 1024 * 1024  # an edit holds a file several times
_SEARCHER = Path(__file__).with_name("searcher.py")
_PACKAGE = str(Path(subagents_nb.__file__).parents[1])


Matcher = Callable[[str], object]
# Whether the folder in which names are looked for is a hidden one itself.
_entered: ContextVar[bool] = ContextVar("entered", default=False)


class Files(FileSystemToolset[Any]):
    """The files of one place. What the harness does with whole files, or in this process for ever, is done here."""

    store: tuple[str, ...] = ()
    barred: Matcher | None = None  # whole paths that nobody may read
    unlisted: Matcher | None = None  # ... that no listing and no search for names shows
    unsearched = ""  # an expression for those in which nothing is searched
    led_to: tuple[str, ...] = ()  # whole paths to which a link of a protected name leads

    @classmethod
    def confined(cls, root: Path, *, store: Path | None = None, policy: Policy | None = None) -> Files:
        """Return the files below `root`, without those that nobody reads, and the run store if it lies there.

        What a policy denies to be read is not there; what it has asked about is found by nobody who only looks around.
        """
        # Other runs are no business of an agent's: where the store lies in the workspace, it is not there.
        inner = None if store is None else os.path.relpath(os.path.realpath(store), os.path.realpath(root))
        kept = () if inner is None or inner.partition("/")[0] == ".." else ("*",) if inner == "." else below(inner)
        files = cls(
            root_dir=root,
            allowed_patterns=(),
            denied_patterns=(*NEVER_READ, *kept),
            protected_patterns=(*NEVER_WRITTEN, *kept),
            max_read_lines=_READ_LINES,
            max_read_chars=OUTPUT_CHARS,
            max_list_results=1000,
            max_search_results=_MOST_MATCHES,
            max_find_results=_MOST_FOUND,
            content_hashes=False,
            tools=(),
        )
        files.store = kept
        files.led_to = tuple(_led_to(files._real_root))
        if policy is not None:
            at = partial(hiding, root=os.path.realpath(root), home=os.path.realpath(os.path.expanduser("~")))
            files.barred, files.unlisted = (
                _matcher(at(policy.unreadable)),
                _matcher(at(policy.hides_from("list", "find"))),
            )
            files.unsearched = at(policy.hides_from("grep"))
        return files

    def _safe_resolve(self, path: str, *, write: bool = False, check_allowed: bool = True) -> Path:
        resolved = super()._safe_resolve(path, write=write, check_allowed=check_allowed)
        # By its own name too: `.claude` may be a link to a folder of another one.
        written = os.path.relpath(os.path.join(self._cwd, path), self._real_root)
        if written.partition("/")[0] != "..":
            self._check_access(written, write=write, check_allowed=check_allowed)
        if write and any(f"{resolved}/".startswith(f"{one}/") for one in self.led_to):
            raise PermissionError(f"Path {path!r} is protected: a link of a protected name leads there.")
        judged = judged_place.get()
        # A folder above it may have to be made first.
        if judged is not None and not f"{judged}/".startswith(f"{str(resolved).rstrip('/')}/"):
            raise PermissionError(f"Path {path!r} leads elsewhere than when it was judged.")
        return resolved

    def open_read(self, resolved: Path) -> BinaryIO:
        """Open what was resolved and allowed, through no link that stands there by now."""
        if not OPENS_BELOW:
            return super().open_read(resolved)
        with self._no_link(), open_below(self._real_root, self._relative_to_root(resolved)) as fd:
            return os.fdopen(os.dup(fd), "rb")

    def open_write(self, resolved: Path, *, read_back: bool, create: bool) -> tuple[BinaryIO, bool]:
        """Open or make what was resolved and allowed, likewise; say whether it was made."""
        if not OPENS_BELOW:
            return super().open_write(resolved, read_back=read_back, create=create)
        path = self._relative_to_root(resolved)
        with self._no_link():
            fd, created = open_to_write_below(self._real_root, path, read_back=read_back, create=create)
        return os.fdopen(fd, "rb+" if read_back else "wb"), created

    @staticmethod
    @contextlib.contextmanager
    def _no_link() -> Iterator[None]:
        try:
            yield
        except OSError as error:
            if isinstance(error, NotPlain) or error.errno == errno.ELOOP:
                raise PermissionError("A link stands by now where there was none when the path was judged.") from error
            raise

    def _check_access(self, path: str, *, write: bool = False, check_allowed: bool = True) -> None:
        super()._check_access(path, write=write, check_allowed=check_allowed)
        if self.barred is not None and self.barred(self._whole(path)):
            raise PermissionError(f"Path {path!r} is denied by the policy.")

    def _is_accessible(self, path: str) -> bool:
        hidden = self.unlisted is not None and not _entered.get() and self.unlisted(self._whole(path))
        return not hidden and super()._is_accessible(path)

    def _whole(self, path: str) -> str:
        return loose(os.path.join(self._real_root, path))

    @contextlib.contextmanager
    def _entering(self, folder: Path) -> Iterator[None]:
        """Look around in a folder; one that is hidden itself was allowed by somebody, with what lies in it."""
        token = _entered.set(self.unlisted is not None and bool(self.unlisted(loose(str(folder)))))
        try:
            yield
        finally:
            _entered.reset(token)

    async def list_directory(self, path: str = ".") -> str:
        """Return what lies in a directory; blocks."""
        with self._entering(self._at(path)):
            return await super().list_directory(path)

    async def read_file(self, path: str, *, offset: int = 0, limit: int | None = None) -> str:
        """Return lines of a text file with their numbers; blocks."""
        resolved = self._at(path)
        if resolved.is_dir():
            raise ModelRetry(f"'{path}' is a directory, not a file.")
        try:
            with self.open_read(resolved) as file:
                if b"\0" in file.read(_SAMPLE):
                    size = os.fstat(file.fileno()).st_size
                    return f"[Binary file: {size} bytes. Use a binary-aware tool to inspect.]"
                file.seek(0)
                return _window(file, path, max(0, offset), _READ_LINES if limit is None else max(1, limit))
        except OSError as error:
            raise ModelRetry(f"{path}: {error.strerror}") from error

    async def edit_file(self, path: str, old_text: str, new_text: str, *, expected_hash: str | None = None) -> str:
        """Replace one passage of a text file that is not too large for that; blocks."""
        size = self._at(path).stat().st_size
        if size > _EDIT_BYTES:
            raise ModelRetry(
                f"{path} has {size:,} bytes, and only files of up to {_EDIT_BYTES:,} can be edited. Write a new file, "
                "or have a program change it."
            )
        return await super().edit_file(path, old_text, new_text, expected_hash=expected_hash)

    async def find_files(self, pattern: str, *, path: str = ".") -> str:
        """Return the names that match a glob."""
        if os.path.isabs(pattern):
            raise ModelRetry(f"Pattern {pattern!r} must be relative to the search path, not absolute.")
        folder = self._at(path)
        if not folder.is_dir():
            raise ModelRetry(f"Not a directory: {path}")
        left = threading.Event()
        try:
            return await in_thread(lambda: self._found_in(folder, pattern, Allowance(ended=left.is_set)))
        except TooMuch as error:
            raise ModelRetry(f"The search was given up: {error}. Name a directory, or a plainer pattern.") from error
        finally:
            left.set()

    def _found_in(self, folder: Path, pattern: str, allowance: Allowance) -> str:
        with self._entering(folder):
            return self._found(folder, pattern, allowance)

    def _found(self, folder: Path, pattern: str, allowance: Allowance) -> str:
        above = self._relative_to_root(folder)
        if above.startswith("."):
            above = above if above == "." else ""
        names = walk(str(folder), pattern, allowance) if above else ()
        lines: list[str] = []
        for name in sorted(names, key=lambda name: name.split("/")):
            target = self._resolve_walk_entry(folder / name)
            if target is None or not target.exists():
                continue
            if len(lines) == _MOST_FOUND:
                lines.append(f"[... truncated at {_MOST_FOUND} matches]")
                break
            lines.append(f"{self._relative_to_cwd(folder / name)}{'/' if target.is_dir() else ''}")
        return "\n".join(lines) or "No matches found."

    async def search(
        self, pattern: str, *, path: str, include: str | None, environ: Mapping[str, str], seconds: float
    ) -> str:
        """Return the lines that match a regular expression, found by a process that is ended after so many seconds."""
        if len(pattern) > _PATTERN_CHARS or len(include or "") > _PATTERN_CHARS:
            raise ModelRetry(f"A pattern has at most {_PATTERN_CHARS:,} characters.")
        resolved = self._at(path)
        unsearched = _matcher(self.unsearched)
        entered = unsearched is not None and unsearched(loose(str(resolved)))
        request = {
            "package": _PACKAGE,
            "root": str(self._real_root),
            "path": self._relative_to_root(resolved),
            "pattern": pattern,
            "include": include,
            "hidden": self.store,
            "unseen": "" if entered else self.unsearched,
            "most": _MOST_MATCHES,
            "chars": _LINE_CHARS,
            "seconds": seconds,
        }
        argv = [sys.executable, "-I", "-S", str(_SEARCHER), json.dumps(request)]
        end = await run_program(argv, cwd=Path("/"), environ=environ, seconds=seconds, limit=8 * OUTPUT_CHARS * 10)
        if end.code is None:
            raise ModelRetry(
                f"The search was ended after {duration(seconds)}, its time limit: its pattern takes too long, or there "
                "is too much to search. Use a plainer pattern, or name a directory or file."
            )
        try:
            answer = json.loads(end.output)
        except ValueError:
            message = one_line(end.output.strip().rpartition("\n")[2], 300)
            why = message or "use a plainer pattern, or name a directory or file"
            raise ModelRetry(f"The search failed: {why}.") from None
        if "error" in answer:
            raise ModelRetry(answer["error"])
        lines = answer["found"] + ([f"[... truncated at {_MOST_MATCHES} matches]"] if answer["more"] else [])
        return "\n".join(lines) or "No matches found."

    def _at(self, path: str) -> Path:
        """Return where a path lies, if it is one that may be read."""
        try:
            resolved = self._safe_resolve(path)
            if not resolved.exists():
                raise FileNotFoundError(f"File not found: {path}")
        except (OSError, ValueError) as error:
            message = f"{path}: {error.strerror}" if isinstance(error, OSError) and error.strerror else str(error)
            raise ModelRetry(message) from error
        return resolved

    def _first_matching_pattern(self, path: str, patterns: Sequence[str]) -> str | None:
        # A hundred patterns for each file of a tree take longer than to read it. Without this it is slow, not open.
        pattern = super()._first_matching_pattern(path, list(patterns if is_protected(path) else self.store))
        return pattern and re.sub(r"\[(\w)\w+\]", r"\1", pattern)  # as people write it


def _led_to(root: Path) -> Iterator[str]:
    """Yield what right in a workspace is protected under the name of a link, as `.vscode` that leads to `editor`."""
    with contextlib.suppress(OSError), os.scandir(root) as entries:
        for entry in entries:
            if entry.is_symlink() and (is_protected(entry.name) or is_protected(f"{entry.name}/x")):
                place = os.path.realpath(entry.path)
                if place.startswith(f"{str(root).rstrip('/')}/"):
                    yield place


def _matcher(expression: str) -> Matcher | None:
    return re.compile(rf"(?:{expression})\Z", re.DOTALL).match if expression else None


def _window(file: BinaryIO, path: str, offset: int, limit: int) -> str:
    """Return the lines of a file from `offset` on as far as they fit, with its number of lines."""
    label = path if len(path) <= OUTPUT_CHARS // 4 else f"...{path[-(OUTPUT_CHARS // 4) :]}"
    room = OUTPUT_CHARS - len(label) - _NOTICE_CHARS
    passed = _skip(file, offset)
    shown: list[str] = []
    notice = ""
    while passed == offset and len(shown) < limit and (line := file.readline(4 * room)):
        text = f"{offset + len(shown) + 1:>6}\t{line.decode('utf-8', 'replace')}"
        if len(text) > room or (len(line) == 4 * room and not line.endswith(b"\n")):
            file.seek(-len(line), os.SEEK_CUR)
            if not shown:
                size = _skip_line(file)
                number = offset + 1
                notice = (
                    f"... (Line {number} is {size:,} bytes and does not fit the read window. Use offset={number} to "
                    "skip it, or a shell byte range to inspect it.)\n"
                )
                offset += 1
            break
        room -= len(text)
        shown.append(text)
    total = passed + len(shown) + bool(notice) + _skip(file, None)
    if total == 0:
        return f"[{label} | 0 lines]\n(empty file)\n"
    if passed < offset - bool(notice) or not (shown or notice):
        raise ModelRetry(f"Offset {offset} exceeds file length ({total} lines).")
    body = "".join(shown)
    if shown and not body.endswith("\n"):
        body += "\n"
    left = total - offset - len(shown)
    if left > 0 and not notice:
        notice = f"... ({left} more lines. Use offset={offset + len(shown)} to continue reading.)\n"
    return f"[{label} | {total} lines]\n{body}{notice}"


def _skip(file: BinaryIO, lines: int | None) -> int:
    """Go so many lines further, or to the end; return how many that were. A last one without an end is one too."""
    passed, last = 0, b"\n"
    while lines is None or passed < lines:
        chunk = file.read(_CHUNK)
        if not chunk:
            return passed + (last != b"\n")
        here = chunk.count(b"\n")
        if lines is not None and passed + here >= lines:
            at = -1
            for _ in range(lines - passed):
                at = chunk.find(b"\n", at + 1)
            file.seek(at + 1 - len(chunk), os.SEEK_CUR)
            return lines
        passed, last = passed + here, chunk[-1:]
    return passed


def _skip_line(file: BinaryIO) -> int:
    """Go behind the end of the line and return its length in bytes."""
    size = 0
    while piece := file.readline(_CHUNK):
        size += len(piece)
        if piece.endswith(b"\n"):
            break
    return size
