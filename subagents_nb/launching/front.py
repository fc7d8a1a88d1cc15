"""The front door: launch, preflight, attach, runs, agents, settings. Magics, the terminal and widgets call these."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from subagents_nb.catalog import SettingsProblem, load_settings, resolve
from subagents_nb.domain.agents.agent import AgentCatalog
from subagents_nb.domain.agents.models import PROVIDER_NAMES
from subagents_nb.domain.agents.settings import ReusePolicy, Settings
from subagents_nb.domain.plans.experiments import ExperimentPart
from subagents_nb.domain.plans.plan import Draft, Origin, agents_of, everything
from subagents_nb.domain.runs.states import RunState
from subagents_nb.errors import LaunchRefused, RequestError, StoreError
from subagents_nb.launching.composing.flows import FlowLike
from subagents_nb.launching.composing.held_outputs import held_now
from subagents_nb.launching.composing.parsed_launch import ParsedLaunch
from subagents_nb.launching.composing.planned import Planned, plan_launch
from subagents_nb.launching.gathering.lineage import meant_run
from subagents_nb.launching.gathering.output_types import output_type
from subagents_nb.launching.gathering.trust_lookup import record_seen
from subagents_nb.launching.gathering.usable_agents import usable_agents
from subagents_nb.launching.handle import Run
from subagents_nb.launching.listing import Runs, about, list_runs
from subagents_nb.launching.starting.nested_launch import launch_within, outer_run
from subagents_nb.launching.starting.reuse_search import NO_MATCH, ReuseDecision, find_any, matching, policy_of
from subagents_nb.launching.starting.start_run import start_run, why_no_slot
from subagents_nb.store import open_home


@dataclass(frozen=True, slots=True)
class Preflight:
    """What a launch would do: its digest and whole plan, or the reasons against it. Nothing was started or written."""

    plan: Draft | None
    reasons: tuple[str, ...]
    reuses: str | None = None  # the id of the run that would stand in for a new one
    reuse_note: str = ""  # why no earlier run of the same contract would
    # The digests of its contract here, and of those it may have had elsewhere; also where it would be refused, but for
    # a request that makes no sense.
    contracts: tuple[str, ...] = ()
    drafts: tuple[Draft, ...] = ()  # the plans that these are of

    @property
    def digest(self) -> str | None:
        """Return the launch contract digest, or None if the launch would be refused."""
        return self.plan.digest if self.plan is not None else None

    @property
    def ok(self) -> bool:
        """Whether the launch would begin, or find a run that stands in for it."""
        return self.plan is not None


# How a launch is carried out; all else is what is asked for.
_HOW = ("max_live", "reuse", "fresh", "queue", "wait")


def launch(
    agent: str | FlowLike | None = None,
    task: str | None = None,
    *,
    model: str | None = None,
    thinking: str | None = None,
    prompt_cache: str | None = None,
    fast: bool | None = None,
    temperature: float | None = None,
    schema: Any = None,
    schema_name: str | None = None,
    cwd: str | os.PathLike[str] | None = None,
    name: str | None = None,
    goal: str | None = None,
    description: str | None = None,
    phase: str | None = None,
    lane: str | None = None,
    workflow: str | None = None,
    workflow_key: str | None = None,
    timeout: float | str | None = None,
    tool_timeout: float | str | None = None,
    checkpoint: float | str | None = None,
    max_requests: int | None = None,
    max_output: Any = None,
    reads: Sequence[str] | None = None,
    output: str | bool | None = None,
    output_mode: str | None = None,
    skills: str | Sequence[str] | bool | None = None,
    progress: bool | None = None,
    fork: Any = None,
    tools: Sequence[str] | None = None,
    deny: Sequence[str] | None = None,
    agents: Sequence[str] | None = None,
    sandbox: str | bool | None = None,
    network: bool | None = None,
    ignore: Sequence[str] | None = None,
    acceptance: Any = None,
    gate: str | None = None,
    agent_contract: Any = None,
    gate_on: str | None = None,
    tool_budget: Any = None,
    usage_budget: Any = None,
    worktree: Any = None,
    max_children: int | None = None,
    tags: Sequence[str] = (),
    experiment: str | ExperimentPart | None = None,
    params: Mapping[str, Any] | None = None,
    notes: str = "",
    inputs: Mapping[str, Any] | None = None,
    max_input_mb: float | None = None,
    max_live: int | None = None,
    reuse: str | None = None,
    fresh: bool = False,
    queue: bool = True,
    wait: bool = False,
    origin: Origin | None = None,
    defaults: Mapping[str, Any] | None = None,
) -> Run:
    """Start a detached run of `agent` on `task` and return its handle as soon as its process may work.

    A run of the same contract that is at work, or that is complete and would see the same files, stands in for a new
    one: then nothing is started, and `reused` of the handle is true. That needs no key; nor does a launch that names no
    model, where no key is set, miss the run that another machine made with its own default.

    Args:
        agent: an agent's name (the default of the settings, `delegate`, if None), or what `step`, `parallel` and
            `chain` compose.
        task: what is to be done, verbatim. Of a chain: what `{task}` stands for.
        model: `provider:model`, `provider/model:thinking`, `local:smollm2`, `scripted:NAME` or `ENDPOINT:model`.
        thinking: off, minimal, low, medium, high, xhigh, max.
        prompt_cache: on, off, 5m, 30m, 1h or 12h: how long the provider keeps the beginning of the prompt, which makes
            the next request that begins alike cheaper; where it takes no such order, an error.
        fast: the provider's faster tier, which costs more; where there is none, an error.
        temperature: 0 to 2, for models that take one; the provider's own if None.
        schema: a pydantic model, dataclass, TypedDict or JSON Schema of an object; the output is validated against it.
        schema_name: how to call the schema, if it has no name.
        cwd: the directory the agent works in and is confined to; the current one if None.
        name: a name to find the run by; made from the agent's if None.
        goal: what it is for; like `description` and `phase` for people only, shown with the run.
        description: what it does, in a line.
        phase: which part of a larger whole it belongs to; `runs(phase=…)` finds it.
        lane, workflow, workflow_key: which lane of work it is in, which run of a workflow elsewhere it is part of, and
            its key there; shown, found by `runs`, and decide nothing.
        timeout: seconds, or `90s`, `30m`, `1.5h`. A chain has no deadline of its own unless one is given.
        tool_timeout: how long one tool call may take; the agent's own, else the settings', if None.
        checkpoint: so long before its deadline the agent is asked for what it has; the settings' if None.
        max_requests: how many requests a step may make of its model.
        max_output: how much of an answer the result holds and later steps are given: characters, 20_000 or `20k`, or a
            mapping with chars and lines. The whole is kept beside it, and `text` of the run gives it.
        fork: a run, or one of its steps (`run.steps[2]`, "NAME/step 2"), of whose conversation the agent gets a copy to
            refer to; the other run is left as it is, and may have had any agent.
        tools: what it may have at most, as `read` or `bash(git log:*)`; one that is not allowed is an error.
        deny: tools and rules that are denied, as `python` or `read(secrets/**)`.
        agents: whom it may delegate to at most.
        sandbox: `workspace`: its processes see the system to read, write into the workspace alone, and have no network.
        network: let the sandbox use the network; False: whoever says otherwise.
        ignore: fields of the agent's file that guard it elsewhere, are not carried out here, and may be left out.
        reads: files the agent is told to read first, relative to `cwd`.
        output: a file of the workspace in which the answer is kept; False: none, even if the agent names one.
        output_mode: `inline` (the answer comes back too) or `file-only` (a line that names the file does).
        skills: names of skills that the agent may load: in place of those in its file; of a chain, beside those of
            its steps. False: none.
        progress: whether the agent keeps a progress file.
        acceptance: when the work counts as done: `attested`, `checked`, or a mapping with level, criteria, verify …
        gate: a command that must succeed in the workspace when the work is done.
        agent_contract: `{"version": 1}`: nothing is inferred, and a rejection is only reported.
        gate_on: under a contract: `execution` goes on after a rejection, `acceptance` does not.
        tool_budget: a number of tool calls, or a mapping with soft, hard and block.
        usage_budget: tokens, an amount like `$0.50`, or a mapping with tokens, cost_usd and stop_running.
        worktree: work in a git worktree of its own: True, or a mapping with base_ref, branch_prefix, setup_hook.
        max_children: how many steps a chain may ever start; 64 if None and the settings say nothing.
        tags: words to find runs by.
        experiment: what the run belongs to for later comparison; the one that `%subagent_experiment` set, if None.
        params: single values by which runs are told apart later; they change nothing in what the run does.
        notes: a text of yours about the run, kept with it.
        inputs: values that the agent gets as files and, in its python tool, as variables of these names: tables,
            arrays, text, bytes, JSON values, figures. They are copied now.
        max_input_mb: how much they may take together, as stored; 100 if None.
        max_live: begin only when fewer than so many runs are live; the settings' max_live_runs if None.
        reuse: which runs may stand in: `tracked`, those of which all that they read is known and unchanged; `complete`,
            those too of which it is not known; `never`. The settings' if None, which is `tracked`.
        fresh: launch anew whatever there is.
        queue: wait for a free place when too many runs are live; False refuses instead.
        wait: block until it has ended.
        origin: where the launch was asked for; filled in by magics.
        defaults: what holds where step, run and agent say nothing: model, thinking, timeout, tool_timeout,
            max_requests, tool_budget, usage_budget, acceptance, output_mode, progress. They come before the settings.

    Raises:
        LaunchRefused: with all reasons; nothing was started or written.
        LaunchError: its process could not be started; nothing is left.
        StoreError: the run store can't be used.
    """
    arguments = dict(locals())  # the arguments, before anything else has a name
    if (outer := outer_run()) is not None:
        run = Run(*launch_within(outer, arguments, default_agent=settings(cwd).default_agent))
        if wait:
            run.wait()
        return run
    asked = ParsedLaunch.of(**{name: value for name, value in arguments.items() if name not in _HOW})
    planned, limit, policy = _looked_at(asked, max_live=max_live, reuse=reuse, fresh=fresh)
    draft = planned.draft
    if draft is None or planned.reasons:
        match = _instead(planned, policy)
        if match.run_id is None:
            raise LaunchRefused([*planned.reasons, *_held(planned, asked)])
        home, run_id = open_home(create=False), match.run_id
    else:
        home = open_home()
        if planned.brought is not None:
            record_seen(planned.brought)
        chosen = {name: resolve(name, planned.catalog) for name in agents_of(draft.steps, draft.items)}
        with matching(home, draft, policy, planned.others) as match:
            if match.run_id is None and match.note:
                draft = draft.model_copy(update={"notes": (*draft.notes, match.note)})
            if any(step.delegates for step in everything(draft.steps, draft.items)):
                draft = draft.model_copy(update={"max_live": limit})
            run_id = match.run_id or start_run(
                draft, chosen, home=home, limit=limit, inputs=asked.inputs, skills=planned.skills, queue=queue
            )
    run = Run(home, run_id, output_type=asked.output_type, output_types=asked.output_types, match=match)
    if wait:
        run.wait()
    return run


def preflight(agent: str | FlowLike | None = None, task: str | None = None, **options: Any) -> Preflight:
    """Say what `launch` with the same arguments would do, without doing it."""
    how = {name: options.pop(name) for name in _HOW if name in options}
    try:
        asked = ParsedLaunch.of(agent, task, **options)
        planned, limit, policy = _looked_at(
            asked, max_live=how.get("max_live"), reuse=how.get("reuse"), fresh=bool(how.get("fresh"))
        )
        match = _instead(planned, policy) if planned.reasons else _find_reusable(planned, policy)
    except LaunchRefused as refused:
        return Preflight(None, refused.reasons)
    drafts = (*([planned.draft] if planned.draft is not None else []), *planned.others)
    contracts = tuple(draft.digest for draft in drafts)
    if match.run_id is None:
        reasons = (*planned.reasons, *_held(planned, asked))
        if not how.get("queue", True) and (full := why_no_slot(open_home(create=False), limit)) is not None:
            reasons += (full,)
        if reasons:
            return Preflight(None, reasons, contracts=contracts, drafts=drafts)
    plan = match.draft if match.draft is not None else planned.draft
    return Preflight(plan, (), reuses=match.run_id, reuse_note=match.miss, contracts=contracts, drafts=drafts)


def attach(id_or_name: str, *, schema: Any = None) -> Run:
    """Return the handle of a run by its id, its name, or a unique prefix of its id (8 characters or more).

    A name that several runs were given means the newest of this notebook, else the newest of this project. With
    `schema`, `output` comes back as that type.

    Raises:
        UnknownRun: nothing fits.
        AmbiguousRun: several fit.
    """
    home = open_home(create=False)
    run_id = meant_run(home, id_or_name)
    return Run(home, run_id, output_type=output_type(schema) if schema is not None else None)


def runs(
    *,
    state: str | None = None,
    agent: str | None = None,
    name: str | None = None,
    experiment: str | None = None,
    tag: str | None = None,
    sweep: str | None = None,
    notebook: str | None = None,
    cell: str | None = None,
    phase: str | None = None,
    lane: str | None = None,
    workflow: str | None = None,
    workflow_key: str | None = None,
    limit: int | None = None,
) -> Runs:
    """List runs, newest first.

    Args:
        state: one state, `live` for queued and running, or `asking` for those that wait for your answer.
        agent: only runs of this agent.
        name: only runs of this name.
        experiment: only runs of this experiment.
        tag: only runs with this tag.
        sweep: only runs of the sweep with this digest.
        notebook: only runs of this notebook, as it was named where they were launched.
        cell: only runs of the cell with this id.
        phase: only runs of which the launch, a step or a group names this phase.
        lane: only runs of which the launch or a step names this lane.
        workflow: only runs that are part of this run of a workflow elsewhere.
        workflow_key: only runs that have this key there.
        limit: at most so many ended ones; live runs are always listed.

    Raises:
        RequestError: there is no such state.
    """
    known = [*RunState, "live", "asking"]
    if state is not None and state not in known:
        raise RequestError(f"There is no state {state!r}; the states are {', '.join(known)}.")
    home = open_home(create=False)
    only = about(home, experiment=experiment, tag=tag, sweep=sweep, notebook=notebook, cell=cell, phase=phase,
                 lane=lane, workflow=workflow, workflow_key=workflow_key)  # fmt: skip
    return list_runs(home, state=state, agent=agent, name=name, limit=limit, only=only)


def agents(cwd: str | os.PathLike[str] | None = None) -> AgentCatalog:
    """Return every agent that can be used from `cwd`, where each came from, and what could not be used and why."""
    return usable_agents(Path(cwd) if cwd is not None else Path.cwd(), _readable_settings(cwd))


def _readable_settings(cwd: str | os.PathLike[str] | None) -> Settings:
    """Return the settings; those that can't be used keep nobody from looking at the agents."""
    with contextlib.suppress(SettingsProblem):  # told by whoever launches, by `settings` and by `doctor`
        return settings(cwd)
    return Settings()


