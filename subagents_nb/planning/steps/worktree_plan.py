"""Whether a step works in a git worktree of its own, and what speaks against it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

from subagents_nb.domain.plans.worktree import (
    DEFAULT_HOOK_TIMEOUT_S,
    DEFAULT_PREFIX,
    WorktreePlan,
    prefix_problem,
    ref_problem,
)
from subagents_nb.domain.values.faults import nearest
from subagents_nb.domain.values.reasons import Reasons
from subagents_nb.domain.values.words import one_line, parse_duration
from subagents_nb.planning.facts import Facts, GitFacts, GitPlace

KEYS = ("base_ref", "branch_prefix", "setup_hook", "hook_timeout", "root")
_SHOWN_DIRT = 5
_MAX_HOOK_S = 600.0
_NOT_LOOKED_UP = GitPlace(problem="was not looked up")


def asked_of(asked: Any) -> Mapping[str, Any] | None:
    """Return what was asked for as a mapping with the keys in their own spelling; None: no worktree."""
    if asked is None or asked is False:
        return None
    if isinstance(asked, Mapping):
        return {_own(str(key)): value for key, value in asked.items()}
    return {}


def _own(key: str) -> str:
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in key).replace("-", "_")


def plan_worktree(asked: Any, facts: Facts, reasons: Reasons) -> WorktreePlan | None:
    """Return the worktree of a step, or None after adding what speaks against it to the reasons, if it asks for one."""
    given = asked_of(asked)
    if given is None:
        return None
    if asked is not True and not isinstance(asked, Mapping):
        reasons.append(f"worktree is true, or a mapping with {', '.join(KEYS)}, not {asked!r}")
        return None
    before = len(reasons)
    for key in given:
        if key not in KEYS:
            near = nearest(key, KEYS)
            meant = f"; did you mean {near}?" if near else f"; the keys are {', '.join(KEYS)}"
            reasons.append(f"worktree: unknown key {key!r}{meant}")
    texts = {key: _text(given, key, reasons) for key in KEYS if key != "hook_timeout"}
    prefix = texts["branch_prefix"] or DEFAULT_PREFIX
    if (problem := prefix_problem(prefix)) is not None:
        reasons.append(f"worktree: branch_prefix {problem}")
    hook_timeout_s = _hook_timeout(given.get("hook_timeout"), reasons)
    git = facts.git
    if git is None and facts.cwd_problem is not None:
        return None  # said already, and there is nothing to look at
    if git is None or git.problem is not None:
        reasons.append(f"worktree: {git.problem if git is not None else 'git was not looked up'}")
        return None
    if git.busy is not None:
        reasons.append(f"worktree: {git.busy} is going on in {git.root}; finish or abort it first")
    if git.dirt:
        reasons.append(_dirty(git))
    base_ref = texts["base_ref"] or "HEAD"
    commit = _commit(base_ref, git, reasons)
    hook = _hook(texts["setup_hook"], git, reasons)
    root = _root(texts["root"], git, reasons)
    if len(reasons) > before or commit is None:
        return None
    return WorktreePlan(
        repo_root=git.root,
        base_ref=base_ref,
        base_commit=commit,
        subdir=git.subdir,
        branch_prefix=prefix,
        root=root,
        setup_hook=hook,
        hook_timeout_s=hook_timeout_s,
    )


def _text(given: Mapping[str, Any], key: str, reasons: Reasons) -> str | None:
    value = given.get(key)
    if value is None or (isinstance(value, str) and value.strip() and value.isprintable()):
        return value
    reasons.append(f"worktree: {key} is a text, not {value!r}")
    return None


def _hook_timeout(asked: Any, reasons: Reasons) -> float:
    if asked is None:
        return DEFAULT_HOOK_TIMEOUT_S
    try:
        seconds = parse_duration(asked)
    except (ValueError, TypeError) as error:
        reasons.append(f"worktree: hook_timeout: {error}")
        return DEFAULT_HOOK_TIMEOUT_S
    if seconds > _MAX_HOOK_S:
        reasons.append(f"worktree: hook_timeout is at most {_MAX_HOOK_S:g} seconds")
    return seconds


def _dirty(git: GitFacts) -> str:
    # A name may hold anything, even what a page or a terminal would act on.
    shown = ", ".join(one_line(path, 80) for path in git.dirt[:_SHOWN_DIRT])
    more = f" and {len(git.dirt) - _SHOWN_DIRT} more" if len(git.dirt) > _SHOWN_DIRT else ""
    return (
        f"worktree: {git.root} has uncommitted changes, and a worktree would begin without them: {shown}{more}"
        "; commit or stash them, or let .gitignore name what is no part of the work"
    )


def _commit(base_ref: str, git: GitFacts, reasons: Reasons) -> str | None:
    if (problem := ref_problem(base_ref)) is not None:
        reasons.append(f"worktree: base_ref {problem}")
        return None
    if base_ref in git.commits:
        return git.commits[base_ref]
    if base_ref == "HEAD":
        reasons.append(f"worktree: {git.root} has no commit yet; commit something first")
    else:
        reasons.append(f"worktree: there is no branch or tag {base_ref!r} in {git.root}")
    return None


def _hook(asked: str | None, git: GitFacts, reasons: Reasons) -> str | None:
    if asked is None:
        return None
    place = git.hooks.get(asked, _NOT_LOOKED_UP)
    if place.problem is not None:
        reasons.append(f"worktree: the setup hook {asked!r} {place.problem}")
        return None
    return place.path


def _root(asked: str | None, git: GitFacts, reasons: Reasons) -> str | None:
    place = git.roots.get(asked or "", _NOT_LOOKED_UP)
    if asked is not None and place.problem is not None:
        reasons.append(f"worktree: root {asked!r} {place.problem}")
        return None
    path = place.path or str(PurePath(git.root).parent)
    inside = next((one for one in git.checkouts if PurePath(path).is_relative_to(one)), None)
    if inside is not None:
        what = f"root {asked!r}" if asked is not None else "the place for worktrees beside the repository"
        reasons.append(f"worktree: {what} lies inside the checkout {inside}; give a root outside of it")
        return None
    return place.path if asked is not None else None
