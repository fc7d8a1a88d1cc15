"""What is said of a launch that found a run, or of why none stood in for it."""

from __future__ import annotations

from typing import Any

from subagents_nb.domain.runs.reuse import ANEW
from subagents_nb.domain.runs.snapshot import Snapshot
from subagents_nb.domain.values.words import ago
from subagents_nb.notebook.cards.shown import shown_name
from subagents_nb.notebook.page.lines import line
from subagents_nb.store.clock import age_s


def reused_line(run: Any, snapshot: Snapshot) -> str:
    """Say that a handle's launch started nothing, and when the run was; empty for any other handle."""
    if not run.reused:
        return ""
    when = ago(age_s(snapshot.started_at))
    live = run.found_live or not snapshot.ended
    said = f"reused: it was at work already (launched {when})" if live else f"reused: nothing was spent (ran {when})"
    if not live and (compared := run.found_note):
        said = f"{said}; {line(compared, 300)}"
    asked = run.asked_name
    # Who looks for the name later would find nothing, or an older run.
    return (
        f"{said}; its name is {shown_name(snapshot)}, not {line(asked, 80)}"
        if asked not in ("", snapshot.name)
        else said
    )


def anew_line(snapshot: Snapshot) -> str:
    """Say why no earlier run of the same contract stood in for this one; empty where nothing is to be said."""
    note = next((note for note in snapshot.notes if note.startswith(ANEW)), "")
    return line(note, 300)


def other_notes(snapshot: Snapshot) -> list[str]:
    """Return the notes of a run but for what `anew_line` says."""
    return [note for note in snapshot.notes if not note.startswith(ANEW)]


def would_find(preflight: Any) -> str:
    """Say what a launch would find, or why it would start a run although there is one like it."""
    if preflight.reuses is not None:
        return f"It would find {preflight.reuses}, which did the same, and start nothing."
    return line(f"It would be launched anew: {preflight.reuse_note}", 300) if preflight.reuse_note else ""
