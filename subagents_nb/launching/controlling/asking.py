"""Ask something of a live run through files, from any process of its user, and hear its answer."""

from __future__ import annotations

import contextlib
import secrets
import time
from typing import Any

from subagents_nb.domain.policy.permissions import PART_CHARS, lets_through, question_of, read_answer
from subagents_nb.domain.runs.control import ControlAnswer, ControlRequest, Verb
from subagents_nb.domain.runs.postmortem import Verdict
from subagents_nb.domain.runs.questions import Question, Reply, brief
from subagents_nb.domain.runs.snapshot import Snapshot
from subagents_nb.domain.runs.states import QuestionEvent, RequestState, RunEvent, RunState
from subagents_nb.domain.runs.tree_rows import asker_of
from subagents_nb.domain.values.reading import read
from subagents_nb.domain.values.words import one_line
from subagents_nb.errors import RequestError, StoreError, Unreadable
from subagents_nb.launching.controlling.within_run import refuse_runs, refuse_strangers
from subagents_nb.store import FileRuns, RunWriter, StoreHome
from subagents_nb.store.clock import utc_now
from subagents_nb.store.runs.reader import read_document
from subagents_nb.store.runs.requests import Mailbox

RECEIPT_S = 3.0
_POLL_S = 0.02


def request(
    home: StoreHome,
    run_id: str,
    verb: Verb,
    *,
    asked_by: str,
    wait_s: float = RECEIPT_S,
    until_done: bool = True,
    **fields: Any,
) -> ControlAnswer | None:
    """Put one request to a live run and return its answer, or None if it gave none within `wait_s` seconds.

    The request stays in place: a run that is busy carries it out later. Without `until_done`, the answer that it is
    queued is enough.

    Raises:
        RequestError: the request makes no sense, or the run refused it, or this process is of a run and may not.
    """
    refuse_strangers(home, run_id)
    now = utc_now()
    request_id = f"{now.translate(_PLAIN)}-{secrets.token_hex(4)}"
    common = {"run_id": run_id, "request_id": request_id, "asked_at": now, "asked_by": asked_by, "verb": verb}
    if "reason" in fields:
        fields["reason"] = one_line(fields["reason"])
    message, faults = read(ControlRequest, {**common, **fields})
    if message is None:
        raise RequestError(f"That can't be asked of a run: {faults[0].at()}.")
    Mailbox(home.run(run_id)).request(message)
    answer = answer_to(home, run_id, request_id, wait_s=wait_s, until_done=until_done)
    if answer is not None and answer.outcome is RequestState.REFUSED:
        raise RequestError(f"The run refused: {answer.text}.")
    return answer


def too_late(snapshot: Snapshot, verb: str) -> str:
    """Say why nothing can be asked of a run that has ended, and what can be done instead."""
    text = f"Run {snapshot.name} is {snapshot.state} already; there is nothing to {verb}."
    if snapshot.state is RunState.PAUSED:
        return f"{text} Resume it first: run.resume(text) returns the run that goes on."
    if verb == "steer" and snapshot.state is not RunState.STOPPED:
        return f"{text} To say more to its agent, resume it: run.resume(text) returns a run that goes on from there."
    return text


def stop_paused(home: StoreHome, snapshot: Snapshot, *, reason: str, asked_by: str) -> None:
    """Say that a paused run is over for good: nobody carries it out, so this is written down here and now.

    Raises:
        RequestError: somebody stopped it a moment ago, or this process is of a run and may not.
        StoreError: it can't be written.
    """
    refuse_strangers(home, snapshot.run_id)
    because = f": {one_line(reason)}" if reason else ""
    verdict = {
        "run_id": snapshot.run_id,
        "reason": "stopped",
        "actor": "person",
        "message": f"Stopped on request from {asked_by} while it was paused{because}.",
        "tail": snapshot.tail,
        "judged_at": utc_now(),
        "judged_by": "launcher",
        "elapsed_s": snapshot.elapsed_s,
    }
    try:
        first = RunWriter(home.run(snapshot.run_id)).verdict(Verdict.over(RunState.PAUSED, RunEvent.STOP, **verdict))
    except OSError as error:
        raise StoreError(f"Run {snapshot.name} could not be stopped: {error.strerror}.") from error
    if not first:
        raise RequestError(f"Somebody stopped run {snapshot.name} a moment ago.")


_PLAIN = str.maketrans("", "", ":.-")


def answer_to(
    home: StoreHome, run_id: str, request_id: str, *, wait_s: float, until_done: bool = True
) -> ControlAnswer | None:
    """Return what a run answered to one request; with `until_done`, a queued one is waited for until more is known."""
    path = home.run(run_id).answers / f"{request_id}.json"
    deadline = time.monotonic() + wait_s
    answer: ControlAnswer | None = None
    while True:
        with contextlib.suppress(Unreadable):
            answer = read_document(path, ControlAnswer, run_id)
            if answer.outcome is not RequestState.QUEUED or not until_done:
                return answer
        if time.monotonic() >= deadline:
            return answer
        time.sleep(_POLL_S)


