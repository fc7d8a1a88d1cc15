"""A child as its parent sees it: how it stands, the rows of it and of all below, and what it came to."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from dataclasses import dataclass, field

from subagents_nb.domain.agents.agent import REPLY
from subagents_nb.domain.runs.questions import OpenQuestion
from subagents_nb.domain.runs.records import RunStatus
from subagents_nb.domain.runs.snapshot import Snapshot
from subagents_nb.domain.runs.states import RunState
from subagents_nb.domain.runs.tree_rows import TreeRow
from subagents_nb.domain.tree.child_rows import rows_of
from subagents_nb.domain.values.words import one_line
from subagents_nb.errors import Unreadable
from subagents_nb.plain_text import shortened
from subagents_nb.store.files.disk import DISK
from subagents_nb.store.layout import RunPaths

_ANSWER_CHARS = 50_000
_ERROR_CHARS = 2000


@dataclass(eq=False, slots=True)
class Child:
    """One run that this one delegated to."""

    run_id: str
    ask_id: str
    path: str  # from the root
    agent: str
    asked_at: str = ""
    snapshot: Snapshot | None = None
    looked: float = 0.0  # when, by the monotonic clock
    asked_to: list[str] = field(default_factory=list)  # what it was asked for in its parent's name
    told: str = ""  # the last of its questions that its parent was told
    news: asyncio.Event = field(default_factory=asyncio.Event)  # it is over, or asks its parent
    over: asyncio.Event = field(default_factory=asyncio.Event)
    folder: str | None = None  # where it works, from the run's directory; None: what it reads there is not looked at
    accounted: bool = False  # what it read was taken in

    @property
    def turn(self) -> tuple[str, int, str]:
        """Return what it is sorted by: children are shown in the order in which they were asked for."""
        return self.asked_at, len(self.ask_id), self.ask_id

    @property
    def ended(self) -> bool:
        """Whether it has its last word."""
        return self.snapshot is not None and self.snapshot.ended

    @property
    def waits(self) -> bool:
        """Whether it waits for the person or for a rate limit, it and all below; not if it waits for its parent."""
        status = self._status
        return status is not None and status.waits and all(one.to == "person" for one in status.questions)

    @property
    def asks(self) -> OpenQuestion | None:
        """Return what it asks its parent, if that was not told yet."""
        questions = self._status.questions if self._status is not None else ()
        return next((one for one in questions if one.to == "parent" and one.question_id != self.told), None)

    @property
    def _status(self) -> RunStatus | None:
        return self.snapshot.status if self.snapshot is not None and not self.snapshot.ended else None

    async def speaks(self) -> OpenQuestion | None:
        """Wait until it is over or asks its parent something; return that."""
        while not self.ended and self.asks is None:
            self.news.clear()
            await self.news.wait()
        return None if self.ended else self.asks

    def rows(self) -> Iterator[TreeRow]:
        """Yield how it stands, and all below it."""
        return rows_of(self.snapshot, self.run_id, self.path, self.agent)


def asking(child: Child, question: OpenQuestion) -> str:
    """Return what the model is told of a question to it."""
    own = child.path.rpartition("/")[2]
    likely = f"\nLikely answers: {' | '.join(question.choices)}" if question.choices else ""
    return (
        f"{own} asks you, and waits for your answer:\n{question.text}{likely}\n\n"
        f"Answer with {REPLY}(child={own!r}, text=...), which then returns what it comes to. What you can't decide, "
        f"pass on to the person: {REPLY}(child={own!r}, to_person=True). If you end without either, it is stopped."
    )


def told(child: Child, paths: RunPaths) -> tuple[str, bool]:
    """Return what the model is told of a child that has ended, and whether that is its answer."""
    seen = child.snapshot
    if seen is not None and seen.state in (RunState.COMPLETE, RunState.PARTIAL):
        answer = seen.answer
        if answer is not None and answer.has_value:
            return _cut(json.dumps(answer.value, ensure_ascii=False)), True
        return _cut(_whole(child, paths)), True
    state = seen.state if seen is not None else None
    why = f": {one_line(seen.error, _ERROR_CHARS)}" if seen is not None and seen.error else "."
    text = f"{child.path} ended as {state or 'unreadable'}{why}"
    if seen is not None and seen.tail.strip():
        text += f"\nThe last that it wrote:\n{shortened(seen.tail.strip(), _ERROR_CHARS)}"
    return text, False


def _whole(child: Child, paths: RunPaths) -> str:
    """Return the whole answer, where the result holds only its beginning."""
    seen = child.snapshot
    result = seen.result if seen is not None else None
    step = result.steps[0] if result is not None and result.steps else None
    if step is not None and step.text_file is not None:
        try:
            return DISK.read(paths.root / step.text_file).decode("utf-8", "replace")
        except Unreadable:
            pass
    return seen.text if seen is not None else ""


def _cut(text: str) -> str:
    if len(text) <= _ANSWER_CHARS:
        return text
    return f"{text[:_ANSWER_CHARS]}\n[... cut here: the answer has {len(text):,} characters]"
