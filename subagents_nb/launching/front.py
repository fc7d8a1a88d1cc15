"""The front door: launch, preflight, attach, runs, agents, settings. Magics, the terminal and widgets call these."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from subagents_nb.catalog import discover, load_settings, registered_agents, resolve
from subagents_nb.domain.agent import AgentCatalog
from subagents_nb.domain.models import PROVIDER_NAMES
from subagents_nb.domain.plan import Draft, LaunchRequest, Origin
from subagents_nb.domain.settings import Settings
from subagents_nb.domain.states import RunState
from subagents_nb.domain.words import parse_duration
from subagents_nb.errors import LaunchRefused, RequestError
from subagents_nb.launching.begin import begin
from subagents_nb.launching.facts import gather_facts
from subagents_nb.launching.handle import Run
from subagents_nb.launching.listing import Runs, list_runs
from subagents_nb.launching.schemas import OutputType, output_type
from subagents_nb.launching.waiting import WaitInterrupted, goes_on, wait_all
from subagents_nb.planning import draft as plan_draft
from subagents_nb.store import FileRuns, find_run, open_home


@dataclass(frozen=True, slots=True)
class Preflight:
    """What a launch would do: its digest and whole plan, or the reasons against it. Nothing was started or written."""

    plan: Draft | None
    reasons: tuple[str, ...]

    @property
    def digest(self) -> str | None:
        """Return the launch contract digest, or None if the launch would be refused."""
        return self.plan.digest if self.plan is not None else None

    @property
    def ok(self) -> bool:
        """Whether the launch would begin."""
        return self.plan is not None


def launch(
    agent: str | None = None,
    task: str | None = None,
    *,
    model: str | None = None,
    thinking: str | None = None,
    schema: Any = None,
    schema_name: str | None = None,
    cwd: str | os.PathLike[str] | None = None,
    name: str | None = None,
    timeout: float | str | None = None,
    tool_timeout: float | str | None = None,
    tags: Sequence[str] = (),
    queue: bool = True,
    wait: bool = False,
    origin: Origin | None = None,
) -> Run:
    """Start a detached run of `agent` on `task` and return its handle as soon as its process may work.

    Args:
        agent: an agent's name; the default of the settings (`delegate`) if None.
        task: what is to be done, verbatim.
        model: `provider:model`, `provider/model:thinking`, `local:smollm2`, `scripted:NAME` or `ENDPOINT:model`.
        thinking: off, minimal, low, medium, high, xhigh, max.
        schema: a pydantic model, dataclass, TypedDict or JSON Schema of an object; the output is validated against it.
        schema_name: how to call the schema, if it has no name.
        cwd: the directory the agent works in and is confined to; the current one if None.
        name: a name to find the run by; made from the agent's if None.
        timeout: seconds, or `90s`, `30m`, `1.5h`.
        tool_timeout: how long one tool call may take; the agent's own, else the settings', if None.
        tags: words to find runs by.
        queue: wait for a free place when too many runs are live; False refuses instead.
        wait: block until it has ended.
        origin: where the launch was asked for; filled in by magics.

    Raises:
        LaunchRefused: with all reasons; nothing was started or written.
        LaunchError: its process could not be started; nothing is left.
        StoreError: the run store can't be used.
    """
    request, kind = _request(
        agent, task, model, thinking, schema, schema_name, cwd, name, timeout, tool_timeout, tags, origin
    )
    draft, catalog, effective = _plan(request)
    home = open_home()
    chosen = resolve(draft.steps[0].agent, catalog)
    run_id = begin(draft, chosen, home=home, limit=effective.max_live_runs, queue=queue)
    run = Run(home, run_id, output_type=kind)
    if wait:
        run.wait()
    return run


def preflight(
    agent: str | None = None,
    task: str | None = None,
    *,
    model: str | None = None,
    thinking: str | None = None,
    schema: Any = None,
    schema_name: str | None = None,
    cwd: str | os.PathLike[str] | None = None,
    name: str | None = None,
    timeout: float | str | None = None,
    tool_timeout: float | str | None = None,
    tags: Sequence[str] = (),
    origin: Origin | None = None,
) -> Preflight:
    """Say what `launch` with the same arguments would do, without doing it."""
    try:
        request, _ = _request(
            agent, task, model, thinking, schema, schema_name, cwd, name, timeout, tool_timeout, tags, origin
        )
        return Preflight(_plan(request)[0], ())
    except LaunchRefused as refused:
        return Preflight(None, refused.reasons)


def attach(id_or_name: str, *, schema: Any = None) -> Run:
    """Return the handle of a run by its id, unique name, or unique prefix of its id (8 characters or more).

    With `schema`, `output` comes back as that type.

    Raises:
        UnknownRun: nothing fits.
        AmbiguousRun: several fit.
    """
    home = open_home(create=False)
    run_id = find_run(id_or_name, FileRuns(home))
    return Run(home, run_id, output_type=output_type(schema) if schema is not None else None)


def runs(
    *, state: str | None = None, agent: str | None = None, name: str | None = None, limit: int | None = None
) -> Runs:
    """List runs, newest first.

    Args:
        state: one state, or `live` for queued and running.
        agent: only runs of this agent.
        name: only runs of this name.
        limit: at most so many ended ones; live runs are always listed.

    Raises:
        RequestError: there is no such state.
    """
    known = [*RunState, "live"]
    if state is not None and state not in known:
        raise RequestError(f"There is no state {state!r}; the states are {', '.join(known)}.")
    return list_runs(open_home(create=False), state=state, agent=agent, name=name, limit=limit)


def agents(cwd: str | os.PathLike[str] | None = None) -> AgentCatalog:
    """Return every agent that can be used from `cwd`, where each came from, and what could not be used and why."""
    return discover(Path(cwd) if cwd is not None else Path.cwd(), registered=registered_agents())


def settings(cwd: str | os.PathLike[str] | None = None) -> Settings:
    """Return the effective settings for launches from `cwd`; `origins` says where each came from.

    Raises:
        SettingsProblem: a settings file or variable can't be used.
    """
    path = Path(cwd) if cwd is not None else Path.cwd()
    return load_settings(path, environ=os.environ, reserved=PROVIDER_NAMES)


def _request(
    agent: str | None,
    task: str | None,
    model: str | None,
    thinking: str | None,
    schema: Any,
    schema_name: str | None,
    cwd: str | os.PathLike[str] | None,
    name: str | None,
    timeout: float | str | None,
    tool_timeout: float | str | None,
    tags: Sequence[str],
    origin: Origin | None,
) -> tuple[LaunchRequest, OutputType | None]:
    kind = None
    if schema is not None:
        try:
            kind = output_type(schema, name=schema_name)
        except RequestError as error:
            raise LaunchRefused([str(error)]) from error
    if isinstance(timeout, bool) or isinstance(tool_timeout, bool):
        raise LaunchRefused(["a timeout is a number of seconds, not true or false"])
    if isinstance(tags, str):
        raise LaunchRefused([f"tags is a list of words: write tags=[{tags!r}]"])
    try:
        request = LaunchRequest(
            agent=agent,
            task="" if task is None else task,
            model=model,
            thinking=thinking,
            output_schema=kind.schema_ if kind else None,
            schema_name=kind.name if kind else None,
            cwd=os.fspath(cwd) if cwd is not None else None,
            name=name,
            timeout=timeout,
            tool_timeout=tool_timeout,
            tags=tuple(tags),
            origin=origin or Origin(),
        )
    except (ValidationError, TypeError) as error:
        raise LaunchRefused(_wrong_types(error)) from error
    return request, kind


def _wrong_types(error: ValidationError | TypeError) -> list[str]:
    if isinstance(error, TypeError):
        return [f"an argument has the wrong type: {error}"]
    found = error.errors(include_url=False)
    return list(
        {str(e["loc"][0]): f"{e['loc'][0]}: {e['msg']}, not {type(e['input']).__name__}" for e in found}.values()
    )


def _plan(request: LaunchRequest) -> tuple[Draft, AgentCatalog, Settings]:
    facts = gather_facts(request.cwd, environ=os.environ, model=request.model)
    base = Path(facts.cwd) if facts.cwd_problem is None else _somewhere()
    try:
        effective = settings(base)
    except RequestError as error:
        raise LaunchRefused(getattr(error, "reasons", (str(error),))) from error
    catalog = agents(base)
    return plan_draft(request, catalog=catalog, settings=effective, facts=facts), catalog, effective


def _somewhere() -> Path:
    """Return a directory to look agents up from when the one asked for can't be used."""
    try:
        return Path.cwd()
    except OSError:
        return Path.home()


def wait_for(ids: Sequence[str] = (), *, timeout: float | str | None = None) -> Runs:
    """Wait for the named runs, or for all live ones, to end; return them as they stand. They go on after a timeout.

    Raises:
        UnknownRun, AmbiguousRun: a name does not fit one run.
        RequestError: the timeout is none.
        WaitInterrupted: somebody interrupted the wait; the runs go on.
    """
    home = open_home(create=False)
    reader = FileRuns(home)
    try:
        seconds = None if timeout is None else parse_duration(timeout)
    except ValueError as error:
        raise RequestError(str(error)) from error
    chosen = [find_run(text, reader) for text in ids] if ids else [run.id for run in runs(state="live")]
    try:
        wait_all(home, chosen, seconds)
    except KeyboardInterrupt:
        names = [(reader.snapshot(run_id).name, run_id) for run_id in chosen]
        raise WaitInterrupted(goes_on(names)) from None
    return Runs(home, [reader.snapshot(run_id) for run_id in chosen])
