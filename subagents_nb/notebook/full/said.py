"""What a run and people said to each other, beside its events: questions with their answers, steering messages."""

from __future__ import annotations

import functools
import re

from subagents_nb.domain.runs.questions import Question, Reply
from subagents_nb.domain.runs.records import RunStatus
from subagents_nb.errors import SubagentsError
from subagents_nb.notebook.page.lines import line
from subagents_nb.store.layout import RunPaths
from subagents_nb.store.runs.reader import read_document
from subagents_nb.store.runs.requests import read_request

_CHOICE = "\n– "
_ID = re.compile(r"[A-Za-z0-9-]{1,80}")


class SaidInRun:
    """Reads a question, an answer, a message when an event names it. What can't be read is said to be so."""

    def __init__(self, paths: RunPaths) -> None:
        self._paths = paths

    def question(self, question_id: str) -> tuple[str, str]:
        """Return a question and what was answered, as lines."""
        text, answer = self.whole_question(question_id)
        return line(text.partition(_CHOICE)[0], 200), line(answer, 160)

    def steer(self, request_id: str) -> str:
        """Return a steering message as a line."""
        return line(self.whole_steer(request_id), 200)

    def whole_question(self, question_id: str) -> tuple[str, str]:
        """Return a question and what was answered; no answer is nothing."""
        if not _ID.fullmatch(question_id):
            return "a question", ""
        run_id, text, answer = self._paths.root.name, "a question that can't be read any more", ""
        try:
            asked = read_document(self._paths.questions / f"{question_id}.json", Question, run_id)
            text = asked.text + "".join(_CHOICE + choice for choice in asked.choices)
            reply = read_document(self._paths.reply(question_id), Reply, run_id)
            answer = "nobody waits for it any more" if reply.closed else f"{reply.answered_by}: {reply.text}"
        except SubagentsError:
            pass
        return text, answer

    def whole_steer(self, request_id: str) -> str:
        """Return a steering message, as it was sent, or as far as the status has it."""
        if not _ID.fullmatch(request_id):
            return ""
        try:
            return read_request(self._paths.control / f"steer-{request_id}.json", self._paths.root.name).text or ""
        except SubagentsError:
            return self._previews.get(request_id, "a message that was not kept")

    @functools.cached_property
    def _previews(self) -> dict[str, str]:
        try:
            status = read_document(self._paths.status, RunStatus, self._paths.root.name)
        except SubagentsError:
            return {}
        return {receipt.request_id: receipt.preview for receipt in status.steering}
