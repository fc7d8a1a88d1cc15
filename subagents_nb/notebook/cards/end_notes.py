"""Why a run ended, what it left, and the one thing to do next, in plain words."""

from __future__ import annotations

import math
import re

from subagents_nb.domain.runs.control import Retuned
from subagents_nb.domain.runs.questions import OpenQuestion, brief
from subagents_nb.domain.runs.records import ToolRow
from subagents_nb.domain.runs.resuming import chain_can_resume
from subagents_nb.domain.runs.snapshot import Snapshot
from subagents_nb.domain.runs.states import RunState
from subagents_nb.domain.runs.tree_rows import asker_of
from subagents_nb.domain.values import words
from subagents_nb.notebook.cards.shown import UNREADABLE, command, shown_state
from subagents_nb.notebook.page.lines import line, plural

_MAX_RETUNES = 3
_CLOCK = re.compile(r"T(\d\d:\d\d)")

_REASONS = {
    "timeout": "The deadline{limit} passed, and that ended it.",
    "stopped": "It was asked to stop.",
    "interrupted": "It was interrupted, and its session is kept: it can go on.",
    "signal": "Its process was ended by a signal.",
    "provider": "The model's provider ended it with an error.",
    "auth": "The provider did not accept the key.",
    "rate-limit": "The provider's rate limit ended it.",
    "connection": "The connection to the model's provider failed.",
    "truncated": "The model's answer was cut before it was complete.",
    "filtered": "A content filter stopped the answer, or the model refused it.",
    "schema": "It gave up: the answer did not fit the schema.",
    "context": "It gave up: the task grew beyond what the model can read.",
    "budget": "Its budget is used up, and that ended it.",
    "no-answer": "It gave up: the model gave no answer.",
    "model": "It gave up: the model can't do what was asked.",
    "other-model": "Another model answered than the one that was asked.",
    "setup": "It could not be set up.",
    "startup": "Its process ended before the work began.",
    "vanished": "Its process went away without a word.",
    "output-limit": "It wrote more than it may, and that ended it.",
    "internal": "A fault inside subagents_nb ended it.",
    "rejected": "A step's work was not accepted.",
    "fan-out": "A fan-out could not be carried out.",
    "placeholder": "A task refers to something that is not there.",
    "child": "Not all of its steps completed.",
    "attached": "The run that it goes on from gave no output.",
    "worktree": "A git worktree could not be made or kept.",
    "fail-fast": "It was not started, since a step beside it failed.",
    "drained": "It was asked to start nothing new.",
    "not-stored": "It came to its end, and no disk took the result.",
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
    "person": {"interrupted"},
    "deadline": {"timeout"},
    "budget": {"budget", "output-limit"},
    "unknown": {"startup"},
    "provider": {
        "provider",
        "auth",
        "rate-limit",
        "connection",
        "truncated",
        "context",
        "no-answer",
        "model",
        "other-model",
        "filtered",
    },
}
# With these the run's own last word tells it, and more: whether a deadline passed or the limit of a tool.
_SAID_BY_THE_RUN = {"interrupted", "stopped", "budget", "timeout"}
# With these the run's own words say which step it was.
_SAID_BY_THE_CHAIN = {"rejected", "fan-out", "placeholder", "child", "attached", "fail-fast", "drained"}
# What a limit is called, where its name does not say it.
_LIMITS = {"max_requests": "requests", "concurrency": "steps at a time", "cost_usd": "cost in dollars"}


def ending(snapshot: Snapshot) -> str:
    """Say in plain words why the run ended and who ended it; nothing for a run that lives or is complete."""
    document = snapshot.terminal_record
    state = shown_state(snapshot)
    if state == UNREADABLE:
        return "What is on disk of this run can't be read, so nobody knows how it stands."
    if document is None or state == "complete":
        return ""
    if snapshot.ended_in_queue:
        return "It waited for a free place and never began."
    reason, actor = document.reason or "unknown", document.actor
    timeout = snapshot.timeout_s
    limit = f" of {words.duration(timeout)}" if timeout else ""
    phrases = [_REASONS.get(reason, ""), "" if reason in _NAMED_BY.get(actor, ()) else _ACTORS.get(actor, "")]
    sentence = " ".join(s for s in phrases if s).format(limit=limit)
    return sentence or f"The run ended as {state} by itself and left no reason."


