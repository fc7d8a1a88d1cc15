"""Read agent files, each once for as long as it stays the same."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from pathlib import Path

from subagents_nb.catalog.parse import MAX_FILE_BYTES, parse_agent, problem_of
from subagents_nb.domain.agent import AgentDefinition, AgentProblem, AgentSource

Parsed = AgentDefinition | AgentProblem | None
_Key = tuple[str, int, int, int, str, AgentSource]

_MAX_CACHED = 4000
_parsed: dict[_Key, Parsed] = {}


def read_agent(path: Path, *, where: str, source: AgentSource) -> Parsed:
    """Read and parse one file; what can't be read is a problem."""
    try:
        found = path.stat()
        key: _Key = (str(path), found.st_ino, found.st_size, found.st_mtime_ns, where, source)
        if key in _parsed:
            return _parsed[key]
        with path.open("rb") as file:
            data = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        reason = f"the file can't be read: {error.strerror or error}"
        return AgentProblem(where=where, source=source, error=reason)
    parsed = parse_bytes(data, where=where, source=source)
    if len(_parsed) >= _MAX_CACHED:
        _parsed.clear()
    _parsed[key] = parsed
    return parsed


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
    folder = files("subagents_nb.catalog").joinpath("builtin")
    entries = sorted((entry for entry in folder.iterdir() if entry.name.endswith(".md")), key=lambda entry: entry.name)
    parsed = (parse_bytes(entry.read_bytes(), where=f"builtin/{entry.name}", source="builtin") for entry in entries)
    return tuple(agent for agent in parsed if agent is not None)
