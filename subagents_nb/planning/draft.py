"""Plan a launch: resolve everything, refuse with every reason at once, decide nothing later."""

from __future__ import annotations

from subagents_nb.domain.agents.agent import AgentCatalog
from subagents_nb.domain.agents.models import UnknownModel, choose_model
from subagents_nb.domain.agents.settings import Settings
from subagents_nb.domain.plans.defaults import ASKED, LaunchDefaults
from subagents_nb.domain.plans.flow import Chain, Step
from subagents_nb.domain.plans.options import OPTIONS
from subagents_nb.domain.plans.placeholders import NAME
from subagents_nb.domain.plans.plan import Draft, LaunchRequest, Mode, PlanItem, StepPlan
from subagents_nb.domain.values.base import Value
from subagents_nb.domain.values.ids import is_run_name
from subagents_nb.domain.values.reasons import OF_THE_RUN, Reasons
from subagents_nb.errors import LaunchRefused
from subagents_nb.planning.acceptance.terms import plan_max_output, terms_of, words_for_people
from subagents_nb.planning.budget_parser import plan_usage_budget
from subagents_nb.planning.chain_plan import plan_flow
from subagents_nb.planning.launch_environment import LaunchEnvironment, LookupsNeeded
from subagents_nb.planning.steps.plan_context import PlanContext
from subagents_nb.planning.steps.policy_plan import allowed_children, allowed_spend
from subagents_nb.planning.steps.step_plan import parse_time, plan_step

# What belongs to one step: a chain says it at the step it is for.
_OF_A_STEP = ("output_schema", *(one.name for one in OPTIONS if one.scope == "step"))


def draft(
    request: LaunchRequest, *, catalog: AgentCatalog, settings: Settings, environment: LaunchEnvironment
) -> Draft:
    """Return the whole plan of a run, but for its identity; `start_problems` says why it could not begin now.

    Raises:
        LaunchRefused: with every reason found.
        LookupsNeeded: something was named that nobody has looked up.
    """
    reasons = Reasons()
    context = PlanContext(request, catalog, settings, environment)
    of_the_run = reasons.at(OF_THE_RUN)
    if request.name is not None and not is_run_name(request.name):
        of_the_run.append(
            f"{request.name!r} can't name a run: use 1 to 80 letters, digits, spaces and _ . - and do not begin with r-"
        )
    if environment.cwd_problem:
        of_the_run.append(environment.cwd_problem)
    children = allowed_children(request.max_children, settings, of_the_run)
    if children < 1:
        of_the_run.append(f"max_children is {children}; a run needs at least 1")
    spend = request.usage_budget if request.usage_budget is not None else settings.usage_budget
    single_step = request.flow is None
    budget = plan_usage_budget(spend, of_the_run, single=single_step)
    budget = allowed_spend(budget, request.usage_budget is not None, settings, of_the_run, single=single_step)
    mode: Mode = "single"
    items: tuple[PlanItem, ...] = ()
    steps: tuple[StepPlan, ...] = ()
    timeout = parse_time("timeout", request.timeout, reasons)
    checkpoint = parse_time("checkpoint", request.checkpoint, reasons)
    plan_max_output(request.max_output, reasons)
    terms_of(request.agent_contract, request.gate_on, reasons)
    if request.flow is None:
        single = plan_step(request.as_single_step(), context, reasons)
        if request.as_ is not None and not NAME.match(request.as_):
            reasons.append(f"{request.as_!r} can't name an output: use letters, digits and _, not a digit first")
        if single is not None:
            # The one step's deadline is the run's.
            steps = (single.model_copy(update={"timeout_s": None}),)
            timeout = timeout or single.timeout_s or settings.timeout_s
    else:
        reasons.extend(_misplaced(request))
        planned = plan_flow(request.flow, context, reasons, limit=children)
        mode, steps, items = planned.mode, planned.steps, planned.items
    for text in settings.held_back:
        context.note(text)
    if context.wanted:
        raise LookupsNeeded(context.wanted)
    if reasons:
        raise LaunchRefused(list(dict.fromkeys([*reasons, *context.problems])))
    return Draft(
        name=request.name,
        cwd=environment.cwd,
        mode=mode,
        steps=steps,
        items=items,
        task=_task_of(request.flow),
        usage_budget=budget,
        max_children=children,
        max_parallel=settings.max_parallel,
        inputs=request.inputs,
        python_memory_mb=settings.python_memory_mb,
        experiment=request.experiment,
        timeout_s=timeout,
        tool_env=settings.tool_env,
        notify_command=settings.notify_command,
        checkpoint_s=checkpoint or settings.checkpoint_s,
        patience=settings.patience,
        **words_for_people(request),
        defaults=None if request.flow is None else _defaults(request, settings, environment),
        notes=tuple(context.notes),
        tags=request.tags,
        origin=request.origin,
        start_problems=context.problems,
        allowed=context.allowed,
    )


def _defaults(request: LaunchRequest, settings: Settings, environment: LaunchEnvironment) -> LaunchDefaults:
    try:
        choice = choose_model(call=None, agent=None, settings=settings, environ_names=environment.environ_names)
        fallback = choice.requested
    except UnknownModel:  # said of the steps that come to it
        fallback = settings.default_model or ""
    asked = {name: getattr(request, name) for name in ASKED}
    if isinstance(request.tool_budget, Value):
        asked["tool_budget"] = request.tool_budget.model_dump(mode="json")
    return LaunchDefaults.of(asked, settings, fallback=fallback)


def _misplaced(request: LaunchRequest) -> list[str]:
    set_options = [name for name in _OF_A_STEP if getattr(request, name) is not None]
    if request.agent is not None:
        set_options.insert(0, "agent")
    if not set_options:
        return []
    names = ", ".join("schema" if name == "output_schema" else name for name in set_options)
    return [f"{names} belongs to one step: in a chain, give it to the step it is for"]


def _task_of(flow: Chain | None) -> str:
    """Return what `{task}` stands for: the chain's own task, else that of its first step."""
    if flow is None:
        return ""
    if flow.task is not None:
        return flow.task
    for item in flow.items:
        steps = (item,) if isinstance(item, Step) else getattr(item, "steps", ())
        return next((step.task for step in steps if step.task), "")
    return ""
