"""Files of the workspace as the runner touches them: whole or not at all, and never through a link."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

import pytest

from subagents_nb.runner.workspace.confined import create, look, replace
from subagents_nb.store.files.opener import NotPlain, open_below


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "outside").mkdir()
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


def outside(root: Path) -> list[str]:
    return sorted(entry.name for entry in (root.parent / "outside").iterdir())


def test_a_file_is_written_with_its_folders_and_leaves_nothing_beside_it(root: Path) -> None:
    replace(root, "a/b/c.md", b"text")

    assert (root / "a/b/c.md").read_bytes() == b"text"
    assert os.listdir(root / "a/b") == ["c.md"]
    assert stat.S_IMODE((root / "a").stat().st_mode) & 0o755 == 0o755 & ~_umask()


def _umask() -> int:
    now = os.umask(0)
    os.umask(now)
    return now


def test_a_file_that_was_there_keeps_its_mode(root: Path) -> None:
    (root / "run.sh").write_text("old")
    (root / "run.sh").chmod(0o750)

    replace(root, "run.sh", b"new")

    assert stat.S_IMODE((root / "run.sh").stat().st_mode) == 0o750
    assert (root / "run.sh").read_text() == "new"


def test_a_write_protected_file_is_not_replaced(root: Path) -> None:
    (root / "kept.md").write_text("old")
    (root / "kept.md").chmod(0o444)

    with pytest.raises(PermissionError, match="write-protected"):
        replace(root, "kept.md", b"new")

    assert (root / "kept.md").read_text() == "old"


def _folder_link(root: Path) -> str:
    (root / "link").symlink_to(root.parent / "outside")
    return "link/a.md"


def _inner_link(root: Path) -> str:
    (root / "real").mkdir()
    (root / "link").symlink_to("real")
    return "link/a.md"


def _file_link(root: Path) -> str:
    (root / "a.md").symlink_to(root.parent / "outside" / "a.md")
    return "a.md"


def _file_for_a_folder(root: Path) -> str:
    (root / "a").write_text("x")
    return "a/b.md"


def _folder_for_a_file(root: Path) -> str:
    (root / "a.md").mkdir()
    return "a.md"


def _pipe(root: Path) -> str:
    os.mkfifo(root / "a.md")
    return "a.md"


@pytest.mark.parametrize("trap", [_folder_link, _inner_link, _file_link, _file_for_a_folder, _folder_for_a_file, _pipe])
def test_a_trap_in_the_path_is_refused_and_nothing_is_written(root: Path, trap: Any) -> None:
    path = trap(root)

    with pytest.raises(NotPlain):
        replace(root, path, b"x")
    with pytest.raises(NotPlain):
        create(root, path, b"x")
    with pytest.raises(NotPlain):
        look(root, path)

    assert outside(root) == []


@pytest.mark.parametrize("path", ["../a.md", "a/../b.md", "./a.md", "a//b.md", "a/", "", "/etc/passwd"])
def test_only_the_shortest_form_of_a_path_is_taken(root: Path, path: str) -> None:
    with pytest.raises(NotPlain):
        replace(root, path, b"x")
    assert os.listdir(root) == []


def test_creating_leaves_a_file_that_is_there_alone(root: Path) -> None:
    assert create(root, "a/progress.md", b"one") is True
    assert create(root, "a/progress.md", b"two") is False
    assert (root / "a/progress.md").read_bytes() == b"one"


def test_a_look_tells_every_change(root: Path) -> None:
    assert look(root, "a/b.md") is None
    replace(root, "a/b.md", b"one")
    first = look(root, "a/b.md")
    assert first is not None and first.size == 3 and first == look(root, "a/b.md")

    about = (root / "a/b.md").stat()
    (root / "a/b.md").write_bytes(b"two")
    os.utime(root / "a/b.md", ns=(about.st_atime_ns, about.st_mtime_ns))
    assert look(root, "a/b.md") != first, "same size, same time, other content"


def test_a_file_is_opened_without_following_anything(root: Path) -> None:
    replace(root, "a.md", b"text")
    with open_below(root, "a.md") as fd:
        assert os.read(fd, 10) == b"text"
    with pytest.raises(FileNotFoundError), open_below(root, "b.md"):
        pass
