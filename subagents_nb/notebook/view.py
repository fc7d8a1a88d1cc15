"""A run as the page and the terminal know it: plain data and single lines, made from one reading of the files."""

from __future__ import annotations

import math
import re
import shlex
from typing import Any, NamedTuple

from subagents_nb.domain import words
from subagents_nb.domain.records import RECENT_TOOLS, TAIL_CHARS, StepStatus, ToolRow
from subagents_nb.domain.snapshot import Snapshot
from subagents_nb.domain.states import StepState
from subagents_nb.notebook.html import clean, cut, line, plural, scalar

UNREADABLE = "unreadable"  # documents are there, none of them says what the run came to
UNKNOWN = "unknown"  # nothing is there yet
_ERROR_CHARS = 1200
_MARKS = re.compile(r"\A(?:#+ |[-*>] |```\w*\Z)|\*\*|`")  # of Markdown, which a single line does not need
_SENTENCE = re.compile(r".+?[.!?](?=\s|$)", re.DOTALL)


class Look(NamedTuple):
    """How a state is shown besides its word: a sign that no font turns into an emoji, and a tone."""

    icon: str
    tone: str = ""


LOOKS = {
    "queued": Look("◷"),
    "running": Look("↻", "run"),
    "paused": Look("‖", "warn"),
    "complete": Look("✓", "ok"),
    "partial": Look("◐", "warn"),
    "failed": Look("✕", "bad"),
    "stopped": Look("■"),
    "rejected": Look("⊘", "bad"),
    "lost": Look("?", "bad"),
    UNREADABLE: Look("?", "bad"),
    UNKNOWN: Look("◌"),
}

_REASONS = {
    "timeout": "The deadline{limit} passed, and that ended it.",
    "stopped": "It was asked to stop.",
    "signal": "Its process was ended by a signal.",
    "provider": "The model's provider ended it with an error.",
    "auth": "The provider did not accept the key.",
    "rate-limit": "The provider's rate limit ended it.",
    "connection": "The connection to the model's provider failed.",
    "truncated": "The model ran out of room in the middle of its answer.",
    "schema": "It gave up: the answer did not fit the schema.",
    "context": "It gave up: the task grew beyond what the model can read.",
    "budget": "Its budget is used up, and that ended it.",
    "no-answer": "It gave up: the model gave no answer.",
    "model": "It gave up: the model can't do what was asked.",
    "setup": "It could not be set up.",
    "startup": "Its process ended before the work began.",
    "vanished": "Its process went away without a word.",
    "output-limit": "It wrote more than it may, and that ended it.",
    "internal": "A fault inside subagents_nb ended it.",
}
# Said after the reason, unless the reason has said it.
_ACTORS = {
    "person": "A person ended it.",
    "deadline": "The deadline{limit} ended it.",
    "budget": "A budget ended it.",
    "parent": "The run that had launched it ended it.",
    "outside": "Something outside subagents_nb did that.",
    "provider": "The model's provider ended it.",
    "unknown": "Nobody knows who ended it.",
}
# The reasons that name the actor already.
_NAMED_BY = {
    "deadline": {"timeout"},
    "budget": {"budget", "output-limit"},
    "unknown": {"startup"},
    "provider": {"provider", "auth", "rate-limit", "connection", "truncated", "context", "no-answer", "model"},
}


def shown_state(snapshot: Snapshot) -> str:
    """Return the word for the state; a run that can't be read has one too."""
    state = snapshot.state
    if state is not None:
        return state.value
    return UNREADABLE if snapshot.damage else UNKNOWN


def shown_name(snapshot: Snapshot) -> str:
    """Return the name as one clean line, the id if nothing says a name."""
    return line(snapshot.name, 80) or line(snapshot.run_id, 80)


def who(snapshot: Snapshot) -> tuple[str, str]:
    """Return the agent and the model, from the plan if no other document says them."""
    planned = snapshot.plan.steps[0] if snapshot.plan is not None else None
    agent = snapshot.agent or (planned.agent if planned else "")
    model = snapshot.model or (planned.model.label if planned else "")
    return line(agent, 80), line(model, 120)


def attach_command(snapshot: Snapshot) -> str:
    """Return the magic that shows the run again."""
    return f"%subagent_attach {shlex.quote(shown_name(snapshot))}"


def timeout_of(snapshot: Snapshot) -> float | None:
    """Return the run's deadline in seconds of work; None without one."""
    for document in (snapshot.result, snapshot.status, snapshot.plan):
        if document is not None:
            return document.timeout_s
    return None


def ending(snapshot: Snapshot) -> str:
    """Say in plain words why the run ended and who ended it; nothing for a run that lives or is complete."""
    document = snapshot.result or snapshot.verdict
    state = shown_state(snapshot)
    if state == UNREADABLE:
        return "What is on disk of this run can't be read, so nobody knows how it stands."
    if document is None or state == "complete":
        return ""
    reason, actor = document.reason or "unknown", document.actor
    timeout = timeout_of(snapshot)
    limit = f" of {words.duration(timeout)}" if timeout else ""
    said = [_REASONS.get(reason, ""), "" if reason in _NAMED_BY.get(actor, ()) else _ACTORS.get(actor, "")]
    whole = " ".join(s for s in said if s).format(limit=limit)
    return whole or f"The run ended as {state} by itself and left no reason."


def go_on(snapshot: Snapshot) -> tuple[str, str]:
    """Return the one thing to do next, as words and what to type."""
    if snapshot.ended and snapshot.reason == "timeout" and (timeout := timeout_of(snapshot)):
        minutes = math.ceil(min(2 * timeout, words.MAX_TIMEOUT_S) / 60)
        return "go on: run the cell again with", f"--timeout {minutes}m"
    return "look closer:" if snapshot.ended else "see it live:", attach_command(snapshot)


