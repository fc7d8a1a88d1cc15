"""Questions to the person: each is a file that outlives kernel and page, answered once, by whoever is first."""

from __future__ import annotations

import asyncio
import contextlib
import errno
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any

from subagents_nb.domain.plans.plan import LaunchPlan, StepPlan
from subagents_nb.domain.policy.permissions import (
    CHOICES,
    PermissionAnswer,
    PermissionRequest,
    question_of,
    read_answer,
)
from subagents_nb.domain.runs.control import ControlRequest
from subagents_nb.domain.runs.questions import Answered, Asked, OpenQuestion, Question, Reply, permission_id
from subagents_nb.domain.runs.states import QuestionEvent
from subagents_nb.domain.values.words import one_line, plain
from subagents_nb.errors import Unreadable
from subagents_nb.runner.engines.engine import Ask, Permit
from subagents_nb.runner.journal.journal import Journal
from subagents_nb.runner.journal.work_clock import WorkClock
from subagents_nb.store.clock import utc_now
from subagents_nb.store.runs.reader import read_document
from subagents_nb.store.runs.writer import RunWriter

_POLL_S = 0.1
_TEXT_CHARS = 4000
_CHOICES = 12
_KEPT_ANSWERS = 20
_FIRST_RETRY_S, _LAST_RETRY_S = 0.1, 5.0
_PASSING = (errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE)


