"""Which runs went on from a tree, and what it has used with them: an empty file for each, under the root's `budget/`.

    runs/<root>/budget/after-RUN        written by whoever launches that run, before it begins

So a run that is resumed several times does not have its limits anew each time.
"""

from __future__ import annotations

import contextlib
import os

from subagents_nb.domain.plans.plan import LaunchPlan
from subagents_nb.domain.tree.spent import Spent
from subagents_nb.domain.values.ids import is_run_id
from subagents_nb.errors import StoreError
from subagents_nb.store.files.disk import DISK, PRIVATE_DIR, Disk
from subagents_nb.store.layout import StoreHome
from subagents_nb.store.runs.reader import FileRuns
from subagents_nb.store.tree.tree_usage import used_by
from subagents_nb.store.waiting.admissions import budget_used

_AFTER = "after-"


def note_follower(home: StoreHome, plan: LaunchPlan, *, disk: Disk = DISK) -> None:
    """Note that a run goes on from another one, where the tree of that one counts; any other run is not noted.

    Raises:
        StoreError: the disk takes it not.
    """
    root = plan.resumes.tree if plan.resumes is not None else None
    if root is None:
        return
    folder = home.run(root).root / "budget"
    try:
        with contextlib.suppress(FileExistsError):
            folder.mkdir(mode=PRIVATE_DIR)
        disk.create_once(folder / f"{_AFTER}{plan.run_id}", b"", durable=False, entry=False)
    except FileNotFoundError:
        return  # the root of a child was deleted: nobody counts there any more
    except OSError as error:
        raise StoreError(f"That run {root} is resumed can't be noted: {error.strerror}.") from error


def spent_by(home: StoreHome, root: str) -> Spent:
    """Return what the tree of a root has used, with all that went on from it; what is gone counts for nothing.

    Its runs are counted from the first one of all that it goes on from: unlike a budget, their limit is never new.

    Raises:
        StoreError: its count of runs is there and can't be read.
    """
    spent, plan = _spent_since(home, root), _plan_of(home, root)
    first, carried = root, plan.resumes.carried if plan is not None and plan.resumes is not None else 0
    while plan is not None and plan.resumes is not None and (plan.resumes.tree or first) < first:  # ids follow time
        first = str(plan.resumes.tree)
        plan = _plan_of(home, first)
    runs = spent.runs + carried  # all that is known if a run between was deleted
    return spent if first == root else spent.model_copy(update={"runs": max(runs, _spent_since(home, first).runs)})


def _spent_since(home: StoreHome, root: str) -> Spent:
    spent, seen, waiting = Spent(), set[str](), [root]
    while waiting:
        run_id = waiting.pop()
        if run_id not in seen:
            seen.add(run_id)
            spent += _spent_by_tree(home, run_id)
            waiting += _followers(home, run_id)
    return spent


def _plan_of(home: StoreHome, run_id: str) -> LaunchPlan | None:
    return FileRuns(home).snapshot(run_id, whole=True).plan


def _spent_by_tree(home: StoreHome, root: str) -> Spent:
    paths, shown = home.run(root), FileRuns(home).snapshot(root, whole=True)
    kept, resumes = used_by(paths), shown.plan.resumes if shown.plan is not None else None
    # A run that shares with nobody keeps no such file; the root of a tree that was killed had not heard of all.
    usage = max(kept, shown.usage_of_all, key=lambda one: one.input_tokens + one.output_tokens)
    used, _ = budget_used(paths) or (0, 0)
    return Spent(usage=usage, runs=max(0, used - (resumes.carried if resumes is not None else 0)))


def _followers(home: StoreHome, root: str) -> list[str]:
    try:
        names = os.listdir(home.run(root).root / "budget")
    except OSError:
        return []
    return [run_id for name in names if name.startswith(_AFTER) and is_run_id(run_id := name.removeprefix(_AFTER))]
