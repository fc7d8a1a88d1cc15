"""Judgements about a run: one file each below its `scores`, created once by whoever judges."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any

from subagents_nb.domain.plans.experiments import Score
from subagents_nb.errors import StoreError, Unreadable
from subagents_nb.store.files.codec import as_document, encode
from subagents_nb.store.files.disk import DISK
from subagents_nb.store.layout import RunPaths, StoreHome
from subagents_nb.store.runs.raw_reader import read_raw

MAX_SCORES = 10_000  # of one run; more are not read


def write_score(paths: RunPaths, score: Score) -> None:
    """Keep one judgement.

    Raises:
        StoreError: it can't be written, or the run is gone.
    """
    try:
        with contextlib.suppress(FileExistsError):
            DISK.make_dir(paths.scores)
        new = DISK.create_once(paths.scores / f"{score.score_id}.json", encode(score), durable=False, entry=False)
    except OSError as error:
        raise StoreError(f"The score {score.name!r} could not be kept: {error.strerror or error}.") from error
    if not new:
        raise StoreError(f"A score with the id {score.score_id} is there already.")


def read_scores(home: StoreHome, run_id: str) -> list[Score]:
    """Return all judgements about a run that can be read, in no order; a run without any has none."""
    return scores_in(read_raw(home, run_id, ("scores",))["scores"], run_id)


def judged_at(paths: RunPaths) -> int:
    """Return when the last judgement about a run was kept, in nanoseconds; 0 if none was."""
    try:
        return paths.scores.lstat().st_mtime_ns
    except OSError:
        return 0


def scores_in(documents: Mapping[str, Any] | None, run_id: str) -> list[Score]:
    """Return the judgements among documents that were read raw."""
    scores = []
    for _, document in sorted((documents or {}).items())[:MAX_SCORES]:
        with contextlib.suppress(Unreadable):
            scores.append(as_document(document, Score, run_id))
    return scores
