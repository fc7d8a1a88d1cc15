"""A tree of runs as its root shows it: a row for each run below, as it stood when its parent last looked."""

from __future__ import annotations

from collections.abc import Iterable

from subagents_nb.domain.runs.questions import OpenQuestion
from subagents_nb.domain.runs.states import RunState
from subagents_nb.domain.values.base import Value
from subagents_nb.domain.values.ids import is_run_id
from subagents_nb.domain.values.usage import Usage, total


class TreeRow(Value):
    """One run below another one."""

    path: str  # from the root
    run_id: str
    name: str = ""
    agent: str
    label: str = ""  # the first line of its task
    state: RunState = RunState.QUEUED
    usage: Usage = Usage()
    elapsed_s: float = 0.0
    activity: str = ""  # one word of what it does now
    waits: bool = False  # for the person or a rate limit: no deadline counts it
    questions: tuple[OpenQuestion, ...] = ()  # by their ids there
    error: str | None = None

    @property
    def level(self) -> int:
        """Return how many levels below the root it stands."""
        return self.path.count("/") + 1


def changes_of(rows: Iterable[TreeRow]) -> list[tuple[str, RunState, tuple[str, ...]]]:
    """Return of each row what is news when it changes."""
    return [(row.run_id, row.state, tuple(one.question_id for one in row.questions)) for row in rows]


def below(rows: Iterable[TreeRow], path: str) -> list[TreeRow]:
    """Return the rows of the runs below one of them."""
    return [row for row in rows if row.path.startswith(f"{path}/")]


def ids_of_rows(rows: Iterable[TreeRow]) -> list[str]:
    """Return the runs that rows are of; an archive may say anything."""
    return [row.run_id for row in rows if is_run_id(row.run_id)]


def used_by_all(own: Usage, rows: Iterable[TreeRow]) -> Usage:
    """Return what a whole tree used."""
    return total((own, *(row.usage for row in rows)))


def questions_below(rows: Iterable[TreeRow]) -> tuple[OpenQuestion, ...]:
    """Return the open questions of a tree to the person, under the ids by which its root answers them: `PATH/ID`."""
    return tuple(
        one.model_copy(update={"question_id": f"{row.path}/{one.question_id}"})
        for row in rows
        for one in to_person(row.questions)
    )


def to_person(questions: Iterable[OpenQuestion]) -> tuple[OpenQuestion, ...]:
    """Return those that wait for the person, not for the parent of who asks."""
    return tuple(one for one in questions if one.to == "person")


def asker_of(question_id: str) -> str:
    """Return the path of the run below that asks; nothing if it is the root itself."""
    return question_id.rpartition("/")[0]
