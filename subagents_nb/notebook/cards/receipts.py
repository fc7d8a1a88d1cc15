"""What became of something that was asked of a run, in one line."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from subagents_nb.domain.runs.control import ControlAnswer
from subagents_nb.domain.runs.snapshot import Snapshot
from subagents_nb.notebook.cards.shown import command
from subagents_nb.notebook.page.lines import line


@dataclass(frozen=True, slots=True)
class Receipt:
    """One line for the person; `outcome` is stable, for programs."""

    outcome: str
    text: str

    @classmethod
    def about(cls, name: str, outcome: str, text: str) -> Self:
        """Say that something was done with a run."""
        return cls(outcome, f"{line(name, 80)}: {outcome}: {line(text, 160)}")

    def __repr__(self) -> str:
        return self.text


def steered(snapshot: Snapshot, receipt: ControlAnswer | None, *, follow_up: bool = False) -> Receipt:
    """Say what became of a steering message. Without a receipt it waits: the run was too busy to take it in."""
    outcome = receipt.outcome if receipt is not None else "queued"
    if outcome == "delivered":
        return Receipt(outcome, "The agent was told.")
    if outcome == "too-late":
        return Receipt(outcome, f"Too late, it ended first. To go on: {command(snapshot, 'resume', text='…')}")
    when = "when its turn is over" if follow_up else "before its next request"
    if snapshot.waits_for_slot:
        when = "when the run has begun, which waits for a free place"
    return Receipt("queued", f"Waiting; the agent is told {when}.")


def retuned(name: str, answer: ControlAnswer | None, changes: str) -> Receipt:
    """Say whether limits were changed, are to be changed later, or never will be."""
    match answer.outcome if answer is not None else None:
        case "accepted":
            return Receipt.about(name, "retuned", changes)
        case "too-late":
            return Receipt.about(name, "too-late", "nothing was changed, for the run is ending already")
        case "queued":
            return Receipt.about(name, "queued", f"{changes}; the run waits for a free place and begins with that")
        case _:
            return Receipt.about(name, "queued", f"{changes}; the run is busy and hears of it later")


def drained(name: str, answer: ControlAnswer | None, *, began: bool = True) -> Receipt:
    """Say whether a run starts nothing new from now on; `began`: it had begun."""
    match answer.outcome if answer is not None else None:
        case "accepted" if not began:
            return Receipt.about(name, "stopped", "it waited for a free place, and never begins now")
        case "accepted":
            return Receipt.about(name, "draining", "it finishes what runs and starts nothing new")
        case "too-late":
            return Receipt.about(name, "too-late", "the run is ending already")
        case _:
            return Receipt.about(name, "queued", "the run is busy and hears of it later; until then it may start more")
