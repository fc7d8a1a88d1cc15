"""What a project brings that can act: a row each, what is new in it, and what to type to allow it."""

from __future__ import annotations

from subagents_nb.blocks import Child, Column, DescriptionList, Table, page_only
from subagents_nb.domain.agents.acting import Acting, Held
from subagents_nb.launching import ProjectTrust
from subagents_nb.notebook.cards.diffs import changes
from subagents_nb.notebook.cards.shown import folder_name
from subagents_nb.notebook.page.html import bar, code, element, frame, note, safe, soft
from subagents_nb.notebook.page.lines import line, plural

_MOST_ROWS = 100
_COLUMNS = (Column("what"), Column("may"), Column("where"), Column("allowed", tight=True))


def trust_card(found: ProjectTrust) -> Child:
    """Show what there is, with its state, the differences, and the lines that allow it."""
    held = {one.item.key: one for one in found.held}
    rows = [_cells(item, held.get(item.key)) for item in found.items[:_MOST_ROWS]]
    left = len(found.items) - _MOST_ROWS
    body: list[Child] = [
        element("p", None, f"{found.done[:1].upper()}{found.done[1:]}.") if found.done else None,
        Table(_COLUMNS, rows, unseen="What can act") if rows else note("It brings nothing that can act."),
        note(f"… and {plural(left, 'more thing')}" if left > 0 else ""),
        changes(found.differences) if found.differences else None,
        _how(found) if held else None,
    ]
    parts = [line(folder_name(found.project), 200), found.allowed_by, f"{len(held)} not allowed" if held else ""]
    head = safe(page_only(element("strong", None, "Trust"), " "), soft(" · ".join(filter(None, parts))))
    return frame("Trust", bar(head), body)


def _cells(item: Acting, held: Held | None) -> tuple[str, ...]:
    if held is None:
        state = "yes"
    else:
        changed = "changed" if held.known else "new"
        state = f"no: {changed} while run {held.run} was at work" if held.run else f"no: {changed}"
    may = ", ".join(line(word, 200) for word in item.does)  # each has room of its own: no long one hides another
    return (line(item.called, 80), may, line(item.where, 120), line(state, 120))


def _how(found: ProjectTrust) -> Child:
    shown = f" --shown {found.digest}"
    lines = [
        ("these contents", code(f"%subagent_trust --contents{shown}")),
        ("one of them", code("%subagent_trust --contents NAME")),
        ("this folder from now on", code(f"%subagent_trust --folder{shown}")),
    ]
    return DescriptionList(lines, "To allow it (in a terminal: subagents-nb trust …):")
