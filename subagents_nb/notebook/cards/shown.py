"""What people call a run: the word and sign of its state, its name, who does it with what."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import NamedTuple

from subagents_nb.domain.runs.snapshot import Snapshot
from subagents_nb.domain.values.ids import is_run_name, names_itself
from subagents_nb.notebook.page.lines import line

ASKS = "asks you"  # it lives, and a question of its waits for the person
UNREADABLE = "unreadable"  # documents are there, none of them says what the run came to
UNKNOWN = "unknown"  # nothing is there yet

_HOME = re.compile(r"\A(?:/home/[^/]+|/Users/[^/]+|/root|[A-Za-z]:\\Users\\[^\\]+)(?=[/\\]|\Z)")


class Look(NamedTuple):
    """How a state is shown besides its word: a sign that no font turns into an emoji, and a tone."""

    icon: str
    tone: str = ""


LOOKS = {
    "queued": Look("◷"),
    "pending": Look("◌"),
    "skipped": Look("–"),
    "running": Look("↻", "run"),
    ASKS: Look("‖", "warn"),
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


def place(folder: str) -> str:
    """Name a directory without its way from the root, which is nobody's business in a saved notebook."""
    shown = _HOME.sub("~", folder)
    return shown if shown.startswith("~") else f"…/{'/'.join(Path(shown).parts[-2:]).lstrip('/')}"


def shown_state(snapshot: Snapshot) -> str:
    """Return the word for the state; a run that asks and a run that can't be read have one too."""
    state = snapshot.state
    if state is None:
        return UNREADABLE if snapshot.damage else UNKNOWN
    return ASKS if snapshot.questions else state.value


def shown_name(snapshot: Snapshot) -> str:
    """Return the name as one clean line, the id if nothing says a name."""
    return line(snapshot.name, 80) or line(snapshot.run_id, 80)


def who(snapshot: Snapshot) -> tuple[str, str]:
    """Return the agent and the model, from the plan if no other document says them; of a chain its mode instead."""
    if snapshot.stages:
        models = list(dict.fromkeys(step.model for step in snapshot.steps if step.model))
        mode = snapshot.head.mode if snapshot.head is not None and snapshot.head.mode != "single" else "chain"
        return line(mode, 80), line(models[0] if len(models) == 1 else f"{len(models)} models" if models else "", 120)
    planned = snapshot.plan.steps[0] if snapshot.plan is not None else None
    agent = snapshot.agent or (planned.agent if planned else "")
    model = snapshot.model or (planned.model.label if planned else "")
    return line(agent, 80), line(model, 120)


def typed_name(snapshot: Snapshot) -> str:
    """Return what to type for this run wherever it is typed, also later: its name if no other run can have it.

    A name that was given may be given again, and then means the newer run; the id never does.
    """
    name = snapshot.name
    return name if is_run_name(name) and names_itself(name, snapshot.run_id) else line(snapshot.run_id, 80)


def command(snapshot: Snapshot, verb: str, flags: str = "", text: str = "", *, by_name: bool = False) -> str:
    """Return the magic that does something with this run: `%subagent_VERB RUN FLAGS -- TEXT`.

    `by_name`: where the same must stand there each time that the notebook is executed.
    """
    words = [
        f"%subagent_{verb}",
        shlex.quote(shown_name(snapshot) if by_name else typed_name(snapshot)),
        flags,
        f"-- {text}" if text else "",
    ]
    return " ".join(filter(None, words))
