"""Put values of the notebook into a run: each becomes a file, made before anything is planned."""

from __future__ import annotations

import builtins
import hashlib
import keyword
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from subagents_nb.domain.plans.inputs import FOLDER, InputRecord
from subagents_nb.domain.plans.plan import LaunchPlan
from subagents_nb.errors import LaunchRefused, StoreError
from subagents_nb.launching.inputs.kind import CantKeep, Kept, TooLarge, type_name
from subagents_nb.launching.inputs.plain_values import array, figure, json_value, raw, text
from subagents_nb.launching.inputs.table_files import table
from subagents_nb.plain_text import shortened
from subagents_nb.store import StoreHome
from subagents_nb.store.runs.input_files import read_input

MAX_INPUT_MB = 100.0
_MOST = 100
_NAME_CHARS = 100
# What IPython keeps for itself in the kernel where inputs stand under their names.
_TAKEN = frozenset({"In", "Out", "get_ipython", "exit", "quit", "open", "display"})
_KINDS: tuple[Callable[[Any, int], Kept | None], ...] = (table, array, text, raw, json_value, figure)


@dataclass(frozen=True, slots=True)
class InputValue:
    """One value as it goes into the run: what is recorded of it, and its bytes."""

    record: InputRecord
    data: bytes


def gather(
    values: Mapping[str, Any] | tuple[InputValue, ...] | None, max_mb: float | None = None
) -> tuple[InputValue, ...]:
    """Return the values as files, in their order; those that are files already, as they are.

    The limit holds for all of them together, as stored.

    Raises:
        LaunchRefused: with a reason for each value that can't be kept.
    """
    if values is None:
        return ()
    if isinstance(values, tuple) and all(isinstance(one, InputValue) for one in values):
        return values
    if not isinstance(values, Mapping):
        raise LaunchRefused([f"inputs is a mapping of names to values, not {type_name(values)}: inputs={{'df': df}}"])
    limit_mb = MAX_INPUT_MB if max_mb is None else max_mb
    if isinstance(limit_mb, bool) or not isinstance(limit_mb, int | float) or not 0 < limit_mb < float("inf"):
        raise LaunchRefused([f"max_input_mb is a number of megabytes above 0, not {limit_mb!r}"])
    if len(values) > _MOST:
        raise LaunchRefused([f"{len(values)} inputs are too many; {_MOST} are allowed: put them into a dict or a list"])
    bytes_left = int(limit_mb * 1_000_000)
    found: list[InputValue] = []
    reasons: list[str] = []
    files: set[str] = set()
    for name, value in values.items():
        try:
            check_name(name)
            kept = _keep(value, bytes_left)
        except CantKeep as error:
            reasons.append(f"input {_shown(name)}: {error}")
            continue
        except TooLarge:
            reasons.append(
                f"input {_shown(name)}: the inputs take more than {limit_mb:g} MB; pass less, or allow more with "
                "--max-input-mb (max_input_mb=)"
            )
            continue
        bytes_left -= len(kept.data)
        found.append(InputValue(_record(name, kept, files), kept.data))
    if reasons:
        raise LaunchRefused(reasons)
    return tuple(found)


def inputs_of(home: StoreHome, plan: LaunchPlan) -> tuple[InputValue, ...]:
    """Return the inputs of an earlier run, for another one.

    Raises:
        LaunchRefused: some are gone, or are no longer what was put in.
    """
    values: list[InputValue] = []
    reasons: list[str] = []
    for record in plan.inputs:
        try:
            values.append(InputValue(record, read_input(home.run(plan.run_id), record)))
        except StoreError as error:
            reasons.append(str(error))
    if reasons:
        raise LaunchRefused(reasons)
    return tuple(values)


def check_name(name: Any) -> None:
    """Refuse a name that can't stand for a variable of the agent's.

    Raises:
        CantKeep: it is no Python name, or hides a builtin.
    """
    if not isinstance(name, str) or not name.isidentifier() or keyword.iskeyword(name):
        raise CantKeep("that is no Python name; use letters, digits and _")
    if len(name) > _NAME_CHARS:
        raise CantKeep(f"the name is longer than {_NAME_CHARS} characters")
    if hasattr(builtins, name):
        raise CantKeep(f"the name would hide the builtin {name}; give it another one")
    if name in _TAKEN or re.fullmatch(r"_+(\d+|i+\d*|dh|oh|ih)?", name):
        raise CantKeep("IPython uses that name itself; give it another one")


def _keep(value: Any, limit: int) -> Kept:
    for kind in _KINDS:
        kept = kind(value, limit)
        if kept is not None:
            if len(kept.data) > limit:
                raise TooLarge
            return kept
    raise CantKeep(
        f"a {type_name(value)} can't be put into a run: pass a table, an array, text, bytes, a JSON value or a figure"
    )


def _record(name: str, kept: Kept, files: set[str]) -> InputRecord:
    stem, number = name, 1
    while f"{stem}{kept.extension}".casefold() in files:  # `df` and `DF` are one file on some disks
        number += 1
        stem = f"{name}-{number}"
    files.add(f"{stem}{kept.extension}".casefold())
    return InputRecord(
        name=name,
        kind=kept.kind,
        type=kept.type,
        shape=kept.shape,
        file=f"{FOLDER}/{stem}{kept.extension}",
        media_type=kept.media_type,
        bytes=len(kept.data),
        sha256=hashlib.sha256(kept.data).hexdigest(),
        content_sha256=kept.content_sha256,
        description=kept.description,
    )


def _shown(name: Any) -> str:
    return shortened(name if isinstance(name, str) and name.isidentifier() else ascii(name), 60)
