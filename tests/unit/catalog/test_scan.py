from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

from subagents_nb.catalog import scan
from subagents_nb.catalog.scan import Scan, scan_path
from subagents_nb.catalog.search_paths import PROJECT_MARKERS, SearchPath


def look(folder: Path) -> Scan:
    return scan_path(SearchPath(path=folder, where=".agents", source="project"))


def touch(*paths: Path) -> None:
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")


def found(result: Scan) -> list[str]:
    return [where for _, where in result.files]


def test_files_are_found_at_every_level_in_the_order_of_their_names(tmp_path: Path) -> None:
    touch(tmp_path / "b.md", tmp_path / "a" / "deep" / "c.md", tmp_path / "notes.txt")
    result = look(tmp_path)
    assert found(result) == [".agents/a/deep/c.md", ".agents/b.md"]
    assert (result.place.state, result.place.candidates) == ("read", 2)


def test_chains_and_pruned_folders_are_left_out(tmp_path: Path) -> None:
    touch(tmp_path / "a.chain.md")
    touch(*(tmp_path / name / "a.md" for name in (".git", ".pi", "node_modules", "skills", "sync-backups")))
    result = look(tmp_path)
    assert found(result) == []
    assert (result.place.state, result.place.candidates, result.problems) == ("empty", 0, [])


@pytest.mark.parametrize("marker", PROJECT_MARKERS)
def test_a_project_among_agents_is_not_searched_and_said(tmp_path: Path, marker: str) -> None:
    touch(tmp_path / "a.md", tmp_path / "pack/deep/theirs.md", tmp_path / "pack/bk.md", tmp_path / "pack" / marker)
    (tmp_path / ".git").mkdir()  # the folder of agents may be one itself
    result = look(tmp_path)
    assert found(result) == [".agents/a.md"]
    assert [(one.where, one.error) for one in result.problems] == [
        (".agents/pack", f"it has its own {marker}, and is not searched; copy what you want of it")
    ]


def test_a_place_says_how_it_is(tmp_path: Path) -> None:
    touch(tmp_path / "file")
    (tmp_path / "loop").symlink_to("loop")
    assert look(tmp_path / "absent").place.state == "absent"
    assert look(tmp_path / "file").place.state == "not a directory"
    assert look(tmp_path / "file" / "below").place.state == "not a directory"
    assert look(tmp_path / "loop").place.state == "unreadable"


def test_a_locked_folder_is_unreadable() -> None:
    # Not below tmp_path, which nobody but its owner may enter. Root reads everything, so it looks as somebody else.
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        locked = Path(folder) / "locked"
        locked.mkdir(mode=0)
        was_root = os.geteuid() == 0
        if was_root:
            os.seteuid(65534)
        try:
            assert look(locked).place.state == "unreadable"
        finally:
            if was_root:
                os.seteuid(0)


def test_links_are_followed_and_each_real_folder_is_entered_once(tmp_path: Path) -> None:
    place, other = tmp_path / "place", tmp_path / "other"
    touch(other / "a.md", place / "b.md")
    (place / "one").symlink_to(other)
    (place / "two").symlink_to(other)
    (other / "back").symlink_to(place)
    (other / "self").symlink_to(other)
    (place / "knot").symlink_to("knot")
    (place / "gone.md").symlink_to("nowhere")
    assert found(look(place)) == [".agents/b.md", ".agents/one/a.md"]


def test_only_regular_files_are_candidates(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.md")
    (tmp_path / "folder.md").mkdir()
    assert found(look(tmp_path)) == []


def test_the_depth_is_bounded_and_the_bound_is_reported(tmp_path: Path) -> None:
    folder = tmp_path.joinpath(*"12345678")
    touch(folder / "last.md")
    assert look(tmp_path).problems == []
    touch(folder / "9" / "beyond.md")
    result = look(tmp_path)
    assert [Path(where).name for where in found(result)] == ["last.md"]
    assert [problem.error for problem in result.problems] == ["folders deeper than 8 levels were not searched"]


def test_the_number_of_files_is_bounded_and_the_bound_is_reported(tmp_path: Path) -> None:
    touch(*(tmp_path / f"{number:04}.md" for number in range(scan.MAX_FILES + 1)))
    result = look(tmp_path)
    assert len(result.files) == scan.MAX_FILES
    assert [problem.error for problem in result.problems] == ["stopped after 2000 files; the rest was not read"]
    assert result.problems[0].name is None


def test_a_file_name_with_a_newline_or_stray_bytes_stays_on_one_line(tmp_path: Path) -> None:
    touch(tmp_path / "a\nb.md")
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff.md")).write_text("x")
    assert found(look(tmp_path)) == [".agents/\\udcff.md", ".agents/a\\nb.md"]
