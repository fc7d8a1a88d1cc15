"""Fields of an agent's file that are no option of ours: carried out, refused or noted. There is no fourth."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from subagents_nb.domain.agents.agent import AgentDefinition
from subagents_nb.domain.plans.flow import Step
from subagents_nb.domain.values.faults import snake

# What such a field keeps elsewhere. Who wrote it relies on it, so without it the agent does not begin.
GUARDS = {
    "hooks": "its tools",
    "permission_mode": "its tools",
    "isolation": "your files",
}


def unkept_guards(asked: Step, agent: AgentDefinition) -> Iterator[str]:
    """Yield why the agent can't be had as its file says: a guard of its own that is not carried out here."""
    for key, what in guards_of(agent).items():
        if snake(key) not in map(snake, asked.ignore or ()) and not (snake(key) == "isolation" and asked.worktree):
            way = "launch with worktree=True" if snake(key) == "isolation" else "take the field out"
            yield (
                f"agent {agent.name!r} ({agent.where}) sets {key}, which guards {what} elsewhere and is "
                f'not carried out here; {way}, or launch with ignore=["{key}"]'
            )


def ignored_nothing(asked: Step, agent: AgentDefinition) -> Iterator[str]:
    """Yield what is to be ignored and is no guard of this agent's."""
    there = {snake(key) for key in guards_of(agent)} | ({"isolation"} if agent.worktree else set())
    there |= ({"sandbox"} if agent.sandbox == "workspace" else set()) | (
        {"network"} if agent.network is False else set()
    )
    for key in asked.ignore or ():
        if snake(key) not in there:
            yield f"agent {agent.name!r} ({agent.where}) sets no {key} that could be ignored"


def worktree_of(asked: Step, agent: AgentDefinition) -> Any:
    """Return what holds of a worktree: what is asked for, else what the agent's file says and nobody ignores."""
    if asked.worktree is not None:
        return asked.worktree
    return None if "isolation" in map(snake, asked.ignore or ()) else agent.worktree


def field_notes(asked: Step, agent: AgentDefinition) -> Iterator[str]:
    """Yield what the file says and is not carried out, as a person reads it."""
    guards = set(guards_of(agent))
    if left_out := sorted(key for key in guards if snake(key) in map(snake, asked.ignore or ())):
        yield f"Agent {agent.name} is launched without what guards it elsewhere: {', '.join(left_out)}."
    if agent.worktree and not worktree_of(asked, agent):
        yield f"Agent {agent.name} works in your files, as this launch says; by its file it has a worktree of its own."
    if "sandbox" in map(snake, asked.ignore or ()) and agent.sandbox == "workspace":
        yield f"Agent {agent.name} works without the sandbox of its file, as this launch says."
    if agent.context == "fork" and asked.fork is None and asked.session is None:
        yield f"Agent {agent.name} begins with a conversation by its file; name one with fork, or it begins afresh."
    by: dict[str, list[str]] = {}
    for name, origin in agent.overridden:
        by.setdefault(origin, []).append(name)
    for origin, names in by.items():
        yield f"Agent {agent.name}: {', '.join(names)} by [agents.{agent.name}] in {origin}."
    if others := sorted(set(agent.extra) - guards - {"unsupported_tools"}):
        yield f"Agent {agent.name} sets fields that are not carried out: {', '.join(others)}."


def guards_of(agent: AgentDefinition) -> dict[str, str]:
    """Return the guards that are set, with what each guards elsewhere.

    Modes that allow more than ours guard nothing: they are only not carried out.
    """
    wider = ("acceptEdits", "bypassPermissions", "auto")
    return {
        key: GUARDS[snake(key)]
        for key, value in agent.extra.items()
        if snake(key) in GUARDS and value not in (None, False, {}, [], "", "none", *wider)
    }
