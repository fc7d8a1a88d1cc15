"""The runs below a run, on the page and in a terminal: a line for each, in the order of the tree."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from subagents_nb.blocks import Child, Either
from subagents_nb.domain.agents.agent import DELEGATE, REPLY
from subagents_nb.domain.runs.questions import brief
from subagents_nb.domain.runs.snapshot import Snapshot
from subagents_nb.domain.runs.tree_rows import TreeRow, below, to_person
from subagents_nb.domain.values import words
from subagents_nb.notebook.cards.shown import ASKS, LOOKS, Look
from subagents_nb.notebook.page.html import SOFT, colour, note, safe, soft, styled
from subagents_nb.notebook.page.lines import line, plural

MAX_ROWS, _FEW_ROWS = 64, 12
_LIST = "margin:0;padding:0;list-style:none;font-size:12px;overflow-wrap:anywhere"
_INDENT_PX = 18
_QUIET = {"complete", "queued"}


def tree_rows(snapshot: Snapshot) -> list[dict[str, Any]]:
    """Return the rows as the page has them, all bounded; nothing for a run that delegated nothing."""
    used = snapshot.usage_of_all
    tokens = used.input_tokens + used.output_tokens
    return [
        {
            "path": line(row.path, 300),
            "level": row.level,
            "name": _called(row),
            "agent": line(row.agent, 80),
            "state": "asking" if to_person(row.questions) else row.state.value,
            "now": _now(row, snapshot.tree),
            "elapsed_s": row.elapsed_s,
            "cost": words.cost(row.usage.cost_usd),
            "share": (row.usage.input_tokens + row.usage.output_tokens) / tokens if tokens else 0.0,
        }
        for row in snapshot.tree[:MAX_ROWS]
    ]


def tree_line(snapshot: Snapshot) -> str:
    """Say how large a tree is and what all of it used; nothing for a run that delegated nothing."""
    if not snapshot.tree:
        return ""
    used, live = snapshot.usage_of_all, sum(not row.state.ended for row in snapshot.tree)
    levels = 1 + max(row.level for row in snapshot.tree)
    parts = [
        f"a tree of {len(snapshot.tree) + 1} runs on {levels} levels",
        f"{live} at work" if live and not snapshot.ended else "",
        f"{words.tokens(used)} tokens" if used.input_tokens + used.output_tokens else "",
        f"{words.cost(used.cost_usd)} with all" if words.cost(used.cost_usd) else "",
    ]
    return " · ".join(filter(None, parts))


def tree(snapshot: Snapshot, room: int) -> Child:
    """Return the tree for a card, as a page and as a text have it."""
    if not snapshot.tree:
        return None
    most = MAX_ROWS if room > 1_200 else _FEW_ROWS
    shown, more = snapshot.tree[:most], len(snapshot.tree) - most
    rest = f"… and {plural(more, 'more run')}" if more > 0 else ""
    items = [styled("li", f"padding-left:{(row.level - 1) * _INDENT_PX}px", *_row(row, snapshot.tree)) for row in shown]
    page = safe(styled("ul", _LIST, *items, styled("li", SOFT, rest) if rest else None), note(tree_line(snapshot)))
    texts = [
        f"{'  ' * row.level}{_sign(row)} {row.path.rpartition('/')[2]}{_about(row, snapshot.tree)}" for row in shown
    ]
    return Either(page, "\n".join(filter(None, [tree_line(snapshot), *texts, rest and f"  {rest}"])))


def _row(row: TreeRow, all_rows: Sequence[TreeRow]) -> list[Child]:
    state = _state(row)
    look = LOOKS.get(state, Look("◌"))
    sign: Child = f"{look.icon} {state}"
    if look.tone and state not in _QUIET:
        sign = styled("span", f"color:{colour(look.tone)};font-weight:600", sign)
    return [
        sign,
        " ",
        styled("strong", "font-weight:600", line(row.path.rpartition("/")[2], 80)),
        soft(_about(row, all_rows)),
    ]


def _state(row: TreeRow) -> str:
    return ASKS if to_person(row.questions) else row.state.value


def _called(row: TreeRow) -> str:
    return line(row.path.rpartition("/")[2], 80)


def _sign(row: TreeRow) -> str:
    state = _state(row)
    return f"{LOOKS.get(state, Look('◌')).icon} {state}"


def _about(row: TreeRow, all_rows: Sequence[TreeRow]) -> str:
    tokens = row.usage.input_tokens + row.usage.output_tokens
    took = words.elapsed(row.elapsed_s) if row.elapsed_s >= 1 else ""
    facts = [
        _now(row, all_rows),
        took,
        f"{words.count(tokens)} tokens" if tokens else "",
        words.cost(row.usage.cost_usd),
    ]
    return "".join(f" · {fact}" for fact in facts if fact)


def _now(row: TreeRow, all_rows: Sequence[TreeRow]) -> str:
    """Say what a run does now, or what became of it: its question, why it failed, whom it waits for, its task."""
    if row.questions:
        first = row.questions[0]
        return f"{'asks its parent: ' if first.to == 'parent' else ''}“{line(brief(first), 200)}”"
    if row.error:
        return line(row.error, 200)
    if row.activity in (DELEGATE, REPLY):
        waited_for = [one for one in below(all_rows, row.path) if one.level == row.level + 1 and not one.state.ended]
        if waited_for:  # else they have ended, and it has not said yet what it does now
            return line(f"waits for {', '.join(map(_called, waited_for))}", 160)
        return line(row.label, 160)
    return line(row.activity if row.activity and not row.state.ended else row.label, 160)
