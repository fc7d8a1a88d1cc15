"""The plan of a child: from the template that its parent's plan holds, and from nothing else that it could choose."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from subagents_nb.domain.plans.budgets import UsageBudget
from subagents_nb.domain.plans.experiments import ExperimentPart
from subagents_nb.domain.plans.plan import Draft, FanOutItem, LaunchPlan, StepPlan
from subagents_nb.domain.plans.request import Origin
from subagents_nb.domain.policy.decision import decide
from subagents_nb.domain.policy.tool_call import ToolCall
from subagents_nb.domain.policy.tool_names import DELEGATE
from subagents_nb.domain.tree.asks import ChildAsk

MAX_TASK_BYTES = 256 * 1024


class NoChild(ValueError):
    """Why there will be none, as the model or the caller is told."""


def delegators(plan: LaunchPlan, appended: Iterable[StepPlan] = ()) -> list[StepPlan]:
    """Return the steps of a plan that may delegate, those of fan-outs and what was appended included."""
    templates = [item.template for item in plan.items if isinstance(item, FanOutItem)]
    return [step for step in (*plan.steps, *appended, *templates) if step.delegates]


def template_of(plan: LaunchPlan, ask: ChildAsk, steps: Sequence[StepPlan], *, root: str) -> StepPlan:
    """Return the template that an ask means; `root` is the name of the tree's root.

    Raises:
        NoChild: this run may not delegate, not to that agent, or not from here.
    """
    if not steps:
        raise NoChild(f"this process belongs to run {plan.name}, which may not delegate; name agents in its file")
    own = [step for step in steps if ask.step is None or step.index == ask.step] or list(steps)
    step = next((one for one in own if ask.agent in one.delegates), own[0])
    if ask.agent not in step.delegates:
        allowed = ", ".join(step.delegates)
        raise NoChild(f"'{ask.agent}' is not among the agents that {step.agent} may delegate to ({allowed})")
    if ask.step is None and (why := _held_back(step, ask.agent)):  # what the tool is called with passed the gate
        raise NoChild(f"'{ask.agent}' can't be begun by a process of this run: {why}")
    template = next((child for child in step.children if child.agent == ask.agent), None)
    if template is None:
        level = plan.origin.level
        here = f"{level} level{'s' * (level != 1)} below {root}"
        raise NoChild(f"delegation ends here: this run is {here}, and its plan allows {level + step.depth}")
    if not ask.task.strip():
        raise NoChild("the task is empty; write what is to be done")
    if len(ask.task.encode("utf-8", "replace")) > MAX_TASK_BYTES:
        raise NoChild(f"the task has more than {MAX_TASK_BYTES // 1024} KiB; put the data into a file and name it")
    return template


def _held_back(step: StepPlan, agent: str) -> str:
    """Return why the policy of a step lets nobody begin an agent without a question; empty if it does."""
    if step.policy is None:
        return ""
    found = decide(step.policy, ToolCall(DELEGATE, name=agent))
    asking = ", and the tool delegate alone can ask" if found.verdict == "ask" else ""
    return "" if found.verdict == "allow" else f"{found.reason}{asking}"


def child_draft(plan: LaunchPlan, ask: ChildAsk, template: StepPlan, *, budget: UsageBudget | None = None) -> Draft:
    """Return what a child is to do. What bounds its parent bounds it: deadline, places, environment; `budget` is the
    tree's, as it is in force.
    """
    task = ask.task.encode("utf-8", "replace").decode()
    return Draft(
        cwd=ask.cwd,
        steps=(template.as_run(task),),
        usage_budget=budget,
        max_children=plan.max_children,
        max_parallel=plan.max_parallel,
        max_live=plan.max_live,
        python_memory_mb=plan.python_memory_mb,
        timeout_s=template.at_most_s(ask.left_s),
        tool_env=plan.tool_env,
        notify_command=plan.notify_command,
        checkpoint_s=plan.checkpoint_s,
        patience=plan.patience,
        experiment=ExperimentPart(shares=plan.experiment.shares),
        # Nobody but its parent is told of its end, so it has no session, and no cell shows it.
        origin=Origin(
            surface=plan.origin.surface,
            parent=plan.run_id,
            root=plan.origin.root or plan.run_id,
            path=ask.path,
            ask_timeout_s=plan.origin.ask_timeout_s,
        ),
    )
