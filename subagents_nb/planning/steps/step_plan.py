"""Resolve one step. What it leaves open comes from the launch, then from its agent, then from the settings."""

from __future__ import annotations

import posixpath
from dataclasses import replace
from typing import Any

from subagents_nb.catalog import AmbiguousAgent, BrokenAgent, UnknownAgent, resolve
from subagents_nb.domain.agents.agent import (
    DELEGATE,
    KNOWN_TOOLS,
    REPLY,
    THINKING_LEVELS,
    AgentCatalog,
    AgentDefinition,
    Thinking,
)
from subagents_nb.domain.agents.models import ModelChoice, UnknownModel, choose_model, extra_for
from subagents_nb.domain.agents.settings import Settings
from subagents_nb.domain.plans.defaults import ASKED
from subagents_nb.domain.plans.flow import Step
from subagents_nb.domain.plans.options import OPTIONS
from subagents_nb.domain.plans.plan import CHILD_TIMEOUT_S, DEFAULT_DEPTH, LaunchRequest, StepPlan, label_of
from subagents_nb.domain.plans.resumed import SessionPlan
from subagents_nb.domain.policy.policy import Policy
from subagents_nb.domain.values.reasons import Reason, Reasons
from subagents_nb.domain.values.words import parse_duration
from subagents_nb.planning.acceptance.acceptance_parser import plan_acceptance
from subagents_nb.planning.acceptance.terms import plan_max_output, terms_of, words_for_people
from subagents_nb.planning.budget_parser import plan_tool_budget
from subagents_nb.planning.launch_environment import FolderLookup, LaunchEnvironment, SessionLookup
from subagents_nb.planning.steps.children_plan import delegates_of, depth_of, plan_children, tools_of_parents
from subagents_nb.planning.steps.foreign_fields import field_notes, ignored_nothing, unkept_guards, worktree_of
from subagents_nb.planning.steps.mcp_plan import as_allowed, plan_mcp
from subagents_nb.planning.steps.memory_plan import plan_memory
from subagents_nb.planning.steps.model_options import plan_model_options
from subagents_nb.planning.steps.plan_context import PlanContext
from subagents_nb.planning.steps.policy_plan import beyond, plan_policy, unbound_commands
from subagents_nb.planning.steps.prompt import plan_refinements, system_prompt
from subagents_nb.planning.steps.sandboxed import inherited, needed, outside
from subagents_nb.planning.steps.schema import schema_problem
from subagents_nb.planning.steps.skill_plan import plan_skills
from subagents_nb.planning.steps.step_outputs import plan_output, plan_progress, plan_reads
from subagents_nb.planning.steps.trust_check import acting_in, allowed_script, withheld_notes
from subagents_nb.planning.steps.worktree_plan import plan_worktree

MAX_TASK_BYTES = 256 * 1024
# What a step takes over from its launch as it was said. What is wrong with some others is told once, with the launch.
_OF_THE_LAUNCH = tuple(name for name in ASKED if name not in ("max_output", "agent_contract", "gate_on", "skills"))
_AMOUNTS = tuple(one for one in OPTIONS if one.kind in ("duration", "count", "number") and one.scope != "run")
_HOTTEST = 2.0
# Fields of the origin's agent files that would change what an agent does and that are not carried out here.
# Stands in for one that is not there: it asks for nothing and may do everything, so that no fault is its own.
_ANY_AGENT = AgentDefinition(name="?", description="", tools=KNOWN_TOOLS)


