"""How git is called: led nowhere, shown no secret, and its last words are one plain line."""

from __future__ import annotations

import contextlib
import os
import re
from pathlib import Path

import pytest

import subagents_nb
from subagents_nb.store.git.git import Git, GitProblem, GitTooMuch, git_environ


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
    with pytest.raises(GitTooMuch, match=r"git sleepy took longer than 0\.2 s"):
        git("-c", "alias.sleepy=!exec sleep 60", "sleepy", within_s=0.2)


def test_a_place_that_is_gone_is_a_problem_of_git(tmp_path: Path) -> None:
    with pytest.raises(GitProblem, match="could not be started"):
        Git(cwd=tmp_path / "gone")("status")


def test_without_git_that_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(GitProblem, match="not installed"):
        Git(cwd=tmp_path)("status")


def plant(folder: Path, *, command: str, files: str = "objects/x") -> None:
    """Make what git takes for a repository, with commands of its own, by writing files alone."""
    config = (
        "[core]\n\trepositoryformatversion = 1\n\tbare = false\n\tworktree = .\n[extensions]\n\tpartialClone = o\n"
        f'[remote "o"]\n\turl = .\n\tpromisor = true\n\tuploadpack = "{command}; false"\n'
    )
    texts = {"HEAD": "ref: refs/heads/m\n", "refs/heads/m": f"{'1' * 40}\n", files: "x", "config": config}
    for name, text in texts.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


@pytest.mark.parametrize("where", ["", "a/b"])
def test_a_folder_that_only_looks_like_a_repository_is_not_obeyed(tmp_path: Path, where: str) -> None:
    plant(tmp_path / "ws", command=f"touch {tmp_path}/started")
    (tmp_path / "ws" / where).mkdir(parents=True, exist_ok=True)
    for args in (["diff", "--cached"], ["status"], ["rev-parse", "HEAD"]):
        with pytest.raises(GitProblem, match="looks like"):
            Git(cwd=tmp_path / "ws" / where)(*args)
    assert not (tmp_path / "started").exists()


def test_one_whose_objects_lie_elsewhere_is_not_obeyed_either(tmp_path: Path) -> None:
    plant(tmp_path / "ws" / "inner", command="true")
    (tmp_path / "ws" / "HEAD").write_text("ref: refs/heads/m\n")
    (tmp_path / "ws" / "commondir").write_text("inner\n")
    with pytest.raises(GitProblem, match="looks like"):
        Git(cwd=tmp_path / "ws")("status")


def test_a_repository_that_wants_to_be_fetched_from_starts_nothing(tmp_path: Path) -> None:
    plant(tmp_path / "ws" / ".git", command=f"touch {tmp_path}/started")
    git = Git(cwd=tmp_path / "ws")
    for args in (["diff", "--cached"], ["status"], ["cat-file", "-p", "HEAD"]):
        with contextlib.suppress(GitProblem):
            git(*args)
    assert not (tmp_path / "started").exists()


def test_filters_of_the_repository_alone_run_where_git_was_asked_for_and_nowhere_else(tmp_path: Path) -> None:
    (tmp_path / "ws").mkdir()
    git = Git(cwd=tmp_path / "ws")
    git("init", "-q")
    git("config", "filter.a=b.c.clean", f"touch {tmp_path}/started; cat")
    git("config", "filter.a=b.c.required", "true")
    (tmp_path / "ws" / ".gitattributes").write_text("*.txt filter=a=b.c\n")
    (tmp_path / "ws" / "a.txt").write_text("one")
    git("add", "a.txt")
    assert (tmp_path / "started").exists()
    (tmp_path / "started").unlink()
    (tmp_path / "ws" / "a.txt").write_text("two")
    assert b"+two" in Git(cwd=tmp_path / "ws", filters=False)("diff")
    assert not (tmp_path / "started").exists()


def test_the_configuration_of_a_submodule_starts_nothing_where_nobody_asked_for_git(tmp_path: Path) -> None:
    inner = Git(cwd=tmp_path / "ws" / "inner")
    inner.cwd.mkdir(parents=True)
    outer = Git(cwd=tmp_path / "ws")
    (inner.cwd / ".gitattributes").write_text("*.txt filter=a\n")
    (inner.cwd / "a.txt").write_text("one")
    for git in (inner, outer):
        git("init", "-q")
        git("add", ".")
        git("-c", "user.name=n", "-c", "user.email=e", "commit", "-qm", "m")
    inner("config", "filter.a.clean", f"touch {tmp_path}/started; cat")
    (inner.cwd / "a.txt").write_text("two")
    # Not the settings of a repository are to decide this, either.
    outer("config", "diff.ignoreSubmodules", "none")
    outer("config", "submodule.inner.ignore", "none")
    for args in (["status", "--porcelain"], ["diff", "HEAD", "--binary"]):
        Git(cwd=outer.cwd, filters=False)(*args)
        assert not (tmp_path / "started").exists()
    assert b"-dirty" in outer("diff", "HEAD")
    assert (tmp_path / "started").exists()


@pytest.mark.parametrize("place", ["", ".", "bin"])
def test_git_is_none_that_lies_where_it_is_to_look(tmp_path: Path, place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / place).mkdir(exist_ok=True)
    (tmp_path / place / "git").write_text(f"#!/bin/sh\ntouch {tmp_path}/started\n")
    (tmp_path / place / "git").chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", os.pathsep.join([place, os.environ["PATH"]]))
    assert Git(cwd=tmp_path).line("version").startswith("git version")
    assert not (tmp_path / "started").exists()


def test_what_git_prints_is_bounded(tmp_path: Path) -> None:
    git = Git(cwd=tmp_path)
    git("init", "-q")
    with pytest.raises(GitTooMuch, match="git flood printed more than 1,000,000 bytes"):
        git("-c", "alias.flood=!exec yes", "flood", limit=1_000_000)


def test_no_other_module_calls_git() -> None:
    package = Path(subagents_nb.__file__).parent
    starts = re.compile(r"subprocess|create_subprocess|os\.(?:exec|spawn|posix_spawn|system|popen)")
    names = re.compile(r"""["'](?:[^"']*/)?git["']""")
    both = [
        path.relative_to(package).as_posix()
        for path in package.rglob("*.py")
        if starts.search(text := path.read_text("utf-8")) and names.search(text)
    ]
    assert both == ["store/git/git.py"]
