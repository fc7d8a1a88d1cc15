"""The MCP servers that can be named from a working directory: of `.mcp.json` and of settings; the nearest counts."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path

from subagents_nb.catalog.search_paths import SearchPath, not_counted, project_root, project_search_paths
from subagents_nb.domain.agents.mcp_servers import PROJECT_FILE, McpServer, McpServers
from subagents_nb.domain.mcp.definitions import read_servers
from subagents_nb.domain.values.faults import shown
from subagents_nb.store.files.opener import read_plain

_MOST_BYTES = 256 * 1024


def mcp_servers(
    cwd: Path, of_settings: Iterable[McpServer], *, root: Path | None = None, home: Path | None = None
) -> McpServers:
    """Return all servers that can be named from a working directory; those of files nearer to it come first.

    Looked for are `.mcp.json` of the project and of the directory itself; the project's settings outrank both, and the
    person's own are behind. `root` is that of the project around the directory, where it is known.
    """
    own = list(of_settings)
    servers = {one.name: one for one in own if one.source == "user"}
    problems: dict[str, str] = {}
    broken: list[str] = []
    for place in _places(cwd, root or project_root(cwd, home=home), home):
        found, wrong = _read(place, broken)
        problems = {name: text for name, text in problems.items() if name not in {one.name for one in found}} | wrong
        servers = {name: one for name, one in servers.items() if name not in wrong} | {one.name: one for one in found}
    nearest = {one.name: one for one in own if one.source != "user"}
    problems = {name: text for name, text in problems.items() if name not in nearest}
    return McpServers(servers=servers | nearest, problems=problems, broken=tuple(broken))


def _places(cwd: Path, root: Path, home: Path | None) -> Iterator[SearchPath]:
    """Yield where the file may lie, the farthest first."""
    here = cwd.resolve()
    inner = here.relative_to(root).as_posix() if here.is_relative_to(root) else "."
    names = dict.fromkeys([PROJECT_FILE, f"{inner}/{PROJECT_FILE}".removeprefix("./")])
    yield from project_search_paths(names, root, home=home, cwd=cwd)


def _read(place: SearchPath, broken: list[str]) -> tuple[list[McpServer], dict[str, str]]:
    try:
        if place.guarded and (others := not_counted(place)) is not None:
            broken.append(f"{place.where} does not count: {others}")
            return [], {}
        data = read_plain(place.path, _MOST_BYTES, within=place.root)
    except (FileNotFoundError, NotADirectoryError):
        return [], {}
    except OSError as error:
        broken.append(f"{place.where} can't be read: {error.strerror or error}")
        return [], {}
    if len(data) > _MOST_BYTES:
        broken.append(f"{place.where} is larger than {_MOST_BYTES // 1024} KiB")
        return [], {}
    try:
        table = json.loads(data.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        broken.append(f"{place.where} is no JSON: {error}")
        return [], {}
    if not isinstance(table, dict) or not isinstance(table.get("mcpServers", {}), dict):
        broken.append(f"{place.where} must be a mapping with `mcpServers`, and in that a mapping of names")
        return [], {}
    servers, problems = read_servers(table.get("mcpServers", {}), where=place.where, source="project")
    return servers, {name: f"MCP server {shown(name)} ({place.where}): {text}" for name, text in problems.items()}
