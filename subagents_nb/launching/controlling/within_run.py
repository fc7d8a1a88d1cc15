"""What a process of a run may not do to other runs, to agents and to itself: that is the person's.

It is known by its mark, which a program can drop; only a sandbox holds back who wants out.
"""

from __future__ import annotations

import contextlib
import os

from subagents_nb.domain.agents.environment import NO_RUN, RUN_MARK
from subagents_nb.domain.plans.plan import LaunchPlan
from subagents_nb.domain.values.ids import is_run_id
from subagents_nb.errors import RequestError, StoreError, Unreadable
from subagents_nb.store import StoreHome
from subagents_nb.store.runs.reader import read_document

_MOST_LEVELS = 16  # more than a tree has; a plan from elsewhere may name itself


def refuse_runs(what: str) -> None:
    """Refuse a process of a run what is the person's alone: it would bound or answer itself.

    Raises:
        RequestError: this process belongs to a run, by its mark.
    """
    if run_id := _own_run():
        raise RequestError(f"This process belongs to run {run_id}: {what}.")


def refuse_strangers(home: StoreHome, run_id: str) -> None:
    """Refuse a process of a run to touch any run but those below its own: a steer speaks with the person's voice.

    Raises:
        RequestError: this process belongs to a run, by its mark, and the other one is not below that.
    """
    own, above = _own_run(), run_id
    for _ in range(_MOST_LEVELS if own else 0):
        with contextlib.suppress(StoreError, Unreadable):
            above = read_document(home.run(above).plan, LaunchPlan, above).origin.parent or ""
            if above == own:
                return
            if is_run_id(above):
                continue
        break
    if own:
        raise RequestError(f"This process belongs to run {own}: any run but those it began is the person's to control.")


def _own_run() -> str:
    run_id = os.environ.get(RUN_MARK, "").partition(":")[0]
    return "" if run_id == NO_RUN else run_id
