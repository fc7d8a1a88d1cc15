from __future__ import annotations

from pathlib import Path

import pytest

from subagents_nb.catalog import project_root
from subagents_nb.catalog.search_paths import agent_search_paths, printable, settings_files, shown_folder


@pytest.mark.parametrize("marker", [".subagents", ".claude", ".pi", ".agents", ".git"])
def test_the_nearest_folder_with_a_marker_is_the_project(tmp_path: Path, home: Path, marker: str) -> None:
    below = tmp_path / "a" / "b" / "c"
    below.mkdir(parents=True)
    (tmp_path / "a" / ".git").mkdir()
    (tmp_path / "a" / "b" / marker).mkdir()
    assert project_root(below, home=home) == tmp_path / "a" / "b"


def test_a_git_file_of_a_worktree_is_a_marker(tmp_path: Path, home: Path) -> None:
    (tmp_path / "tree" / "src").mkdir(parents=True)
    (tmp_path / "tree" / ".git").write_text("gitdir: elsewhere")
    assert project_root(tmp_path / "tree" / "src", home=home) == tmp_path / "tree"


def test_without_a_marker_the_working_directory_is_the_project(tmp_path: Path, home: Path) -> None:
    assert project_root(tmp_path / "absent", home=home) == tmp_path / "absent"


def test_the_home_folder_is_never_the_project(home: Path) -> None:
    (home / ".claude").mkdir()
    (home / "notes" / "today").mkdir(parents=True)
    assert project_root(home / "notes" / "today", home=home) == home / "notes" / "today"
    assert {place.source for place in agent_search_paths(project_root(home, home=home), home=home)} == {"user"}
    assert [place.source for place in settings_files(home, home=home)] == ["user"]


def test_the_search_does_not_climb_above_the_home_folder(tmp_path: Path, home: Path) -> None:
    (tmp_path / ".git").mkdir()
    (home / "notes").mkdir()
    assert project_root(home / "notes", home=home) == home / "notes"


def test_a_folder_shared_by_everybody_is_no_project_of_what_lies_below(tmp_path: Path, home: Path) -> None:
    shared = tmp_path / "shared"
    (shared / "mine").mkdir(parents=True)
    (shared / ".agents").mkdir()
    shared.chmod(0o1777)
    assert project_root(shared / "mine", home=home) == shared / "mine"
    assert project_root(shared, home=home) == shared


def test_a_link_to_the_home_folder_is_the_home_folder(tmp_path: Path, home: Path) -> None:
    (home / ".agents").mkdir()
    (home / "notes").mkdir()
    (tmp_path / "link").symlink_to(home)
    assert project_root(tmp_path / "link" / "notes", home=tmp_path / "link") == home / "notes"


def test_places_run_from_the_users_to_the_projects_and_are_never_absolute(project: Path, home: Path) -> None:
    assert [place.where for place in agent_search_paths(project, home=home)] == [
        "~/.agents",
        "~/.pi/agents",
        "~/.claude/agents",
        "~/.subagents/agents",
        ".agents",
        ".pi/agents",
        ".claude/agents",
        ".subagents/agents",
    ]


def test_folders_are_shown_with_a_tilde_for_home(home: Path) -> None:
    assert shown_folder(home, home=home) == "~"
    assert shown_folder(home / "a", home=home) == "~/a"
    assert shown_folder(Path("/srv/x"), home=home) == "/srv/x"


def test_names_that_would_break_a_line_are_escaped() -> None:
    assert printable("a\nb\x1b[31m\udcff é") == "a\\nb\\x1b[31m\\udcff é"
