"""Tables: of runs, of agents, and of the records a run gave."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from subagents_nb.blocks import Child, Column, Table, page_only
from subagents_nb.domain.agents.agent import ALL_AGENTS, AgentCatalog, AgentDefinition
from subagents_nb.domain.policy.tool_names import shown_tool
from subagents_nb.domain.runs.snapshot import Snapshot
from subagents_nb.domain.values import words
from subagents_nb.notebook.cards.shown import ASKS, LOOKS, Look, shown_name, shown_state, who
from subagents_nb.notebook.cards.view import now
from subagents_nb.notebook.page.html import SOFT, bar, colour, element, frame, note, safe, soft, styled
from subagents_nb.notebook.page.lines import line, plural, scalar

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


def state_badge(word: str) -> Child:
    """Show a state by sign, word and colour; a screen reader hears the word alone, and a text has it."""
    look = LOOKS.get(word, Look("◌"))
    tint = f"color:{colour(look.tone)}" if look.tone else SOFT
    icon = element("span", {"aria-hidden": "true"}, look.icon + " ")
    return styled("span", f"font-weight:600;white-space:nowrap;{tint}", page_only(icon), word)


def runs_table(snapshots: Sequence[Snapshot], *, hidden: int = 0) -> Child:
    """Show runs, one a row. `hidden` counts the runs that the caller left out."""
    roots: dict[str, str] = {}
    for one in sorted(snapshots, key=lambda one: len(one.tree)):  # the root of a tree has more rows than what is below
        roots |= dict.fromkeys((row.run_id for row in one.tree), shown_name(one))
    rows = [(state_badge(shown_state(s)), *_run_cells(s, roots.get(s.run_id, ""))) for s in snapshots[:MAX_RUNS]]
    body = Table(_RUNS, rows, unseen="Runs") if rows else note("No run to show.")
    more = _left_out(len(snapshots) - MAX_RUNS, "run")
    return frame("Runs", _head("Runs", _tally(snapshots, hidden)), [body, more])


def agents_table(catalog: AgentCatalog) -> Child:
    """Show the agents there are, then what is shadowed and what could not be used."""
    rows = [_agent_cells(a) for a in catalog.agents[:MAX_AGENTS]]
    body: list[Child] = [Table(_AGENTS, rows, unseen="Agents") if rows else None]
    body.append(_left_out(len(catalog.agents) - MAX_AGENTS, "agent"))
    for title, remarks in _remarks(catalog):
        body.append(styled("p", "margin:0;font-weight:600", title))
        items = [element("li", None, remark) for remark in remarks]
        body.append(styled("ul", "margin:0;padding-left:18px;font-size:12px", *items))
    return frame("Agents", _head("Agents", _agent_tally(catalog)), body)


def _head(title: str, tally: str) -> Child:
    return bar(safe(page_only(element("strong", None, title), " "), soft(tally)))


def is_records(value: Any) -> bool:
    """Whether a value is a list of objects, none of them empty."""
    return isinstance(value, list) and bool(value) and all(isinstance(row, dict) and row for row in value)


def records_table(
    rows: Sequence[dict[str, Any]], caption: str, room: int, whole: Child, *, alone: bool = False
) -> list[Child]:
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
    more = note(f"… {missing}, ", whole) if missing else None
    title = line(caption, 80)
    return [Table(columns, cells, caption="" if alone else title, unseen=title if alone else ""), more]


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
    plain = isinstance(value, bool | str) or value is None or (isinstance(value, int) and value.bit_length() <= 1024)
    finite = isinstance(value, float) and value - value == 0
    return value if plain or finite else scalar(value)


def _run_cells(snapshot: Snapshot, root: str) -> tuple[str, ...]:
    """Return a row; a run below the one named `root`, which nobody launched by hand, says so."""
    agent, model = who(snapshot)
    document = snapshot.head
    about = document.phase or document.description if document is not None else ""
    agent = " · ".join(filter(None, [agent, about, f"below {root}" if root else ""]))
    usage = snapshot.usage
    used = usage.input_tokens + usage.output_tokens
    elapsed = words.elapsed(snapshot.elapsed_s) if snapshot.elapsed_s > 0 else ""
    tokens, cost = words.tokens(usage) if used else "", words.cost(usage.cost_usd)
    return line(shown_name(snapshot), 60), line(agent, 100), line(model, 60), now(snapshot, 120), elapsed, tokens, cost


def _tally(snapshots: Sequence[Snapshot], hidden: int) -> str:
    states = [shown_state(s) for s in snapshots]
    queued, unreadable = states.count("queued"), states.count("unreadable")
    ended = sum(s.ended for s in snapshots) - unreadable
    live = len(states) - queued - unreadable - ended
    ask = [one for one, state in zip(snapshots, states, strict=True) if state == ASKS]
    below = {row.run_id for one in ask for row in one.tree if row.questions}  # which the run above shows, too
    asking = sum(one.run_id not in below for one in ask)
    first = [f"{asking} {'asks' if asking == 1 else 'ask'} you"] if asking else []
    more = [f"{unreadable} unreadable" if unreadable else "", f"{hidden:,} not shown" if hidden > 0 else ""]
    return " · ".join([*first, f"{live} live", f"{queued} queued", f"{ended} ended", *filter(None, more)])


def _left_out(number: int, noun: str) -> Child:
    return note(f"… and {plural(number, f'more {noun}')}" if number > 0 else "")


def _agent_cells(agent: AgentDefinition) -> tuple[str, ...]:
    also = f" (also {', '.join(agent.aliases)})" if agent.aliases else ""
    tools = ", ".join(map(shown_tool, agent.effective_tools)) or "none"
    if agent.agents:
        tools += f"; delegates to {'all' if ALL_AGENTS in agent.agents else ', '.join(agent.agents)}"
    if "verify" in agent.acts_by:
        tools += "; has commands run at its end (verify)"
    cells = (agent.name + also, agent.source, agent.where, agent.model or "inherit", agent.thinking or "", tools)
    return (*(line(text, 80) for text in cells), line(agent.description, 200))


def _agent_tally(catalog: AgentCatalog) -> str:
    off = sum(problem.disabled for problem in catalog.problems)
    bad = len(catalog.problems) - off
    more = [*([f"{off} disabled"] if off else []), *([f"{bad} can't be used"] if bad else [])]
    return " · ".join([plural(len(catalog.agents), "agent"), *more])


def _remarks(catalog: AgentCatalog) -> list[tuple[str, list[str]]]:
    """Return the lists below the table: title and lines."""
    shadowed = [line(f"{winner} shadows {loser}", 200) for winner, loser in catalog.shadowed]
    problems = [line(f"{p.where}: {p.error}", 400) for p in catalog.problems if not p.disabled]
    disabled = [line(f"{p.name}: {p.error}", 400) for p in catalog.problems if p.disabled]
    set_by = [line(f"{a.name}: {n} by {origin}", 200) for a in catalog.agents for n, origin in a.overridden]
    searched = [line(f"{p.where}: {p.state}", 200) for p in catalog.places] if not catalog.agents else []
    waiting = [line(str(held), 200) for held in catalog.held]
    listed = [
        ("Wait until you allow them (%subagent_trust)", waiting),
        ("Can't be used", problems),
        ("Disabled", disabled),
        ("Set by settings", set_by),
        ("Shadowed", shadowed),
        ("Looked in", searched),
    ]
    sections: list[tuple[str, list[str]]] = []
    for title, remarks in listed:
        more = [f"… and {len(remarks) - _MAX_REMARKS:,} more"] if len(remarks) > _MAX_REMARKS else []
        if remarks:
            sections.append((title, remarks[:_MAX_REMARKS] + more))
    return sections
