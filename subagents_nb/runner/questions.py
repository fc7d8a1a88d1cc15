"""Questions to the person: each is a file that outlives kernel and page, answered once, by whoever is first."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable, Sequence

from subagents_nb.domain.plan import LaunchPlan
from subagents_nb.domain.questions import OpenQuestion, Question, Reply
from subagents_nb.domain.words import one_line, plain
from subagents_nb.errors import Unreadable
from subagents_nb.runner.journal import Journal
from subagents_nb.store.clock import utc_now
from subagents_nb.store.reader import read_document
from subagents_nb.store.writer import RunWriter

_POLL_S = 0.1
_TEXT_CHARS = 4000
_CHOICES = 12
_FIRST_RETRY_S, _LAST_RETRY_S = 0.1, 5.0
_PASSING = (errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE)


class Questions:
    """Asks and waits. Several questions may be open at once."""

    def __init__(self, writer: RunWriter, plan: LaunchPlan, journal: Journal, tell: Callable[[str], None]) -> None:
        self._writer = writer
        self._plan = plan
        self._journal = journal
        self._tell = tell  # somebody who is away
        self._open: dict[str, OpenQuestion] = {}
        self._asked = 0

    async def ask(self, text: str, choices: Sequence[str] = (), *, call_id: str = "") -> str:
        """Put a question and return the answer."""
        self._asked += 1
        question = Question(
            run_id=self._plan.run_id,
            question_id=f"q{self._asked}",
            call_id=call_id,
            text=plain(text)[:_TEXT_CHARS],
            choices=tuple(one_line(choice, 200) for choice in choices[:_CHOICES]),
            asked_at=utc_now(),
        )
        await self._store(question)
        shown = question.model_dump(include={"question_id", "text", "choices", "asked_at"})
        self._open[question.question_id] = OpenQuestion.model_validate(shown)
        self._journal.questions(tuple(self._open.values()), "question-asked")
        self._tell(f"asks: {one_line(question.text)}")
        try:
            return await self._reply(question.question_id)
        finally:
            self._open.pop(question.question_id, None)
            self._journal.questions(tuple(self._open.values()), "question-closed")

    async def _store(self, question: Question) -> None:
        """Write the question down; while the disk is full, try again: it must not be lost, nor fail the work."""
        wait = _FIRST_RETRY_S
        try:
            while True:
                try:
                    return self._writer.question(question)
                except OSError as error:
                    if error.errno not in _PASSING:
                        raise
                # The control thread sees it and tells the person.
                self._journal.disk_full = True
                await asyncio.sleep(wait)
                wait = min(wait * 2, _LAST_RETRY_S)
        finally:
            self._journal.disk_full = False

    async def _reply(self, question_id: str) -> str:
        path = self._writer.paths.reply(question_id)
        while True:
            try:
                return read_document(path, Reply, self._plan.run_id).text
            except Unreadable:
                await asyncio.sleep(_POLL_S)
