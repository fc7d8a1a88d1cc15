"""Scripts of the deterministic twin: what a step does, as a list. Read from the workspace, checked before any of it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from subagents_nb.domain.agents.acting import CHANGED
from subagents_nb.domain.agents.scripts import BUILTIN_SCRIPTS, script_paths
from subagents_nb.domain.runs.events import StepFailed
from subagents_nb.domain.runs.records import EndReason, Usage
from subagents_nb.domain.values.base import Value
from subagents_nb.domain.values.reading import either, read
from subagents_nb.runner.engines.clean_text import one_line
from subagents_nb.store.files.opener import NotPlain, read_plain

_MAX_BYTES = 1_000_000
_VERBS = (
    "text", "think", "tool", "call", "sleep", "value", "fail", "usage", "await_steer", "ask", "rate_limited", "python",
    "delegate",
    "skill",
    "remember", "recall",
)  # fmt: skip
_BELONGS = {
    "args": ("tool", "call"), "result": ("tool",), "refused": ("tool",), "seconds": ("tool",), "choices": ("ask",),
    "say": ("python", "call", "delegate", "skill", "recall"),
}  # fmt: skip


class ScriptedFailure(Value):
    """How a script ends a step without a result."""

    reason: EndReason = "model"
    message: str = "The script says so."


class ScriptedTask(Value):
    """What another agent is to do."""

    agent: str
    task: str


def _several(given: object) -> object:
    return [given] if isinstance(given, dict) else given


class ScriptStep(Value):
    """One thing a script does: exactly one of its verbs. Some verbs have fields of their own."""

    text: str | None = None
    think: str | None = None
    tool: str | None = None  # a call that is pretended
    call: str | None = None  # one that is made, really: it passes the gate, and the tool does its work
    args: dict[str, Any] = Field(default_factory=dict)
    result: str = ""
    refused: str | None = None
    seconds: float = Field(default=0.0, ge=0, le=86_400)  # how long the tool pretends to work
    sleep: float | None = Field(default=None, ge=0, le=86_400)
    value: Any = None
    fail: ScriptedFailure | None = None
    usage: Usage | None = None
    await_steer: Literal[True] | None = None  # wait for somebody to steer, then say what was said
    ask: str | None = None  # ask the person, then say the answer
    choices: tuple[str, ...] = ()
    python: str | None = None  # a cell that is run, really, in the step's kernel
    skill: str | None = None  # a skill of the step's that is loaded, really
    remember: str | None = None  # a note that is kept in the step's memory, really
    recall: str | None = None  # a file of it that is read, really
    say: bool = False  # say what came of it
    # Other agents that get a task each, really, all at once.
    delegate: Annotated[tuple[ScriptedTask, ...], BeforeValidator(_several)] | None = None
    rate_limited: float | None = Field(default=None, ge=0, le=86_400)  # the provider asks to wait

    @model_validator(mode="after")
    def _single_verb(self) -> ScriptStep:
        given = [verb for verb in _VERBS if verb in self.model_fields_set]
        if len(given) != 1:
            raise ValueError(f"a step has exactly one of {', '.join(_VERBS)}, not {', '.join(given) or 'none'}")
        for name, verbs in _BELONGS.items():
            if name in self.model_fields_set and given[0] not in verbs:
                raise ValueError(f"{name} belongs to {either(verbs)} steps")
        return self

    @property
    def verb(self) -> str:
        """Return which of the verbs this step has."""
        return next(verb for verb in _VERBS if verb in self.model_fields_set)


Script = tuple[ScriptStep, ...]


class _ScriptFile(Value):
    steps: Script


def parse_script(content: bytes, where: str) -> Script:
    """Turn a file's content into a script.

    Raises:
        StepFailed: it is not one; the message names the first faults.
    """
    try:
        written, faults = read(_ScriptFile, {"steps": json.loads(content)})
        reasons = "; ".join(fault.at() for fault in faults[:5])
    except (ValueError, RecursionError) as error:
        written, reasons = None, f"it is no JSON: {error}"
    if written is None:
        raise StepFailed("setup", f"The script {where} can't be used: {one_line(reasons, 600)}")
    return written.steps


def read_script(name: str, cwd: Path, *, allowed: Mapping[str, str]) -> Script:
    """Find the script of this name in the workspace and read it; `allowed` are hashes, where somebody had to allow it.

    Raises:
        StepFailed: there is none, it lies outside the workspace, is another than was allowed, or can't be used.
    """
    for candidate in script_paths(name):
        if not (cwd / candidate).resolve().is_relative_to(cwd.resolve()):
            raise StepFailed("setup", f"The script {one_line(name, 100)!r} lies outside the workspace.")
        try:
            content = read_plain(cwd / candidate, _MAX_BYTES, within=cwd)
        except (FileNotFoundError, NotADirectoryError, NotPlain):
            continue
        except OSError as error:
            raise StepFailed("setup", f"The script {candidate} can't be read: {error.strerror}") from error
        if len(content) > _MAX_BYTES:
            raise StepFailed("setup", f"The script {candidate} is larger than {_MAX_BYTES} bytes.")
        if allowed and hashlib.sha256(content).hexdigest() != allowed.get(candidate):
            raise StepFailed("setup", f"The script {candidate} was not played: {CHANGED}.")
        return parse_script(content, candidate)
    looked = " or ".join(script_paths(name))
    raise StepFailed(
        "setup",
        f"There is no script {one_line(name, 100)!r}: it is not built in ({', '.join(sorted(BUILTIN_SCRIPTS))}) "
        f"and {looked} is not in the workspace.",
    )
