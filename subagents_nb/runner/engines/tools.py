"""The tools an agent may have, by our names, over the harness's confined file functions and our shell.

The functions describe themselves to the model; what they say there is part of their behaviour.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import PurePath
from typing import Any

from pydantic_ai.exceptions import ModelRetry, ToolFailed
from pydantic_ai.tools import RunContext, Tool
from pydantic_ai.toolsets import FunctionToolset, ToolsetTool, WrapperToolset
from pydantic_ai_harness.filesystem import FileSystemToolset

from subagents_nb.domain.agent import KNOWN_TOOLS, WRITE_TOOLS
from subagents_nb.runner.engines.aside import aside
from subagents_nb.runner.engines.base import Desk
from subagents_nb.runner.engines.guarded import NEVER_READ, NEVER_WRITTEN
from subagents_nb.runner.engines.shell import run_command

OUTPUT_CHARS = 50_000
COMMAND_SECONDS = 120.0
_LONGEST_COMMAND_S = 3600.0
_LINE_CHARS = 500


@dataclass(frozen=True, slots=True)
class Bench:
    """Where the tools of one step work: the workspace, and the confined view of its files."""

    desk: Desk
    files: FileSystemToolset[Any]

    @classmethod
    def at(cls, desk: Desk) -> Bench:
        """Return the bench at a desk."""
        files: FileSystemToolset[Any] = FileSystemToolset(
            root_dir=desk.cwd,
            allowed_patterns=(),
            denied_patterns=NEVER_READ,
            protected_patterns=NEVER_WRITTEN,
            max_read_lines=2000,
            max_read_chars=OUTPUT_CHARS,
            max_list_results=1000,
            max_search_results=300,
            max_find_results=1000,
            content_hashes=False,
            tools=(),
        )
        return cls(desk, files)


@dataclass(slots=True)
class ToolNotes:
    """What the tools noticed about calls, by call id; the event stream has no place for it."""

    refused: dict[str, str] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)


@dataclass
class GuardedToolset(WrapperToolset[Bench]):
    """Tell refusals from failures, time each call, and let no failed call use up a retry budget.

    pydantic-ai ends the whole run when one tool fails twice in a row; a model that looks for a file in three places
    is at work. The request limit bounds it.
    """

    notes: ToolNotes

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Bench], tool: ToolsetTool[Bench]
    ) -> Any:
        """Call the tool; a call that policy forbids is noted as refused."""
        call_id = ctx.tool_call_id or ""
        started = time.monotonic()
        try:
            return await super().call_tool(name, tool_args, ctx, tool)
        except ModelRetry as error:
            cause = error.__cause__
            # The harness refuses with a PermissionError of its own; the system's carries a number.
            if isinstance(cause, PermissionError) and cause.errno is None:
                self.notes.refused[call_id] = error.message
                raise ToolFailed(f"Not allowed: {error.message}") from error
            raise ToolFailed(error.message) from error
        except OSError as error:
            raise ToolFailed(error.strerror or type(error).__name__) from error
        finally:
            self.notes.seconds[call_id] = time.monotonic() - started


def toolset_for(names: Sequence[str], notes: ToolNotes) -> GuardedToolset | None:
    """Return the tools with these names; None when there are none. They work at the `Bench` that the run is given."""
    wanted = [name for name in KNOWN_TOOLS if name in names]
    if not wanted:
        return None
    return GuardedToolset(FunctionToolset([_tool(name) for name in wanted], id="workspace"), notes)


@cache
def _tool(name: str) -> Tool[Bench]:
    # Kept for the life of the process: describing a function to a model takes 2 ms, and a forked runner inherits it.
    # `sequential`: two edits of one turn must not meet in one file.
    return Tool(_FUNCTIONS[name], name=name, takes_ctx=True, sequential=name in WRITE_TOOLS)


def args_preview(args: Mapping[str, Any], limit: int = 160) -> str:
    """Return what a person wants to see of a call's arguments: the command or path first, only texts, one line."""
    ordered = [key for key in ("command", "path", "pattern", "include") if key in args]
    rest = [key for key in args if key not in ordered and key not in ("content", "old_text", "new_text")]
    flat = "  ".join(
        " ".join(str(args[key])[:limit].split()) for key in [*ordered, *rest] if isinstance(args[key], str)
    )
    return flat if len(flat) <= limit else flat[: limit - 1] + "…"


