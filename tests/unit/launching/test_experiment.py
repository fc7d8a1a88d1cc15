"""What a launch says about itself: names, parameters, and where it came from, read off the repository by hand."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from subagents_nb.domain.plans.experiments import Cell, ExperimentPart
from subagents_nb.domain.plans.plan import Origin
from subagents_nb.errors import LaunchRefused
from subagents_nb.launching.gathering.experiment import current_experiment, experiment_part, lineage_of, set_experiment

ORIGIN = Origin(notebook="a.ipynb", cell_id="c", source_sha256="s")


def git(folder: Path, *words: str) -> str:
    command = ["git", "-c", "user.name=n", "-c", "user.email=e@x", "-c", "commit.gpgsign=false", *words]
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    folder = tmp_path / "repo"
    (folder / "below").mkdir(parents=True)
    git(folder, "init", "-q")
    (folder / "file").write_text("one")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "first")
    return folder


def test_the_commit_is_that_of_git_on_a_branch_detached_packed_and_in_a_worktree(repo: Path, tmp_path: Path) -> None:
    head = git(repo, "rev-parse", "HEAD")
    assert lineage_of(ORIGIN, repo / "below").git_commit == head

    git(repo, "pack-refs", "--all")
    assert lineage_of(ORIGIN, repo).git_commit == head
    git(repo, "worktree", "add", "-q", str(tmp_path / "tree"))
    assert lineage_of(ORIGIN, tmp_path / "tree").git_commit == head
    git(repo, "checkout", "-q", "--detach")
    assert lineage_of(ORIGIN, repo).git_commit == head


def test_changes_that_are_not_committed_are_said(repo: Path) -> None:
    assert lineage_of(ORIGIN, repo).git_dirty is False
    (repo / "file").write_text("two")
    assert lineage_of(ORIGIN, repo).git_dirty is True


def test_what_can_not_be_told_is_none(tmp_path: Path) -> None:
    found = lineage_of(ORIGIN, tmp_path)
    assert (found.notebook, found.cell_id, found.source_sha256) == ("a.ipynb", "c", "s")
    assert found.git_commit is None and found.git_dirty is None and found.packages["subagents-nb"]
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "HEAD").write_text("ref: ../../etc/passwd")
    assert lineage_of(ORIGIN, tmp_path).git_commit is None


def test_a_plain_launch_is_not_looked_into(tmp_path: Path) -> None:
    assert experiment_part(None, None, "", origin=ORIGIN, cwd=tmp_path) == ExperimentPart()
    assert experiment_part(None, {"a": 1}, "", origin=ORIGIN, cwd=tmp_path).lineage is not None
    swept = ExperimentPart(cell=Cell(sweep="s", place=0))
    assert experiment_part(swept, None, "n", origin=ORIGIN, cwd=tmp_path).notes == "n"


def test_the_current_experiment_holds_until_it_is_taken_back(tmp_path: Path) -> None:
    set_experiment("mine")
    try:
        assert experiment_part(None, None, "", origin=ORIGIN, cwd=tmp_path).name == "mine"
        assert experiment_part("other", None, "", origin=ORIGIN, cwd=tmp_path).name == "other"
    finally:
        set_experiment(None)
    assert current_experiment() is None


@pytest.mark.parametrize(
    ("name", "params", "notes", "reason"),
    [
        ("two\nlines", None, "", "can't name an experiment"),
        (" ", None, "", "can't name an experiment"),
        (None, {"a": [1]}, "", "is no single value but a list"),
        (None, {"a": float("nan")}, "", "give it as a text"),
        (None, {1: 2}, "", "a param's name is a text"),
        (None, [1], "", "a mapping of names"),
        (None, None, "x" * 10_001, "at most 10,000 characters"),
    ],
)
def test_what_can_not_be_kept_is_refused(name: object, params: object, notes: str, reason: str, tmp_path: Path) -> None:
    with pytest.raises(LaunchRefused, match=reason):
        experiment_part(name, params, notes, origin=ORIGIN, cwd=tmp_path)  # type: ignore[arg-type]


def test_a_notebook_is_named_by_its_path_in_the_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "project" / "notebooks" / "old"
    folder.mkdir(parents=True)
    (tmp_path / "project" / ".git").mkdir()
    (folder / "look.ipynb").touch()
    monkeypatch.chdir(folder)

    def named(notebook: str | None) -> str | None:
        return lineage_of(Origin(surface="magic", session="s", notebook=notebook), folder).notebook

    assert named("look.ipynb") == "notebooks/old/look.ipynb"
    assert named("elsewhere.ipynb") == "elsewhere.ipynb"
    assert named(None) is None