def says_it_all(snapshot: Snapshot) -> bool:
    """Whether the run's own last word tells why it ended, so that the same in our words would only repeat it."""
    reason = snapshot.reason or "unknown"
    if not snapshot.error or snapshot.ended_in_queue:
        return False
    if snapshot.stages and reason in _SAID_BY_THE_CHAIN:
        return True
    if reason == "signal":
        return snapshot.result is not None  # it lived to say so itself
    return reason in _SAID_BY_THE_RUN


def says_nothing_restarts(snapshot: Snapshot) -> bool:
    """Whether the run's last word says that nothing restarts by itself, as that of a lost one does."""
    return snapshot.terminal_record is not None and snapshot.state is RunState.LOST


def next_action(snapshot: Snapshot, *, has_session: bool | None = None, by_name: bool = False) -> tuple[str, str]:
    """Return the one thing to do next, as words and what to type.

    `has_session` says whether the run left a session that can be resumed; None: nobody has looked.
    """
    if snapshot.questions:
        first, *others = snapshot.questions
        flags = f"--question {first.question_id}" if others or first.permission is not None else ""
        return "answer it:", command(snapshot, "answer", flags, "…", by_name=by_name)
    state = shown_state(snapshot)
    if not snapshot.ended:
        return "see it live:", command(snapshot, "attach")
    if state in {"complete", UNREADABLE}:
        return "look closer:", command(snapshot, "attach")
    if snapshot.stages:
        if state == "rejected" or not chain_can_resume(snapshot):
            return "start over:", command(snapshot, "again")
        return "go on with the rest:", command(snapshot, "resume", _more_of_chain(snapshot), "…")
    if has_session is None:
        has_session = snapshot.usage.requests > 0
    if state in {"stopped", "rejected"} or not has_session:
        return "start over:", command(snapshot, "again")
    return "go on from here:", command(snapshot, "resume", _more(snapshot), "…")


def _more(snapshot: Snapshot) -> str:
    """Return the flags without which a resumed run would have nothing left of its limits."""
    flags = []
    timeout = snapshot.timeout_s
    if timeout and (snapshot.reason == "timeout" or snapshot.elapsed_s >= timeout):
        flags.append(f"--timeout {math.ceil(min(2 * timeout, words.MAX_TIMEOUT_S) / 60)}m")
    if budget := _more_to_use(snapshot):
        flags.append(budget)
    elif snapshot.reason == "budget":
        flags.append(f"--max-requests {snapshot.usage.requests}")
    return " ".join(flags)


def _more_of_chain(snapshot: Snapshot) -> str:
    """Return the flags without which a chain that goes on would have nothing left of its own limits or of a step's."""
    flags = []
    steps = snapshot.result.steps if snapshot.result is not None else ()
    deadline, worked = snapshot.timeout_s, 0.0
    if deadline and snapshot.elapsed_s >= deadline:
        worked = deadline
    for step in steps:
        if step.reason == "timeout" and step.started_s is not None and step.ended_s is not None:
            worked = max(worked, step.ended_s - step.started_s)
    if worked:
        flags.append(f"--timeout {math.ceil(min(2 * worked, words.MAX_TIMEOUT_S) / 60)}m")
    budget = _more_to_use(snapshot)
    requests = max((one.usage.requests for one in steps if one.reason == "budget"), default=0)
    if budget:
        flags.append(budget)
    elif requests and not _is_used_up(snapshot):
        flags.append(f"--max-requests {requests}")
    return " ".join(flags)


