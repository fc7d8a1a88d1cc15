"""Memory: notes of an agent that outlive its runs, the person's for all projects or a project's own."""

from __future__ import annotations

import re
from typing import Literal, TypeAlias

from subagents_nb.domain.values.base import Value

FOLDER = ".subagents/memory"  # below the home folder or the project; below that a folder for each agent
MAIN_FILE = "MEMORY.md"
# What pydantic-ai-harness calls its tools.
LOOKING = ("read_memory", "search_memory")
KEEPING = ("write_memory", "delete_memory")
MOST_FILES, MOST_CHARS = 1000, 65_536  # of a file: no tool writes a longer one

MemoryScope: TypeAlias = Literal["user", "project"]
_PART = re.compile(r"[A-Za-z0-9_.-]{1,200}\Z")


class MemoryChoice(Value):
    """What an agent's file says of its memory; without a path it is the agent's own, by its name."""

    scope: MemoryScope
    path: str = ""


class MemoryPlan(Value):
    """Where the memory of a step lies, and whether it may write there."""

    scope: MemoryScope
    path: str  # below the memory folder
    folder: str = ""  # the memory folder, absolute, links resolved
    writes: bool = False

    def contract(self) -> dict[str, object]:
        """Return what the launch contract binds of it: not where it lies, nor what is in it, which runs change."""
        return self.model_dump(mode="json", exclude={"folder"})


def path_problem(path: str) -> str | None:
    """Return why a memory can't lie there, or None."""
    parts = path.split("/")
    if path.startswith(("/", "~")) or any(part in ("", ".", "..") for part in parts) or set(path) & set("\\:\0"):
        return f"memory path {path!r} leaves the memory folder"
    if not all(_PART.match(part) and ".." not in part for part in parts) or parts[0].startswith("."):
        return f"memory path {path!r} may hold letters, digits and _ . - only"
    return None
