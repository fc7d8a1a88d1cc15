"""The store's root: private, the user's own, or refused with what to do."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from subagents_nb.errors import StoreError
from subagents_nb.store import open_home
from subagents_nb.store.layout import default_home

ROOT = os.getuid() == 0


@pytest.mark.row(23, cases=1)
@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_a_new_store_is_private_whatever_the_umask(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        home = open_home(tmp_path / "deep" / "er" / "store")
    finally:
        os.umask(before)
    for directory in (home.root, home.runs, home.supervisor):
        assert stat.S_IMODE(directory.stat().st_mode) == 0o700


@pytest.mark.row(23, cases=1)
@pytest.mark.parametrize("part", [".", "runs", "supervisor"])
@pytest.mark.parametrize("mode", [0o777, 0o770, 0o702, 0o1777])
def test_a_store_that_others_can_write_to_is_refused(tmp_path: Path, part: str, mode: int) -> None:
    open_home(tmp_path / "store")
    directory = tmp_path / "store" / part
    directory.chmod(mode)
    with pytest.raises(StoreError, match=r"Others can write to the run store .*chmod 700"):
        open_home(tmp_path / "store")
    assert stat.S_IMODE(directory.stat().st_mode) == mode


@pytest.mark.row(23, cases=1)
def test_a_store_that_others_can_only_read_is_closed_to_them(tmp_path: Path) -> None:
    open_home(tmp_path / "store")
    (tmp_path / "store").chmod(0o755)
    open_home(tmp_path / "store")
    assert stat.S_IMODE((tmp_path / "store").stat().st_mode) == 0o700


@pytest.mark.row(23, cases=1)
@pytest.mark.parametrize("part", [".", "runs", "supervisor"])
def test_a_link_in_place_of_the_store_is_refused(tmp_path: Path, part: str) -> None:
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    root = tmp_path / "store"
    if part == ".":
        root.symlink_to(tmp_path / "elsewhere")
    else:
        root.mkdir(mode=0o700)
        (root / part).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StoreError, match="symbolic link"):
        open_home(root)
    assert list((tmp_path / "elsewhere").iterdir()) == []


@pytest.mark.parametrize("part", [".", "runs"])
def test_a_file_in_place_of_the_store_is_refused(tmp_path: Path, part: str) -> None:
    root = tmp_path / "store"
    if part == ".":
        root.write_text("")
    else:
        root.mkdir(mode=0o700)
        (root / part).write_text("")
    with pytest.raises(StoreError, match=r"not a directory.*SUBAGENTS_NB_HOME"):
        open_home(root)


def test_a_file_in_place_of_a_parent_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="SUBAGENTS_NB_HOME"):
        open_home(tmp_path / "file" / "store")


@pytest.mark.skipif(not ROOT, reason="only root can give a directory away")
def test_another_users_store_is_refused(tmp_path: Path) -> None:
    (tmp_path / "store").mkdir(mode=0o700)
    os.chown(tmp_path / "store", 65534, 65534)
    with pytest.raises(StoreError, match="belongs to another user"):
        open_home(tmp_path / "store")


def test_looking_makes_nothing(tmp_path: Path) -> None:
    open_home(tmp_path / "store", create=False)
    assert not (tmp_path / "store").exists()


def test_the_root_is_the_variables_else_in_the_users_data(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    monkeypatch.setenv("SUBAGENTS_NB_HOME", "~/mine")
    assert default_home() == tmp_path / "mine"
    monkeypatch.setenv("SUBAGENTS_NB_HOME", "")
    assert tmp_path in default_home().parents
