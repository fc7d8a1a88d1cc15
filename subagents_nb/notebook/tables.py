"""Tables: of runs, of agents, and of the records a run gave. The text twins serve terminals and `text/plain`."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Sequence
from typing import Any

from subagents_nb.domain import words
from subagents_nb.domain.agent import AgentCatalog, AgentDefinition
from subagents_nb.domain.snapshot import Snapshot
from subagents_nb.notebook.html import (
    QUIET,
    SOFT,
    Column,
    Html,
    bar,
    colour,
    element,
    frame,
    line,
    plural,
    safe,
    scalar,
    styled,
    table,
)
from subagents_nb.notebook.shown import ASKS, LOOKS, Look, shown_name, shown_state, who
from subagents_nb.notebook.view import now

# A saved notebook carries about a kilobyte a row.
MAX_RUNS = 60
MAX_AGENTS = 100
MAX_ROWS, MAX_COLUMNS = 20, 8  # of a value
_MAX_REMARKS = 20
_FIGURES = {"elapsed", "tokens", "cost"}
_RUNS = tuple(
    Column(title, title in _FIGURES, title in _FIGURES | {"name"})
    for title in ("state", "name", "agent", "model", "now", "elapsed", "tokens", "cost")
)
_AGENTS = tuple(Column(t) for t in ("name", "source", "where", "model", "thinking", "tools", "description"))


def state_badge(word: str) -> Html:
    """Show a state by sign, word and colour; a screen reader hears the word alone."""
    look = LOOKS.get(word, Look("◌"))
    tint = f"color:{colour(look.tone)}" if look.tone else SOFT
    icon = element("span", {"aria-hidden": "true"}, look.icon + " ")
    return styled("span", f"font-weight:600;white-space:nowrap;{tint}", icon, word)


def runs_table_html(snapshots: Sequence[Snapshot], *, hidden: int = 0) -> Html:
    """Show runs, one a row. `hidden` counts the runs that the caller left out."""
    head = bar(safe(element("strong", None, "Runs"), " ", styled("span", SOFT, _tally(snapshots, hidden))))
    if not snapshots:
        return frame("Runs", head, [styled("p", QUIET, "No run to show.")])
    rows = [(state_badge(shown_state(s)), *_run_cells(s)) for s in snapshots[:MAX_RUNS]]
    more = _left_out(len(snapshots) - MAX_RUNS, "run")
    return frame("Runs", head, [table(_RUNS, rows, unseen="Runs"), styled("p", QUIET, more) if more else None])


def runs_table_text(snapshots: Sequence[Snapshot], *, hidden: int = 0) -> str:
    """List runs as aligned plain text."""
    rows = [(shown_state(s), *_run_cells(s)) for s in snapshots[:MAX_RUNS]]
    lines = [_tally(snapshots, hidden), *(_aligned(_RUNS, rows) if rows else ["No run to show."])]
    return "\n".join([*lines, *filter(None, [_left_out(len(snapshots) - MAX_RUNS, "run")])])


def agents_table_html(catalog: AgentCatalog) -> Html:
    """Show the agents there are, then what is shadowed and what could not be used."""
    head = bar(safe(element("strong", None, "Agents"), " ", styled("span", SOFT, _agent_tally(catalog))))
    rows = [_agent_cells(a) for a in catalog.agents[:MAX_AGENTS]]
    more = _left_out(len(catalog.agents) - MAX_AGENTS, "agent")
    body = [table(_AGENTS, rows, unseen="Agents") if rows else None, styled("p", QUIET, more) if more else None]
    for title, remarks in _remarks(catalog):
        items = [element("li", None, remark) for remark in remarks]
        body.append(styled("p", "margin:0;font-weight:600", title))
        body.append(styled("ul", "margin:0;padding-left:18px;font-size:12px", *items))
    return frame("Agents", head, body)


def agents_table_text(catalog: AgentCatalog) -> str:
    """List the agents as aligned plain text."""
    lines = [_agent_tally(catalog)]
    if catalog.agents:
        lines += _aligned(_AGENTS, [_agent_cells(a) for a in catalog.agents[:MAX_AGENTS]])
        lines += filter(None, [_left_out(len(catalog.agents) - MAX_AGENTS, "agent")])
    for title, remarks in _remarks(catalog):
        lines += [title, *(f"  {remark}" for remark in remarks)]
    return "\n".join(lines)


def is_records(value: Any) -> bool:
    """Whether a value is a list of objects, none of them empty."""
    return isinstance(value, list) and bool(value) and all(isinstance(row, dict) and row for row in value)


def records_table(
    rows: Sequence[dict[str, Any]], caption: str, room: int, whole: Html, *, alone: bool = False
) -> list[Html | None]:
    """Show a list of objects. `room` is how many characters it may take, `whole` says where all of it is.

    The caption of a table that stands `alone` is for screen readers only.
    """
    keys = list(dict.fromkeys(key for row in rows for key in row))
    shown, first = keys[:MAX_COLUMNS], rows[: max(3, min(MAX_ROWS, room // 150))]
    # Columns of short cells leave their room to the others.
    wide = sum(any(len(short(row.get(key), 25)) > 24 for row in first) for key in shown)
    limit = max(24, min(200, room // (max(wide, 1) * len(first))))
    columns = [Column(line(str(key), 40), _numeric([row[key] for row in rows if key in row])) for key in shown]
    cells = [[short(row[key], limit) if key in row else "" for key in shown] for row in first]
    left = [(len(rows) - len(first), "row"), (len(keys) - len(shown), "column")]
    missing = " and ".join(plural(number, f"more {noun}") for number, noun in left if number)
    more = styled("p", QUIET, f"… {missing}, ", whole) if missing else None
    title = line(caption, 80)
    return [table(columns, cells, caption="" if alone else title, unseen=title if alone else ""), more]


def _numeric(values: Sequence[Any]) -> bool:
    known = [v for v in values if v is not None]
    return bool(known) and all(isinstance(v, int | float) and not isinstance(v, bool) for v in known)


def size(value: dict[str, Any] | list[Any]) -> str:
    """Say how much a nested value holds."""
    return plural(len(value), "field" if isinstance(value, dict) else "item")


def short(value: Any, limit: int) -> str:
    """Say any value as one line: a scalar as it is, a nested one as JSON."""
    if isinstance(value, dict | list):
        return line(json.dumps(pruned(value, 3, [24]), ensure_ascii=False), limit)
    return scalar(value, limit)


def pruned(value: Any, depth: int, left: list[int]) -> Any:
    """Return plain JSON data of bounded depth and size; what is left out is counted in its place."""
    left[0] -= 1
    if isinstance(value, dict | list) and value and (depth <= 0 or left[0] <= 0):
        return f"… {size(value)}"
    if isinstance(value, dict):
        kept: dict[str, Any] = {}
        for key, part in value.items():
            if left[0] <= 0:
                kept["…"] = f"{len(value) - len(kept):,} more"
                break
            kept[str(key)] = pruned(part, depth - 1, left)
        return kept
    if isinstance(value, list):
        items: list[Any] = []
        for part in value:
            if left[0] <= 0:
                return [*items, f"… {len(value) - len(items):,} more"]
            items.append(pruned(part, depth - 1, left))
        return items
    whole = isinstance(value, bool | str) or value is None or (isinstance(value, int) and value.bit_length() <= 1024)
    finite = isinstance(value, float) and value - value == 0
    return value if whole or finite else scalar(value)


def _run_cells(snapshot: Snapshot) -> tuple[str, ...]:
    agent, model = who(snapshot)
    document = snapshot.head
    agent = " · ".join(filter(None, [agent, document.phase or document.description if document is not None else ""]))
    usage = snapshot.usage
    used = usage.input_tokens + usage.output_tokens
    elapsed = words.elapsed(snapshot.elapsed_s) if snapshot.elapsed_s > 0 else ""
    tokens, cost = words.tokens(usage) if used else "", words.cost(usage.cost_usd)
    return line(shown_name(snapshot), 60), line(agent, 60), line(model, 60), now(snapshot, 120), elapsed, tokens, cost


def _tally(snapshots: Sequence[Snapshot], hidden: int) -> str:
    states = [shown_state(s) for s in snapshots]
    queued, unreadable = states.count("queued"), states.count("unreadable")
    ended = sum(s.ended for s in snapshots) - unreadable
    live = len(states) - queued - unreadable - ended
    asking = states.count(ASKS)
    first = [f"{asking} {'asks' if asking == 1 else 'ask'} you"] if asking else []
    more = [f"{unreadable} unreadable" if unreadable else "", f"{hidden:,} not shown" if hidden > 0 else ""]
    return " · ".join([*first, f"{live} live", f"{queued} queued", f"{ended} ended", *filter(None, more)])


def _left_out(number: int, noun: str) -> str | None:
    return f"… and {plural(number, f'more {noun}')}" if number > 0 else None


def _agent_cells(agent: AgentDefinition) -> tuple[str, ...]:
    also = f" (also {', '.join(agent.aliases)})" if agent.aliases else ""
    tools = ", ".join(agent.effective_tools) or "none"
    if "verify" in agent.acts_by:
        tools += "; has commands run at its end (verify)"
    said = (agent.name + also, agent.source, agent.where, agent.model or "inherit", agent.thinking or "", tools)
    return (*(line(text, 80) for text in said), line(agent.description, 200))


def _agent_tally(catalog: AgentCatalog) -> str:
    bad = len(catalog.problems)
    return " · ".join([plural(len(catalog.agents), "agent"), *([f"{bad} can't be used"] if bad else [])])


def _remarks(catalog: AgentCatalog) -> list[tuple[str, list[str]]]:
    """Return the lists below the table: title and lines."""
    shadowed = [line(f"{winner} shadows {loser}", 200) for winner, loser in catalog.shadowed]
    problems = [line(f"{p.where}: {p.error}", 400) for p in catalog.problems]
    searched = [line(f"{p.where}: {p.state}", 200) for p in catalog.places] if not catalog.agents else []
    listed = [("Can't be used", problems), ("Shadowed", shadowed), ("Looked in", searched)]
    found: list[tuple[str, list[str]]] = []
    for title, remarks in listed:
        more = [f"… and {len(remarks) - _MAX_REMARKS:,} more"] if len(remarks) > _MAX_REMARKS else []
        if remarks:
            found.append((title, remarks[:_MAX_REMARKS] + more))
    return found


def _aligned(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return a heading and the rows, padded; what the last column has stays unpadded."""
    everything = [tuple(c.title for c in columns), *rows]
    widths = [max(_width(row[i]) for row in everything) for i in range(len(columns))]
    lines = []
    for row in everything:
        padded = [
            " " * (width - _width(cell)) + cell if column.numeric else cell + " " * (width - _width(cell))
            for column, cell, width in zip(columns, row, widths, strict=True)
        ]
        lines.append("  ".join(padded).rstrip())
    return lines


def _width(text: str) -> int:
    """Return how many columns a terminal gives a text: two for wide characters, none for combining ones."""
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)