def open_questions(home: StoreHome, run_id: str) -> list[Question]:
    """Return the questions to the person that nobody has answered yet, of a live run and then of all below it.

    Those have the way to who asks in front of their ids.
    """
    snapshot = FileRuns(home).snapshot(run_id)
    every = [] if snapshot.ended else [*_waiting(home, run_id), *_below(home, snapshot)]
    return [one for one in every if one.to == "person"]


def _below(home: StoreHome, snapshot: Snapshot) -> list[Question]:
    rows = [row for row in snapshot.tree if not row.state.ended]
    return [
        one.model_copy(update={"question_id": f"{row.path}/{one.question_id}"})
        for row in rows
        for one in _waiting(home, row.run_id)
    ]


def _waiting(home: StoreHome, run_id: str) -> list[Question]:
    paths = home.run(run_id)
    questions = []
    with contextlib.suppress(OSError):
        for path in paths.questions.glob("q*.json"):
            if path.name.endswith(".reply.json") or path.with_suffix(".reply.json").exists():
                continue
            with contextlib.suppress(Unreadable):
                question = read_document(path, Question, run_id)
                if question.is_as_asked and question.question_id == path.stem:
                    questions.append(question)
    return sorted(questions, key=lambda question: question.asked_at)


def reply(home: StoreHome, run_id: str, text: str, *, question: str | None, answered_by: str) -> Question:
    """Answer one question of a run; the only open one if none is named.

    Raises:
        RequestError: the run has ended, there is no such open question, several are open, or somebody was first.
    """
    refuse_runs("an answer is the person's to give")
    if not text.strip():
        raise RequestError("The answer is empty.")
    snapshot = FileRuns(home).snapshot(run_id)
    if snapshot.ended:
        over = f"Run {snapshot.name} is {snapshot.state} already; nobody waits for an answer."
        raise RequestError(f"{over} {_became(home, run_id, question)}".rstrip())
    path, _, own_id = (question or "").rpartition("/")
    if path:
        return _reply_below(home, snapshot, path, text, question=own_id, answered_by=answered_by)
    questions = [*_waiting(home, run_id), *_below(home, snapshot)]
    # What waits for a parent can be answered too, by who names it.
    chosen = [q for q in questions if (q.to == "person" if question is None else q.question_id == question)]
    if not chosen:
        what = f"no open question {question}" if question else "no open question"
        raise RequestError(f"Run {snapshot.name} has {what}. {_became(home, run_id, question)}".rstrip())
    if len(chosen) > 1:
        listed = "\n".join(f"  {q.question_id}{_asker(snapshot, q)}: {one_line(brief(q), 100)}" for q in chosen)
        raise RequestError(f"Several questions are open; name one with question=:\n{listed}")
    (meant,) = chosen
    if meant.permission is not None:
        _check_permission(meant, text, named=question is not None)
    if asker_of(meant.question_id):
        return reply(home, run_id, text, question=meant.question_id, answered_by=answered_by)
    said = {"run_id": run_id, "question_id": meant.question_id, "text": text, "answered_by": answered_by}
    if not Mailbox(home.run(run_id)).reply(Reply.after(QuestionEvent.ANSWER, **said, answered_at=utc_now())):
        raise RequestError(f"You were not the first. {_became(home, run_id, meant.question_id)}".rstrip())
    return meant


def _check_permission(question: Question, text: str, *, named: bool) -> None:
    """Refuse a yes to a call that need not be the one that was seen.

    The only call that waits now may be another one than a moment ago. Its id holds a digest of what is shown of it.
    """
    if named or question.permission is None or not lets_through(read_answer(text)):
        return
    shown = question_of(question.permission, PART_CHARS)
    raise RequestError(
        f"A yes names the call that it is about, with question={question.question_id!r} "
        f"(--question {question.question_id}). This one is open:\n{shown}"
    )


def _reply_below(
    home: StoreHome, snapshot: Snapshot, path: str, text: str, *, question: str, answered_by: str
) -> Question:
    """Answer a question of a run below, by the way to it."""
    row = next((one for one in snapshot.tree if one.path == path), None)
    if row is None:
        raise RequestError(f"Run {snapshot.name} has no run {path} below it.")
    answered = reply(home, row.run_id, text, question=question, answered_by=answered_by)
    return answered.model_copy(update={"question_id": f"{path}/{answered.question_id}"})


def _asker(snapshot: Snapshot, question: Question) -> str:
    if asker_of(question.question_id):
        return ""
    return f" (steps[{question.step}])" if snapshot.stages else ""


def _became(home: StoreHome, run_id: str, question_id: str | None) -> str:
    """Say what became of a question, or of the last one if none is named; nothing if nobody can tell."""
    replies = []
    with contextlib.suppress(OSError):
        for path in home.run(run_id).questions.glob("q*.reply.json"):
            with contextlib.suppress(Unreadable):
                replies.append(read_document(path, Reply, run_id))
    answers = [reply for reply in replies if question_id in (None, reply.question_id)]
    if not answers:
        return ""
    last = max(answers, key=lambda reply: reply.answered_at)
    if last.closed:
        return f"{last.question_id} is closed: whoever asked it was ended."
    return f"{last.question_id} was answered already, from {one_line(last.answered_by, 60)}."
