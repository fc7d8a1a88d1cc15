"""A run as the page and the terminal know it: plain data and single lines, made from one reading of the files."""

from __future__ import annotations

import re
from typing import Any

from subagents_nb.blocks import clean
from subagents_nb.domain.policy.permissions import PermissionRequest, heading_of
from subagents_nb.domain.runs.questions import OpenQuestion, brief
from subagents_nb.domain.runs.records import RECENT_TOOLS, TAIL_CHARS, StepStatus, ToolRow
from subagents_nb.domain.runs.snapshot import Snapshot
from subagents_nb.domain.runs.states import StepState
from subagents_nb.domain.runs.tree_rows import asker_of
from subagents_nb.domain.values import words
from subagents_nb.notebook.cards.end_notes import asker, ending, next_action, question_line
from subagents_nb.notebook.cards.graph import launch_notes, mode_of, so_far, step_rows
from subagents_nb.notebook.cards.graph_feed import awaited, drawn
from subagents_nb.notebook.cards.reused import anew_line, other_notes
from subagents_nb.notebook.cards.shown import ASKS, UNREADABLE, command, shown_name, shown_state, who
from subagents_nb.notebook.cards.tree_card import tree_line, tree_rows
from subagents_nb.notebook.page.lines import cut_clean, line, plural, scalar

_ERROR_CHARS = 1200
_GRANTS = 5
_QUESTIONS, _QUESTION_CHARS = 4, 2000  # those beyond are shown when these are answered
_LOOKED_THROUGH = 20_000  # characters of a text of which one line is shown
_MARKS = re.compile(r"\A(?:#+ |[-*>] |```\w*\Z)|\*\*|`")  # of Markdown, which a single line does not need
_SENTENCE = re.compile(r".+?[.!?](?=\s|$)", re.DOTALL)


def value_summary(snapshot: Snapshot, limit: int = 160) -> str:
    """Say what the run gave, in a few words: the value's kind and size, or how long the text is."""
    if not snapshot.has_value:
        return plural(len(snapshot.text), "character") + " of text" if snapshot.text else ""
    value = snapshot.value
    named = _schema_name(snapshot)
    if isinstance(value, list):
        return line(f"{named or 'list'}, {plural(len(value), 'item')}", limit)
    if isinstance(value, dict):
        lists = [v for v in value.values() if isinstance(v, list)]
        if len(lists) == 1:
            return line(f"{named or 'object'}, {plural(len(lists[0]), 'item')}", limit)
        shown = ", ".join(str(key) for key in list(value)[:6]) + (", …" if len(value) > 6 else "")
        return line(f"{named or 'object'} with {shown or 'no fields'}", limit)
    return scalar(value, limit)


def _schema_name(snapshot: Snapshot) -> str | None:
    steps = snapshot.plan.steps if snapshot.plan is not None else ()
    if not snapshot.stages:
        return steps[-1].schema_name if steps else None
    answered = getattr(snapshot.answer, "index", None)
    return next((step.schema_name for step in steps if step.index == answered), None)


def now(snapshot: Snapshot, limit: int = 120) -> str:
    """Say what a run does now, or what came of it: its question, a tool, the first line of the error or the answer."""
    if not snapshot.ended:
        return line(_doing(snapshot), limit)
    if shown_state(snapshot) in {"complete", "partial"}:
        head = clean(snapshot.text[:_LOOKED_THROUGH])
        rows = (_MARKS.sub("", line(row, limit)).strip() for row in head.splitlines())
        first = next(filter(None, rows), "")
        answer = value_summary(snapshot, limit) if snapshot.has_value or not first else first
        return line(answer or ending(snapshot), limit)
    return line(_first_sentence(snapshot.error or "") or ending(snapshot), limit)


def _doing(snapshot: Snapshot) -> str:
    if snapshot.status is not None and snapshot.status.stopping:
        return "stopping"
    if snapshot.questions:
        first = snapshot.questions[0]
        return f"{asker(snapshot, first)}“{line(brief(first), 118)}”"
    if snapshot.waits_for_slot:
        return f"waits for {snapshot.waits_for}"
    if snapshot.stages:
        return attention_line(snapshot) or so_far(step_rows(snapshot))
    step = _current(snapshot)
    running = [row.name for row in snapshot.open_tools]
    return attention_line(snapshot) or (running[-1] if running else step.activity if step is not None else "")


def attention_line(snapshot: Snapshot) -> str:
    """Say why a live run may need a look, up to its last sign of life; a question says it by itself."""
    attention = snapshot.attention
    if attention is None or attention.kind == "question":
        return ""
    return line(attention.after(words.duration(_rounded(snapshot.elapsed_s - attention.since_s))), 300)


def _rounded(seconds: float) -> float:
    return round(seconds) if seconds < 90 else 60 * round(seconds / 60)


def text_line(snapshot: Snapshot) -> str:
    """Return one plain line for terminals and `text/plain`. The same reading gives the same line: no times, no ids."""
    state, agent = shown_state(snapshot), who(snapshot)[0]
    lead = f"{shown_name(snapshot)} ({agent}) {state}" if agent else f"{shown_name(snapshot)} {state}"
    count = snapshot.refusals
    refused = f" · {plural(count, 'tool call')} refused" if count else ""
    if state == ASKS:
        answer = next_action(snapshot, by_name=True)[1]
        return f"{lead}: {question_line(snapshot, snapshot.questions[0])}{refused} · answer with {answer}"
    if not snapshot.ended:
        waits = f" · waits for {snapshot.waits_for}" if snapshot.waits_for_slot else ""
        if snapshot.attention is not None and snapshot.attention.kind == "unheard":
            waits = " · no word from its process"
        return f"{lead}{waits}{refused} · attach again with {command(snapshot, 'attach', by_name=True)}"
    phrase = now(snapshot, 200)
    return f"{lead}{': ' + phrase if phrase else ''}{refused}"