def plan_step(
    asked: Step, context: PlanContext, reasons: Reasons, *, index: int = 0, namespace: str | None = None
) -> StepPlan | None:
    """Return a step resolved, or None after adding what is wrong with it to the reasons.

    `namespace` is the folder that an agent's own relative output gets inside a group, so that siblings do not meet.
    """
    before = len(reasons)
    request, settings, environment = context.request, context.settings, context.environment
    own, asked = asked, _under_launch(asked, request)
    check_task(asked.task or "", reasons)
    agent = _agent(asked.agent or settings.default_agent, context.catalog, reasons)
    thinking = _thinking(asked.thinking, agent, settings, reasons)
    model = _model(asked.model, asked.thinking is not None, agent, context, thinking, reasons)
    of_model = plan_model_options(asked, agent, model, context, reasons) if model is not None else {}
    amounts = _amounts(asked, agent, settings, reasons)
    schema = asked.output_schema if asked.output_schema is not None else (agent.output_schema if agent else None)
    if schema is not None and (problem := schema_problem(dict(schema), asked.schema_name)):
        reasons.append(problem)
    bound = plan_max_output(asked.max_output, reasons)
    if asked.max_output is None:  # what is wrong with that of the launch is told once, with the launch
        wider = request.max_output is not None
        bound = (
            plan_max_output(request.max_output, Reasons()) if wider else plan_max_output(settings.max_output, reasons)
        )
    # What is asked for is judged even where the agent or the model can't be had: all reasons are told at once.
    judged = _with_defaults(agent if agent is not None else _ANY_AGENT, asked, settings)
    may = plan_policy(own, judged, context, reasons)
    servers, may_use = plan_mcp(asked, judged, may.tools, model, context, reasons)
    may = replace(may, tools=may_use)
    judged = judged.model_copy(update={"tools": may.tools}) if may.tools != judged.effective_tools else judged
    tool_budget = plan_tool_budget(asked.tool_budget, judged, reasons)
    folder = _folder(asked.cwd, environment, reasons)
    output = plan_output(asked, judged, environment.inside(folder), reasons, namespace=namespace)
    terms = terms_of(asked.agent_contract, asked.gate_on, reasons).under(context.terms)
    acceptance = plan_acceptance(asked, judged, reasons, terms)
    below = replace(context, above=may.below, network=may.sandbox is not None and may.sandbox.network)
    below = replace(below, folder=posixpath.join(context.folder, folder or ""))
    judging = replace(context, above=inherited(context.above or Policy(), may.sandbox), network=below.network)
    reviewer = _reviewer(acceptance.review.agent, judging, reasons) if acceptance and acceptance.review else None
    sandbox = needed(may.tools, may.sandbox, acceptance, may.policy, reasons)
    worktree = plan_worktree(worktree_of(asked, judged), environment, reasons)
    if agent is not None and (told := unbound_commands(asked, agent, acceptance, may.policy)):
        context.note(told)
    reasons.extend(outside(sandbox, servers, worktree, may.policy))
    reads = plan_reads(asked, judged, environment.inside(folder), reasons)
    progress = plan_progress(asked, judged, reasons)
    session = _session(asked, context, reasons)
    skills = plan_skills(asked, judged, model, context, reasons)
    memory = plan_memory(judged, model, context, reasons)
    refinements = plan_refinements(agent, context, reasons) if agent is not None else ()
    if agent is not None:
        reasons.extend((*unkept_guards(asked, agent), *ignored_nothing(asked, agent)))
    if agent is None or model is None:
        return None
    context.uses(acting_in(asked, agent, may.tools, model, acceptance, environment))
    reasons.extend(beyond(may.policy, model, model.thinking, agent.name))
    tools = _tools(may.tools, model, context)
    delegates = may.delegates(delegates_of(agent, model, context))
    depth = may.depth(depth_of(agent, context)) if delegates else 0
    children = plan_children(agent, delegates, model, below, reasons, depth=depth, plan=plan_step)
    if len(reasons) > before:
        return None
    for text in (*agent_notes(agent), *field_notes(asked, agent), *withheld_notes(agent, context.catalog), *may.notes):
        context.note(text)
    if environment.store is not None and sandbox is None and {"bash", "python"}.intersection(may.tools):
        context.note(
            "The run store lies in the working directory: file tools keep out of it, a shell or kernel need not."
        )
    return StepPlan(
        index=index,
        agent=agent.name,
        agent_source=agent.source,
        agent_where=agent.where,
        agent_digest=agent.digest(),
        label=label_of(asked.task or ""),
        title=asked.label or "",
        **words_for_people(asked),
        task=asked.task or "",
        system_prompt=system_prompt(agent, project_context=environment.project_context, refinements=refinements),
        prompt_mode=agent.prompt_mode,
        model=model,
        thinking=model.thinking,
        **of_model,
        tools=(*tools, *tools_of_parents(delegates, children)),
        delegates=delegates,
        depth=depth,
        children=children,
        asks_parent_s=agent.asks_parent_s if "ask" in tools else None,
        output_schema=dict(schema) if schema is not None else None,
        schema_name=asked.schema_name,
        **amounts,
        max_output=bound,
        output_name=asked.as_,
        output=output,
        reads=reads,
        progress=progress,
        skills=skills,
        mcp=tuple(as_allowed(one, folder, context) for one in servers),
        script=allowed_script(model, environment),
        memory=memory,
        acceptance=acceptance,
        reviewer=reviewer,
        tool_budget=tool_budget,
        worktree=worktree,
        cwd=folder,
        session=session,
        policy=may.policy or None,
        sandbox=sandbox,
    )


