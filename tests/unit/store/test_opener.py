"""What others bring is opened as a plain file, at once, bounded, and never through a link that leads out."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from subagents_nb.store.files.opener import NotPlain, open_below, read_plain


def test_at_most_one_byte_more_than_asked_for_is_read(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"12345")
    assert [read_plain(tmp_path / "a", most) for most in (3, 4, 5)] == [b"1234", b"12345", b"12345"]


@pytest.mark.parametrize("kind", ["pipe", "folder", "device", "link to a device"])
def test_what_is_no_plain_file_is_neither_opened_nor_waited_for(tmp_path: Path, kind: str) -> None:
    place = tmp_path / "x"
    match kind:
        case "pipe":
            os.mkfifo(place)
        case "folder":
            place.mkdir()
        case "device":
            place = Path("/dev/ptmx")
        case _:
            place.symlink_to("/dev/ptmx")
    before = set(os.listdir("/dev/pts")) if Path("/dev/pts").is_dir() else set()
    with pytest.raises(NotPlain, match="plain file"):
        read_plain(place, 10)
    assert not before or set(os.listdir("/dev/pts")) <= before


def test_links_are_followed_as_far_as_the_project_goes_and_anywhere_for_the_person(tmp_path: Path) -> None:
    project = tmp_path / "project"
    (project / "docs").mkdir(parents=True)
    (project / "docs" / "a").write_text("in")
    (tmp_path / "secret").write_text("out")
    (project / "in").symlink_to("docs/a")
    (project / "out").symlink_to("../secret")
    (project / "folder").symlink_to("..")
    assert read_plain(project / "in", 10, within=project) == b"in"
    assert read_plain(project / "out", 10) == b"out"
    for name in ("out", "folder/secret"):
        with pytest.raises(NotPlain, match="leads out of its project"):
            read_plain(project / name, 10, within=project)


def test_a_circle_of_links_and_a_missing_file_say_so(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("a")
    with pytest.raises(NotPlain, match="symlink"):
        read_plain(tmp_path / "a", 10, within=tmp_path)
    with pytest.raises(FileNotFoundError):
        read_plain(tmp_path / "none", 10)


def test_below_a_folder_no_link_is_followed_at_all(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x")
    (tmp_path / "link").symlink_to("a")
    (tmp_path / "here").symlink_to(".")
    for path in ("link", "here/a", "../a"):
        with pytest.raises(NotPlain), open_below(tmp_path, path):
            pass