def refusals(snapshot: Snapshot) -> list[tuple[str, str, int]]:
    """Return what was refused as tool, reason and how often; only the last word of a run knows."""
    counted: dict[tuple[str, str], int] = {}
    for step in snapshot.result.steps if snapshot.result is not None else ():
        for refusal in step.refusals:
            key = (line(refusal.tool, 60) or "a tool", line(refusal.why, 160))
            counted[key] = counted.get(key, 0) + 1
    return [(tool, why, times) for (tool, why), times in counted.items()]


def value_summary(snapshot: Snapshot, limit: int = 160) -> str:
    """Say what the run gave, in a few words: the value's kind and size, or how long the text is."""
    if not snapshot.has_value:
        return plural(len(snapshot.text), "character") + " of text" if snapshot.text else ""
    value = snapshot.value
    named = snapshot.plan.steps[-1].schema_name if snapshot.plan is not None else None
    if isinstance(value, list):
        return line(f"{named or 'list'}, {plural(len(value), 'item')}", limit)
    if isinstance(value, dict):
        lists = [v for v in value.values() if isinstance(v, list)]
        if len(lists) == 1:
            return line(f"{named or 'object'}, {plural(len(lists[0]), 'item')}", limit)
        shown = ", ".join(str(key) for key in list(value)[:6]) + (", …" if len(value) > 6 else "")
        return line(f"{named or 'object'} with {shown or 'no fields'}", limit)
    return scalar(value, limit)


def now(snapshot: Snapshot, limit: int = 120) -> str:
    """Say what a run does now, or what came of it: a tool, a word, the first line of the error or the answer."""
    if not snapshot.ended:
        step = _current(snapshot)
        running = [t.name for t in step.tools if t.state == "running"] if step is not None else []
        if snapshot.status is not None and snapshot.status.stopping:
            return "stopping"
        return line(running[-1] if running else step.activity if step is not None else "", limit)
    if shown_state(snapshot) in {"complete", "partial"}:
        rows = (_MARKS.sub("", line(row, limit)).strip() for row in clean(snapshot.text).splitlines())
        first = next(filter(None, rows), "")
        answer = value_summary(snapshot, limit) if snapshot.has_value or not first else first
        return line(answer or ending(snapshot), limit)
    return line(_first_sentence(snapshot.error or "") or ending(snapshot), limit)


def text_line(snapshot: Snapshot) -> str:
    """Return one plain line for terminals and `text/plain`. The same reading gives the same line: no times, no ids."""
    state, agent = shown_state(snapshot), who(snapshot)[0]
    lead = f"{shown_name(snapshot)} ({agent}) {state}" if agent else f"{shown_name(snapshot)} {state}"
    count = snapshot.refusals
    refused = f" · {plural(count, 'tool call')} refused" if count else ""
    if not snapshot.ended:
        return f"{lead}{refused} · attach again with {attach_command(snapshot)}"
    said = now(snapshot, 200)
    return f"{lead}{': ' + said if said else ''}{refused}"


def widget_state(snapshot: Snapshot) -> dict[str, Any]:
    """Return exactly the traits that the page knows, all bounded. The page cleans the tail, whose length counts."""
    state, usage, step = shown_state(snapshot), snapshot.usage, _current(snapshot)
    agent, model = who(snapshot)
    tail = snapshot.tail[-TAIL_CHARS:].encode("utf-8", "replace").decode("utf-8")
    streamed = step.tail_end if step is not None and step.tail == snapshot.tail else 0
    error, more = cut(clean(snapshot.error or "").strip(), _ERROR_CHARS)
    return {
        "run_id": line(snapshot.run_id, 80),
        "name": shown_name(snapshot),
        "state": "lost" if state == UNREADABLE else state,
        "agent": agent,
        "model": model,
        "elapsed_s": snapshot.elapsed_s,
        "deadline_s": timeout_of(snapshot),
        "tokens_in": usage.input_tokens,
        "tokens_out": usage.output_tokens,
        "cost": words.cost(usage.cost_usd),
        "tool_calls": usage.tool_calls,
        "tool_limit": None,
        "refusals": snapshot.refusals,
        "tools": [_tool(row) for row in _tools(snapshot, step)[-RECENT_TOOLS:]],
        "tail": tail,
        "tail_end": max(streamed, len(tail)),
        "note": line(snapshot.notes[0], 300) if snapshot.notes else "",
        "error": error + " …" if more else error,
        "reason": ending(snapshot),
        "stopping": bool(snapshot.status is not None and snapshot.status.stopping and not snapshot.ended),
    }


def _tools(snapshot: Snapshot, step: StepStatus | None) -> tuple[ToolRow, ...]:
    if step is not None and step.tools:
        return step.tools
    return snapshot.result.steps[-1].tools if snapshot.result is not None and snapshot.result.steps else ()


def _current(snapshot: Snapshot) -> StepStatus | None:
    """Return the step that works, else the last one that has begun."""
    steps = snapshot.status.steps if snapshot.status is not None else ()
    working = [s for s in steps if s.state is StepState.RUNNING]
    begun = [s for s in steps if s.state is not StepState.PENDING]
    found = working or begun
    return found[-1] if found else None


def _tool(row: ToolRow) -> dict[str, Any]:
    return {"name": line(row.name, 60), "args": line(row.args, 160), "state": row.state, "seconds": row.seconds}


def _first_sentence(text: str) -> str:
    flat = " ".join(clean(text).split())
    found = _SENTENCE.match(flat[:2000])
    return found[0] if found else flat
