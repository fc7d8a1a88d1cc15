"""Hashes of what lies in a workspace: true, or none at all."""

from __future__ import annotations

import hashlib
import os
import threading
from pathlib import Path

import pytest
from support import until

from subagents_nb.store.files import fingerprints
from subagents_nb.store.files.fingerprints import TooLong, Unsettled, file_sha256, names_below, names_sha256, own_names
from subagents_nb.store.files.globbing import Allowance


def test_a_hash_is_of_the_whole_content(tmp_path: Path) -> None:
    data = os.urandom(3_000_000)
    (tmp_path / "a").write_bytes(data)
    assert file_sha256(tmp_path, "a") == hashlib.sha256(data).hexdigest()


def test_a_file_that_changes_while_it_is_hashed_has_none(tmp_path: Path) -> None:
    path = tmp_path / "big"
    with open(path, "wb") as file:
        file.truncate(300_000_000)
    over = threading.Event()

    def write() -> None:
        with open(path, "ab", buffering=0) as file:
            while not over.is_set():
                file.write(b"x")
                over.wait(0.001)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        with pytest.raises(Unsettled, match="big changed while it was read"):
            file_sha256(tmp_path, "big")
    finally:
        over.set()
        writer.join()


def test_a_young_file_is_hashed_anew_each_time(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("one")
    info = path.stat()
    first = file_sha256(tmp_path, "a")
    path.write_text("two")
    os.utime(path, ns=(info.st_atime_ns, info.st_mtime_ns))
    assert file_sha256(tmp_path, "a") != first


def test_a_byte_changed_in_place_is_seen_although_the_time_was_set_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fingerprints, "_RACY_S", -1.0)  # as if the file had lain there for a while
    path = tmp_path / "a"
    path.write_text("one")
    before = path.stat()
    first = file_sha256(tmp_path, "a")
    assert file_sha256(tmp_path, "a") == first

    def changed() -> bool:
        with open(path, "r+") as file:
            file.write("two")
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
        return path.stat().st_ctime_ns != before.st_ctime_ns

    until(changed, what="another tick of the clock of the file system")
    assert path.stat().st_mtime_ns == before.st_mtime_ns
    assert file_sha256(tmp_path, "a") == hashlib.sha256(b"two").hexdigest()


@pytest.mark.parametrize("path", ["../a", "/etc/passwd", "none", "folder", "a\0b", "out"])
def test_what_is_no_file_of_the_workspace_has_no_hash(tmp_path: Path, path: str) -> None:
    (tmp_path / "a").write_text("a")
    root = tmp_path / "work"
    (root / "folder").mkdir(parents=True)
    (root / "out").symlink_to(tmp_path / "a")
    assert file_sha256(root, path) is None


@pytest.mark.timeout(10)
def test_a_pipe_in_place_of_a_file_holds_nobody_up(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert file_sha256(tmp_path, "pipe") is None


def test_names_are_those_that_a_glob_finds(tmp_path: Path) -> None:
    for name in ("a.py", "b.md", "sub/c.py", "sub/.d.py", ".hidden/e.py", "__pycache__/f.py"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.touch()
    assert names_below(tmp_path, ".") == ["a.py", "b.md", "sub"]
    assert names_below(tmp_path, ".", "**/*") == ["a.py", "b.md", "sub", "sub/c.py"]
    assert names_below(tmp_path, ".", "**/*.py") == ["a.py", "sub/c.py"]
    assert names_below(tmp_path, ".", "**/*", "*.py") == ["a.py", "sub/c.py"]
    assert names_below(tmp_path, "sub") == ["sub/c.py"]
    for path, pattern in (("none", "*"), ("..", "*"), (".", "/etc/*"), (".", "..")):
        assert names_below(tmp_path, path, pattern) == []


def test_own_files_and_the_directories_made_for_them_do_not_count() -> None:
    own = own_names(["out/deep/answer.md"])
    assert names_sha256(["a", "out", "out/deep", "out/deep/answer.md"], own) == names_sha256(["a"])


def test_what_can_not_be_looked_through_in_good_time_has_no_hash(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("a")
    with pytest.raises(TooLong, match="a: it takes longer"):
        file_sha256(tmp_path, "a", allowance=Allowance(seconds=-1))
    with pytest.raises(TooLong, match=r"the names below \.: it takes longer"):
        names_below(tmp_path, ".", "**/*", allowance=Allowance(seconds=-1))


def test_a_pattern_of_a_models_costs_no_more_than_the_tree(tmp_path: Path) -> None:
    (tmp_path / "/".join("d" * 30)).mkdir(parents=True)
    found = names_below(tmp_path, ".", "/".join(["**"] * 12) + "/*", allowance=Allowance(entries=31 * 100))
    assert len(found) == 30
