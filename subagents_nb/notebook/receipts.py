"""What became of something that was asked of a run, in one line."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from subagents_nb.domain.control import ControlAnswer
from subagents_nb.domain.snapshot import Snapshot
from subagents_nb.notebook.html import line
from subagents_nb.notebook.shown import command


@dataclass(frozen=True, slots=True)
class Said:
    """One line for the person; `outcome` is stable, for programs."""

    outcome: str
    text: str

    @classmethod
    def about(cls, name: str, outcome: str, text: str) -> Self:
        """Say that something was done with a run."""
        return cls(outcome, f"{line(name, 80)}: {outcome}: {line(text, 160)}")

    def __repr__(self) -> str:
        return self.text


def steered(snapshot: Snapshot, receipt: ControlAnswer | None, *, follow_up: bool = False) -> Said:
    """Say what became of a steering message. Without a receipt it waits: the run was too busy to take it in."""
    outcome = receipt.outcome if receipt is not None else "queued"
    if outcome == "delivered":
        return Said(outcome, "The agent was told.")
    if outcome == "too-late":
        return Said(outcome, f"Too late, it ended first. To go on: {command(snapshot, 'resume', text='…')}")
    when = "when its turn is over" if follow_up else "before its next request"
    return Said("queued", f"Waiting; the agent is told {when}.")
