"""What a launch would do, before it does it: the whole plan, prompts included, because somebody asked to see it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

from subagents_nb.catalog.places import shown_folder
from subagents_nb.domain import words
from subagents_nb.domain.budgets import UsageBudget
from subagents_nb.domain.plan import Draft, StepPlan
from subagents_nb.notebook.html import (
    QUIET,
    SOFT,
    Child,
    Html,
    bar,
    clean,
    code,
    cut,
    element,
    frame,
    line,
    pairs,
    plural,
    pre,
    safe,
    styled,
)
from subagents_nb.notebook.plan_stages import stage_lines, steps_of, totals

_MOST_STEPS, _FEW = 80, 4
MAX_PROMPT_CHARS = 100_000
_WHY = {
    "call": "asked for in this call",
    "agent": "the agent's own",
    "settings": "the default of your settings",
    "environment": "the first provider with a key in the environment",
    "embedded": "the embedded model, as no other is set up",
}
# A saved notebook is a publication: it need not tell how the user's account is called.
_USER = re.compile(r"//[^/@]*@")


_HOME = re.compile(r"\A(?:/home/[^/]+|/Users/[^/]+|/root|[A-Za-z]:\\Users\\[^\\]+)(?=[/\\]|\Z)")


def _place(folder: Path) -> str:
    """Name a directory without its way from the root, which is nobody's business in a saved notebook."""
    shown = _HOME.sub("~", shown_folder(folder))
    return shown if shown.startswith("~") else f"…/{'/'.join(Path(shown).parts[-2:]).lstrip('/')}"


def plan_html(draft: Draft) -> Html:
    """Show the whole plan of a launch that has not happened."""
    title = safe(element("strong", None, "Plan"), " ", styled("span", SOFT, f"{_title(draft)} · nothing was launched"))
    body: list[Child] = [pairs([(name, _shown(name, text)) for name, text in _facts(draft)])]
    if draft.items:
        body.append(pairs(stage_lines(draft), caption=f"Stages: {totals(draft)}"))
    steps = steps_of(draft)
    for called, step in steps[:_MOST_STEPS]:
        many = f"{called}: " if len(steps) > 1 else ""
        if many:
            facts = [(name, _shown(name, text)) for name, text in _step_facts(step)]
            body.append(pairs(facts, caption=called))
        is_open = "task" if len(steps) <= _FEW else ""
        body += [_text(many.lower() + name, text, is_open=name == is_open) for name, text in _texts(step)]
    body += [styled("p", QUIET, line(note, 400)) for note in draft.notes]
    return frame("Plan of a launch", bar(title), body)


def plan_text(draft: Draft) -> str:
    """Return the whole plan as plain text."""
    lines = [f"Plan: {_title(draft)} (nothing was launched)", *_listed(_facts(draft))]
    if draft.items:
        lines += ["", f"Stages: {totals(draft)}", *_listed(stage_lines(draft))]
    steps = steps_of(draft)
    for called, step in steps[:_MOST_STEPS]:
        if len(steps) > 1:
            lines += ["", called, *_listed(_step_facts(step))]
        for name, text in _texts(step):
            kept, remark = _verbatim(text)
            lines += ["", f"{name}{remark}:", *(f"  {row}" for row in kept.split("\n"))]
    notes = [f"note: {line(note, 400)}" for note in draft.notes]
    return "\n".join([*lines, *([""] if notes else []), *notes])


def _title(draft: Draft) -> str:
    return line(draft.name, 80) if draft.name else "no name yet"


def _facts(draft: Draft) -> list[tuple[str, str]]:
    single = list(_step_facts(draft.steps[0])) if len(draft.steps) == 1 and len(steps_of(draft)) == 1 else []
    timeout = words.duration(draft.timeout_s) if draft.timeout_s else "none"
    facts = [
        ("digest", draft.digest),
        *single,
        ("cwd", line(_place(Path(draft.cwd)), 400)),
        ("timeout", timeout),
        ("budget", _budget(draft.usage_budget)),
        ("may start", f"{plural(draft.max_children, 'step')}, {draft.max_parallel} at a time" if draft.items else ""),
        ("tools may see", ", ".join(draft.tool_env)),
        ("tags", ", ".join(draft.tags)),
    ]
    return [(name, line(text, 1_000)) for name, text in facts if text]


