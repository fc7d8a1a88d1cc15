"""Compose steps into groups, fan-outs and chains. Values without effect, until they are launched."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias, TypeVar

from pydantic import BaseModel

from subagents_nb.domain.plans.flow import Attached, Chain, Expand, OnFailure, Parallel, Step
from subagents_nb.domain.plans.options import OPTIONS
from subagents_nb.domain.plans.plan import LaunchRequest
from subagents_nb.domain.values.reading import read
from subagents_nb.domain.values.reasons import Reason
from subagents_nb.domain.values.words import one_line
from subagents_nb.errors import LaunchRefused, RequestError
from subagents_nb.launching.controlling.controls import Controls
from subagents_nb.launching.controlling.step_handles import RunStep
from subagents_nb.launching.gathering.output_types import OutputType, output_type

M = TypeVar("M", bound=BaseModel)
FlowLike: TypeAlias = "Step | Parallel | Expand | Chain"


def step(
    agent: str | None = None,
    task: str | None = None,
    *,
    as_: str | None = None,
    label: str | None = None,
    schema: Any = None,
    schema_name: str | None = None,
    count: int = 1,
    session: str | Controls | RunStep | None = None,
    **options: Any,
) -> Step:
    """Compose one step: an agent on a task.

    Args:
        agent: an agent's name; the default of the settings if None.
        task: what is to be done. `{task}`, `{previous}`, `{chain_dir}` and `{outputs.NAME}` are filled in when its turn
            comes. None: the task of the chain for its first step, `{previous}` for the others.
        as_: a name for its output, for `{outputs.NAME}` in later steps.
        label: what to call it in views; nothing of the task is shown otherwise.
        schema: as for `launch`.
        schema_name: how to call the schema, if it has no name.
        count: inside a group, how many copies of it to start.
        session: a run, or one of its steps, whose stored conversation this step goes on from, as a copy: `run`,
            `run.steps[2]`, "NAME" or "NAME/step 2".
        options: what `launch` may say of a step, by the same names; `cwd` is a folder inside the directory of the run,
            in which this step works and to which it is confined.

    Raises:
        LaunchRefused: an argument makes no sense.
    """
    kind = None if schema is None else _kind(schema, schema_name)
    fields = {"agent": agent, "task": task, "as_": as_, "label": label, "count": count, **options}
    fields |= {"session": stored_text(session), "fork": stored_text(options.get("fork"))}
    if kind is not None:
        fields |= {"output_schema": kind.schema_, "schema_name": kind.name, "output_type": kind}
    return make(Step, "step", fields)


def _spelled_out(function: Callable[..., Any]) -> inspect.Signature:
    """Return its signature with the options of a step by name, as `function?` shows it and completion offers it."""
    *own, _ = inspect.signature(function).parameters.values()
    names = [one.name for one in OPTIONS if one.scope != "run"]
    more = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None) for name in names]
    return inspect.Signature([*own, *more], return_annotation=Step)


step.__signature__ = _spelled_out(step)  # type: ignore[attr-defined]  # inspect looks for it


def parallel(
    *steps: Step,
    concurrency: int | None = None,
    fail_fast: bool = False,
    on_failure: OnFailure = "stop",
    as_: str | None = None,
    label: str | None = None,
    phase: str | None = None,
    worktree: Any = None,
    acceptance: Any = None,
    gate: str | None = None,
    agent_contract: Any = None,
    gate_on: str | None = None,
) -> Parallel:
    """Compose steps that are at work at the same time.

    Args:
        steps: the steps; they can't see each other's outputs.
        concurrency: how many of them at a time; 4 if None and the settings say nothing.
        fail_fast: after a failure start no further one; those at work go on.
        on_failure: `stop` ends the chain when one failed and all have ended; `continue` goes on with the others, and
            the run ends as partial.
        as_: a name for all answers together, each under a heading.
        label: what to call the group in views.
        phase: which part of the whole it belongs to, for people; also of its steps that say none.
        worktree: each works in a git worktree of its own.
        acceptance: when all of it counts as done, judged once when all steps have ended: criteria and evidence by their
            reports together, `verify` in the run's directory. A rejection is a failure of the group.
        gate: a command that must succeed in the run's directory then.
        agent_contract, gate_on: what a rejection means, of the group and of its steps that say nothing.
    """
    fields = dict(locals())  # the arguments, before anything else has a name
    for one in steps:
        if not isinstance(one, Step):
            raise LaunchRefused([f"parallel: {_shown(one)} is no step; write step(agent, task)"])
    return make(Parallel, "parallel", fields)


def expand(
    from_: str,
    path: str,
    each: Step,
    *,
    max_items: int | None = None,
    as_: str | None = None,
    item: str = "item",
    key: str | None = None,
    on_empty: str = "skip",
    schema: Mapping[str, Any] | None = None,
    concurrency: int | None = None,
    fail_fast: bool = False,
    on_failure: OnFailure = "stop",
    label: str | None = None,
    phase: str | None = None,
    worktree: Any = None,
    acceptance: Any = None,
    gate: str | None = None,
    agent_contract: Any = None,
    gate_on: str | None = None,
) -> Expand:
    """Compose one step for each item of an array that an earlier step found.

    Args:
        from_: the name of the earlier output; its step has a schema.
        path: a JSON Pointer to the array inside it, such as `/files`; empty for the whole value.
        each: the step; `{item}` and `{item.a.b}` in its task stand for the item.
        max_items: how many items there may be; more are a failure, nothing is cut.
        as_: a name for the array of what the steps gave, in the order of the items.
        item: how the task calls the item.
        key: a JSON Pointer inside an item to what names it; its number if None.
        on_empty: `skip` or `fail`, when there are no items.
        schema: a JSON Schema of the collected array.
        concurrency, fail_fast, on_failure, label, phase, worktree, acceptance, gate, agent_contract, gate_on: as for
            `parallel`.
    """
    fields = dict(locals())  # the arguments, before anything else has a name
    fields["from_"] = {"output": from_, "path": fields.pop("path")}
    given = fields.pop("schema")
    fields["collect_schema"] = None if given is None else dict(given)
    return make(Expand, "expand", fields)


def chain(*items: FlowLike | Controls | RunStep, task: str | None = None) -> Chain:
    """Compose items that follow one another.

    The first may be another run, or one step of it: the chain goes on from what that came to, and of a chain the named
    outputs can be referred to.
    """
    made: list[Any] = []
    for item in items:
        if isinstance(item, Controls):
            made.append(Attached(run=item.id))
        elif isinstance(item, RunStep):
            made.append(Attached(run=item.run_id, step=item.index))
        elif isinstance(item, Chain):
            made.extend(item.items)
        elif isinstance(item, Step | Parallel | Expand | Attached):
            made.append(item)
        else:
            raise LaunchRefused([f"chain: {_shown(item)} is no step, parallel, expand or run; write {_meant(item)}"])
    return make(Chain, "chain", {"items": tuple(made), "task": task})


def as_chain(flow: FlowLike, task: str | None = None) -> Chain:
    """Return what was composed as a chain; `task` is what `{task}` stands for, unless the chain says so itself.

    Raises:
        LaunchRefused: it is nothing that can be launched.
    """
    if isinstance(flow, Chain):
        return flow if task is None or flow.task is not None else flow.model_copy(update={"task": task})
    if isinstance(flow, Step | Parallel | Expand):
        return Chain(items=(flow,), task=task)
    raise LaunchRefused(
        [f"{type(flow).__name__} can't be launched: give the name of an agent, or a step, parallel, or chain"]
    )


def types_of(flow: Chain) -> dict[str | int, OutputType]:
    """Return the types in which outputs come back: by the names of the steps, and by their numbers.

    The steps of a fan-out have no numbers yet; theirs stands under `@` and the place of its stage, from 0.
    """
    steps: list[Step] = []
    for item in flow.items:
        if isinstance(item, Parallel):
            steps.extend(one for one in item.steps for _ in range(max(one.count, 1)))
        elif isinstance(item, Step):
            steps.append(item)
    fanned = {
        f"@{place}": item.each.output_type
        for place, item in enumerate(flow.items)
        if isinstance(item, Expand) and isinstance(item.each.output_type, OutputType)
    }
    typed = [(n, one, one.output_type) for n, one in enumerate(steps) if isinstance(one.output_type, OutputType)]
    return fanned | {n: kind for n, _, kind in typed} | {one.as_: kind for _, one, kind in typed if one.as_}


def models_of(request: LaunchRequest) -> tuple[str | None, ...]:
    """Return the models that a request names anywhere."""
    models: list[str | None] = [request.model]
    for item in request.flow.items if request.flow is not None else ():
        if isinstance(item, Parallel):
            models.extend(one.model for one in item.steps)
        elif isinstance(item, Step):
            models.append(item.model)
        elif isinstance(item, Expand):
            models.append(item.each.model)
    return tuple(dict.fromkeys(models))


def folders_of(request: LaunchRequest) -> tuple[str, ...]:
    """Return the folders that steps of a request shall work in."""
    folders = (step.cwd for step in steps_of(request) if step.cwd is not None)
    return tuple(dict.fromkeys(folders))


def steps_of(request: LaunchRequest) -> Iterator[Step]:
    """Yield the steps of a request, those that its fan-outs repeat included."""
    for item in request.flow.items if request.flow is not None else ():
        match item:
            case Step():
                yield item
            case Parallel():
                yield from item.steps
            case Expand():
                yield item.each


def stored_text(given: str | Controls | RunStep | None) -> str | None:
    """Return how a run, or one of its steps, is written."""
    if isinstance(given, RunStep):
        return f"{given.run_id}/step {given.index}"
    return given.id if isinstance(given, Controls) else given


def _kind(schema: Any, name: str | None) -> OutputType:
    try:
        return output_type(schema, name=name)
    except RequestError as error:
        raise LaunchRefused([str(error)]) from error


def _shown(item: object) -> str:
    return one_line(repr(item), 60)


def _meant(item: object) -> str:
    return f"attach({item!r}) for a run, step({item!r}, task) for an agent" if isinstance(item, str) else "step(…)"


def make(kind: type[M], what: str, fields: Mapping[str, Any]) -> M:
    """Return what was composed of these.

    Raises:
        LaunchRefused: with all that is wrong with them.
    """
    made_flow, faults = read(kind, fields)
    if made_flow is None:
        raise LaunchRefused([Reason(fault.at(), lead=what) for fault in faults])
    return made_flow
