"""What a watch saw from one moment to another: enough to tell whether what one knows of oneself explains it all."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Moment:
    """A place in the course of what the watch sees."""

    count: int
    writes: Counter[str]


@dataclass(frozen=True, slots=True)
class Since:
    """What the watch saw from one moment to another. It never says whose doing it was."""

    until: Moment
    changed: dict[str, bool]  # paths, and whether each is a new name or was moved to
    writes: Counter[str]  # how often each was closed by one who could write, or moved into its place
    unfinished: frozenset[str]  # written by somebody who still has it open
    read_first: frozenset[str]  # read by anybody before it changed
