"""The line that says which figures, tables and files a run left, and how to get them."""

from __future__ import annotations

from collections.abc import Sequence

from subagents_nb.blocks import clean
from subagents_nb.domain.runs.snapshot import Snapshot
from subagents_nb.plain_text import shortened

_NAMED = 6
_NAME_CHARS = 60


def made_line(snapshot: Snapshot, run: str = "run") -> str:
    """Return the line, where `run` is the variable that holds it; empty where it left nothing or is still at work."""
    artifacts = snapshot.result.artifacts if snapshot.result is not None else ()
    made = _names([one.name or one.path for one in artifacts])
    unclear = _names(snapshot.changed_meanwhile)
    said = [f"Made {made}: {run}.artifacts" if made else ""]
    said += [f"Changed meanwhile, by this run or by others: {unclear}"] if unclear else []
    return ". ".join(filter(None, said))


def _names(names: Sequence[str]) -> str:
    flat = [" ".join(clean(name).split()) for name in names[:_NAMED]]
    shown = ", ".join(shortened(name, _NAME_CHARS) for name in flat)
    return f"{shown} and {len(names) - _NAMED:,} more" if len(names) > _NAMED else shown
