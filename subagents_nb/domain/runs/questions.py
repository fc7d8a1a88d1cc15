"""Questions of a run to the person, or to its parent first. Each is a file that outlives the kernel, answered once."""

from __future__ import annotations

from typing import Any, Literal, Self

from pydantic import Field

from subagents_nb.domain.policy.permissions import PermissionRequest, in_short
from subagents_nb.domain.runs.states import QUESTION, QuestionEvent, QuestionState
from subagents_nb.domain.values.base import Document, Value, sha256_text, stable_json
from subagents_nb.domain.values.words import one_line

Asked = Literal["person", "parent"]
_DIGEST_CHARS = 10


class Question(Document):
    """Written by the runner, once, under `questions/ID.json`."""

    kind: Literal["question"] = "question"
    question_id: str = Field(pattern=r"^[a-z0-9-]{1,80}$")
    step: int = 0  # which one asks
    call_id: str = ""
    text: str
    choices: tuple[str, ...] = ()
    asked_at: str
    permission: PermissionRequest | None = None  # it is about this call: whether it may be made
    to: Asked = "person"  # parent: the agent that delegated this run; who passes it on has it put to the person

    @property
    def is_as_asked(self) -> bool:
        """Whether it still is what its id was made of; one without a digest in its id is taken at its word."""
        number, _, digest = self.question_id.partition("-")
        own = number if self.permission is None else permission_id(number, self.run_id, self.permission)
        return not digest or own == self.question_id

    def __repr__(self) -> str:
        choices = f" ({one_line(', '.join(self.choices), 120)})" if self.choices else ""
        return f"<Question {self.question_id}: {one_line(brief(self), 200)}{choices}>"


def permission_id(number: str, run_id: str, asked: PermissionRequest) -> str:
    """Return the id of a question about a call: whoever answers by it answers what was shown of this very call."""
    shown = stable_json([run_id, asked.model_dump(mode="json")])
    return f"{number}-{sha256_text(shown)[:_DIGEST_CHARS]}"


class Reply(Document):
    """Written by the first who answers, under `questions/ID.reply.json`; by the runner when nobody waits any more."""

    kind: Literal["reply"] = "reply"
    question_id: str
    text: str
    answered_at: str
    answered_by: str  # the widget, Python, a terminal: a surface, never a user or host name
    closed: bool = False  # no answer: whoever asked was ended
    passed: bool = False  # no answer: the parent has it put to the person

    @classmethod
    def after(cls, event: QuestionEvent, **said: Any) -> Self:
        """Return what an event writes beside an open question; the disk refuses it where there is one already."""
        state = QUESTION.follow(QuestionState.OPEN, event)
        return cls.model_validate({**said, "closed": state is QuestionState.CLOSED})


class OpenQuestion(Value):
    """A question that waits, as the status shows it."""

    question_id: str
    step: int = 0
    text: str
    choices: tuple[str, ...] = ()
    asked_at: str
    permission: PermissionRequest | None = None  # as much of the call as a status holds; its file has the whole
    to: Asked = "person"


def brief(question: Question | OpenQuestion) -> str:
    """Return what is asked, for where there is room for a line; the whole of a call is shown elsewhere."""
    return question.text if question.permission is None else in_short(question.permission)


class Answered(Value):
    """What became of a question, as the status shows it."""

    question_id: str
    step: int = 0
    by: str = ""  # the surface, or "its parent"; empty: nobody, and whoever asked was ended
    at: str
