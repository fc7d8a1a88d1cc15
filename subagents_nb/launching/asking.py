"""Ask something of a live run through files, from any process of its user, and hear its answer."""

from __future__ import annotations

import contextlib
import secrets
import time
from typing import Any

from pydantic import ValidationError

from subagents_nb.domain.control import ControlAnswer, ControlRequest, Verb
from subagents_nb.domain.questions import Question, Reply
from subagents_nb.domain.words import one_line
from subagents_nb.errors import RequestError, Unreadable
from subagents_nb.store import RunWriter, StoreHome
from subagents_nb.store.clock import utc_now
from subagents_nb.store.reader import read_document

RECEIPT_S = 3.0
_POLL_S = 0.02


def request(
    home: StoreHome, run_id: str, verb: Verb, *, asked_by: str, wait_s: float = RECEIPT_S, **fields: Any
) -> ControlAnswer | None:
    """Put one request to a live run and return its answer, or None if it gave none within `wait_s` seconds.

    The request stays in place: a run that is busy carries it out later.

    Raises:
        RequestError: the request makes no sense, or the run refused it.
    """
    now = utc_now()
    request_id = f"{now.translate(_PLAIN)}-{secrets.token_hex(4)}"
    common = {"run_id": run_id, "request_id": request_id, "asked_at": now, "asked_by": asked_by, "verb": verb}
    if "reason" in fields:
        fields["reason"] = one_line(fields["reason"])
    try:
        asked = ControlRequest.model_validate({**common, **fields})
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise RequestError(f"That can't be asked of a run: {first['msg'].removeprefix('Value error, ')}.") from error
    RunWriter(home.run(run_id)).request(asked)
    answer = answer_to(home, run_id, request_id, wait_s=wait_s)
    if answer is not None and answer.outcome == "refused":
        raise RequestError(f"The run refused: {answer.text}.")
    return answer


_PLAIN = str.maketrans("", "", ":.-")


def answer_to(home: StoreHome, run_id: str, request_id: str, *, wait_s: float) -> ControlAnswer | None:
    """Return what a run answered to one request; a queued one is waited for until it is delivered or comes too late."""
    path = home.run(run_id).answers / f"{request_id}.json"
    deadline = time.monotonic() + wait_s
    found: ControlAnswer | None = None
    while True:
        with contextlib.suppress(Unreadable):
            found = read_document(path, ControlAnswer, run_id)
            if found.outcome != "queued":
                return found
        if time.monotonic() >= deadline:
            return found
        time.sleep(_POLL_S)


def open_questions(home: StoreHome, run_id: str) -> list[Question]:
    """Return the questions of a run that nobody has answered yet, oldest first."""
    paths = home.run(run_id)
    found = []
    with contextlib.suppress(OSError):
        for path in paths.questions.glob("q*.json"):
            if path.name.endswith(".reply.json") or path.with_suffix(".reply.json").exists():
                continue
            with contextlib.suppress(Unreadable):
                found.append(read_document(path, Question, run_id))
    return sorted(found, key=lambda question: question.asked_at)


def reply(home: StoreHome, run_id: str, text: str, *, question: str | None, answered_by: str) -> Question:
    """Answer one question of a run; the only open one if none is named.

    Raises:
        RequestError: there is no such open question, several are open, or somebody answered it before.
    """
    if not text.strip():
        raise RequestError("The answer is empty.")
    questions = open_questions(home, run_id)
    chosen = [q for q in questions if question is None or q.question_id == question]
    if not chosen:
        what = f"no open question {question}" if question else "no open question"
        raise RequestError(f"Run {run_id} has {what}; it may have been answered already.")
    if len(chosen) > 1:
        listed = "\n".join(f"  {q.question_id}: {one_line(q.text, 100)}" for q in chosen)
        raise RequestError(f"Several questions are open; name one with question=:\n{listed}")
    made = {"run_id": run_id, "question_id": chosen[0].question_id, "text": text, "answered_at": utc_now()}
    if not RunWriter(home.run(run_id)).reply(Reply.model_validate({**made, "answered_by": answered_by})):
        raise RequestError("Somebody answered this question a moment ago.")
    return chosen[0]
