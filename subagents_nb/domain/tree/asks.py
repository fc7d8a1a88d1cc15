"""What a run asks for when it delegates, and what it is told. A file each, in the directory of the run that asks."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from subagents_nb.domain.values.base import Document

ASK_ID = r"^[a-z0-9-]{1,40}$"
PATH = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,79}(/[A-Za-z0-9][A-Za-z0-9._-]{0,79}){0,15}$"


class ChildAsk(Document):
    """Written once, under `launches/ID.json`: by the runner for its tool, by `launch` in a process of the run."""

    kind: Literal["child-ask"] = "child-ask"
    ask_id: str = Field(pattern=ASK_ID)
    step: int | None = None  # who delegates; None: whichever step may
    agent: str
    task: str
    path: str = Field(pattern=PATH)  # of the child, from the root
    cwd: str  # where the step works
    left_s: float | None = None  # of its deadline
    asked_at: str


class ChildAnswer(Document):
    """Written once, under `launches/ID.answer.json`, before the child begins: by the supervisor that has it begin."""

    kind: Literal["child-answer"] = "child-answer"
    ask_id: str
    child: str | None = None  # its id; None: there is none
    refused: str = ""  # why not
    answered_at: str
