"""A launch as a person asks for it: the arguments read, values made into files, types kept for the way back."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from subagents_nb.domain.experiments import ExperimentPart
from subagents_nb.domain.flow import Step
from subagents_nb.domain.plan import LaunchRequest, Origin
from subagents_nb.errors import LaunchRefused, RequestError
from subagents_nb.launching.experiment import experiment_part
from subagents_nb.launching.flows import FlowLike, as_chain, types_of
from subagents_nb.launching.inputs import Given, gather
from subagents_nb.launching.schemas import OutputType, output_type
from subagents_nb.launching.whence import origin_here


@dataclass(frozen=True, slots=True)
class Asked:
    """A launch as it was asked for, and the types its outputs are to come back as."""

    request: LaunchRequest
    output_type: OutputType | None
    output_types: Mapping[str | int, OutputType]
    inputs: tuple[Given, ...] = ()

    @classmethod
    def of(
        cls,
        agent: str | FlowLike | None,
        task: str | None,
        *,
        schema: Any = None,
        schema_name: str | None = None,
        cwd: str | os.PathLike[str] | None = None,
        reads: Sequence[str] | None = None,
        tags: Sequence[str] = (),
        experiment: str | ExperimentPart | None = None,
        params: Mapping[str, Any] | None = None,
        notes: str = "",
        inputs: Mapping[str, Any] | None = None,
        max_input_mb: float | None = None,
        origin: Origin | None = None,
        **others: Any,
    ) -> Asked:
        """Read the arguments of a launch.

        Raises:
            LaunchRefused: they make no sense by themselves.
        """
        origin = origin or origin_here()
        kind = None
        if schema is not None:
            try:
                kind = output_type(schema, name=schema_name)
            except RequestError as error:
                raise LaunchRefused([str(error)]) from error
        if any(isinstance(others.get(name), bool) for name in ("timeout", "tool_timeout")):
            raise LaunchRefused(["a timeout is a number of seconds, not true or false"])
        for name, given in (("tags", tags), ("reads", reads)):
            if isinstance(given, str):
                raise LaunchRefused([f"{name} is a list of words: write {name}=[{given!r}]"])
        flow = None
        if agent is not None and not isinstance(agent, str):
            if isinstance(agent, Step) and agent.count == 1:
                about: dict[str, Any] = {
                    "experiment": experiment,
                    "params": params,
                    "notes": notes,
                    "origin": origin,
                    "tags": tags,
                }
                about |= {"inputs": inputs, "max_input_mb": max_input_mb}
                return cls._single(agent, task, schema=schema, cwd=cwd, **about, **others)
            flow, agent = as_chain(agent, task), None
        kept = gather(inputs, max_input_mb)
        try:
            request = LaunchRequest(
                agent=agent,
                task="" if task is None else task,
                output_schema=kind.schema_ if kind else None,
                schema_name=kind.name if kind else None,
                cwd=os.fspath(cwd) if cwd is not None else None,
                reads=None if reads is None else tuple(reads),
                tags=tuple(tags),
                inputs=tuple(one.record for one in kept),
                experiment=experiment_part(
                    experiment, params, notes, origin=origin, cwd=Path(cwd) if cwd else somewhere()
                ),
                origin=origin,
                flow=flow,
                **others,
            )
        except (ValidationError, TypeError) as error:
            raise LaunchRefused(_wrong_types(error)) from error
        return cls(request, kind, {} if flow is None else types_of(flow), kept)

    @classmethod
    def _single(cls, step: Step, task: str | None, **options: Any) -> Asked:
        """One step by itself is a plain run: what the step leaves open comes from the launch."""
        fields = step.model_dump(exclude={"as_", "label", "count", "output_schema", "agent", "task"}, exclude_none=True)
        schema = step.output_type if step.output_type is not None else step.output_schema
        given = {name: value for name, value in options.items() if value is not None}
        return cls.of(step.agent, step.task if step.task is not None else task, **{"schema": schema, **given, **fields})


def _wrong_types(error: ValidationError | TypeError) -> list[str]:
    if isinstance(error, TypeError):
        return [f"an argument has the wrong type: {error}"]
    found = error.errors(include_url=False)
    return list(
        {str(e["loc"][0]): f"{e['loc'][0]}: {e['msg']}, not {type(e['input']).__name__}" for e in found}.values()
    )


def somewhere() -> Path:
    """Return a directory to look agents up from when the one asked for can't be used."""
    try:
        return Path.cwd()
    except OSError:
        return Path.home()
