"""What the page may ask of its run: to stop, to hear something, to take an answer. A closed set, each part checked."""

from __future__ import annotations

import contextvars
import json
import logging
import re
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from subagents_nb.domain.runs.records import StepResult
from subagents_nb.errors import RequestError, SubagentsError
from subagents_nb.launching import Run
from subagents_nb.notebook.cards.graph_feed import detail
from subagents_nb.notebook.cards.receipts import steered

MAX_CHARS = 8_000
_AT_ONCE = 4
_LAST_STEP = 99_999
PAGE = "the notebook page"
_IDENT = re.compile(r"[a-z0-9]{1,40}")
_REMEMBERED = 64
_QUESTION = re.compile(r"(?:[A-Za-z0-9][A-Za-z0-9._-]{0,79}/){0,16}[a-z0-9-]{1,80}")
_log = logging.getLogger(__name__)

Reply = Callable[[dict[str, Any]], None]


@dataclass(frozen=True, slots=True)
class PageRequest:
    """Something the page asks for, checked."""

    kind: Literal["stop", "steer", "answer", "open", "close", "card"]
    text: str = ""
    question: str = ""
    step: int | None = None  # one step of a chain; None: the run
    id: str = ""  # of the page's choice: what comes a second time is carried out once

    def ack(self, text: str, *, ok: bool = True, more: bool = False) -> dict[str, Any]:
        """Return what the page is told; `more` if another word follows."""
        message = {"kind": "ack", "to": self.kind, "question": self.question, "text": text, "ok": ok, "more": more}
        message |= {"id": self.id} if self.id else {}
        return message if self.step is None else {**message, "step": self.step}


def understood(content: object) -> PageRequest | None:
    """Return what a message from the page asks for; None if it is none that the page may send."""
    if not isinstance(content, dict):
        return None
    kind, step, request_id = content.get("kind"), content.get("step"), content.get("id")
    ident = request_id if isinstance(request_id, str) and _IDENT.fullmatch(request_id) else ""
    if step is not None and not (type(step) is int and 0 <= step <= _LAST_STEP):
        return None  # what is meant for one step must never be widened to the run
    if kind == "card":
        return PageRequest("card")
    if kind == "stop":
        return PageRequest("stop", step=step, id=ident)
    if kind == "close" or (kind == "open" and step is not None):
        return PageRequest(kind, step=step)
    text, question = content.get("text"), content.get("question")
    if not isinstance(text, str) or not text.strip() or len(text) > MAX_CHARS:
        return None
    if kind == "steer":
        return PageRequest("steer", text, step=step, id=ident)
    if kind == "answer" and isinstance(question, str) and _QUESTION.fullmatch(question):
        return PageRequest("answer", text, question, id=ident)
    return None


class PageRequests:
    """Carries out the requests of one view, off the kernel's own threads, since a receipt takes seconds to come."""

    def __init__(self, run: Run, card: Callable[[], dict[str, str]] = dict, *, asked_by: str = PAGE) -> None:
        self._run, self._asked_by = run, asked_by
        self._card = card
        self.on_watch: Callable[[int | None, dict[str, Any] | None], None] = lambda _step, _told: None
        self._places = threading.BoundedSemaphore(_AT_ONCE)
        self._guard = threading.Lock()
        self._taken: dict[str, dict[str, Any] | None] = {}  # by their ids, with what was said

    def on_message(self, content: object, reply: Reply) -> None:
        """Take a message from the page; `reply` is called with what the page shall show, from another thread."""
        asked = understood(content)
        if asked is None:
            return
        if asked.id:
            with self._guard:
                again, earlier_answer = asked.id in self._taken, self._taken.get(asked.id)
                self._taken.setdefault(asked.id, None)
                while len(self._taken) > _REMEMBERED:
                    self._taken.pop(next(iter(self._taken)))
            if again:  # the page heard nothing of the first
                if earlier_answer is not None:
                    reply(earlier_answer)
                return
        if not self._places.acquire(blocking=False):
            with self._guard:
                self._taken.pop(asked.id, None)
            reply(asked.ack("Too many requests at once; try again.", ok=False))
            return
        # An empty context: a thread with that of a cell prints into it for ever, ipython/ipykernel#1491.
        work = contextvars.Context().run
        threading.Thread(target=work, args=(self._work, asked, reply), name="subagents-nb-page", daemon=True).start()

    def _work(self, asked: PageRequest, reply: Reply) -> None:
        try:
            answer = self._carry_out(asked, reply)
        except SubagentsError as error:
            answer = asked.ack(str(error), ok=False)
        except Exception:  # noqa: BLE001 - the page must not wait for an answer that never comes
            _log.exception("a request of the page failed")
            answer = asked.ack("That failed inside subagents_nb; the kernel's log has the reason.", ok=False)
        finally:
            self._places.release()
        with self._guard:
            if asked.id in self._taken:
                self._taken[asked.id] = answer
        reply(answer)

    def _carry_out(self, asked: PageRequest, reply: Reply) -> dict[str, Any]:
        if asked.kind == "close":
            self.on_watch(None, None)
            return asked.ack("")
        if asked.kind == "card":
            return {"kind": "card", "data": self._card()} if self._run.status.ended else asked.ack("")
        if asked.kind == "open":
            return self._open(asked.step or 0)
        if asked.kind == "stop":
            asked_now = self._run.stop(step=asked.step, asked_by=self._asked_by)
            return asked.ack("Stop requested." if asked_now else f"It is {self._run.state} already.")
        if asked.kind == "answer":
            self._run.answer(asked.text, question=asked.question, asked_by=self._asked_by)
            return asked.ack("Answered.")
        reply(asked.ack("Sent; waiting for the receipt.", more=True))
        receipt = self._run.steer(asked.text, step=asked.step, asked_by=self._asked_by)
        text = steered(self._run.status, receipt)
        return asked.ack(text.text, ok=text.outcome != "too-late")

    def _open(self, number: int) -> dict[str, Any]:
        """Return what the panel of a step shows. One that has not ended is told about from now on."""
        step = self._run.steps[number] if number < len(self._run.steps) else None
        if step is None:
            raise RequestError(f"{self._run.name} has no steps[{number}].")
        status = step.status
        if isinstance(status, StepResult):
            self.on_watch(None, None)
            value = json.dumps(status.value, indent=2, ensure_ascii=False) if status.has_value else None
            return detail(status, step.text if value is None else value)
        message = detail(status)
        self.on_watch(number, message)
        return message
