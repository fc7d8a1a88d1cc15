"""Why a run is ended before its work was done; the first cause wins."""

from __future__ import annotations

import signal
from dataclasses import dataclass

from subagents_nb.domain.runs.control import PARENT, ControlRequest
from subagents_nb.domain.runs.events import ASKS_MODEL, LOADS_MODEL
from subagents_nb.domain.runs.records import Actor, EndReason
from subagents_nb.domain.runs.states import RunEvent
from subagents_nb.domain.values.words import duration

_STATES_OF_MIND = ("thinking", "answering", ASKS_MODEL, LOADS_MODEL)


@dataclass(frozen=True, slots=True)
class Cause:
    """The event that ends a run or a step, why, by whom, and how that is said."""

    event: RunEvent
    reason: EndReason
    actor: Actor
    message: str


def stopped_by(request: ControlRequest, *, step: bool = False) -> Cause:
    """Return the cause that a stop request makes: of the run, or of one step."""
    what = "The step was stopped" if step else "Stopped"
    return Cause(RunEvent.STOP, "stopped", _asker(request), f"{what} on request{_from(request)}.")


def interrupted_by(request: ControlRequest) -> Cause:
    """Return the cause that an interrupt makes: the session is kept and can be resumed."""
    text = f"Interrupted on request{_from(request)}. Its session is kept: resume it to go on."
    return Cause(RunEvent.PAUSE, "interrupted", _asker(request), text)


def past_deadline(limit_s: float, activity: str, *, step: bool = False) -> Cause:
    """Return the cause that a passed deadline makes: the run's, or one step's own."""
    doing = ""
    if activity in _STATES_OF_MIND:
        doing = f" while it was {activity}"
    elif activity:
        doing = f" while the tool {activity} was at work"
    what, how = ("step", "with its timeout") if step else ("run", "with --timeout")
    text = f"The {what} passed its deadline of {duration(limit_s)}{doing}. Give it more {how}."
    return Cause(RunEvent.FAIL, "timeout", "deadline", text)


def past_disk_cap(used: int) -> Cause:
    """Return the cause that too large a run directory makes."""
    text = f"The run's own files grew beyond what a run may keep ({used / 1e6:.0f} MB). What it wrote so far is there."
    return Cause(RunEvent.FAIL, "output-limit", "budget", text)


def signalled(number: int) -> Cause:
    """Return the cause that a signal makes which asks the process to end."""
    return Cause(
        RunEvent.STOP, "signal", "outside", f"A signal from outside ({signal.Signals(number).name}) ended the run."
    )


GONE = Cause(RunEvent.STOP, "vanished", "outside", "The run's directory was deleted while it worked.")


FROM_WITHIN = Cause(RunEvent.FAIL, "internal", "self", "The work was cancelled from within.")


def _asker(request: ControlRequest) -> Actor:
    return "parent" if request.asked_by == PARENT else "person"


def _from(request: ControlRequest) -> str:
    who = f" from {request.asked_by}" if request.asked_by else ""
    return f"{who}: {request.reason}" if request.reason else who