async def _read(ctx: RunContext[Bench], path: str, offset: int = 0, limit: int | None = None) -> str:
    """Read a text file, with line numbers.

    Args:
        ctx: The run.
        path: File path, relative to the workspace.
        offset: How many lines to skip.
        limit: How many lines to return at most (default 2000).
    """
    return await ctx.deps.files.read_file(path, offset=max(0, offset), limit=limit)


async def _list(ctx: RunContext[Bench], path: str = ".") -> str:
    """List a directory.

    Args:
        ctx: The run.
        path: Directory path, relative to the workspace.
    """
    return await ctx.deps.files.list_directory(path)


async def _find(ctx: RunContext[Bench], pattern: str, path: str = ".") -> str:
    """Find files by name.

    Args:
        ctx: The run.
        pattern: Glob pattern, such as '*.csv' or '**/*.py'.
        path: Directory to look in, relative to the workspace.
    """
    return _cap(await _walk(lambda: ctx.deps.files.find_files(pattern, path=path)))


async def _grep(ctx: RunContext[Bench], pattern: str, path: str = ".", include: str | None = None) -> str:
    """Search file contents by a regular expression; answers file:line:text.

    Args:
        ctx: The run.
        pattern: Python regular expression.
        path: Directory or file to search, relative to the workspace.
        include: Only files whose path matches this glob, such as '*.py'.
    """
    found = await _walk(lambda: ctx.deps.files.search_files(pattern, path=path, include_glob=include))
    return _cap("\n".join(line[:_LINE_CHARS] for line in found.splitlines()))


async def _write(ctx: RunContext[Bench], path: str, content: str) -> str:
    """Write a text file, replacing what was there; missing directories are made.

    Args:
        ctx: The run.
        path: File path, relative to the workspace.
        content: The whole new content.
    """
    parent = str(PurePath(path).parent)
    if parent != ".":
        await ctx.deps.files.create_directory(parent)
    return await ctx.deps.files.write_file(path, content)


async def _edit(ctx: RunContext[Bench], path: str, old_text: str, new_text: str) -> str:
    """Replace one passage of a text file.

    Args:
        ctx: The run.
        path: File path, relative to the workspace.
        old_text: The exact passage; it must occur once.
        new_text: What to put in its place.
    """
    return await ctx.deps.files.edit_file(path, old_text, new_text)


async def _bash(ctx: RunContext[Bench], command: str, timeout_seconds: float = COMMAND_SECONDS) -> str:
    """Run a shell command in the workspace and return its output. Nothing it starts lives on afterwards.

    Args:
        ctx: The run.
        command: The command.
        timeout_seconds: When to end it.
    """
    if "\0" in command:
        raise ModelRetry("The command contains a NUL character.")
    seconds = min(max(0.1, timeout_seconds), _LONGEST_COMMAND_S)
    desk = ctx.deps.desk
    end = await run_command(command, cwd=desk.cwd, environ=desk.tool_environ, seconds=seconds, limit=OUTPUT_CHARS)
    output = end.output or "(no output)"
    if end.code is None:
        raise ModelRetry(f"{output}\n[ended after {seconds:g} seconds, its time limit]")
    return output if end.code == 0 else f"{output}\n[exit code: {end.code}]"


_FUNCTIONS: dict[str, Callable[..., Awaitable[str]]] = {
    "read": _read,
    "list": _list,
    "find": _find,
    "grep": _grep,
    "write": _write,
    "edit": _edit,
    "bash": _bash,
}


async def _walk(search: Callable[[], Coroutine[Any, Any, str]]) -> str:
    # The harness walks trees without ever giving the loop a turn.
    return await aside(lambda: asyncio.run(search()))


def _cap(text: str) -> str:
    return text if len(text) <= OUTPUT_CHARS else text[:OUTPUT_CHARS] + "\n[... cut here; narrow the search]"
