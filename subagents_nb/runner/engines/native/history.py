"""Read the session of an earlier run, so that a model can go on from it."""

from __future__ import annotations

from pathlib import Path

from pydantic import ValidationError
from pydantic_ai.messages import ModelMessage, ModelMessagesTypeAdapter, repair_messages

from subagents_nb.domain.runs.events import StepFailed
from subagents_nb.runner.engines.session_file import read_session
from subagents_nb.runner.processes.threads import in_thread


async def read_history(path: Path | None) -> list[ModelMessage] | None:
    """Return the messages of a session, fit to be gone on from; None when there is nothing to go on from.

    A run that was ended in the middle of its tools left calls without an answer, which no provider takes;
    pydantic-ai answers each with a note that it was interrupted.

    Raises:
        StepFailed: the session is missing or can't be read ("setup").
    """
    if path is None:
        return None
    return await in_thread(lambda: _messages(path))


def _messages(path: Path) -> list[ModelMessage]:
    content = read_session(path)
    try:
        return repair_messages(ModelMessagesTypeAdapter.validate_json(content))
    except ValidationError as error:
        raise StepFailed("setup", "The session of the earlier run is damaged, so it can't be gone on from.") from error
