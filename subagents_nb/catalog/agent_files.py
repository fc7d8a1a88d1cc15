"""Read agent files, each once for as long as it stays the same, and all of one source within one bound."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path

from subagents_nb.catalog.parse import MAX_FILE_BYTES, MAX_HEAD_BYTES, parse_agent, problem_of
from subagents_nb.domain.agents.agent import AgentDefinition, AgentProblem, AgentSource
from subagents_nb.store.files.opener import read_plain

Parsed = AgentDefinition | AgentProblem | None
_Key = tuple[str, int, int, int, str, AgentSource]

_MAX_CACHED = 4000
# Of all files of the person's, or of a project's: frontmatter is read at about 200 KiB a second, 200 usual ones are 60.
MAX_HEADS_BYTES = 256 * 1024
MAX_TOTAL_BYTES = 8 * 1024 * 1024
_OVER_QUOTA = f"not read: the frontmatter of all agent files together is larger than {MAX_HEADS_BYTES // 1024} KiB"
_HEAD_ENDS = re.compile(rb"[\r\n]-{3,}[ \t\f\v]*(?:[\r\n]|\Z)")
_parsed: dict[_Key, tuple[Parsed, int]] = {}  # with how much frontmatter it has


@dataclass(slots=True)
class ReadQuota:
    """How much may still be read of the files of one source."""

    heads: int = MAX_HEADS_BYTES
    total: int = MAX_TOTAL_BYTES

    def take(self, size: int, head: int) -> bool:
        """Say whether one more file may be parsed, of this size and with so much frontmatter."""
        self.total -= size
        self.heads -= head
        return self.heads >= 0 and self.total >= 0


def read_agent(path: Path, *, where: str, source: AgentSource, root: Path | None = None, quota: ReadQuota) -> Parsed:
    """Read and parse one file; what can't be read, or is beyond the quota, is a problem. Links stay within `root`."""
    try:
        stat = path.stat()
        key: _Key = (str(path), stat.st_ino, stat.st_size, stat.st_mtime_ns, where, source)
        if (cached := _parsed.get(key)) is not None:
            parsed, head = cached
            return parsed if quota.take(stat.st_size, head) else _over_quota(parsed, where=where, source=source)
        if quota.total < 0:
            raise OSError(f"all files together are larger than {MAX_TOTAL_BYTES // 1024**2} MiB")
        data = read_plain(path, MAX_FILE_BYTES, within=root)
    except OSError as error:
        reason = f"the file can't be read: {error.strerror or error}"
        return AgentProblem(where=where, source=source, error=reason)
    head = _head_bytes(data)
    if not quota.take(len(data), head):
        text = data.decode("utf-8", "replace").removeprefix("\ufeff")
        return problem_of(text, _OVER_QUOTA, where=where, source=source)
    parsed = parse_bytes(data, where=where, source=source)
    if len(_parsed) >= _MAX_CACHED:
        _parsed.clear()
    _parsed[key] = parsed, head
    return parsed


def _over_quota(parsed: Parsed, *, where: str, source: AgentSource) -> Parsed:
    return None if parsed is None else AgentProblem(where=where, source=source, error=_OVER_QUOTA, name=parsed.name)


def _head_bytes(data: bytes) -> int:
    """Return how much frontmatter would be read of a file."""
    text = data.removeprefix(b"\xef\xbb\xbf").lstrip()
    if not text.startswith(b"---"):
        return 0
    end = _HEAD_ENDS.search(text, 3)
    return min(MAX_HEAD_BYTES, end.start() if end else len(text))


def parse_bytes(data: bytes, *, where: str, source: AgentSource) -> Parsed:
    """Parse the content of one file, of which at most one byte more than the limit was read."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        text = data.decode("utf-8", "replace")
        if len(data) <= MAX_FILE_BYTES:
            reason = f"the file is not UTF-8 (byte {error.start + 1})"
            return problem_of(text.removeprefix("\ufeff"), reason, where=where, source=source)
    return parse_agent(text, where=where, source=source)


@cache
def builtin_agents() -> tuple[AgentDefinition | AgentProblem, ...]:
    """Return the agents shipped with the package, read once per process."""
    parsed = (parse_bytes(data, where=where, source="builtin") for where, data in builtin_files().items())
    return tuple(agent for agent in parsed if agent is not None)


def builtin_files() -> dict[str, bytes]:
    """Return what the files of these agents hold."""
    folder = files("subagents_nb.catalog").joinpath("builtin")
    entries = sorted((entry for entry in folder.iterdir() if entry.name.endswith(".md")), key=lambda entry: entry.name)
    return {f"builtin/{entry.name}": entry.read_bytes() for entry in entries}
