"""The stages of a chain before it is launched, and what each placeholder of its tasks will stand for."""

from __future__ import annotations

from collections.abc import Iterator

from subagents_nb.domain.plans.placeholders import placeholders
from subagents_nb.domain.plans.plan import AttachedItem, Draft, FanOutItem, GroupItem, PlanItem, StepItem, StepPlan
from subagents_nb.domain.runs.stages import stage_of
from subagents_nb.notebook.page.lines import line, plural

_MOST = 60


def stage_lines(draft: Draft) -> list[tuple[str, str]]:
    """Return a line for each stage of a plan: its place, and what it does with what."""
    return [
        (f"stage {place}", line(_stage(item, place, draft), 600))
        for place, item in enumerate(draft.items[:_MOST], start=1)
    ]


def steps_of(draft: Draft) -> list[tuple[str, StepPlan]]:
    """Return the steps of a plan with what to call them; those of a chain have the numbers that they keep."""
    if not draft.items:
        return [(f"steps[{step.index}]", step) for step in draft.steps]
    steps = [(f"steps[{step.index}] · {_name(step)}", step) for step in draft.steps]
    places = ((place, item) for place, item in enumerate(draft.items, start=1) if isinstance(item, FanOutItem))
    return [*steps, *((f"Each of stage {place} · {_name(item.template)}", item.template) for place, item in places)]


def _stage(item: PlanItem, place: int, draft: Draft) -> str:
    stage = stage_of(item, draft.steps)
    by_index = {step.index: step for step in draft.steps}
    parts = [stage.label]
    match item:
        case StepItem():
            parts = [f"steps[{item.step}], {_name(by_index[item.step])}", *_refers([by_index[item.step]], place, draft)]
        case GroupItem():
            steps = [by_index[index] for index in item.steps]
            numbers = ", ".join(f"{step.index} {_name(step)}" for step in steps)
            parts = [
                f"side by side, {item.concurrency} at a time: {numbers}",
                *_policy(item),
                *_refers(steps, place, draft),
            ]
        case FanOutItem():
            where = f"{item.path} of {item.source}" if item.path else item.source
            parts = [
                f"{_name(item.template)} for each of {where}, at most {item.max_items}, {item.concurrency} at a time",
                f"{{{item.item}}} stands for one of them",
                *_policy(item),
                *_refers([item.template], place, draft, item=item.item),
            ]
        case AttachedItem():
            parts = [f"what run {item.attached_run} came to"]
    named = [f"its output is called {stage.output_name}"] if stage.output_name else []
    return "; ".join([*parts, *named])


def _policy(item: GroupItem | FanOutItem) -> Iterator[str]:
    if item.acceptance is not None:
        commands = f", by {plural(len(item.acceptance.verify), 'command')}" if item.acceptance.verify else ""
        reported = item.acceptance.contract and item.acceptance.gate_on == "execution"
        yield f"judged as a whole when all have ended{commands}{', which is only reported' if reported else ''}"
    if item.fail_fast:
        yield "after a failure no further one is started"
    if item.on_failure == "continue":
        yield "the chain goes on without those that fail"


def _refers(steps: list[StepPlan], place: int, draft: Draft, *, item: str | None = None) -> Iterator[str]:
    """Say what the placeholders of some tasks refer to, each once."""
    tokens = dict.fromkeys(token for step in steps for token in placeholders(step.task, item=item))
    for token in tokens:
        match token.word:
            case "previous" if place > 1:
                yield f"{token} is what stage {place - 1} comes to"
            case "outputs":
                yield f"{token} is {_source(token.path[0], draft)}"
            case "task":
                yield f"{token} is “{line(draft.task, 80)}”" if draft.task else f"{token} is empty"
            case "chain_dir":
                yield f"{token} is the directory it works in"


def _source(name: str, draft: Draft) -> str:
    for place, item in enumerate(draft.items, start=1):
        if getattr(item, "output_name", None) == name:
            return f"what stage {place} comes to"
        steps = (item.step,) if isinstance(item, StepItem) else getattr(item, "steps", ())
        for step in draft.steps:
            if step.index in steps and step.output_name == name:
                kind = "the value" if step.output_schema is not None else "the text"
                return f"{kind} of steps[{step.index}]"
    return "an output"


def _name(step: StepPlan) -> str:
    return line(f"{step.title} ({step.agent})" if step.title and step.title != step.agent else step.agent, 80)


def totals(draft: Draft) -> str:
    """Say how long a chain is and how many steps it may start: `3 stages, 4 steps and up to 20 more`."""
    more = sum(item.max_items for item in draft.items if isinstance(item, FanOutItem))
    text = f"{plural(len(draft.items), 'stage')}, {plural(len(draft.steps), 'step')}"
    return f"{text} and up to {more:,} more" if more else text
