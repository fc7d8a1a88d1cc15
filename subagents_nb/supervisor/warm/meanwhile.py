"""What is asked of a run while it waits for a place. There is no runner yet, so the queue answers in its stead.

What ends a run ends it here: it never begins. What changes how it works is answered `queued`; the request stays where
it is, and the runner carries it out, and says so, when the run has begun.
"""

from __future__ import annotations

from dataclasses import dataclass

from subagents_nb.domain.plans.plan import LaunchPlan
from subagents_nb.domain.runs.control import PARENT, ControlAnswer, ControlRequest
from subagents_nb.domain.runs.records import Actor, EndReason
from subagents_nb.domain.runs.states import RequestEvent, RequestState
from subagents_nb.errors import Unreadable
from subagents_nb.store.clock import utc_now
from subagents_nb.store.layout import RunPaths
from subagents_nb.store.runs.reader import read_document
from subagents_nb.store.runs.requests import Mailbox

LATER = "it waits for a free place; this is carried out when it has begun"


@dataclass(frozen=True, slots=True)
class Withdrawn:
    """Why a run shall not begin."""

    reason: EndReason
    message: str
    actor: Actor


def take_requests(paths: RunPaths, heard: set[str]) -> tuple[Withdrawn | None, list[ControlAnswer]]:
    """Take in the requests that are not in `heard`, and add them; return whether the run is over, and the answers.

    The answers are to be written by the caller, after the run's end if there is one. What was promised for later before
    is `too_late` then.
    """
    withdrawn: Withdrawn | None = None
    answers = []
    for request in Mailbox(paths).requests(heard):
        if isinstance(request, tuple):
            request_id, why = request
            answers.append(_answer(paths, request_id, RequestEvent.REFUSE, f"the request can't be understood: {why}"))
            continue
        end = None
        if (why_not := _misfit(paths, request)) is not None:
            event, text = RequestEvent.REFUSE, why_not
        elif (end := _withdrawn(paths, request)) is not None:
            event, text = RequestEvent.ACCEPT, "it had not begun, and now it never will"
        else:
            event, text = RequestEvent.QUEUE, LATER
        withdrawn = withdrawn or end
        answers.append(_answer(paths, request.request_id, event, text))
    return withdrawn, answers if withdrawn is None else [too_late(answer) for answer in answers]


def too_late(answer: ControlAnswer) -> ControlAnswer:
    """Return what is said in place of a promise that can't be kept: the run never begins. Other answers stand."""
    if answer.outcome is not RequestState.QUEUED:
        return answer
    return answer.to(RequestEvent.MISS, text="the run was ended before it began", answered_at=utc_now())


def _withdrawn(paths: RunPaths, request: ControlRequest) -> Withdrawn | None:
    because = f": {request.reason}" if request.reason else ""
    again = f'Launch it with subagents_nb.attach("{paths.root.name}").launch_again().'
    by: Actor = "parent" if request.asked_by == PARENT else "person"
    match request.verb:
        case "stop" if not _is_about_a_step(paths, request):
            return Withdrawn("stopped", f"Stopped before it began{because}.", by)
        case "interrupt":
            # Paused means that there is a session to go on from, and there is none.
            text = f"Interrupted before it began{because}. It has no session to resume. {again}"
            return Withdrawn("interrupted", text, by)
        case "drain":
            return Withdrawn("drained", f"It was asked to start nothing new before it began. {again}", by)
        case _:
            return None


def _misfit(paths: RunPaths, request: ControlRequest) -> str | None:
    """Say why a run that has not begun can never do what is asked. A runner says the same, for it hears it again."""
    if request.verb == "cancel-tool":
        return "no tool call is open, for the run has not begun"
    if request.step is None and request.verb not in ("steer", "append"):
        return None
    plan = _plan(paths)
    if plan is None:
        return None
    if request.verb == "append" and not plan.is_flow:
        return "only a chain can be appended to; this run has one step"
    if request.step is None:
        return "no step is at work yet; say which one is meant" if request.verb == "steer" and plan.is_flow else None
    if all(step.index != request.step for step in plan.steps):
        return f"the run has no steps[{request.step}]"
    if request.verb == "interrupt" and plan.is_flow:
        return "one step can't be paused by itself; interrupt the run, or stop the step"
    return None


def _is_about_a_step(paths: RunPaths, request: ControlRequest) -> bool:
    """Say whether a request means one step of a chain. If the plan can't be read it does: nothing is widened."""
    if request.step is None:
        return False
    plan = _plan(paths)
    return plan is None or plan.is_flow


def _plan(paths: RunPaths) -> LaunchPlan | None:
    try:
        return read_document(paths.plan, LaunchPlan, paths.root.name)
    except Unreadable:
        return None


def _answer(paths: RunPaths, request_id: str, event: RequestEvent, text: str) -> ControlAnswer:
    fields = {"run_id": paths.root.name, "request_id": request_id, "text": text, "answered_at": utc_now()}
    return ControlAnswer.after(RequestState.ASKED, event, **fields)
