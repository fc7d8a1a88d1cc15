"""What can be asked of a run that exists: stop, interrupt, steer, retune, answer, resume. All go through files."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Self

from subagents_nb.catalog import load_settings
from subagents_nb.domain.agents.models import PROVIDER_NAMES
from subagents_nb.domain.plans.plan import Origin
from subagents_nb.domain.runs.control import ControlAnswer, Retune, Verb
from subagents_nb.domain.runs.questions import Question
from subagents_nb.domain.runs.snapshot import Snapshot
from subagents_nb.domain.runs.states import RunState
from subagents_nb.domain.values.given import parse_amount
from subagents_nb.domain.values.reading import read
from subagents_nb.domain.values.words import parse_duration
from subagents_nb.errors import RequestError
from subagents_nb.launching.controlling import asking
from subagents_nb.launching.controlling.within_run import refuse_runs
from subagents_nb.launching.gathering.output_types import OutputType
from subagents_nb.launching.starting import revive
from subagents_nb.planning.steps.policy_plan import above_policy
from subagents_nb.store import FileRuns, StoreHome

_PYTHON = "python"


class Controls:
    """The verbs of a run's handle. `asked_by` names the surface for the record; it is never a user or a host."""

    id: str
    _home: StoreHome
    _output_type: OutputType | None

    def __init__(self, home: StoreHome, run_id: str, *, output_type: OutputType | None = None) -> None:
        self.id = run_id
        self._home = home
        self._output_type = output_type

    def stop(self, reason: str = "", *, step: int | None = None, asked_by: str = _PYTHON) -> bool:
        """Ask the run, or one step of a chain alone, to stop; return at once whether there was anything to stop.

        It takes effect within a second, whatever the model does.

        A stopped run is over for good, one that was paused too; to go on later, interrupt it instead.

        Raises:
            RequestError: there is no such step.
        """
        snapshot = self._current()
        if snapshot.ended and snapshot.state is not RunState.PAUSED:
            return False
        if step == 0 and snapshot.head is not None and not snapshot.stages:
            step = None  # the only step of a run is the run
        if snapshot.state is RunState.PAUSED and step is None:
            asking.stop_paused(self._home, snapshot, reason=reason, asked_by=asked_by)
        else:
            self._ask("stop", asked_by=asked_by, wait_s=0.0, reason=reason, step=step)
        return True

    def interrupt(self, reason: str = "", *, asked_by: str = _PYTHON) -> None:
        """Ask the run to pause: its work ends now, its session is kept, and `resume` goes on from it.

        A run that still waits for a place has no session: it is over then, and `launch_again` starts it anew.

        Raises:
            RequestError: it has ended already.
        """
        self._ask("interrupt", asked_by=asked_by, wait_s=0.0, reason=reason)

    def steer(
        self, text: str, *, follow_up: bool = False, step: int | None = None, asked_by: str = _PYTHON
    ) -> ControlAnswer | None:
        """Say something to the agent while it works: before its next request, or as a follow-up when its turn is over.

        Waits up to three seconds for the receipt. Its outcome is `delivered` only once the model was given the text;
        `queued` or None: it waits for that, or for the run to begin; `too-late`: the run ended first. In a chain,
        `step` says who is meant where several are at work.

        Raises:
            RequestError: the run has ended, or the text is empty or too long.
        """
        return self._ask("steer", asked_by=asked_by, text=text, mode="follow-up" if follow_up else "steer", step=step)

    def drain(self, *, asked_by: str = _PYTHON) -> ControlAnswer | None:
        """Let finish what runs and start nothing new; of a run that waits for a place, that is everything: it is over.

        Waits up to three seconds for the receipt: `accepted`, or `too-late` if the run is ending already. None: it is
        busy and hears of it later.

        Raises:
            RequestError: it has ended already.
        """
        return self._ask("drain", asked_by=asked_by)

    def retune(
        self,
        *,
        timeout: float | str | None = None,
        max_requests: int | None = None,
        tool_timeout: float | str | None = None,
        concurrency: int | None = None,
        tokens: float | str | None = None,
        cost_usd: float | str | None = None,
        usage_budget: float | str | None = None,
        asked_by: str = _PYTHON,
    ) -> ControlAnswer | None:
        """Change the limits of the live run; the change is recorded beside its contract, with who and when.

        `usage_budget` is an amount of tokens or of money, as `launch` takes it.

        Waits up to three seconds for the receipt: `accepted`; `queued` if the run waits for a place and changes them
        once it has begun; `too-late` if it is ending already. None: it is busy and hears of it later.

        Raises:
            RequestError: it has ended, or a limit makes no sense, is not allowed, or lies behind the run already.
        """
        refuse_runs("a new limit is the person's to give")
        try:
            if usage_budget is not None:
                tokens, cost_usd = _of_budget(usage_budget, tokens, cost_usd)
            changes = {
                "timeout_s": None if timeout is None else parse_duration(timeout),
                "max_requests": max_requests,
                "tool_timeout_s": None if tool_timeout is None else parse_duration(tool_timeout),
                "concurrency": concurrency,
                "tokens": _amount(tokens, "tokens"),
                "cost_usd": _amount(cost_usd, "usd"),
            }
        except (ValueError, TypeError) as error:
            raise RequestError(f"{error}.") from error
        change, faults = read(Retune, changes)
        if change is None:
            raise RequestError(f"{'; '.join(fault.at() for fault in faults)}.")
        plan = FileRuns(self._home).snapshot(self.id, whole=True).plan  # a status alone has none
        if plan is not None and (wrong := list(above_policy(change, plan))):
            raise RequestError(f"{'; '.join(wrong)}.")
        return self._ask("retune", asked_by=asked_by, retune=change)

    def cancel_tool(self, call_id: str, *, asked_by: str = _PYTHON) -> None:
        """End one open tool call; the agent is told and goes on.

        Raises:
            RequestError: no such call is open.
        """
        self._ask("cancel-tool", asked_by=asked_by, call_id=call_id)

    @property
    def questions(self) -> list[Question]:
        """Return the questions that wait for the person."""
        return asking.open_questions(self._home, self.id)

    def answer(self, text: str, *, question: str | None = None, asked_by: str = _PYTHON) -> Question:
        """Answer a question of the run; the only open one if none is named. Returns the question.

        Raises:
            RequestError: the run has ended, there is none, there are several, or somebody was first.
        """
        return asking.reply(self._home, self.id, text, question=question, answered_by=asked_by)

    def resume(
        self,
        text: str,
        *,
        step: int | None = None,
        name: str | None = None,
        timeout: float | str | None = None,
        max_requests: int | None = None,
        usage_budget: Any = None,
        origin: Origin | None = None,
    ) -> Self:
        """Start a new run that goes on from this one with `text`, and return its handle.

        A chain goes on as a whole: what is done stands, steps that were at work go on from their sessions and are told
        the text, the others follow. With `step`, that one step is resumed from its session, as a run of its own.

        Agent, model, tools and schema are this run's; limits are what is left of its own, retuned ones too, unless new
        ones are given. `usage_budget` is one as `launch` takes it, or False for none.

        Raises:
            LaunchRefused: with every reason; a live run is steered instead, a stopped one is over.
            LaunchError: another run holds the session, or the process did not get to work.
        """
        options = {name: value for name, value in locals().items() if name != "self"}
        return self._next(revive.resume(self._home, self.id, **options, limit=live_limit()), step)

    def launch_again(self, *, origin: Origin | None = None) -> Self:
        """Start a new run of the very same plan, whatever became of this one, and return its handle.

        It has the name that this one was given; a generated name is made anew.
        """
        return self._next(revive.launch_again(self._home, self.id, limit=live_limit(), origin=origin))

    def _next(self, run_id: str, step: int | None = None) -> Self:
        """Return the handle of a run that follows this one, with the types of its outputs, or of one step's."""
        return type(self)(self._home, run_id, output_type=self._output_type if not step else None)

    def _ask(
        self, verb: Verb, *, asked_by: str, wait_s: float = asking.RECEIPT_S, **fields: object
    ) -> ControlAnswer | None:
        snapshot = self._current()
        if snapshot.ended:
            raise RequestError(asking.too_late(snapshot, verb))
        until_done = not snapshot.waits_for_slot  # that may take hours
        return asking.request(
            self._home, self.id, verb, asked_by=asked_by, wait_s=wait_s, until_done=until_done, **fields
        )

    def _current(self) -> Snapshot:
        return FileRuns(self._home).snapshot(self.id)


def _amount(given: float | str | None, unit: str) -> float | None:
    if not isinstance(given, str):
        return given
    amount, named = parse_amount(given)
    if named not in ("", unit):
        raise ValueError(f"{given!r} is an amount of {'money' if named == 'usd' else named}")
    return amount


def _of_budget(given: float | str, tokens: Any, cost_usd: Any) -> tuple[Any, Any]:
    """Return the amounts of tokens and of money that a budget of one amount comes to, beside those given."""
    _, unit = parse_amount(given) if isinstance(given, str) else (given, "")
    if (cost_usd if unit == "usd" else tokens) is not None:
        raise ValueError(f"usage_budget and {'cost_usd' if unit == 'usd' else 'tokens'} say the same; give one of them")
    return (tokens, given) if unit == "usd" else (given, cost_usd)


def live_limit() -> int:
    """Return how many runs may be live at once, by the settings.

    Raises:
        SettingsProblem: they can't be used.
    """
    return load_settings(Path.cwd(), environ=os.environ, reserved=PROVIDER_NAMES).max_live_runs
