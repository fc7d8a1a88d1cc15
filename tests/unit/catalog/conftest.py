from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

Write = Callable[..., Path]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "home"
    folder.mkdir()
    return folder


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "work" / "project"
    (folder / ".git").mkdir(parents=True)
    return folder


@pytest.fixture
def trusted(project: Path, home: Path) -> Path:
    """The project, which the person allowed to act."""
    (home / ".subagents").mkdir(exist_ok=True)
    (home / ".subagents/settings.toml").write_text(f'trusted_folders = ["{project.parent}"]\n')
    return project


@pytest.fixture
def write_agent() -> Write:
    """Write an agent file; the description tells the files apart."""

    def write(path: Path, name: str, *lines: str, description: str = "d") -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(["---", f"name: {name}", f"description: {description}", *lines, "---", "Do it.", ""]))
        return path

    return write