class Questions:
    """Asks and waits. Several questions may be open at once."""

    def __init__(
        self,
        writer: RunWriter,
        plan: LaunchPlan,
        journal: Journal,
        tell: Callable[[str], None],
        *,
        away: Callable[[], AbstractAsyncContextManager[None]] = contextlib.nullcontext,
    ) -> None:
        self._writer = writer
        self._plan = plan
        self._journal = journal
        self._tell = tell  # somebody who is away
        self._away = away  # what gives the run's place back while its parent, who may need it, is asked
        self._open: dict[str, OpenQuestion] = {}
        self._answers: list[Answered] = []
        self._asked = 0
        self.granted: set[str] = set()  # what the person allowed for the whole run

    def ask_for(self, step: StepPlan, clock: WorkClock) -> Ask:
        """Return what puts the questions of a step; the wait is no work."""

        async def ask(text: str, choices: Sequence[str] = (), *, call_id: str = "") -> str:
            how: dict[str, Any] = {"step": step.index, "call_id": call_id, "parent_s": step.asks_parent_s}
            with clock.waiting():
                return await self.ask(text, choices, **how)

        return ask

    async def ask(
        self,
        text: str,
        choices: Sequence[str] = (),
        *,
        step: int = 0,
        call_id: str = "",
        parent_s: float | None = None,
    ) -> str:
        """Put a question of a step and return the answer.

        A question whose asker goes away is closed, so that nobody answers into the void. One to the agent that
        delegated this run is put to the person when that agent passes it on, or says nothing for so many seconds.
        """
        if parent_s is not None and self._plan.origin.parent is not None:
            async with self._away():
                reply = await self._by_parent(text, choices, step=step, call_id=call_id, seconds=parent_s)
                if reply is None:
                    reply = await self._put(text, choices, step=step, call_id=call_id)
            return reply.text
        reply = await self._put(text, choices, step=step, call_id=call_id)
        return reply.text

    async def _by_parent(
        self, text: str, choices: Sequence[str], *, step: int, call_id: str, seconds: float
    ) -> Reply | None:
        """Return what the parent answers; None if it passes the question on, or says nothing for so long."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                reply = await self._put(text, choices, step=step, call_id=call_id, to="parent")
            return None if reply.passed else reply
        return None

    async def permit(
        self, asked: PermissionRequest, *, step: int = 0, call_id: str = "", seconds: float | None = None
    ) -> PermissionAnswer:
        """Ask whether a call may be made; nobody who answers within so many seconds is a no.

        Who has the run stopped gets no answer: it is being stopped.
        """
        shown = asked.to_show(self._journal.clean)
        try:
            async with asyncio.timeout(seconds):
                reply = await self._put(question_of(shown), CHOICES, step=step, call_id=call_id, permission=shown)
        except TimeoutError:
            return PermissionAnswer(decision="unattended", waited_s=seconds)
        answer = read_answer(reply.text)
        if answer.decision == "stop":
            self._writer.mail.request(_stop(self._plan.run_id, reply))
            await asyncio.Event().wait()
        return answer

    def permit_for(self, step: StepPlan, clock: WorkClock) -> Permit | None:
        """Return what asks for the calls of a step, as long as its policy says and as anybody is there to answer.

        None where nobody is.
        """
        of_plan = step.policy.ask_timeout_s if step.policy is not None else None
        seconds = min((one for one in (of_plan, self._plan.origin.ask_timeout_s) if one is not None), default=None)
        return None if seconds == 0 else StepPermit(self, step.index, clock, seconds)

    async def _put(
        self,
        text: str,
        choices: Sequence[str],
        *,
        step: int,
        call_id: str,
        permission: PermissionRequest | None = None,
        to: Asked = "person",
    ) -> Reply:
        clean = self._journal.clean
        self._asked += 1
        number, run_id = f"q{self._asked}", self._plan.run_id
        question = Question(
            run_id=run_id,
            question_id=number if permission is None else permission_id(number, run_id, permission),
            step=step,
            call_id=call_id,
            text=plain(clean(text))[:_TEXT_CHARS],
            choices=tuple(one_line(clean(choice), 200) for choice in choices[:_CHOICES]),
            asked_at=utc_now(),
            permission=permission,
            to=to,
        )
        await self._store(question)
        shown = dict(question.model_copy(update={"permission": permission.shortened() if permission else None}))
        self._open[question.question_id] = OpenQuestion.model_validate(
            {name: shown[name] for name in OpenQuestion.model_fields}
        )
        self._show("question-asked", question)
        if to == "person":
            self._tell(f"{f'steps[{step}] ' if self._plan.is_flow else ''}asks: {one_line(question.text)}")
        reply: Reply | None = None
        try:
            reply = await self._reply(question.question_id)
            return reply
        finally:
            self._over(question, reply or self._close(question))

    def _over(self, question: Question, reply: Reply | None) -> None:
        by = "" if reply is None or reply.closed else one_line(reply.answered_by, 60)
        answered = Answered(question_id=question.question_id, step=question.step, by=by, at=utc_now())
        self._answers = [*self._answers, answered][-_KEPT_ANSWERS:]
        self._open.pop(question.question_id, None)
        self._show("question-closed", question, by=by or None)

    def _show(self, what: str, question: Question, **fields: str | None) -> None:
        said = {"question": question.question_id, "step": question.step, "open": len(self._open), **fields}
        self._journal.status.milestone(what, said, questions=tuple(self._open.values()), answers=tuple(self._answers))

    def _close(self, question: Question) -> Reply | None:
        """Take the place of an answer that nobody waits for; return the one that came at the last moment, if any."""
        made = {"run_id": question.run_id, "question_id": question.question_id, "text": "", "answered_at": utc_now()}
        with contextlib.suppress(OSError, Unreadable):
            if not self._writer.mail.reply(Reply.after(QuestionEvent.CLOSE, **made, answered_by="runner")):
                return self._read(question.question_id)
        return None

    async def _store(self, question: Question) -> None:
        """Write the question down; while the disk is full, try again: it must not be lost, nor fail the work."""
        wait = _FIRST_RETRY_S
        try:
            while True:
                try:
                    return self._writer.mail.question(question)
                except OSError as error:
                    if error.errno not in _PASSING:
                        raise
                # The control thread sees it and tells the person.
                self._journal.disk_full = True
                await asyncio.sleep(wait)
                wait = min(wait * 2, _LAST_RETRY_S)
        finally:
            self._journal.disk_full = False

    def _read(self, question_id: str) -> Reply:
        return read_document(self._writer.paths.reply(question_id), Reply, self._plan.run_id)

    async def _reply(self, question_id: str) -> Reply:
        while True:
            try:
                return self._read(question_id)
            except Unreadable:
                await asyncio.sleep(_POLL_S)


@dataclass(frozen=True, slots=True)
class StepPermit:
    """Asks for the calls of one step; the wait is no work."""

    questions: Questions
    step: int
    clock: WorkClock
    seconds: float | None

    @property
    def granted(self) -> set[str]:
        """Return what the person allowed for the whole run."""
        return self.questions.granted

    async def __call__(self, asked: PermissionRequest, *, call_id: str = "") -> PermissionAnswer:
        """Return the answer of the person."""
        with self.clock.waiting():
            return await self.questions.permit(asked, step=self.step, call_id=call_id, seconds=self.seconds)


def _stop(run_id: str, reply: Reply) -> ControlRequest:
    """Return the request to stop the run, as if whoever answered had made it."""
    return ControlRequest(
        run_id=run_id,
        request_id=f"stop-{reply.question_id}",
        verb="stop",
        asked_at=reply.answered_at,
        asked_by=reply.answered_by,
        reason="the answer to a permission",
    )