def _under_launch(asked: Step, request: LaunchRequest) -> Step:
    """Return a step with what its launch says where it says nothing."""
    of_launch = {name: getattr(request, name) for name in _OF_THE_LAUNCH if getattr(asked, name) is None}
    return asked.model_copy(update=of_launch)


def _amounts(asked: Step, agent: AgentDefinition | None, settings: Settings, reasons: Reasons) -> dict[str, Any]:
    """Return the times and numbers of a step, by the fields that hold them: as asked, else its agent's, else as set.

    What a launch says of its run alone, the settings do not say of a step.
    """
    amounts = {}
    for one in _AMOUNTS:
        named = getattr(asked, one.name)
        if one.kind == "duration":
            named = parse_time(one.name, named, reasons)
        elif one.kind == "count" and named is not None and named < 1:
            reasons.append(f"{one.name} is {named}; a step needs at least 1")
        by_settings = getattr(settings, one.in_settings, None) if one.scope == "both" else None
        behind = (getattr(agent, one.stored, None), by_settings)
        amounts[one.stored] = next((value for value in (named, *behind) if value is not None), None)
    if (temperature := amounts["temperature"]) is not None and not 0 <= temperature <= _HOTTEST:
        reasons.append(f"the temperature is {temperature:g}; models take 0 to {_HOTTEST:g}")
    return amounts


def parse_time(name: str, given: float | str | None, reasons: Reasons) -> float | None:
    """Return a length of time in seconds; nothing for one that makes no sense, once that was added to the reasons."""
    try:
        return None if given is None else parse_duration(given)
    except ValueError as error:
        reasons.append(f"{name}: {error}", path=(name,))
        return None


def with_deadline(step: StepPlan, settings: Settings) -> StepPlan:
    """Return a step of a chain, which has a deadline also where nobody gave it one."""
    return step.model_copy(update={"timeout_s": step.timeout_s or min(CHILD_TIMEOUT_S, settings.timeout_s)})


def _with_defaults(agent: AgentDefinition, asked: Step, settings: Settings) -> AgentDefinition:
    """Return the agent with what the settings say where its file says nothing: they never outrank it."""
    names = ["tool_budget", "acceptance", "progress"]
    if asked.output or agent.output:  # without a file there is nothing to say it of
        names.append("output_mode")
    unsaid = {name: getattr(settings, name) for name in names if getattr(agent, name) is None}
    defaults = {name: value for name, value in unsaid.items() if value is not None}
    return agent.model_copy(update=defaults) if defaults else agent


def _folder(asked: str | None, environment: LaunchEnvironment, reasons: Reasons) -> str | None:
    if asked is None:
        return None
    folder = environment.folders.get(asked) or FolderLookup(problem=f"there is no folder {asked!r}")
    if folder.problem is not None:
        reasons.append(f"cwd: {folder.problem}")
    return folder.path or None


def _session(asked: Step, context: PlanContext, reasons: Reasons) -> SessionPlan | None:
    if asked.session is not None and asked.fork is not None:
        reasons.append("session goes on with a conversation, fork only refers to one: name one of the two")
        return None
    option, wanted = ("session", asked.session) if asked.fork is None else ("fork", asked.fork)
    if wanted is None:
        return None
    environment = context.environment
    lookup = (environment.sessions if option == "session" else environment.forks).get(wanted)
    lookup = lookup or SessionLookup(problem="there is no such run")
    if lookup.problem is not None:
        reasons.append(f"{option}: {lookup.problem}", path=(option,))
        return None
    if option == "fork":
        context.note(f"It refers to a copy of the conversation of {lookup.name} (steps[{lookup.step}]).")
    return SessionPlan(run_id=lookup.run_id, step=lookup.step, sha256=lookup.sha256, fork=option == "fork")


def _reviewer(agent: str, context: PlanContext, reasons: Reasons) -> StepPlan | None:
    # Its task is written by the runner, when there is something to review.
    where = "acceptance.review.agent"
    asked = Step(agent=agent, task="{review}", acceptance=False, output=False, worktree=False)
    reviewer = plan_step(asked, context.at("", where), reasons.at("", where))
    if reviewer is None or not reviewer.delegates:
        return reviewer
    alone = {
        "delegates": (),
        "depth": 0,
        "children": (),
        "tools": tuple(one for one in reviewer.tools if one not in (DELEGATE, REPLY)),
    }
    return reviewer.model_copy(update=alone)