def settings(cwd: str | os.PathLike[str] | None = None) -> Settings:
    """Return the effective settings for launches from `cwd`; `origins` says where each came from.

    Raises:
        SettingsProblem: a settings file or variable can't be used.
    """
    path = Path(cwd) if cwd is not None else Path.cwd()
    return load_settings(path, environ=os.environ, reserved=PROVIDER_NAMES)


def _find_reusable(planned: Planned, policy: ReusePolicy) -> ReuseDecision:
    return find_any(open_home(create=False), planned.draft, planned.others, policy)


def _held(planned: Planned, asked: ParsedLaunch) -> list[str]:
    with contextlib.suppress(StoreError, OSError, ValueError):
        return held_now(open_home(create=False), planned.draft, asked.request)
    return []


def _instead(planned: Planned, policy: ReusePolicy) -> ReuseDecision:
    """Find what stands in for a launch that could not begin; a store that can't be used has nothing."""
    with contextlib.suppress(StoreError):
        return _find_reusable(planned, policy)
    return NO_MATCH


def _looked_at(
    asked: ParsedLaunch, *, max_live: int | None, reuse: str | None, fresh: bool
) -> tuple[Planned, int, ReusePolicy]:
    """Return the plan of a launch, how many runs may be live beside it, and what may stand in for it.

    Raises:
        LaunchRefused: it makes no sense; with everything that speaks against it.
    """
    planned = plan_launch(asked)
    reasons: list[str] = []
    policy: ReusePolicy = planned.settings.reuse
    if max_live is not None and (isinstance(max_live, bool) or not isinstance(max_live, int) or max_live < 1):
        reasons.append(f"max_live is a number of 1 or more, not {max_live!r}")
    try:
        policy = policy_of(reuse, policy, fresh=fresh)
    except LaunchRefused as refused:
        reasons.extend(refused.reasons)
    if reasons or planned.senseless:
        raise LaunchRefused(list(dict.fromkeys([*planned.reasons, *reasons, *_held(planned, asked)])))
    limit = planned.settings.max_live_runs
    return planned, limit if max_live is None else min(limit, max_live), policy
