"""The line that says which figures, tables and files a run left, and how to get them."""

from __future__ import annotations

from subagents_nb.domain.snapshot import Snapshot
from subagents_nb.notebook.html import clean

_NAMED = 6
_NAME_CHARS = 60


def made_line(snapshot: Snapshot, run: str = "run") -> str:
    """Return the line, where `run` is the variable that holds it; empty where it left nothing or is still at work."""
    artifacts = snapshot.result.artifacts if snapshot.result is not None else ()
    if not artifacts:
        return ""
    names = [" ".join(clean(one.name or one.path).split()) for one in artifacts[:_NAMED]]
    shown = ", ".join(name if len(name) <= _NAME_CHARS else name[: _NAME_CHARS - 1] + "…" for name in names)
    more = f" and {len(artifacts) - _NAMED:,} more" if len(artifacts) > _NAMED else ""
    return f"Made {shown}{more}: {run}.artifacts"
