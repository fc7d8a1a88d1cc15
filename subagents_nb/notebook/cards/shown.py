"""What people call a run: the word and sign of its state, its name, who does it with what."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import NamedTuple

from subagents_nb.domain.runs.records import StepResult, StepStatus
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


def folder_name(folder: str) -> str:
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
        models = list(dict.fromkeys(filter(None, map(chosen_model, snapshot.steps))))
        mode = snapshot.head.mode if snapshot.head is not None and snapshot.head.mode != "single" else "chain"
        return line(mode, 80), line(models[0] if len(models) == 1 else f"{len(models)} models" if models else "", 120)
    planned = snapshot.plan.steps[0] if snapshot.plan is not None else None
    agent = snapshot.agent or (planned.agent if planned else "")
    model = chosen_model(snapshot.steps[0]) if snapshot.steps else ""
    return line(agent, 80), line(model or (planned.model.label if planned else ""), 120)


def chosen_model(step: StepStatus | StepResult) -> str:
    """Return the one name of a step's model, as `provider:model`: what plans, tables and lists call it too.

    What the provider says that it answered with may be another name of the same; `model_words` tells that.
    """
    return step.selected or step.model


def model_words(step: StepStatus | StepResult) -> str:
    """Say which model a step asked for, which one was chosen, which one answered, and how full its context was.

    What says the same twice is left out; a run of a version that kept none of it says only the model.
    """
    chosen = chosen_model(step)
    wrote = f", written {step.requested}" if step.requested not in ("", chosen) else ""
    answered = f", answered as {step.model}" if step.model not in (chosen, chosen.partition(":")[2]) else ""
    return line(f"{chosen}{wrote}{answered}", 200)


def context_words(step: StepStatus | StepResult) -> str:
    """Say how much of what its model can read a step's last request took up; nothing where none was counted."""
    used, window = step.context_tokens, step.context_window
    if not used:
        return ""
    if not window:
        return f"last request {used:,} tokens, of a window that nobody here knows"
    return f"last request {used:,} of {window:,} tokens ({min(1.0, used / window):.0%})"


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
