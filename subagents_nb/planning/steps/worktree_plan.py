"""Whether a step works in a git worktree of its own, and what speaks against it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import PurePath
from typing import Annotated, Any, TypeAlias

from pydantic import AfterValidator, Field, model_validator

from subagents_nb.domain.plans.worktree import (
    DEFAULT_HOOK_TIMEOUT_S,
    DEFAULT_PREFIX,
    Provider,
    WorktreePlan,
    prefix_problem,
    ref_problem,
)
from subagents_nb.domain.values.given import Seconds, Text
from subagents_nb.domain.values.reading import Written, must_be, read_rest
from subagents_nb.domain.values.reasons import Reasons
from subagents_nb.domain.values.words import one_line
from subagents_nb.planning.launch_environment import GitPath, LaunchEnvironment, RepositoryState

_SHOWN_DIRT = 5
_MAX_HOOK_S = 600
_NOT_LOOKED_UP = GitPath(problem="was not looked up")


def _printable(text: str) -> str:
    if not text.isprintable():
        raise must_be("text in one line", text)
    return text


_Line: TypeAlias = Annotated[Text, AfterValidator(_printable)]


class WrittenWorktree(Written):
    """What is asked of a worktree: true, or a mapping."""

    base_ref: _Line = "HEAD"
    branch_prefix: _Line = DEFAULT_PREFIX
    setup_hook: _Line | None = None
    hook_timeout: Annotated[Seconds, Field(le=_MAX_HOOK_S)] = DEFAULT_HOOK_TIMEOUT_S
    root: _Line | None = None
    provider: Provider = "native"

    @model_validator(mode="before")
    @classmethod
    def _form(cls, given: Any) -> Any:
        if given is not True and not isinstance(given, Mapping):
            raise must_be(f"true, or a mapping with {', '.join(cls.model_fields)}", given)
        return {} if given is True else given


def plan_worktree(asked: Any, environment: LaunchEnvironment, reasons: Reasons) -> WorktreePlan | None:
    """Return the worktree of a step, or None after adding what speaks against it to the reasons, if it asks for one."""
    if asked is None or asked is False:
        return None
    before = len(reasons)
    written, faults = read_rest(WrittenWorktree, asked)
    reasons.extend(fault.at("worktree") for fault in faults)
    if written is None:
        return None
    if (problem := prefix_problem(written.branch_prefix)) is not None:
        reasons.append(f"worktree: branch_prefix {problem}")
    git = environment.git
    if git is None and environment.cwd_problem is not None:
        return None  # said already, and there is nothing to look at
    if git is None or git.problem is not None:
        reasons.append(f"worktree: {git.problem if git is not None else 'git was not looked up'}")
        return None
    if git.busy is not None:
        reasons.append(f"worktree: {git.busy} is going on in {git.root}; finish or abort it first")
    if git.dirt:
        reasons.append(_dirty(git))
    commit = _commit(written.base_ref, git, reasons)
    hook = _hook(written.setup_hook, git, reasons)
    if written.provider == "worktrunk":
        reasons.extend(_against_worktrunk(written, git))
    root = _root(written.root, git, reasons) if written.provider == "native" else None
    if len(reasons) > before or commit is None:
        return None
    return WorktreePlan(
        repo_root=git.root,
        base_ref=written.base_ref,
        base_commit=commit,
        subdir=git.subdir,
        branch_prefix=written.branch_prefix,
        root=root,
        setup_hook=hook,
        hook_sha256=git.hooks[written.setup_hook].sha256 if written.setup_hook is not None else "",
        hook_timeout_s=written.hook_timeout,
        provider=written.provider,
    )


def _against_worktrunk(given: WrittenWorktree, git: RepositoryState) -> Iterator[str]:
    if git.worktrunk is not None:
        yield f"worktree: {git.worktrunk}"
    if given.root is not None:
        yield "worktree: root says where git makes trees; worktrunk has a template of its own for that"


def _dirty(git: RepositoryState) -> str:
    # A name may hold anything, even what a page or a terminal would act on.
    shown = ", ".join(one_line(path, 80) for path in git.dirt[:_SHOWN_DIRT])
    more = f" and {len(git.dirt) - _SHOWN_DIRT} more" if len(git.dirt) > _SHOWN_DIRT else ""
    return (
        f"worktree: {git.root} has uncommitted changes, and a worktree would begin without them: {shown}{more}"
        "; commit or stash them, or let .gitignore name what is no part of the work"
    )


def _commit(base_ref: str, git: RepositoryState, reasons: Reasons) -> str | None:
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


def _hook(asked: str | None, git: RepositoryState, reasons: Reasons) -> str | None:
    if asked is None:
        return None
    place = git.hooks.get(asked, _NOT_LOOKED_UP)
    if place.problem is not None:
        reasons.append(f"worktree: the setup hook {asked!r} {place.problem}")
        return None
    return place.path


def _root(asked: str | None, git: RepositoryState, reasons: Reasons) -> str | None:
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
