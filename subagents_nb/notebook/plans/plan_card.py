"""What a launch would do, before it does it: the whole plan, prompts included, because somebody asked to see it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from subagents_nb.blocks import Child, DescriptionList, Either, clean, page_only
from subagents_nb.catalog.search_paths import shown_folder
from subagents_nb.domain.plans.budgets import UsageBudget
from subagents_nb.domain.plans.plan import Draft, StepPlan
from subagents_nb.domain.policy.policy import Ceiling
from subagents_nb.domain.policy.tool_names import shown_tool
from subagents_nb.domain.values import words
from subagents_nb.notebook.cards.shown import folder_name
from subagents_nb.notebook.page.html import bar, code, element, frame, note, pre, safe, soft, styled
from subagents_nb.notebook.page.lines import cut, line, plural
from subagents_nb.notebook.plans.plan_stages import stage_lines, steps_of, totals

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


def plan(draft: Draft) -> Child:
    """Show the whole plan of a launch that has not happened."""
    title = safe(element("strong", None, "Plan"), " ", soft(f"{_title(draft)} · nothing was launched"))
    body: list[Child] = [_listed(_facts(draft))]
    if draft.items:
        body.append(DescriptionList(stage_lines(draft), caption=f"Stages: {totals(draft)}"))
    steps = steps_of(draft)
    for called, step in steps[:_MOST_STEPS]:
        if len(steps) > 1:
            body.append(_listed(_step_facts(step), called))
        of_step = f"{called.lower()}: " if len(steps) > 1 else ""
        is_open = "task" if len(steps) <= _FEW else ""
        body += [_text(of_step, name, text, is_open=name == is_open) for name, text in _texts(step)]
    notes = [line(text, 400) for text in draft.notes]
    body += [Either(note(text), ("" if index else "\n") + f"note: {text}") for index, text in enumerate(notes)]
    return frame("Plan of a launch", Either(bar(title), f"Plan: {_title(draft)} (nothing was launched)"), body)


def _title(draft: Draft) -> str:
    return line(draft.name, 80) if draft.name else "no name yet"


def _facts(draft: Draft) -> list[tuple[str, str]]:
    single = list(_step_facts(draft.steps[0])) if len(draft.steps) == 1 and len(steps_of(draft)) == 1 else []
    timeout = words.duration(draft.timeout_s) if draft.timeout_s else "none"
    facts = [
        ("digest", draft.digest),
        *single,
        ("cwd", line(folder_name(shown_folder(Path(draft.cwd))), 400)),
        ("timeout", timeout),
        ("budget", _budget(draft.usage_budget)),
        ("may start", f"{plural(draft.max_children, 'step')}, {draft.max_parallel} at a time" if draft.items else ""),
        ("tools may see", ", ".join(draft.tool_env)),
        ("allowed here", ", ".join(draft.allowed)),
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
    if step.session is not None:
        how = "a copy, for reference" if step.session.fork else "goes on from a copy"
        yield "conversation", f"{step.session.run_id}/step {step.session.step}, {how}"
    if step.prompt_cache is not None:
        yield "prompt cache", step.prompt_cache
    if step.fast:
        yield "tier", "the provider's faster one"
    if step.response_aliases:
        yield "may answer as", ", ".join(step.response_aliases)
    yield "tools", ", ".join(map(shown_tool, step.tools)) or "none"
    if step.mcp:
        yield "MCP servers", "; ".join(f"{one.name} ({line(one.says, 120)})" for one in step.mcp)
    if step.children:
        yield "delegates to", "; ".join(map(_child, step.children))
    if step.skills:
        yield "skills", "; ".join(f"{one.name} ({plural(one.files, 'file')}, {one.where})" for one in step.skills)
    if step.memory is not None:
        yield "memory", f"{step.memory.path} of the {step.memory.scope}{'' if step.memory.writes else ', to read only'}"
    for one in step.policy.ceilings if step.policy is not None else ():
        yield f"policy of {line(one.origin, 80)}", _ceiling(one)
    if step.sandbox is not None:
        wants = step.policy.wants_sandbox if step.policy is not None else None
        by = f" · {line(wants.origin, 80)}" if wants is not None and wants.origin else ""
        yield "sandbox", f"{step.sandbox.kind}, {'with the' if step.sandbox.network else 'no'} network{by}"
    if step.acceptance is not None and step.acceptance.verify:
        runs = step.acceptance.verify
        yield "verified by", f"{plural(len(runs), 'command')}: {'; '.join(line(one.command, 200) for one in runs)}"
    yield "prompt", f"{step.prompt_mode}s the default prompt"
    yield "limits", f"{plural(step.max_requests, 'request')}, {_tries(step.output_retries)} to fit a schema"
    if about := " · ".join(filter(None, [step.phase, step.lane, step.description, step.goal])):
        yield "about", about
    if step.checkpoint_s:
        yield "checkpoint", f"{words.duration(step.checkpoint_s)} before its deadline"
    if step.max_output is not None:
        lines = f", {plural(step.max_output.lines, 'line')}" if step.max_output.lines is not None else ""
        yield "given on", f"at most {step.max_output.chars:,} characters{lines}"
    if step.timeout_s:
        yield "step timeout", words.duration(step.timeout_s)
    if step.output_schema is not None:
        yield "schema name", step.schema_name or "none"


def _child(step: StepPlan) -> str:
    """Say what an agent that may be started has: it acts with no further question of ours."""
    below = f"; delegates to {', '.join(map(_child, step.children))}" if step.children else ""
    return f"{step.agent} ({step.model.label}; {', '.join(step.tools) or 'no tools'}{below})"


def _ceiling(one: Ceiling) -> str:
    """Say what one source allows at most, as it is written there."""
    fields = one.model_dump(exclude={"origin", "ask_timeout_s"}, exclude_defaults=True)
    parts = [
        f"{key} {', '.join(value) or 'none'}" if isinstance(value, tuple) else f"{key} {value}"
        for key, value in fields.items()
    ]
    parts += [f"asks for {words.duration(one.ask_timeout_s)}"] if one.ask_timeout_s is not None else []
    return " · ".join(parts)


def _tries(retries: int) -> str:
    return "1 retry" if retries == 1 else f"{retries} retries"


def _texts(step: StepPlan) -> Iterator[tuple[str, str]]:
    yield "task", step.task
    yield "system prompt", step.system_prompt
    if step.output_schema is not None:
        yield "schema", json.dumps(step.output_schema, indent=2, ensure_ascii=False)


def _shown(name: str, text: Child) -> Child:
    return code(text) if name in {"digest", "agent digest", "cwd", "endpoint"} else text


def _verbatim(text: str) -> tuple[str, str]:
    """Return a text as it can be shown, and a remark on what can't be or is too much."""
    text_shown = clean(text)
    kept, left_out = cut(text_shown, MAX_PROMPT_CHARS)
    unseen = len(text.replace("\r\n", "\n")) - len(text_shown)
    remarks = [
        "empty" if not text else "",
        f"{plural(unseen, 'control character')} not shown" if unseen > 0 else "",
        f"{left_out:,} more characters not shown" if left_out else "",
    ]
    title = ", ".join(filter(None, remarks))
    return kept, f" ({title})" if title else ""


def _text(of_step: str, name: str, text: str, *, is_open: bool) -> Child:
    kept, remark = _verbatim(text)
    size = "" if remark == " (empty)" else f" · {plural(len(text), 'character')}"
    title = element("strong", None, page_only(of_step), name)
    summary = element("summary", None, title, Either(soft(size + remark), remark))
    inside = styled("div", "margin-top:6px", pre(kept)) if kept else None
    return element("details", {"open": ""} if is_open else None, summary, inside or Either(None, pre("")))


def _listed(facts: Iterable[tuple[str, str]], caption: str = "") -> Child:
    return DescriptionList([(name, _shown(name, Either(text, line(text, 1_000)))) for name, text in facts], caption)
