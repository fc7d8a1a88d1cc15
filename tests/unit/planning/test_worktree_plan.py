"""Whether a step gets a worktree, decided over facts that were handed in."""

from __future__ import annotations

import re
from typing import Any

import pytest

from subagents_nb.domain.plans.worktree import WorktreePlan
from subagents_nb.planning.launch_environment import GitPath, LaunchEnvironment, RepositoryState
from subagents_nb.planning.steps.worktree_plan import plan_worktree

GIT: dict[str, Any] = {
    "root": "/w/repo",
    "subdir": "sub",
    "commits": {"HEAD": "c" * 40, "v1": "d" * 40},
    "checkouts": ("/w/repo",),
    "roots": {"": GitPath(path="/w"), "/big": GitPath(path="/big"), "in": GitPath(path="/w/repo/in")},
    "hooks": {"tools/setup": GitPath(path="tools/setup"), "bad": GitPath(problem="is not executable")},
}


def planned(asked: Any, **git: Any) -> tuple[WorktreePlan | None, str]:
    reasons: list[str] = []
    plan = plan_worktree(
        asked, LaunchEnvironment(cwd="/w/repo/sub", git=RepositoryState.model_validate(GIT | git)), reasons
    )
    assert (plan is None) == bool(reasons) or asked in (None, False)
    return plan, " | ".join(reasons)


@pytest.mark.parametrize("asked", [None, False])
def test_a_step_that_asks_for_none_gets_none_and_git_is_not_needed(asked: Any) -> None:
    reasons: list[str] = []
    assert plan_worktree(asked, LaunchEnvironment(cwd="/w"), reasons) is None and not reasons


def test_a_step_that_asks_for_one_gets_it_from_the_commit_that_was_found() -> None:
    plan, _ = planned(True)
    assert plan == WorktreePlan(repo_root="/w/repo", base_commit="c" * 40, subdir="sub")


def test_every_wish_is_taken_up() -> None:
    asked = {
        "baseRef": "v1",
        "branch-prefix": "try/",
        "setup_hook": "tools/setup",
        "hook_timeout": "2m",
        "root": "/big",
    }
    plan, _ = planned(asked)
    assert plan is not None
    assert (plan.base_ref, plan.base_commit, plan.branch_prefix) == ("v1", "d" * 40, "try/")
    assert (plan.setup_hook, plan.hook_timeout_s, plan.root) == ("tools/setup", 120, "/big")


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"base_reff": "v1"}, "worktree.base_reff is unknown; did you mean base_ref?"),
        ({"zzz": 1}, "the keys are base_ref,"),
        ({"base_ref": 7}, "worktree.base_ref must be text, not 7"),
        ({"base_ref": "nope"}, "no branch or tag 'nope'"),
        ({"base_ref": "HEAD~2"}, "revision expressions"),
        ({"base_ref": "c" * 40}, "commit id"),
        ({"branch_prefix": "x"}, "must end with a slash"),
        ({"setup_hook": "bad"}, "'bad' is not executable"),
        ({"setup_hook": "other"}, "was not looked up"),
        ({"hook_timeout": "soon"}, "worktree.hook_timeout must be seconds"),
        ({"hook_timeout": [1]}, "hook_timeout"),
        ({"hook_timeout": "11m"}, "must be at most 600"),
        ({"root": "in"}, "lies inside the checkout /w/repo"),
        ("yes", "worktree must be true, or a mapping"),
        (1, "worktree must be true, or a mapping"),
    ],
)
def test_what_can_not_be_done_is_said(asked: Any, said: str) -> None:
    assert said in planned(asked)[1]


@pytest.mark.parametrize(
    ("git", "said"),
    [
        ({"problem": "/w is in no git repository; run git init"}, "is in no git repository"),
        ({"busy": "a rebase"}, "a rebase is going on in /w/repo; finish or abort"),
        ({"commits": {}}, "has no commit yet"),
        ({"dirt": ("a", "b")}, "without them: a, b; commit or stash"),
        ({"dirt": tuple("abcdefgh")}, "a, b, c, d, e and 3 more"),
        ({"dirt": ("x\x1b[31m\ny",)}, "without them: x y;"),
        (
            {"checkouts": ("/w/repo", "/w")},
            "the place for worktrees beside the repository lies inside the checkout /w;",
        ),
    ],
)
def test_a_repository_that_is_not_fit_is_named_with_what_to_do(git: dict[str, Any], said: str) -> None:
    assert said in planned(True, **git)[1]


def test_all_reasons_are_told_at_once() -> None:
    said = planned(
        {"base_ref": "nope", "branch_prefix": "x", "setup_hook": "bad", "zzz": 1}, busy="a merge", dirt=("a",)
    )[1]
    assert len(re.findall(r"worktree(?::|\.zzz )", said)) == 6
