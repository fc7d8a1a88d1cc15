"""Agents that installed packages bring: a folder of agent files, named by an entry point `subagents_nb.agents`.

    [project.entry-points."subagents_nb.agents"]
    lab = "labtools.agents"

The folder is looked up among the installed files. No code of a package is imported, and a folder that merely lies on
the way of imports, as a notebook's own does, brings nothing.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from urllib.parse import unquote, urlsplit

from subagents_nb.catalog.search_paths import SearchPath, printable
from subagents_nb.store.files.opener import read_plain
from subagents_nb.store.installed import installed_folders

GROUP = "subagents_nb.agents"
MAX_PACKAGES = 50
_MAX_BYTES = 256 * 1024


def package_paths(group: str = GROUP) -> tuple[SearchPath, ...]:
    """Return the folders that installed packages name, those of agent files, in the order of the packages' names."""
    stamps = (_stamp(folder) for folder in installed_folders())
    return _search_paths(group, tuple(stamp for stamp in stamps if stamp is not None))


def _stamp(folder: str) -> tuple[str, int] | None:
    """Return a folder and when something was last installed there or taken away."""
    try:
        return folder, os.stat(folder).st_mtime_ns
    except OSError:
        return None


@lru_cache(maxsize=8)
def _search_paths(group: str, folders: tuple[tuple[str, int], ...]) -> tuple[SearchPath, ...]:
    packages: dict[str, tuple[SearchPath, ...]] = {}
    for folder, _ in folders:
        with contextlib.suppress(OSError), os.scandir(folder) as entries:
            names = sorted(entry.name for entry in entries if entry.name.endswith((".dist-info", ".egg-info")))
            for name in names:
                project = name.partition("-")[0].lower().replace("_", "-")
                if (
                    project not in packages
                    and (text := _text(Path(folder, name, "entry_points.txt")))
                    and group in text
                ):
                    packages[project] = tuple(_named(text, group, project, Path(folder), Path(folder, name)))
    places = [place for _, places in sorted(packages.items()) for place in places]
    return tuple(places[:MAX_PACKAGES])


def _named(text: str, group: str, project: str, installed: Path, about: Path) -> Iterator[SearchPath]:
    import configparser  # whose format entry_points.txt has, by the specification

    table = configparser.ConfigParser(delimiters=("=",), strict=False, interpolation=None)
    with contextlib.suppress(configparser.Error):
        table.read_string(text)
    for _, value in sorted(table[group].items() if group in table else ()):
        parts = value.strip().replace(":", ".").split(".")
        if not all(part.isidentifier() for part in parts):
            continue
        roots = (installed, *_sources(about))
        folder = next((path for root in roots if (path := root.joinpath(*parts)).is_dir()), installed.joinpath(*parts))
        where = printable(f"{project}:{'/'.join(parts)}")
        yield SearchPath(path=folder, where=where, source="package", root=folder)


def _sources(about: Path) -> Iterator[Path]:
    """Yield where the sources of an editable installation lie, as its installer noted it (PEP 610)."""
    with contextlib.suppress(ValueError, AttributeError):
        noted = json.loads(_text(about / "direct_url.json") or "{}")
        url = urlsplit(noted.get("url", ""))
        if url.scheme == "file" and noted.get("dir_info", {}).get("editable") is True:
            root = Path(unquote(url.path))
            yield from (root, root / "src")


def _text(path: Path) -> str:
    try:
        return read_plain(path, _MAX_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""