def check_task(task: str, reasons: Reasons) -> None:
    """Add what is wrong with a task to the reasons."""
    if not task.strip():
        reasons.append("the task is empty; write what is to be done")
    size = len(task.encode("utf-8", "replace"))
    if any("\ud800" <= char <= "\udfff" for char in task):
        reasons.append("the task holds half a character (a lone surrogate), which no model can be sent")
    if size > MAX_TASK_BYTES:
        reasons.append(
            f"the task has {size:,} bytes, more than {MAX_TASK_BYTES // 1024} KiB; put the data into a file and name it"
        )


def _agent(name: str, catalog: AgentCatalog, reasons: Reasons) -> AgentDefinition | None:
    try:
        return resolve(name, catalog)
    except (UnknownAgent, AmbiguousAgent, BrokenAgent) as error:
        reasons.append(str(error))
        return None


def _thinking(
    asked: str | None, agent: AgentDefinition | None, settings: Settings, reasons: Reasons
) -> Thinking | None:
    if asked is None:
        return agent.thinking if agent and agent.thinking else settings.default_thinking
    for level in THINKING_LEVELS:
        if level == asked:
            return level
    reasons.append(f"there is no thinking level {asked!r}; the levels are {', '.join(THINKING_LEVELS)}")
    return None


def _model(
    asked: str | None,
    thinking_asked: bool,
    agent: AgentDefinition | None,
    context: PlanContext,
    thinking: Thinking | None,
    reasons: Reasons,
) -> ModelChoice | None:
    environment = context.environment
    try:
        choice = choose_model(
            call=asked,
            agent=agent.model if agent else None,
            settings=context.settings,
            environ_names=environment.environ_names,
            # A level asked for by name wins over one in the model string; an agent's or the settings' own does not.
            thinking=thinking if thinking_asked else None,
        )
    except UnknownModel as error:
        reasons.append(str(error))
        return None
    if choice.thinking is None and thinking is not None:
        choice = choice.model_copy(update={"thinking": thinking})
    if (problem := model_problem(choice, environment)) is not None:
        if choice.kind == "scripted":
            reasons.append(problem)
        else:
            context.start_problem(problem)
    if choice.origin == "environment":
        context.note(f"Model {choice.label}: nobody named one, and {_named(choice, environment)} is set.")
    elif choice.origin == "embedded":
        context.note(f"Model {choice.label}, the small embedded one: nobody named a model and no provider key is set.")
    return choice


def model_problem(choice: ModelChoice, environment: LaunchEnvironment) -> str | None:
    """Return why this model can't be used here and now, or None."""
    if choice.kind == "local":
        return environment.local_problem
    if choice.kind == "scripted":
        if (
            choice.name in environment.scripts or environment.cwd_problem
        ):  # without the directory its scripts are not known
            return None
        return f"there is no script {choice.name!r}; there are {', '.join(sorted(environment.scripts))}"
    extra = extra_for(choice)
    if extra in environment.missing_extras:
        install = f'pip install "subagents-nb[{extra}]"'
        return Reason(f"the client for {choice.provider} is not installed; run: {install}", advice=install)
    if choice.key_env and not environment.environ_names.intersection(choice.key_env):
        names = " or ".join(choice.key_env)
        return f"the model {choice.label} needs a key, and {names} is not set; set it in the environment of the kernel"
    return None


def _named(choice: ModelChoice, environment: LaunchEnvironment) -> str:
    return next((name for name in choice.key_env if name in environment.environ_names), "a key")


def _tools(tools: tuple[str, ...], model: ModelChoice, context: PlanContext) -> tuple[str, ...]:
    if model.kind == "local" and tools:
        context.note("The embedded model can't call tools; it answers from the task alone.")
        return ()
    return tools


def agent_notes(agent: AgentDefinition) -> list[str]:
    notes = []
    unsupported = agent.extra.get("unsupported_tools")
    if isinstance(unsupported, list) and unsupported:
        notes.append(f"Agent {agent.name} asks for tools that are not there: {', '.join(map(str, unsupported))}.")
    if agent.asks_parent_s is not None and "ask" not in agent.effective_tools:
        notes.append(f"Agent {agent.name} asks its parent by the tool ask, which its file does not list.")
    if agent.max_depth is not None and agent.max_depth > DEFAULT_DEPTH:
        notes.append(
            f"Agent {agent.name} names {agent.max_depth} levels of runs below it; {DEFAULT_DEPTH} are the most."
        )
    return notes