def live_text(snapshot: Snapshot, reused: str = "") -> str:
    """Return what stands for a live view where none can be shown: the one line, and how the launch came by the run."""
    return "\n".join(filter(None, [text_line(snapshot), reused or anew_line(snapshot)]))


def standing_text(snapshot: Snapshot, reused: str = "") -> str:
    """Return what stands below a live view in plain text; it may be saved and read much later, so it names no state."""
    text = f"{shown_name(snapshot)} ({who(snapshot)[0]}) · how it stands: {command(snapshot, 'attach')}"
    return f"{text}\n{reused}" if reused else text


def widget_state(snapshot: Snapshot, reused: str = "") -> dict[str, Any]:
    """Return exactly the traits that the page knows, all bounded. The page cleans the tail, whose length counts.

    `reused` is what is said of a launch that found the run.
    """
    state, usage, step = shown_state(snapshot), snapshot.usage, _current(snapshot)
    budget = snapshot.usage_budget
    chain, notes = bool(snapshot.stages), other_notes(snapshot)
    agent, model = mode_of(snapshot) if chain else who(snapshot)
    tail = "" if chain else snapshot.tail[-TAIL_CHARS:].encode("utf-8", "replace").decode("utf-8")
    streamed = step.tail_end if not chain and step is not None and step.tail == snapshot.tail else 0
    error, more = cut_clean((snapshot.error or "").strip(), _ERROR_CHARS)
    return {
        "run_id": line(snapshot.run_id, 80),
        "name": shown_name(snapshot),
        "state": {UNREADABLE: "lost", ASKS: "running"}.get(state, state),
        "agent": agent,
        "model": model,
        "elapsed_s": snapshot.elapsed_s,
        "deadline_s": snapshot.timeout_s,
        "tokens_in": usage.input_tokens,
        "tokens_out": usage.output_tokens,
        "cost": words.cost(usage.cost_usd),
        "tool_calls": usage.tool_calls,
        "tool_limit": None if chain or step is None else step.tool_limit,
        "spend": budget.words(snapshot.usage_of_all) if budget is not None else "",
        "spent": budget.share(snapshot.usage_of_all) if budget is not None else None,
        "refusals": snapshot.refusals,
        "tools": [] if chain else [_tool(row) for row in _tools(snapshot, step)[-RECENT_TOOLS:]],
        "tail": tail,
        "tail_end": max(streamed, len(tail)),
        "silent": awaited(step) if not (chain or snapshot.ended) else "",
        "note": line(" · ".join(filter(None, [tree_line(snapshot), launch_notes(snapshot), *notes[:1]])), 300),
        "reused": line(reused, 300) or anew_line(snapshot),
        "error": error + " …" if more else error,
        "reason": f"It waits for {snapshot.waits_for}." if snapshot.waits_for_slot else ending(snapshot),
        "attention": attention_line(snapshot),
        "waited_s": snapshot.waited_s,
        "questions": [question_row(snapshot, question) for question in snapshot.questions[:_QUESTIONS]],
        "stopping": bool(snapshot.status is not None and snapshot.status.stopping and not snapshot.ended),
        "graph": drawn(snapshot),
        "tree": tree_rows(snapshot),
    }


def question_row(snapshot: Snapshot, question: OpenQuestion) -> dict[str, Any]:
    """Return a question as the page knows it, with the call that waits for a yes."""
    if question.permission is not None:
        return _permission(snapshot, question, question.permission)
    text, more = cut_clean(asker(snapshot, question) + question.text.strip(), _QUESTION_CHARS)
    choices = [line(choice, 200) for choice in question.choices]
    return {"id": question.question_id, "text": text + " …" if more else text, "choices": choices}


def _permission(snapshot: Snapshot, question: OpenQuestion, asked: PermissionRequest) -> dict[str, Any]:
    """Return the call that waits for a yes, as the page shows it."""
    parts = [
        {"name": line(one.name, 60), "kind": one.kind, "text": clean(one.text), "cut": one.cut, "marked": one.marked}
        for one in asked.parts
    ]
    asks = line(asker_of(question.question_id), 120)
    call = {"tool": line(asked.tool, 80), "asker": asks, "reason": line(asked.reason, 600), "parts": parts}
    left = len(asked.for_run) - _GRANTS
    call["for_run"] = [line(one, 160) for one in asked.for_run[:_GRANTS]] + ([f"{left} more"] if left > 0 else [])
    text = f"{asker(snapshot, question)}{heading_of(line(asked.tool, 80))}"
    return {"id": question.question_id, "text": text, "choices": [], "permission": call}


def _tools(snapshot: Snapshot, step: StepStatus | None) -> tuple[ToolRow, ...]:
    if step is not None and step.tools:
        return step.tools
    return snapshot.result.steps[-1].tools if snapshot.result is not None and snapshot.result.steps else ()


def _current(snapshot: Snapshot) -> StepStatus | None:
    """Return the step that works, else the last one that has begun."""
    steps = snapshot.status.steps if snapshot.status is not None else ()
    working = [s for s in steps if s.state is StepState.RUNNING]
    begun = [s for s in steps if s.state is not StepState.PENDING]
    step = working or begun
    return step[-1] if step else None


def _tool(row: ToolRow) -> dict[str, Any]:
    return {"name": line(row.name, 60), "args": line(row.args, 160), "state": row.state, "seconds": row.seconds}


def _first_sentence(text: str) -> str:
    flat = " ".join(clean(text[:_LOOKED_THROUGH]).split())
    match = _SENTENCE.match(flat[:2000])
    return match[0] if match else flat