def _more_to_use(snapshot: Snapshot) -> str:
    """Return the flag that gives as much again as was used of a usage budget that is used up."""
    usage, budget = snapshot.usage_of_all, snapshot.usage_budget
    if snapshot.reason != "budget" or budget is None or not _is_used_up(snapshot):
        return ""
    if budget.tokens is None and usage.cost_usd:
        return f"--usage-budget '${usage.cost_usd:.2g}'"
    return f"--usage-budget {usage.input_tokens + usage.output_tokens}"


def _is_used_up(snapshot: Snapshot) -> bool:
    budget = snapshot.usage_budget
    return budget is not None and budget.judge(snapshot.usage_of_all) == "hard-reached"


def question_line(snapshot: Snapshot, question: OpenQuestion) -> str:
    """Say a question and what may be answered, in one line; of a chain, who asks it."""
    choices = " / ".join(line(choice, 60) for choice in question.choices)
    return f"{asker(snapshot, question)}“{line(brief(question), 300)}”{f' ({choices})' if choices else ''}"


def asker(snapshot: Snapshot, question: OpenQuestion) -> str:
    """Name who asks, with a colon behind it: a run below, the step of a chain; nothing for a run of one step."""
    if below := asker_of(question.question_id):
        return f"{line(below, 120)}: "
    if not snapshot.stages:
        return ""
    steps = snapshot.status.steps if snapshot.status is not None else ()
    step = next((one for one in steps if one.index == question.step), None)
    called = line(step.label or step.agent, 40) if step is not None else ""
    return f"steps[{question.step}]{f' ({called})' if called else ''}: "


def refusals(snapshot: Snapshot) -> list[tuple[str, str, int]]:
    """Return what was refused as tool, reason and how often; only the last word of a run knows."""
    counted: dict[tuple[str, str], int] = {}
    for step in snapshot.result.steps if snapshot.result is not None else ():
        for refusal in step.refusals:
            key = (line(refusal.tool, 60) or "a tool", line(refusal.why, 160))
            counted[key] = counted.get(key, 0) + 1
    return [(tool, why, times) for (tool, why), times in counted.items()]


def at_work(rows: tuple[ToolRow, ...]) -> str:
    """Say which tools were at work at the end."""
    parts = [f"{line(row.name, 60) or 'a tool'}{_with(row)}{_for(row)}" for row in rows[:3]]
    more = [f"and {len(rows) - 3:,} more"] if len(rows) > 3 else []
    return f"At work at the end: {', '.join(parts + more)}." if rows else ""


def _with(row: ToolRow) -> str:
    return f" ({shown})" if (shown := line(row.args, 100)) else ""


def _for(row: ToolRow) -> str:
    return f" for {words.duration(round(row.seconds))}" if row.seconds and row.seconds >= 1 else ""


def changed(files: tuple[str, ...], most: int) -> tuple[str, list[str], str]:
    """Return how to lead to the files that were changed, the names of `most` of them, and how many more there are."""
    if not files:
        return "", [], ""
    were = "was" if len(files) == 1 else "were"
    more = f"and {len(files) - most:,} more" if len(files) > most else ""
    return f"{plural(len(files), 'file')} {were} changed and kept:", [line(f, 120) for f in files[:most]], more


def retuned(changes: tuple[Retuned, ...]) -> str:
    """Say in one line which limits were changed while it worked, by whom and when."""
    parts = [_retuned(change) for change in changes[-_MAX_RETUNES:]]
    earlier = len(changes) - len(parts)
    before = [plural(earlier, "earlier change")] if earlier else []
    return f"limits changed: {'; '.join([*before, *parts])}" if parts else ""


def _retuned(change: Retuned) -> str:
    limits = [f"{_limit(name)} {_amount(name, value)}" for name, value in change.changes.items()]
    at = _CLOCK.search(change.at)
    whence = ", ".join(filter(None, [line(change.by, 60), f"{at[1]} UTC" if at else ""]))
    return f"{', '.join(limits)}{f' ({whence})' if whence else ''}"


def _limit(name: str) -> str:
    return _LIMITS.get(name) or line(name.removesuffix("_s").replace("_", " "), 40)


def _amount(name: str, value: float) -> str:
    return words.duration(value) if name.endswith("_s") else f"{value:,.12g}"
