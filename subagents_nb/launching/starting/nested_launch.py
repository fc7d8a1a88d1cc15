"""A launch in a process of a run: that run's child, started by it. Nothing else can be begun from within a run.

A tool can drop the mark of its run, so this holds nobody back who wants out: only a sandbox does.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from subagents_nb.domain.agents.environment import RUN_MARK
from subagents_nb.domain.plans.plan import LaunchPlan
from subagents_nb.domain.policy.sandbox_plan import SANDBOX_MARK
from subagents_nb.domain.tree.asks import ChildAsk
from subagents_nb.domain.tree.child_plan import NoChild, delegators, template_of
from subagents_nb.domain.values.ids import is_run_id
from subagents_nb.errors import LaunchRefused, StoreError, Unreadable
from subagents_nb.store import FileRuns, StoreHome, open_home
from subagents_nb.store.clock import utc_now
from subagents_nb.store.runs.reader import read_document
from subagents_nb.store.tree.launches import OUTSIDE, appended_steps, put_ask, read_answer
from subagents_nb.supervisor.processes.orphans import mark_of

_ANSWER_S = 60.0
_SANDBOXED = (
    "this process is in the sandbox of a run, from which none can be launched; have the agent delegate: name agents in "
    "its file"
)
_POLL_S = 0.02
# Of a launch from within; the child's template says all else.
_MAY_SAY = frozenset({"agent", "task", "wait", "origin", "defaults", "queue", "fresh", "reuse"})


def outer_run(environ: Mapping[str, str] = os.environ) -> LaunchPlan | None:
    """Return the plan of the run that this process belongs to, by its mark; None if it is of no run of this store.

    Raises:
        LaunchRefused: it is in a sandbox, where no store is to be seen.
    """
    if environ.get(SANDBOX_MARK):
        raise LaunchRefused([_SANDBOXED])
    mark = environ.get(RUN_MARK, "")
    run_id = mark.partition(":")[0]
    if not is_run_id(run_id):
        return None
    with contextlib.suppress(StoreError, Unreadable):
        plan = read_document(open_home(create=False).run(run_id).plan, LaunchPlan, run_id)
        return plan if mark == mark_of(run_id, plan.token) else None
    return None


def refuse_within(what: str) -> None:
    """Refuse what can't be asked for from within a run.

    Raises:
        LaunchRefused: this process belongs to one.
    """
    if (outer := outer_run()) is not None:
        raise LaunchRefused([f"this process belongs to run {outer.name}, and {what} can't be begun from within a run"])


def launch_within(outer: LaunchPlan, options: Mapping[str, Any], *, default_agent: str) -> tuple[StoreHome, str]:
    """Have the run of this process start a child; return its store and id.

    Raises:
        LaunchRefused: it may not, or something is asked for that its plan does not say.
        StoreError: it did not answer.
    """
    home = open_home(create=False)
    unfit = sorted(
        name for name, value in options.items() if value not in (None, (), "", False) and name not in _MAY_SAY
    )
    agent, task = options.get("agent") or default_agent, options.get("task") or ""
    reasons = []
    if unfit:
        reasons.append(f"from within run {outer.name} a launch has an agent and a task; leave out {', '.join(unfit)}")
    if not isinstance(agent, str):
        raise LaunchRefused([*reasons, f"from within run {outer.name} one agent is launched at a time, and no chain"])
    ask = _ask(outer, agent, task)
    try:
        steps = delegators(outer, appended_steps(home.run(outer.run_id)))
        template_of(outer, ask, steps, root=_root_name(home, outer))
    except NoChild as error:
        raise LaunchRefused([*reasons, str(error)]) from error
    if reasons:
        raise LaunchRefused(reasons)
    paths = home.run(outer.run_id)
    try:
        put_ask(paths, ask)
    except OSError as error:
        raise StoreError(f"Run {outer.name} can't be asked for a child: {error.strerror}.") from error
    deadline = time.monotonic() + _ANSWER_S
    while time.monotonic() < deadline:
        answer = read_answer(paths, ask.ask_id)
        if answer is not None and answer.child is not None:
            return home, answer.child
        if answer is not None:
            raise LaunchRefused([answer.refused])
        if FileRuns(home).has_terminal_record(outer.run_id):
            raise LaunchRefused([f"run {outer.name}, which this process belongs to, is over"])
        time.sleep(_POLL_S)
    raise StoreError(f"Run {outer.name} did not answer within {_ANSWER_S:g} s.")


def _ask(outer: LaunchPlan, agent: str, task: str) -> ChildAsk:
    number = secrets.token_hex(3)
    above = f"{outer.origin.path}/" if outer.origin.path else ""
    here = Path.cwd()
    return ChildAsk(
        run_id=outer.run_id,
        ask_id=f"{OUTSIDE}{number}",
        agent=agent,
        task=task,
        path=f"{above}{agent}-{number}",
        cwd=str(here if here.is_relative_to(outer.cwd) else outer.cwd),
        asked_at=utc_now(),
    )


def _root_name(home: StoreHome, outer: LaunchPlan) -> str:
    root = outer.origin.root
    if root is None:
        return outer.name
    with contextlib.suppress(Unreadable):
        return read_document(home.run(root).plan, LaunchPlan, root).name
    return root
