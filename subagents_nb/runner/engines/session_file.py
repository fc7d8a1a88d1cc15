"""The history file of a step: replaced whole, readable by its owner only."""

from __future__ import annotations

import json
from pathlib import Path

from subagents_nb.domain.runs.events import StepFailed
from subagents_nb.domain.values.characters import sayable
from subagents_nb.errors import Unreadable
from subagents_nb.store.files.disk import DISK

SESSION_FILE = "session.json"


def save_session(step_dir: Path, content: bytes) -> None:
    """Replace the step's history file. A reader sees the old or the new one, never a part.

    Raises:
        OSError: the file could not be written; the old one stands.
    """
    DISK.replace(step_dir / SESSION_FILE, content, durable=False)


def start_session(step_dir: Path, task: str, *, history: Path | None) -> None:
    """Leave the task, after what was said before, as the session of a step that was ended before it had one.

    Raises:
        OSError: the file could not be written.
        StepFailed: the session before can't be read ("setup").
    """
    earlier: list[object] = json.loads(read_session(history)) if history is not None else []
    request = {"kind": "request", "parts": [{"part_kind": "user-prompt", "content": sayable(task)}]}
    DISK.create_once(step_dir / SESSION_FILE, json.dumps([*earlier, request]).encode())


def read_session(path: Path) -> bytes:
    """Return the history that an earlier run left.

    Raises:
        StepFailed: there is none, or it can't be read ("setup").
    """
    try:
        with DISK.open_reading(path) as file:  # never through a link
            return file.read()
    except Unreadable as error:
        if error.kind == "missing":
            raise StepFailed("setup", "The earlier run left no session to go on from.") from error
        raise StepFailed("setup", f"The session of the earlier run can't be read: {error}.") from error
    except OSError as error:
        why = error.strerror or type(error).__name__
        raise StepFailed("setup", f"The session of the earlier run can't be read: {why}.") from error
