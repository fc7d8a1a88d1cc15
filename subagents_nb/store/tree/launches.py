"""Asks for children and their answers: files in the directory of the run that asks, each created once."""

from __future__ import annotations

import contextlib
import os
import re

from subagents_nb.domain.plans.plan import StepPlan
from subagents_nb.domain.runs.control import AppendedItems
from subagents_nb.domain.tree.asks import ASK_ID, ChildAnswer, ChildAsk
from subagents_nb.errors import Unreadable
from subagents_nb.store.files.codec import encode
from subagents_nb.store.files.disk import DISK, Disk
from subagents_nb.store.layout import RunPaths
from subagents_nb.store.runs.reader import read_document

_ID = re.compile(ASK_ID[:-1] + r"\Z")
_ANSWER = ".answer.json"
OUTSIDE = "p"  # how the ids of asks begin that a process of the run made, not its runner


def is_ask_id(text: str) -> bool:
    """Say whether a text names an ask; nothing else becomes a path."""
    return _ID.match(text) is not None


def put_ask(paths: RunPaths, ask: ChildAsk, *, disk: Disk = DISK) -> None:
    """Leave an ask: whoever delegates.

    Raises:
        OSError: the disk takes it not.
    """
    with contextlib.suppress(FileExistsError):
        disk.make_dir(paths.launches)
    disk.create_once(paths.child_ask(ask.ask_id), encode(ask), durable=False, entry=False)


def read_ask(paths: RunPaths, ask_id: str) -> ChildAsk:
    """Read an ask.

    Raises:
        Unreadable: it can't be read, or is another one than its name says.
    """
    ask = read_document(paths.child_ask(ask_id), ChildAsk, paths.root.name)
    if ask.ask_id != ask_id:
        raise Unreadable(f"its file would have to be called {ask.ask_id}.json", kind="foreign")
    return ask


def put_answer(paths: RunPaths, answer: ChildAnswer, *, disk: Disk = DISK) -> bool:
    """Answer an ask: the supervisor. Return False if it was answered already."""
    return disk.create_once(paths.child_answer(answer.ask_id), encode(answer), durable=False, entry=False)


def read_answer(paths: RunPaths, ask_id: str) -> ChildAnswer | None:
    """Return what became of an ask; None as long as nobody has answered."""
    try:
        return read_document(paths.child_answer(ask_id), ChildAnswer, paths.root.name)
    except Unreadable:
        return None


def outside_asks(paths: RunPaths) -> list[str]:
    """Return the ids of the asks that processes of a run made."""
    try:
        names = os.listdir(paths.launches)
    except OSError:
        return []
    ids = (name.removesuffix(".json") for name in names if name[:1] == OUTSIDE and not name.endswith(_ANSWER))
    return sorted(name for name in ids if is_ask_id(name))


def appended_steps(paths: RunPaths) -> tuple[StepPlan, ...]:
    """Return the steps that were added to a run while it worked; they may delegate as its first ones do."""
    try:
        record = read_document(paths.appended, AppendedItems, paths.root.name)
    except Unreadable:
        return ()
    return record.taken.steps if record.taken is not None else ()


def children_of(paths: RunPaths) -> list[str]:
    """Return the runs that a run started, oldest first; that it never started any takes one look."""
    try:
        names = os.listdir(paths.launches)
    except OSError:
        return []
    asks = (name.removesuffix(_ANSWER) for name in names if name.endswith(_ANSWER))
    answers = (read_answer(paths, ask_id) for ask_id in asks if is_ask_id(ask_id))
    return sorted(answer.child for answer in answers if answer is not None and answer.child is not None)
