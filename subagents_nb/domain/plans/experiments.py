"""Runs as experiments: what they belong to, where they came from, how they were judged."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, Literal

from pydantic import Field

from subagents_nb.domain.plans.budgets import SharedBudget
from subagents_nb.domain.values.base import Document, Value, sha256_text, stable_json

ParamValue = str | int | float | bool | None
FailedAs = Literal["missing", "wrong"]


class Lineage(Value):
    """Where a run came from. No absolute path, no user, no host."""

    notebook: str | None = None  # relative to the project
    cell_id: str | None = None
    source_sha256: str | None = None  # of the cell
    git_commit: str | None = None
    git_dirty: bool | None = None
    packages: dict[str, str] = Field(default_factory=dict)  # name -> version, of what matters for the result


class Cell(Value):
    """A run's place in a sweep: which sweep, which combination of parameters, which repetition (from 0).

    `sweep` is the digest of what is swept and of the names of its parameters. Their values are not in it, so that a
    grid that grew finds the runs it has.
    """

    sweep: str
    place: int
    repeat: int = 0
    of: int = 1  # how many runs the whole sweep has


class Case(Value):
    """One case. Its id tells it from the others of its experiment, and pairs it with itself in every setting."""

    id: str
    inputs: dict[str, Any] = Field(default_factory=dict)
    expected: Any = None
    metadata: dict[str, Any] = Field(default_factory=dict)

    @property
    def sha256(self) -> str:
        """Return the hash of all that it says."""
        return sha256_text(stable_json(self.model_dump(mode="json")))

    def __str__(self) -> str:
        return self.id


class ExperimentPart(Value):
    """What a launch says about itself for later comparison. Of this only a budget bears upon what the run does."""

    name: str | None = None
    params: dict[str, ParamValue] = Field(default_factory=dict)
    notes: str = ""
    lineage: Lineage | None = None
    cell: Cell | None = None
    case: Case | None = None  # of a sweep over cases: what was asked, with its right answer
    failed: FailedAs | None = None  # what it is in a comparison when it fails
    shares: SharedBudget | None = None  # with the other runs of its sweep


class Score(Document):
    """One judgement about a run: `scores/ID.json`, created once by whoever judges; of equal names the latest counts."""

    kind: Literal["score"] = "score"
    score_id: str
    name: str
    value: float | None = None  # None where it is not finite: `nonfinite` says which
    nonfinite: Literal["nan", "inf", "-inf"] | None = None
    case: str | None = None  # what was judged, where a run is judged on several things
    step: int | None = None
    at: str
    by: str = ""  # the scorer, or the surface
    comment: str = ""
    seconds: float | None = None  # how long its scorer took; None: it did not say
    unchecked: tuple[str, ...] = ()  # what its scorer may have read that nobody can compare
    usage: dict[str, float] = Field(default_factory=dict)  # what its scorer asked of models: tokens, money
    withdrawn: bool = False  # its scorer gives no such score any more

    @property
    def number(self) -> float:
        """Return the value as it was given, NaN and the infinities too."""
        if self.nonfinite is not None:
            return float(self.nonfinite)
        return math.nan if self.value is None else self.value


def split_number(value: float) -> tuple[float | None, Literal["nan", "inf", "-inf"] | None]:
    """Return how a number is written down: itself, or the word for what JSON can't say."""
    if math.isfinite(value):
        return value, None
    if math.isnan(value):
        return None, "nan"
    return None, "inf" if value > 0 else "-inf"


def number_or_word(value: float) -> float | str:
    """Return a number that JSON can say, else its word."""
    return value if math.isfinite(value) else str(value)


def latest(scores: Iterable[Score]) -> dict[tuple[str, str | None], Score]:
    """Return of each name and case the latest score, if it stands; of one moment the one with the later id."""
    ordered = sorted(scores, key=lambda score: (score.at, score.score_id))
    found = {(score.name, score.case): score for score in ordered}
    return {key: score for key, score in found.items() if not score.withdrawn}


def judges_usage(scores: Iterable[Score]) -> dict[str, float]:
    """Return what all judgements together cost, superseded ones too; no money where that of one is not known."""
    used = [score.usage for score in scores if score.usage]
    names = dict.fromkeys(name for one in used for name in one)
    return {
        name: sum(one.get(name, 0) for one in used)
        for name in names
        if name != "cost_usd" or all(name in one for one in used)
    }
