"""What a worktree is called, what git and hooks say about one."""

from __future__ import annotations

import pytest
from support import run_id

from subagents_nb.domain.plans.worktree import (
    Change,
    Handoff,
    WorktreePlan,
    WorktreeRecord,
    parse_numstat,
    prefix_problem,
    ref_problem,
    synthetic_of,
)


def record(step: int, state: str = "ready") -> WorktreeRecord:
    return WorktreeRecord.model_validate(
        {"step": step, "path": f"/w/{step}", "branch": "b", "base_commit": "c", "repo_root": "/r", "state": state}
    )


@pytest.mark.parametrize("name", ["HEAD", "main", "feature/x-1", "v1.0", "über", "abc1234", "a@b"])
def test_names_of_refs_can_be_begun_from(name: str) -> None:
    assert ref_problem(name) is None


@pytest.mark.parametrize(
    "name",
    ["", "HEAD~1", "HEAD^", "main@{1}", "a..b", "@", "-x", "/x", "x/", "x.lock", "a//b", ":/fix", "a b", "a\nb", ".x",
     "a/.b", "x.", "a*", "a?", "a[b", "a\\b", "a:b", "x.lock/y"],
)  # fmt: skip
def test_expressions_and_options_can_not(name: str) -> None:
    assert ref_problem(name) is not None


@pytest.mark.parametrize("size", [40, 64])
def test_commit_ids_can_not(size: int) -> None:
    assert "commit id" in (ref_problem("a" * size) or "")


def test_a_prefix_is_a_name_space_of_branches() -> None:
    assert prefix_problem("subagents/") is None and prefix_problem("a/b-c/") is None
    for bad in ("subagents", "", "/", "-a/", "a b/", "a..b/", "a//", "refs/heads/", "x" * 90 + "/"):
        assert prefix_problem(bad) is not None, bad


def test_a_tree_lies_beside_the_repository_and_is_named_after_run_and_step() -> None:
    plan = WorktreePlan(repo_root="/home/ada/repo", base_commit="c")
    number = run_id(7)
    assert list(plan.names(number, 2)) == [
        (f"/home/ada/repo-worktrees/{number[-4:]}-s2", f"subagents/{number[-4:]}/s2"),
        (f"/home/ada/repo-worktrees/{number}-s2", f"subagents/{number}/s2"),
    ]
    elsewhere = plan.model_copy(update={"root": "/big/disk"})
    assert next(elsewhere.names(number, 0))[0] == f"/big/disk/repo-worktrees/{number[-4:]}-s0"


def test_numstat_tells_counts_binaries_and_renames() -> None:
    data = b"1\t2\ta\0-\t-\tpic\0000\t0\t\0old\0new\nname\0003\t0\tt\tab\0"
    assert parse_numstat(data) == (
        Change(path="a", added=1, removed=2),
        Change(path="pic"),
        Change(path="new\nname", added=0, removed=0, source="old"),
        Change(path="t\tab", added=3, removed=0),
    )
    assert parse_numstat(b"") == ()
    for wrong in (b"hello\0", b"x\ty\tz\0"):
        with pytest.raises(ValueError, match=r"\w"):
            parse_numstat(wrong)


def test_a_hook_names_plain_paths_inside_the_tree() -> None:
    assert synthetic_of(b'{"synthetic_paths": ["venv", "a/b c", "venv"]}') == ("venv", "a/b c")
    assert synthetic_of(b'{"syntheticPaths": ["venv"]}') == synthetic_of(b'{"synthetic-paths": ["venv"]}') == ("venv",)
    assert synthetic_of(b"{}\n") == ()


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"[]",
        b"{",
        b'{"synthetic_paths": "venv"}',
        b'{"synthetic_paths": [1]}',
        b'{"synthetic_paths": ["venv"], "more": 1}',
        b'{"syntheticpaths": ["venv"]}',
        b'{"synthetic_paths": ["a"], "syntheticPaths": ["b"]}',
        b"[" * 100_000,
        b"{" + b" " * 140_000,
    ]
    + [
        b'{"synthetic_paths": ["' + path + b'"]}'
        for path in (
            b"/etc",
            b"../x",
            b"a/../b",
            b".",
            b"",
            b"a//b",
            b".git",
            b"a/.GIT/hooks",
            b"a\\\\b",
            b"a\\nb",
            b"a/",
        )
    ],
)
def test_whatever_else_a_hook_says_is_refused(answer: bytes) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        synthetic_of(answer)


def test_a_hand_off_has_one_record_for_each_step() -> None:
    handoff = Handoff(run_id=run_id()).noting(record(2)).noting(record(0)).noting(record(2, "removed"))
    assert [(one.step, one.state) for one in handoff.worktrees] == [(0, "ready"), (2, "removed")]
    assert handoff.of(1) is None and handoff.of(2) == record(2, "removed")
    assert [one.resolved for one in handoff.worktrees] == [False, True]
