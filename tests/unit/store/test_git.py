"""How git is called: led nowhere, shown no secret, and its last words are one plain line."""

from __future__ import annotations

from pathlib import Path

import pytest

from subagents_nb.store.git import Git, GitProblem, git_environ


def test_git_sees_no_routing_and_no_secret() -> None:
    seen = git_environ(
        {"GIT_DIR": "/x", "GIT_CONFIG_COUNT": "1", "OPENAI_API_KEY": "k", "PATH": "/bin", "LC_ALL": "de"}
    )
    assert seen["PATH"] == "/bin" and seen["LC_ALL"] == "C" and seen["GIT_TERMINAL_PROMPT"] == "0"
    assert not {"GIT_DIR", "GIT_CONFIG_COUNT", "OPENAI_API_KEY"} & set(seen)


def test_what_git_said_is_one_plain_line(tmp_path: Path) -> None:
    git = Git(cwd=tmp_path)
    git("init", "-q")
    with pytest.raises(GitProblem, match=r"\Agit rev-parse: fatal: [^\n\x1b]*\Z"):
        git("-c", "a.b=c", "rev-parse", "--verify", "\x1b[31mnope")


def test_a_git_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    git = Git(cwd=tmp_path)
    git("init", "-q")
    with pytest.raises(GitProblem, match=r"git sleepy took longer than 0\.2 s"):
        git("-c", "alias.sleepy=!exec sleep 60", "sleepy", timeout=0.2)


def test_a_place_that_is_gone_is_a_problem_of_git(tmp_path: Path) -> None:
    with pytest.raises(GitProblem, match="could not be started"):
        Git(cwd=tmp_path / "gone")("status")


def test_without_git_that_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(GitProblem, match="not installed"):
        Git(cwd=tmp_path)("status")
