"""`run.transcript()`: the steps of a run as a notebook that any Jupyter opens and nbconvert exports."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from subagents_nb.domain.plans.plan import choices_of
from subagents_nb.domain.runs.messages import Session, parse_session
from subagents_nb.domain.runs.records import StepResult, StepStatus
from subagents_nb.domain.texts.redaction import Redactor
from subagents_nb.domain.texts.transcript import Cell, heading, note, notebook, step_cells
from subagents_nb.domain.values.words import cost, duration, tokens
from subagents_nb.errors import RequestError, StoreError, SubagentsError, Unreadable
from subagents_nb.store.files.codec import lenient_json
from subagents_nb.store.files.disk import DISK
from subagents_nb.store.files.opener import read_plain
from subagents_nb.store.layout import RunPaths

if TYPE_CHECKING:
    from subagents_nb.launching.handle import Run

TRANSCRIPT_FILE = "transcript.ipynb"
MAX_SESSION_BYTES = 64 * 1024 * 1024


def write_transcript(run: Run, step: int | None = None, to: str | os.PathLike[str] | None = None) -> Path:
    """Write the notebook of a run, or of one of its steps, and return its path.

    It lies in the run's directory unless `to` names a file; one that is there already is replaced only if it is a
    transcript of ours. Secret values of this process, and what looks like a key, are taken out.

    Raises:
        RequestError: there is no such step, or `to` can't be written.
        StoreError: the run's directory can't be written.
    """
    content = lenient_json(transcript(run, step)) + b"\n"
    paths = run.home.run(run.id)
    if to is not None:
        return _write_out(Path(to), content)
    target = (paths.root if step is None else paths.step(step)) / TRANSCRIPT_FILE
    try:
        DISK.replace(target, content, durable=False)
    except OSError as error:
        raise StoreError(f"The transcript of run {run.id} could not be kept: {error.strerror or error}.") from error
    return target


def transcript(run: Run, step: int | None = None) -> dict[str, Any]:
    """Return the notebook of a run, or of one of its steps, as plain data of nbformat 4.5.

    Raises:
        RequestError: there is no such step.
    """
    indices = [one.index for one in run.steps]
    if step is not None and step not in indices:
        several = (
            f"it has steps[{min(indices)}] to steps[{max(indices)}]" if len(indices) > 1 else "its only one is steps[0]"
        )
        has = several if indices else "it has none yet"
        raise RequestError(f"{run.name} has no steps[{step}]; {has}.")
    chosen = indices if step is None else [step]
    return notebook(_cells(run, chosen), run_id=run.id)


def read_session(paths: RunPaths, step: int) -> Session | None:
    """Return what was said in a step; None where nothing was kept.

    Raises:
        ValueError: the file is there and is no session.
    """
    content = _read(paths.step(step) / "session.json")
    return None if content is None else parse_session(content)


def _cells(run: Run, chosen: list[int]) -> Iterator[Cell]:
    snapshot = run.status
    clean = Redactor(os.environ, _key_names(run), shapes=True)
    facts = [
        ("run", run.id),
        ("state", str(snapshot.state or "unreadable")),
        ("launched", snapshot.started_at),
        ("work", duration(round(snapshot.elapsed_s, 1))),
        ("tokens in / out", tokens(snapshot.usage)),
        ("cost", cost(snapshot.usage.cost_usd)),
        ("error", clean(snapshot.error or "")),
    ]
    yield heading(snapshot.name, facts)
    steps = list(run.steps)
    for step in steps:
        if step.index in chosen:
            status = step.status
            if len(steps) > 1:
                yield _step_heading(step.index, status, clean)
            yield from _step(run, step.index, status, clean)


def _key_names(run: Run) -> set[str]:
    """Return the variables that the models' own endpoints name, whose names need not look secret."""
    try:
        plan = run.plan
    except SubagentsError:  # what can't be read names nothing
        return set()
    return {name for model in choices_of(plan.steps, plan.items) for name in model.key_env}


def _step_heading(index: int, status: StepResult | StepStatus, clean: Redactor) -> Cell:
    facts = [
        ("model", status.model),
        ("state", str(status.state)),
        ("tokens in / out", tokens(status.usage)),
        ("error", clean(status.error or "")),
    ]
    title = f"steps[{index}]: {status.agent}" + (f" · {status.label}" if status.label else "")
    return heading(title, facts, level=2)


def _step(run: Run, index: int, status: StepResult | StepStatus, clean: Redactor) -> Iterator[Cell]:
    paths = run.home.run(run.id)
    try:
        session = read_session(paths, index)
    except ValueError as error:
        yield note(f"The history of this step can't be read: {error}.")
        session = None
    else:
        if session is None:
            yield note("Nothing was kept of what was said in this step.")
    yield from step_cells(session or Session(), _executed(paths.step(index) / "python.ipynb"), clean=clean)
    if isinstance(status, StepResult) and status.error:
        yield note(f"Ended as {status.state}: {clean(status.error)}")


def _executed(path: Path) -> dict[str, Any] | None:
    content = _read(path)
    try:
        notebook = json.loads(content) if content is not None else None
    except (ValueError, RecursionError):
        return None
    return notebook if isinstance(notebook, dict) else None


def _read(path: Path) -> bytes | None:
    try:
        return DISK.read(path, MAX_SESSION_BYTES)
    except Unreadable:
        return None


def _write_out(target: Path, content: bytes) -> Path:
    """Put a transcript where the person wants it; nobody else may read it."""
    place = Path(os.path.realpath(target))
    try:
        with contextlib.suppress(FileNotFoundError):
            if b'"subagents_nb"' not in read_plain(place, MAX_SESSION_BYTES):
                raise RequestError(f"{target} is there already and is no transcript; name another file.")
        DISK.replace(place, content, durable=False)
    except OSError as error:
        raise RequestError(f"The transcript can't be written to {target}: {error.strerror or error}.") from error
    return target
