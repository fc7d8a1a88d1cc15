"""What is asked of a run, what a run asks, and the answers to both, as files.

A request that is not what the name of its file says is refused, never widened.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from subagents_nb.domain.runs.control import ControlAnswer, ControlRequest
from subagents_nb.domain.runs.questions import Question, Reply
from subagents_nb.errors import Unreadable
from subagents_nb.store.files.codec import encode
from subagents_nb.store.files.disk import DISK, Disk
from subagents_nb.store.files.inside import names_in
from subagents_nb.store.layout import RunPaths
from subagents_nb.store.runs.reader import read_document


def read_request(path: Path, run_id: str, *, disk: Disk = DISK) -> ControlRequest:
    """Read the request in `control/VERB-ID.json`.

    Raises:
        Unreadable: it can't be read, or holds another verb or id than its name says.
    """
    request = read_document(path, ControlRequest, run_id, disk=disk)
    if path.name != request_name(request):
        raise Unreadable(f"its file would have to be called {request_name(request)}", kind="foreign")
    return request


def request_name(request: ControlRequest) -> str:
    """Return the name of a request's file."""
    return f"{request.verb}-{request.request_id}.json"


def stops_of(paths: RunPaths) -> list[ControlRequest]:
    """Return the readable requests that the whole run be stopped, oldest first; a stop of one step is none."""
    try:
        names = sorted(name for name in names_in(paths.control) if name.startswith("stop-"))
    except OSError:
        return []
    stops = []
    for name in names:
        with contextlib.suppress(Unreadable):
            request = read_request(paths.control / name, paths.root.name)
            if request.verb == "stop" and request.step is None:
                stops.append(request)
    return stops


def is_heard(paths: RunPaths, request: ControlRequest) -> bool:
    """Say whether the runner knows of a request: it was answered, or marked where no answer could be stored."""
    if (paths.answers / f"{request.request_id}.json").exists():
        return True
    with contextlib.suppress(OSError):
        return (paths.control / request_name(request)).lstat().st_mtime_ns == 0
    return False


class Mailbox:
    """Where any process of the user and the runner leave each other requests, questions and answers."""

    def __init__(self, paths: RunPaths, *, disk: Disk = DISK) -> None:
        self._paths = paths
        self._disk = disk

    def request(self, request: ControlRequest) -> None:
        """Ask something of a live run: any process of the user."""
        self._disk.create_once(self._paths.control / request_name(request), encode(request))

    def answer(self, answer: ControlAnswer) -> None:
        """Answer a request, or say what became of one that was queued: the runner."""
        self._disk.replace(self._paths.answers / f"{answer.request_id}.json", encode(answer), durable=True)

    def mark_heard(self, request: ControlRequest) -> None:
        """Mark a request as known that a full disk lets us not answer, so nobody takes us for frozen: the runner.

        Its time is set to zero, which takes no room.
        """
        with contextlib.suppress(OSError, NotImplementedError):  # Windows can not set the time of an open file
            handle = self._disk.open(self._paths.control / request_name(request), os.O_RDONLY)
            try:
                os.utime(handle, ns=(0, 0))
            finally:
                os.close(handle)

    def question(self, question: Question) -> None:
        """Put a question to the person: the runner."""
        self._disk.create_once(self._paths.questions / f"{question.question_id}.json", encode(question))

    def reply(self, reply: Reply) -> bool:
        """Answer a question: whoever is first. Return False if it was answered already."""
        return self._disk.create_once(self._paths.reply(reply.question_id), encode(reply))

    def requests(self, seen: set[str]) -> Iterator[ControlRequest | tuple[str, str]]:
        """Yield the requests whose files are not in `seen`, oldest first, and add them.

        One that can't be read, or is not what its name says, comes as the id in its name and the reason, to be refused.
        """
        try:
            names = sorted(names_in(self._paths.control))
        except OSError:
            return
        for name in names:
            if name in seen or name.startswith(".") or not name.endswith(".json"):
                continue
            try:
                request = read_request(self._paths.control / name, self._paths.root.name, disk=self._disk)
            except Unreadable as error:
                if error.kind != "busy":
                    seen.add(name)
                    request_id = name.removesuffix(".json")
                    yield request_id.partition("-")[2] or request_id, str(error)
            else:
                seen.add(name)
                yield request
