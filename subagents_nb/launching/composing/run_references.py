"""Look up the other runs that a launch refers to: the one it begins with, the sessions that its steps go on from."""

from __future__ import annotations

import hashlib
import re
from typing import Any

from subagents_nb.domain.plans.flow import Attached
from subagents_nb.domain.plans.plan import AttachedItem, FanOutItem, GroupItem, LaunchPlan, LaunchRequest, StepItem
from subagents_nb.domain.runs.control import AppendedItems
from subagents_nb.domain.runs.records import StepResult
from subagents_nb.domain.runs.snapshot import Snapshot
from subagents_nb.domain.runs.states import RunState, StepState
from subagents_nb.errors import RequestError, StoreError, Unreadable
from subagents_nb.launching.composing.flows import steps_of
from subagents_nb.launching.gathering.lineage import meant_run
from subagents_nb.launching.gathering.named_outputs import names_of
from subagents_nb.launching.gathering.sessions import read_session
from subagents_nb.planning.chain_plan import COLLECTED
from subagents_nb.planning.launch_environment import SessionLookup
from subagents_nb.planning.output_references import UNKNOWN
from subagents_nb.planning.resuming.chain_revival import numbers, step_of
from subagents_nb.store import FileRuns, StoreHome, open_home
from subagents_nb.store.runs.reader import read_document

_STEP = re.compile(r"\A(?P<run>.*?)\s*[/:]\s*(?:step\s*)?(?P<step>\d{1,6})\Z")
_AT_WORK = (StepState.PENDING, StepState.RUNNING)


def resolve_references(request: LaunchRequest) -> tuple[LaunchRequest, dict[str, Any]]:
    """Return a request with the id of the run that its chain begins with, and what it refers to, looked up."""
    lookups = session_lookups(request)
    flow = request.flow
    first = flow.items[0] if flow is not None and flow.items else None
    if flow is None or not isinstance(first, Attached):
        return request, lookups
    home = open_home(create=False)
    try:
        run_id = meant_run(home, first.run)
    except RequestError as error:
        return request, {**lookups, "attached_problem": str(error).rstrip(".")}
    snapshot = FileRuns(home).snapshot(run_id, whole=True)
    items = (first.model_copy(update={"run": run_id}), *flow.items[1:])
    request = request.model_copy(update={"flow": flow.model_copy(update={"items": items})})
    problem = _no_answer(snapshot) if first.step is None else _no_step(snapshot, first.step)
    if problem is not None or snapshot.plan is None:
        return request, {**lookups, "attached_problem": problem or f"the plan of {snapshot.name} can't be read"}
    return request, {**lookups, **_attached(home, snapshot.plan, snapshot, first.step)}


def session_lookups(request: LaunchRequest) -> dict[str, Any]:
    """Look up the stored conversations that a request refers to."""
    steps = list(steps_of(request))
    forks = dict.fromkeys([one.fork for one in steps] if request.flow is not None else [request.fork])
    return {
        "sessions": {text: _session(text) for text in dict.fromkeys(one.session for one in steps) if text},
        "forks": {text: _session(text, "fork from") for text in forks if text},
    }


def _attached(home: StoreHome, plan: LaunchPlan, snapshot: Snapshot, step: int | None) -> dict[str, Any]:
    try:
        record = read_document(home.run(plan.run_id).appended, AppendedItems, plan.run_id)
    except Unreadable:
        record = None
    names = names_of(plan, snapshot).schemas if plan.is_flow and step is None else {}
    if snapshot.result is not None:
        names = {name: schema for name, schema in names.items() if name in snapshot.result.outputs}
    return {"attached_schema": _schema(plan, record, snapshot, step), "attached_outputs": names}


def _schema(
    plan: LaunchPlan, record: AppendedItems | None, snapshot: Snapshot, step: int | None
) -> dict[str, Any] | None:
    """Return the schema of the answer, or of a step's; {} where nobody knows more than that there may be one."""
    answer = snapshot.result.answer if snapshot.result is not None else None
    if step is None and answer is not None:
        step = answer.step
        if step is None:
            return UNKNOWN if answer.has_value else None
    elif step is None and not plan.is_flow:
        step = 0
    if step is not None:
        planned = step_of(plan, record, snapshot.stages, step)
        return planned.output_schema if planned is not None else UNKNOWN
    last = plan.items[-1]
    if record is not None or isinstance(last, AttachedItem):
        return UNKNOWN
    match last:
        case StepItem():
            return next((one.output_schema for one in plan.steps if one.index == last.step), None)
        case FanOutItem():
            return COLLECTED
        case GroupItem():
            return None


def _no_answer(snapshot: Snapshot) -> str | None:
    """Return why a run will never come to something that a chain could go on from."""
    name, state = snapshot.name, snapshot.state
    if state is RunState.PAUSED:
        return f"{name} is paused: resume it, and attach to the run that goes on"
    if snapshot.ended and state not in (RunState.COMPLETE, RunState.PARTIAL):
        return f"{name} ended as {state or 'unreadable'}: launch it again, and attach to that run"
    return None


def _no_step(snapshot: Snapshot, step: int) -> str | None:
    """Return why a step of a run will never come to something."""
    steps = {one.index: one for one in snapshot.steps}
    record = steps.get(step)
    if record is None:
        return f"{snapshot.name} has no steps[{step}]; it has {numbers(steps) or 'none'}"
    over = snapshot.ended or record.state not in _AT_WORK
    return (
        f"steps[{step}] of {snapshot.name} is {record.state}"
        if over and record.state is not StepState.COMPLETE
        else None
    )


# --- sessions ---


def _session(asked: str, to: str = "go on from") -> SessionLookup:
    match = _STEP.match(asked)
    named, step = (match["run"], int(match["step"])) if match is not None else (asked, None)
    try:
        home = open_home(create=False)
        run_id = meant_run(home, named)
        snapshot = FileRuns(home).snapshot(run_id)
        steps = {one.index: one for one in snapshot.steps}
        if step is None and len(steps) != 1:
            return SessionLookup(problem=f"{snapshot.name} has several steps: write {named}/step N: {numbers(steps)}")
        record = steps.get(step or 0)
        if record is None:
            return SessionLookup(problem=f"{snapshot.name} has no steps[{step}]; it has {numbers(steps) or 'none'}")
        if not snapshot.ended and not (isinstance(record, StepResult) or record.state not in _AT_WORK):
            return SessionLookup(
                problem=f"{snapshot.name} is still at work, and has no session to {to} yet; wait for its end"
            )
        data = read_session(home.run(run_id).step(record.index) / "session.json")
    except (RequestError, StoreError) as error:
        return SessionLookup(problem=str(error).rstrip("."))
    if data is None:
        return SessionLookup(problem=f"{snapshot.name} left no session to {to}")
    return SessionLookup(run_id=run_id, name=snapshot.name, step=record.index, sha256=hashlib.sha256(data).hexdigest())
