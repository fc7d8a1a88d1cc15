from __future__ import annotations

from pathlib import Path

from subagents_nb.catalog import project_context
from subagents_nb.catalog.guidance.project_context import MAX_BYTES


def test_agents_md_comes_before_claude_md(tmp_path: Path) -> None:
    assert project_context(tmp_path) == ""
    (tmp_path / "CLAUDE.md").write_text("claude\n")
    assert project_context(tmp_path) == "claude"
    (tmp_path / "AGENTS.md").write_text("\ufeffagents\r\nmore\r\n")
    assert project_context(tmp_path) == "agents\nmore"
    (tmp_path / "AGENTS.md").write_text(" \n")
    assert project_context(tmp_path) == "claude"


def test_a_link_within_the_project_is_followed_and_one_out_of_it_is_not(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "docs").mkdir(parents=True)
    (tmp_path / "secret").write_text("secret")
    (root / "docs/rules.md").write_text("rules")
    (root / "AGENTS.md").symlink_to("../secret")
    (root / "CLAUDE.md").symlink_to("docs/rules.md")
    assert project_context(root) == "rules"
    assert project_context(tmp_path / "absent") == ""


def test_a_circle_of_links_a_folder_and_a_missing_root_are_no_instructions(tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").symlink_to("CLAUDE.md")
    (tmp_path / "CLAUDE.md").symlink_to("AGENTS.md")
    assert project_context(tmp_path) == ""
    (tmp_path / "AGENTS.md").unlink()
    (tmp_path / "AGENTS.md").mkdir()
    assert project_context(tmp_path) == ""


def test_a_long_file_is_cut_at_a_character_and_says_so(tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_text("x" + "é" * MAX_BYTES)
    text = project_context(tmp_path)
    assert MAX_BYTES - 2 <= len(text.encode()) <= MAX_BYTES
    assert text.endswith("é\n\n[The rest of this file was left out.]")


def test_stray_bytes_never_make_it_longer_than_the_limit(tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_bytes(b"\xff" * MAX_BYTES)
    assert len(project_context(tmp_path).encode()) <= MAX_BYTES