def _budget(budget: UsageBudget | None) -> str:
    if budget is None:
        return ""
    tokens = f"{budget.tokens.hard:,.0f} tokens" if budget.tokens is not None else ""
    money = f"${budget.cost_usd.hard:g}" if budget.cost_usd is not None else ""
    return f"at most {' and '.join(filter(None, [tokens, money]))}"


def _step_facts(step: StepPlan) -> Iterator[tuple[str, str]]:
    model = step.model
    yield "agent", " · ".join(filter(None, [step.agent, step.agent_source, step.agent_where]))
    yield "agent digest", step.agent_digest
    written = f", written {model.requested}" if model.requested not in {"", model.label} else ""
    yield "model", f"{model.label} · {_WHY[model.origin]}{written}"
    if model.endpoint is not None:
        yield "endpoint", _USER.sub("//", model.endpoint.base_url)
    yield "key from", " or ".join(model.key_env) or "no key is needed"
    yield "thinking", step.thinking or model.thinking or "the model's default"
    yield "tools", ", ".join(step.tools) or "none"
    yield "prompt", f"{step.prompt_mode}s the default prompt"
    yield "limits", f"{plural(step.max_requests, 'request')}, {_tries(step.output_retries)} to fit a schema"
    if said := " · ".join(filter(None, [step.phase, step.description, step.goal])):
        yield "about", said
    if step.checkpoint_s:
        yield "checkpoint", f"{words.duration(step.checkpoint_s)} before its deadline"
    if step.max_output is not None:
        lines = f", {plural(step.max_output.lines, 'line')}" if step.max_output.lines is not None else ""
        yield "given on", f"at most {step.max_output.chars:,} characters{lines}"
    if step.timeout_s:
        yield "step timeout", words.duration(step.timeout_s)
    if step.output_schema is not None:
        yield "schema name", step.schema_name or "none"


def _tries(retries: int) -> str:
    return "1 retry" if retries == 1 else f"{retries} retries"


def _texts(step: StepPlan) -> Iterator[tuple[str, str]]:
    yield "task", step.task
    yield "system prompt", step.system_prompt
    if step.output_schema is not None:
        yield "schema", json.dumps(step.output_schema, indent=2, ensure_ascii=False)


def _shown(name: str, text: str) -> Child:
    return code(text) if name in {"digest", "agent digest", "cwd", "endpoint"} else text


def _verbatim(text: str) -> tuple[str, str]:
    """Return a text as it can be shown, and a remark on what can't be or is too much."""
    whole = clean(text)
    kept, left_out = cut(whole, MAX_PROMPT_CHARS)
    unseen = len(text.replace("\r\n", "\n")) - len(whole)
    remarks = [
        "empty" if not text else "",
        f"{plural(unseen, 'control character')} not shown" if unseen > 0 else "",
        f"{left_out:,} more characters not shown" if left_out else "",
    ]
    said = ", ".join(filter(None, remarks))
    return kept, f" ({said})" if said else ""


def _text(name: str, text: str, *, is_open: bool) -> Html:
    kept, remark = _verbatim(text)
    size = "" if remark == " (empty)" else f" · {plural(len(text), 'character')}"
    summary = element("summary", None, element("strong", None, name), styled("span", SOFT, size + remark))
    inside = styled("div", "margin-top:6px", pre(kept)) if kept else None
    return element("details", {"open": ""} if is_open else None, summary, inside)


def _listed(facts: Iterator[tuple[str, str]] | list[tuple[str, str]]) -> list[str]:
    pairs_ = [(name, line(text, 1_000)) for name, text in facts]
    width = max((len(name) for name, _ in pairs_), default=0)
    return [f"  {name.ljust(width)}  {text}" for name, text in pairs_]
