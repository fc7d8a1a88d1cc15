"""What planning needs to know of the world, looked up by somebody else and handed in."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable
from typing import Any

from pydantic import Field

from subagents_nb.domain.agents.acting import Acting, Held
from subagents_nb.domain.agents.mcp_servers import McpServers
from subagents_nb.domain.agents.memory import MemoryScope
from subagents_nb.domain.agents.refinements import Refinement
from subagents_nb.domain.agents.skills import SkillLookup, SkillWanted
from subagents_nb.domain.values.base import Value


class LookupsNeeded(Exception):
    """Something was named that nobody has looked up: only planning knows which agents come in, and what they name."""

    def __init__(self, skills: Iterable[SkillWanted]) -> None:
        self.skills = tuple(skills)
        super().__init__(", ".join(one.name for one in self.skills))


class GitPath(Value):
    """A file or directory that a worktree was asked for with: where it really is, or why it can't be used."""

    path: str = ""  # absolute; of a hook inside the repository: relative to its root
    sha256: str = ""  # of a hook inside the repository
    problem: str | None = None


class RepositoryState(Value):
    """The repository around the working directory; looked up only if a step asks for a worktree."""

    problem: str | None = None  # why there can be no worktree at all
    root: str = ""  # absolute
    subdir: str = ""  # the working directory, relative to the root
    busy: str | None = None  # what is going on in it: "a rebase", "a merge"
    dirt: tuple[str, ...] = ()  # paths that are changed or not tracked
    commits: dict[str, str] = Field(default_factory=dict)  # by the names that were asked for; unknown ones are left out
    checkouts: tuple[str, ...] = ()  # of the same repository, this one included
    worktrunk: str | None = None  # why its command can't make trees; looked up only if a step asks for it
    hooks: dict[str, GitPath] = Field(default_factory=dict)  # by what was asked for
    roots: dict[str, GitPath] = Field(default_factory=dict)  # by what was asked for; "" stands for the place beside


class FolderLookup(Value):
    """A folder that a step shall work in: where it really lies below the working directory, or why it can't."""

    path: str = ""  # empty: it is the working directory itself
    problem: str | None = None


class SessionLookup(Value):
    """A conversation that was asked for: whose it is and what it hashes to, or why it can't be resumed."""

    run_id: str = ""
    name: str = ""
    step: int = 0
    sha256: str = ""
    problem: str | None = None


class LaunchEnvironment(Value):
    """The world at the moment of a launch; every question planning may ask is answered here."""

    cwd: str  # absolute
    cwd_problem: str | None = None
    store: str | None = None  # where the run store lies in the working directory, relative to it; None: elsewhere
    environ_names: frozenset[str] = frozenset()  # variables that are set and not empty
    local_problem: str | None = None  # why the embedded model can't serve; None: it can
    missing_extras: frozenset[str] = frozenset()  # extras whose client is not installed
    scripts: frozenset[str] = frozenset()  # names that `scripted:` may take, files of the workspace included
    project_context: str = ""
    project: str = ""  # the folder of the project, as it is shown
    project_root: str = ""  # the same, whole, through no link
    way_to_root: str = "."  # from the working directory, as it really lies
    brought: tuple[Acting, ...] = ()  # what the project brings that can act
    held: tuple[Held, ...] = ()  # what of it may not, since the person has not allowed it
    attached_problem: str | None = None  # why a chain can't begin with the run that it names
    attached_schema: dict[str, Any] | None = None  # of the answer of a run that a chain begins with
    attached_outputs: dict[str, dict[str, Any] | None] = Field(default_factory=dict)  # those of it that have names
    folders: dict[str, FolderLookup] = Field(default_factory=dict)  # by what was asked for
    memory: dict[MemoryScope, FolderLookup] = Field(default_factory=dict)  # where it lies
    mcp: McpServers = McpServers()
    refinements: tuple[Refinement, ...] = ()  # of all agents, the person's before the project's
    skills: dict[SkillWanted, SkillLookup] = Field(default_factory=dict)
    sessions: dict[str, SessionLookup] = Field(default_factory=dict)  # by what was asked for
    forks: dict[str, SessionLookup] = Field(default_factory=dict)  # likewise
    git: RepositoryState | None = None  # None: no step asks for a worktree

    def inside(self, folder: str | None) -> LaunchEnvironment:
        """Return it for a step that works in a folder of the working directory."""
        if not folder:
            return self
        store = self.store
        within = store is not None and store.startswith(f"{folder}/")
        below = store[len(folder) + 1 :] if store is not None and within else None
        return self.model_copy(update={"cwd": posixpath.join(self.cwd, folder), "store": below})
