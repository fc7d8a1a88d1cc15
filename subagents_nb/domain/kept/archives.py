"""Archives of runs: what may be in one, and how it is made fit for another machine. What comes in is untrusted."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath
from typing import Any, Literal

from pydantic import Field, ValidationError

from subagents_nb.domain.plans.plan import Draft, FanOutItem, LaunchPlan, PlanItem, StepPlan
from subagents_nb.domain.runs.records import RunResult, StepRecord, StepResult
from subagents_nb.domain.runs.states import StepState
from subagents_nb.domain.values.base import Document, Value
from subagents_nb.domain.values.ids import is_run_id

MANIFEST = "manifest.json"
MAX_FILES = 20_000
MAX_BYTES = 1024**3
MAX_FILE_BYTES = 256 * 1024**2  # of one file: it is held in memory
MAX_RATIO = 100  # an archive that holds more than so many times its own size is a trap
FREE_BYTES = 64 * 1024**2  # below this much no ratio is asked
MAX_MANIFEST_BYTES = 8 * 1024**2
# No status, no process record, no lock, no request, no log: they speak of processes, hosts and tokens. No recovery
# record: an imported run is looked at and reused, it is never resumed.
DOCUMENTS = ("plan.json", "result.json", "verdict.json", "events.jsonl")
FOLDERS = ("steps", "artifacts", "inputs", "scores", "files", "skills")
_DEPTH = 8
_NAME = re.compile(r"[^\x00-\x1f\x7f/\\:]{1,200}\Z")


class ArchivedFile(Value):
    """One file of a run, by its path below the run's directory."""

    path: str
    bytes: int = Field(ge=0)
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")


class ArchivedRun(Value):
    """One run; `cwd` is where it worked, relative to the project."""

    run_id: str
    cwd: str
    files: tuple[ArchivedFile, ...]


class Manifest(Value):
    """What an archive holds: all of it, and nothing else."""

    format: Literal["subagents-nb-runs"] = "subagents-nb-runs"
    version: Literal[1] = 1
    made_with: str = ""
    runs: tuple[ArchivedRun, ...]


class Imported(Document):
    """Says of a run that it came in an archive: `imported.json`, created once by whoever imported it."""

    kind: Literal["imported"] = "imported"
    imported_at: str
    made_with: str = ""


def may_be_archived(path: str) -> bool:
    """Say whether a path below a run's directory belongs into an archive; what comes in is held against it too."""
    if path in DOCUMENTS:
        return True
    parts = path.split("/")
    return len(parts) in range(2, _DEPTH + 1) and parts[0] in FOLDERS and all(map(_is_plain, parts))


def stays_inside(path: str) -> bool:
    """Say whether a path that a record tells leads to something below the folder that it is told for."""
    pure = PurePosixPath(path)
    return bool(pure.parts) and not pure.is_absolute() and ".." not in pure.parts and "\\" not in path


def _is_plain(name: str) -> bool:
    return _NAME.match(name) is not None and not name.startswith(".")


def faults(manifest: Manifest, sizes: Mapping[str, int], archive_bytes: int) -> list[str]:
    """Return what is wrong with an archive, whose members are given with the sizes that they claim."""
    problems = []
    total = sum(sizes.values())
    if total > MAX_BYTES:
        problems.append(f"it holds {total:,} bytes, more than {MAX_BYTES:,}")
    if (largest := max(sizes.values(), default=0)) > MAX_FILE_BYTES:
        problems.append(f"a file of it has {largest:,} bytes, more than {MAX_FILE_BYTES:,}")
    if total > FREE_BYTES and total > MAX_RATIO * archive_bytes:
        problems.append(f"it unfolds to more than {MAX_RATIO} times its size")
    declared = {MANIFEST: sizes.get(MANIFEST, 0)}
    for run in manifest.runs:
        if not is_run_id(run.run_id):
            problems.append(f"{run.run_id[:60]!r} is no run id")
        if not _is_below(run.cwd):
            problems.append(f"the directory {run.cwd[:60]!r} leads out of the project")
        for file in run.files:
            if not may_be_archived(file.path):
                problems.append(f"{file.path[:60]!r} is no file of a run")
            declared[f"runs/{run.run_id}/{file.path}"] = file.bytes
    if len({run.run_id for run in manifest.runs}) != len(manifest.runs):
        problems.append("a run stands in it twice")
    if declared != dict(sizes):
        problems.append("its manifest and its files don't agree")
    return problems


def _is_below(cwd: str) -> bool:
    path = PurePosixPath(cwd)
    return not path.is_absolute() and ".." not in path.parts and not set(cwd) & set("\0\\:")


def packed(plan: LaunchPlan) -> LaunchPlan:
    """Return a plan without what is this machine's or this user's alone."""
    mine: dict[str, Any] = {"cwd": "", "token": "", "tool_env": (), "notify_command": ()}
    origin = plan.origin.model_copy(update={"session": ""})
    steps = tuple(_without_paths(step) for step in plan.steps)
    items = tuple(_item_without_paths(item) for item in plan.items)
    return plan.model_copy(update={**mine, "origin": origin, "steps": steps, "items": items})


def _item_without_paths(item: PlanItem) -> PlanItem:
    if isinstance(item, FanOutItem):
        return item.model_copy(update={"template": _without_paths(item.template)})
    return item


def _without_paths(step: StepPlan) -> StepPlan:
    if step.memory is not None:
        step = step.model_copy(update={"memory": step.memory.model_copy(update={"folder": ""})})
    if step.worktree is None:
        return step
    return step.model_copy(update={"worktree": step.worktree.model_copy(update={"repo_root": "", "root": None})})


def unpacked(plan: LaunchPlan, cwd: str) -> LaunchPlan:
    """Return the plan of an archive as it is kept here, at work in `cwd`.

    Raises:
        ValueError: its digest is not that of what it says, so that it would stand in for other work.
    """
    fields = {**plan.body(), "name": plan.name}
    try:
        digest = Draft.model_validate(fields).digest
    except (ValidationError, ValueError) as error:
        raise ValueError("its plan can't be read") from error
    if digest != plan.digest:
        raise ValueError("its plan is not the one that its digest names")
    return packed(plan).model_copy(update={"cwd": cwd})


def state_problem(document: object) -> str | None:
    """Return why a record of an archive can't be of a run that has ended: whoever waited for it would wait for ever."""
    steps: tuple[StepResult, ...] = ()
    if isinstance(document, RunResult):
        if document.state.live:
            return f"it says that the run is {document.state}"
        steps = document.steps
    elif isinstance(document, StepRecord):
        steps = (document.result,)
    return "it says that a step is at work" if any(step.state is StepState.RUNNING for step in steps) else None


def without_paths(value: Any) -> Any:
    """Return a record's data without the absolute paths of the worktrees in it."""
    if isinstance(value, list):
        return [without_paths(one) for one in value]
    if isinstance(value, dict):
        cleaned = {key: without_paths(one) for key, one in value.items()}
        if "repo_root" in cleaned and "branch" in cleaned:
            cleaned |= {"repo_root": "", "path": ""}
        return cleaned
    return value


def duplicates(names: Iterable[str]) -> bool:
    """Say whether a name occurs twice."""
    seen = list(names)
    return len(set(seen)) != len(seen)
