"""Which runs could have written into a project: what they wrote there, the person has yet to allow."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from subagents_nb.domain.agents.acting import NEVER, Work
from subagents_nb.domain.agents.agent import ASK_TOOLS, DELEGATE, READ_TOOLS, REPLY
from subagents_nb.errors import StoreError
from subagents_nb.store import FileRuns, RunPaths, StoreHome, open_home
from subagents_nb.store.runs.raw_reader import read_raw

_HARMLESS = frozenset({*READ_TOOLS, *ASK_TOOLS, DELEGATE, REPLY})  # those it delegates to are runs of their own


def work_in(root: Path, since: float) -> Work | None:
    """Return the last run that could write into a project since a time; None if there was none.

    A run counts by its directory, if that lies in the project or around it, and if a step of it has more than the tools
    that read. What a step wrote in a worktree of its own counts when it was put into the repository.
    """
    try:
        home = open_home(create=False)
        works = [work for run_id in FileRuns(home).ids() if (work := _work_of(home, run_id, root, since)) is not None]
    except (StoreError, OSError):
        return None
    return max(works, key=lambda work: work.ended, default=None)


def _work_of(home: StoreHome, run_id: str, root: Path, since: float) -> Work | None:
    paths = home.run(run_id)
    ended, applied = _ended(paths), _written(paths.applied)
    if max(ended, applied) < since or os.path.lexists(paths.imported):
        return None
    documents = read_raw(home, run_id, ("plan.json", "appended.json"))
    plan = documents["plan.json"] or {}
    cwd = plan.get("cwd")
    if not isinstance(cwd, str) or not _meets(Path(os.path.realpath(cwd)), root):
        return None
    steps = [*_steps(plan), *({"tools": ["bash"]} for added in [documents["appended.json"]] if added)]
    times = [applied] if any(step.get("worktree") for step in steps) else []
    times += [ended] if any(_could_write(step) and not step.get("worktree") for step in steps) else []
    last = max(times, default=0.0)
    return Work(run=str(plan.get("name") or run_id), ended=last) if last >= since else None


def _ended(paths: RunPaths) -> float:
    """Return when the last of a run was written, by the clock that times files; a run at work has not ended."""
    last = max(_written(paths.result), _written(paths.verdict))
    return max(last, _written(paths.process)) if last else NEVER


def _written(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def _meets(cwd: Path, root: Path) -> bool:
    return cwd.is_relative_to(root) or root.is_relative_to(cwd)


def _steps(plan: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    items = [item for item in plan.get("items") or () if isinstance(item, dict)]
    for step in (*(plan.get("steps") or ()), *(item.get("template") for item in items)):
        if isinstance(step, dict):
            yield step
            if isinstance(step.get("reviewer"), dict):
                yield step["reviewer"]


def _could_write(step: Mapping[str, Any]) -> bool:
    acceptance = step.get("acceptance")
    verifies = isinstance(acceptance, dict) and bool(acceptance.get("verify"))
    return verifies or not _HARMLESS.issuperset(step.get("tools") or ())
