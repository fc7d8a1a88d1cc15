"""A launch as a person asks for it: the arguments read, values made into files, types kept for the way back."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeVar

from subagents_nb.domain.plans.experiments import ExperimentPart
from subagents_nb.domain.plans.flow import Chain, Step
from subagents_nb.domain.plans.plan import LaunchRequest, Origin
from subagents_nb.domain.values.reading import read_rest
from subagents_nb.domain.values.words import one_line
from subagents_nb.errors import LaunchRefused, RequestError
from subagents_nb.launching.composing.flows import FlowLike, as_chain, stored_text, types_of
from subagents_nb.launching.gathering.experiment import experiment_part
from subagents_nb.launching.gathering.lineage import origin_here
from subagents_nb.launching.gathering.output_types import OutputType, output_type
from subagents_nb.launching.inputs.input_values import InputValue, gather

T = TypeVar("T")
# What a launch takes by name.
OPTIONS = (
    *sorted({*LaunchRequest.model_fields} - {"agent", "task", "output_schema", "flow", "as_", "label"}),
    "schema", "params", "defaults", "notes", "max_input_mb", "max_live", "reuse", "fresh", "queue", "wait",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class ParsedLaunch:
    """A launch as it was asked for, and the types its outputs are to come back as.

    `reasons` say which arguments make no sense by themselves; the request is that of the others, so that what speaks
    against those can be told beside them.
    """

    request: LaunchRequest
    output_type: OutputType | None
    output_types: Mapping[str | int, OutputType]
    inputs: tuple[InputValue, ...] = ()
    reasons: tuple[str, ...] = ()
    defaults: Mapping[str, Any] = field(default_factory=dict)  # what holds where step, run and agent say nothing

    @classmethod
    def of(cls, agent: str | FlowLike | None, task: str | None, **options: Any) -> ParsedLaunch:
        """Read the arguments of a launch.

        Raises:
            LaunchRefused: it is nothing that can be launched.
        """
        if agent is None or isinstance(agent, str):
            return cls._read(None, agent, task, **options)
        # What a step alone can say makes it a chain of one: a plain run has no such thing.
        if isinstance(agent, Step) and agent.count == 1 and agent.cwd is None and agent.session is None:
            return cls._single_step(agent, task, **options)
        return cls._read(as_chain(agent, task), None, task, **options)

    @classmethod
    def _single_step(cls, step: Step, task: str | None, **options: Any) -> ParsedLaunch:
        """One step by itself is a plain run: what the step leaves open comes from the launch."""
        fields = step.model_dump(exclude={"count", "output_schema", "agent", "task"}, exclude_none=True)
        schema = step.output_type if step.output_type is not None else step.output_schema
        named = {name: value for name, value in options.items() if value is not None}
        arguments = {"schema": schema, **named, **fields}
        return cls._read(None, step.agent, step.task if step.task is not None else task, **arguments)

    @classmethod
    def _read(
        cls,
        flow: Chain | None,
        agent: str | None,
        task: str | None,
        *,
        schema: Any = None,
        schema_name: str | None = None,
        cwd: str | os.PathLike[str] | None = None,
        reads: Sequence[str] | Literal[False] | None = None,
        tools: Sequence[str] | None = None,
        deny: Sequence[str] | None = None,
        agents: Sequence[str] | None = None,
        ignore: Sequence[str] | None = None,
        tags: Sequence[str] = (),
        experiment: str | ExperimentPart | None = None,
        params: Mapping[str, Any] | None = None,
        notes: str = "",
        inputs: Mapping[str, Any] | None = None,
        max_input_mb: float | None = None,
        origin: Origin | None = None,
        defaults: Mapping[str, Any] | None = None,
        **others: Any,
    ) -> ParsedLaunch:
        origin = origin or origin_here()
        faults = _Faults()
        kind = None if schema is None else faults.tried(lambda: output_type(schema, name=schema_name))
        input_values = faults.tried(lambda: gather(inputs, max_input_mb)) or ()
        folder = faults.tried(lambda: Path(cwd)) if cwd else None
        part = faults.tried(
            lambda: experiment_part(experiment, params, notes, origin=origin, cwd=folder or somewhere())
        )
        fields: dict[str, Any] = {
            "agent": agent,
            "task": "" if task is None else task,
            "output_schema": kind.schema_ if kind else None,
            "schema_name": kind.name if kind else None,
            "cwd": os.fspath(folder) if folder is not None else None,
            "reads": reads if reads is None or reads is False else faults.words("reads", reads),
            "tools": None if tools is None else faults.words("tools", tools),
            "deny": None if deny is None else faults.words("deny", deny),
            "agents": None if agents is None else faults.words("agents", agents),
            "ignore": None if ignore is None else faults.words("ignore", ignore),
            "tags": faults.words("tags", tags),
            "inputs": tuple(one.record for one in input_values),
            "experiment": part or ExperimentPart(),
            "origin": origin,
            "flow": flow,
            **others,
            "fork": stored_text(others.get("fork")),
        }
        request = faults.request(fields)
        types = {} if flow is None else types_of(flow)
        return cls(request, kind, types, input_values, tuple(dict.fromkeys(faults.found)), defaults or {})


@dataclass(slots=True)
class _Faults:
    """What is wrong with the arguments; reading goes on without them."""

    found: list[str] = field(default_factory=list)

    def tried(self, make: Callable[[], T]) -> T | None:
        try:
            return make()
        except LaunchRefused as refused:
            self.found.extend(refused.reasons)
        except RequestError as error:
            self.found.append(str(error))
        except (TypeError, ValueError) as error:
            self.found.append(f"an argument has the wrong type: {error}")
        return None

    def words(self, name: str, given: Any) -> tuple[str, ...]:
        if isinstance(given, str):
            self.found.append(f"{name} is a list of words: write {name}=[{given!r}]")
        elif given is not None:
            words: list[Any] = list(given) if isinstance(given, Iterable) else [None]
            if all(isinstance(one, str | os.PathLike) for one in words):
                return tuple(os.fspath(one) for one in words)
            self.found.append(f"{name} is a list of words, not {one_line(repr(given), 60)}")
        return ()

    def request(self, fields: dict[str, Any]) -> LaunchRequest:
        """Return the request of what can be read; what can't counts as not given."""
        made, faults = read_rest(LaunchRequest, fields, known=OPTIONS, otherwise={"task": "-"})
        self.found.extend(fault.at() for fault in faults)
        return made or LaunchRequest(task="-")


def somewhere() -> Path:
    """Return a directory to look agents up from when the one asked for can't be used."""
    try:
        return Path.cwd()
    except OSError:
        return Path.home()
