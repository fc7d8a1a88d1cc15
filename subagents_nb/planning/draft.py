"""Plan a launch: resolve everything, refuse with every reason at once, decide nothing later."""

from __future__ import annotations

from subagents_nb.catalog import AmbiguousAgent, BrokenAgent, UnknownAgent, resolve
from subagents_nb.domain.agent import THINKING_LEVELS, AgentCatalog, AgentDefinition, Thinking
from subagents_nb.domain.ids import is_run_name
from subagents_nb.domain.models import ModelChoice, UnknownModel, choose_model, extra_for
from subagents_nb.domain.plan import Draft, LaunchRequest, StepPlan, label_of
from subagents_nb.domain.settings import Settings
from subagents_nb.domain.words import parse_duration
from subagents_nb.errors import LaunchRefused
from subagents_nb.planning.facts import Facts
from subagents_nb.planning.prompt import system_prompt
from subagents_nb.planning.schema import schema_problem

MAX_TASK_BYTES = 256 * 1024
# Fields of the origin's agent files that would change what an agent does and that are not carried out here.
_IGNORED = ("permission", "permissions", "toolBudget", "acceptance", "memory", "runner", "output", "defaultReads")


def draft(request: LaunchRequest, *, catalog: AgentCatalog, settings: Settings, facts: Facts) -> Draft:
    """Return the whole plan of a single run, but for its identity.

    Raises:
        LaunchRefused: with every reason found.
    """
    reasons: list[str] = []
    notes: list[str] = []
    check_task(request.task, reasons)
    if request.name is not None and not is_run_name(request.name):
        reasons.append(
            f"{request.name!r} can't name a run: use 1 to 80 letters, digits, spaces and _ . - and do not begin with r-"
        )
    if facts.cwd_problem:
        reasons.append(facts.cwd_problem)
    agent = _agent(request.agent or settings.default_agent, catalog, reasons)
    thinking = _thinking(request.thinking, agent, settings, reasons)
    model = _model(request, agent, settings, facts, thinking, reasons, notes)
    timeout = _asked_time(request.timeout, reasons) or (agent and agent.timeout_s) or settings.timeout_s
    tool_timeout = (
        _asked_time(request.tool_timeout, reasons) or (agent and agent.tool_timeout_s) or settings.tool_timeout_s
    )
    schema = request.output_schema if request.output_schema is not None else (agent.output_schema if agent else None)
    if schema is not None and (problem := schema_problem(dict(schema), request.schema_name)):
        reasons.append(problem)
    if reasons or agent is None or model is None:
        raise LaunchRefused(reasons)
    step = StepPlan(
        agent=agent.name,
        agent_source=agent.source,
        agent_where=agent.where,
        agent_digest=agent.digest(),
        label=label_of(request.task),
        task=request.task,
        system_prompt=system_prompt(agent, project_context=facts.project_context),
        prompt_mode=agent.prompt_mode,
        model=model,
        thinking=model.thinking,
        tools=_tools(agent, model, notes),
        output_schema=dict(schema) if schema is not None else None,
        schema_name=request.schema_name,
        tool_timeout_s=tool_timeout,
        max_requests=agent.max_requests or settings.max_requests,
    )
    return Draft(
        name=request.name,
        cwd=facts.cwd,
        steps=(step,),
        timeout_s=timeout,
        tool_env=settings.tool_env,
        notify_command=settings.notify_command,
        checkpoint_s=settings.checkpoint_s,
        notes=(*notes, *_agent_notes(agent)),
        tags=request.tags,
        origin=request.origin,
    )


def check_task(task: str, reasons: list[str]) -> None:
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


def _agent(name: str, catalog: AgentCatalog, reasons: list[str]) -> AgentDefinition | None:
    try:
        return resolve(name, catalog)
    except (UnknownAgent, AmbiguousAgent, BrokenAgent) as error:
        reasons.append(str(error))
        return None


def _thinking(
    asked: str | None, agent: AgentDefinition | None, settings: Settings, reasons: list[str]
) -> Thinking | None:
    if asked is None:
        return agent.thinking if agent and agent.thinking else settings.default_thinking
    for level in THINKING_LEVELS:
        if level == asked:
            return level
    reasons.append(f"there is no thinking level {asked!r}; the levels are {', '.join(THINKING_LEVELS)}")
    return None


def _model(
    request: LaunchRequest,
    agent: AgentDefinition | None,
    settings: Settings,
    facts: Facts,
    thinking: Thinking | None,
    reasons: list[str],
    notes: list[str],
) -> ModelChoice | None:
    # A level asked for by name wins over one in the model string; an agent's or the settings' own level does not.
    asked = thinking if request.thinking is not None else None
    try:
        choice = choose_model(
            call=request.model,
            agent=agent.model if agent else None,
            settings=settings,
            environ_names=facts.environ_names,
            thinking=asked,
        )
    except UnknownModel as error:
        reasons.append(str(error))
        return None
    if choice.thinking is None and thinking is not None:
        choice = choice.model_copy(update={"thinking": thinking})
    if (problem := model_problem(choice, facts)) is not None:
        reasons.append(problem)
    if choice.origin == "environment":
        notes.append(f"Model {choice.label}: nobody named one, and {_named(choice, facts)} is set.")
    elif choice.origin == "embedded":
        notes.append(f"Model {choice.label}, the small embedded one: nobody named a model and no provider key is set.")
    return choice


def model_problem(choice: ModelChoice, facts: Facts) -> str | None:
    """Return why this model can't be used here and now, or None."""
    if choice.kind == "local":
        return facts.local_problem
    if choice.kind == "scripted":
        if choice.name in facts.scripts:
            return None
        return f"there is no script {choice.name!r}; there are {', '.join(sorted(facts.scripts))}"
    extra = extra_for(choice)
    if extra in facts.missing_extras:
        return f'the client for {choice.provider} is not installed; run: pip install "subagents-nb[{extra}]"'
    if choice.key_env and not facts.environ_names.intersection(choice.key_env):
        names = " or ".join(choice.key_env)
        return f"the model {choice.label} needs a key, and {names} is not set; set it in the environment of the kernel"
    return None


def _named(choice: ModelChoice, facts: Facts) -> str:
    return next((name for name in choice.key_env if name in facts.environ_names), "a key")


def _asked_time(asked: float | str | None, reasons: list[str]) -> float | None:
    if asked is None:
        return None
    try:
        return parse_duration(asked)
    except ValueError as error:
        reasons.append(str(error))
        return None


def _tools(agent: AgentDefinition, model: ModelChoice, notes: list[str]) -> tuple[str, ...]:
    tools = agent.effective_tools
    if model.kind == "local" and tools:
        notes.append("The embedded model can't call tools; it answers from the task alone.")
        return ()
    return tools


def _agent_notes(agent: AgentDefinition) -> list[str]:
    notes = []
    unsupported = agent.extra.get("unsupported_tools")
    if isinstance(unsupported, list) and unsupported:
        notes.append(f"Agent {agent.name} asks for tools that are not there: {', '.join(map(str, unsupported))}.")
    if agent.skills:
        notes.append(f"Agent {agent.name} names skills, which are not loaded: {', '.join(agent.skills)}.")
    ignored = sorted(key for key in agent.extra if key in _IGNORED)
    if ignored:
        notes.append(f"Agent {agent.name} sets fields that are not carried out: {', '.join(ignored)}.")
    return notes
