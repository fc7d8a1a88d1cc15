"""The person's answer to a project, with what it takes to judge by it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path

from subagents_nb.catalog.trust import home_folder, trusted_by
from subagents_nb.domain.agents.acting import Answer, Trust, Work
from subagents_nb.errors import StoreError
from subagents_nb.store.trust_file import read_answers

# Given the folder of a project and a time: the runs that could write there since.
WorkIn = Callable[[Path, float], Work | None]


def trust_of(root: Path, *, home: Path | None = None, work_in: WorkIn | None = None) -> Trust:
    """Return the answer to the project in a folder. Without `work_in` every change is the person's."""
    top = home_folder(home)
    answer = Answer()
    with contextlib.suppress(StoreError):  # said by whoever shows or changes answers; nothing is allowed by it
        answer = read_answers(top).projects.get(str(root), answer)
    return Trust(
        answer=answer,
        by_folder=trusted_by(root, home=home) is not None,
        work_since=lambda since: work_in(root, since) if work_in is not None else None,
        changed_at=lambda path: _changed_at(root / path),
    )


def _changed_at(path: Path) -> float:
    try:
        return path.stat().st_ctime
    except (OSError, ValueError):
        return 0.0
