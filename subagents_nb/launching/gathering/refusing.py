"""What is wrong with the arguments of a launch, in words for who wrote them."""

from __future__ import annotations

from typing import Any

from subagents_nb.domain.plans.plan import LaunchRequest
from subagents_nb.domain.values import faults
from subagents_nb.domain.values.given import no_such_option
from subagents_nb.domain.values.words import one_line

# What a launch takes by name.
OPTIONS = (
    *sorted({*LaunchRequest.model_fields} - {"agent", "task", "output_schema", "flow", "as_", "label"}),
    "schema", "params", "defaults", "notes", "max_input_mb", "max_live", "reuse", "fresh", "queue", "wait",
)  # fmt: skip


def said_of(fault: Any) -> str:
    """Say what pydantic found wrong with one argument, in words for who wrote it."""
    name = str(fault["loc"][0]).rstrip("_")
    if fault["type"] == "extra_forbidden":
        return no_such_option(name, OPTIONS)
    text = faults.said_of(fault).removeprefix("Input ")
    if fault["type"] == "value_error":
        return f"{name} {text}"
    return f"{name} {text[:1].lower()}{text[1:]}, not {one_line(repr(fault['input']), 60)}"
