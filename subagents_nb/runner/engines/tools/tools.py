"""The tools an agent may have, by our names, over the harness's confined file functions and our shell.

The functions describe themselves to the model; what they say there is part of their behaviour.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cache
from pathlib import PurePath
from typing import Any

from pydantic_ai.exceptions import ModelRetry
from pydantic_ai.tools import RunContext, Tool

from subagents_nb.domain.agents.agent import WRITE_TOOLS
from subagents_nb.domain.agents.skills import SKILLS_VARIABLE
from subagents_nb.domain.policy.policy import Policy
from subagents_nb.domain.runs.events import ChangedMeanwhile, FileChanged
from subagents_nb.plain_text import shortened
from subagents_nb.runner.engines.engine import ChildFailed, NotDelegated, StepContext
from subagents_nb.runner.engines.step_limits import cell_seconds
from subagents_nb.runner.engines.tools.file_tools import OUTPUT_CHARS, Files
from subagents_nb.runner.engines.tools.shell import run_command
from subagents_nb.runner.processes.threads import in_thread
from subagents_nb.runner.tracking import mentions_of_command
from subagents_nb.runner.workspace.step_files import PROGRESS

COMMAND_SECONDS = 120.0
_LONGEST_COMMAND_S = 3600.0
_SEARCH_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class ToolContext:
    """Where the tools of one step work: the workspace, and the confined view of its files."""

    context: StepContext
    files: Files
    inputs: Files | None = None
    own: Files | None = None  # the run's own folder
    skills: Files | None = None

    @classmethod
    def at(cls, context: StepContext, policy: Policy | None = None) -> ToolContext:
        """Return what the tools of a step work with; what its policy denies to be read is found by none of them."""
        inputs = Files.confined(context.inputs.root) if context.inputs is not None else None
        own = Files.confined(context.files) if context.files is not None and context.files.is_dir() else None
        skills = Files.confined(context.skills.root) if context.skills is not None else None
        files = Files.confined(context.cwd, store=context.store_home, policy=policy)
        return cls(context, files, inputs, own, skills)

    def own_path(self, path: str) -> str | None:
        """Return the path in the run's own folder that an absolute path means; None if it lies elsewhere."""
        folder = self.context.files
        if self.own is None or folder is None or not os.path.isabs(path):
            return None
        inner = os.path.relpath(path, folder)
        return None if inner.split("/", 1)[0] == ".." else inner

    def input_path(self, path: str) -> str | None:
        """Return the path below the inputs that a path of the model's means; None if it means the workspace."""
        inputs = self.context.inputs
        if inputs is None:
            return None
        folder, _, inner = os.path.normpath(path).partition("/")
        return (inner or ".") if folder == inputs.folder else None

    def skill_path(self, path: str) -> str | None:
        """Return the path below the copied skills that a path of the model's means, or None as of an input.

        A shell's variable, as skills are told of by it, means the same. Skills of other steps are not there.
        """
        skills = self.context.skills
        if skills is None:
            return None
        for root in (str(skills.root), f"${SKILLS_VARIABLE}", f"${{{SKILLS_VARIABLE}}}"):
            path = skills.folder + path[len(root) :] if path == root or path.startswith(f"{root}/") else path
        folder, _, inner = os.path.normpath(path).partition("/")
        if folder != skills.folder:
            return None
        own = [one.folder for one in skills.records]
        if inner.partition("/")[0] not in own:
            raise ModelRetry(f"{path}: there is no such skill here; there are {', '.join(own)}")
        return inner

    def for_reading(
        self, path: str, seen: Callable[[str], AbstractContextManager[None]]
    ) -> tuple[Files, str, AbstractContextManager[None]]:
        """Return the files that a path lies in, the path there, and what notes the reading of it."""
        if self.own is not None and (own := self.own_path(path)) is not None:
            return self.own, own, nullcontext()
        if self.skills is not None and (inner := self.skill_path(path)) is not None:
            return self.skills, inner, nullcontext()  # so are skills
        inner = self.input_path(path)
        if inner is None or self.inputs is None:
            return self.files, path, seen(path)
        return self.inputs, inner, nullcontext()  # what the run was given is bound by its contract

    def for_writing(self, path: str) -> tuple[Files, str]:
        """Return the files that a path lies in, and the path there; refuse the inputs and what is another step's."""
        why = ""
        if self.input_path(path) is not None:
            why = f"{path} is one of the inputs, which can't be written to; write into the workspace"
        elif self.skill_path(path) is not None:
            why = f"{path} belongs to a skill, which can't be written to; write into the workspace"
        elif self.own is not None and (own := self.own_path(path)) is not None:
            if own == PROGRESS or own.startswith(f"{self.context.step_dir.name}/"):
                return self.own, own
            why = f"{path} is another step's file; write into the workspace, or where you were told to"
        if why:
            raise ModelRetry(why) from PermissionError(why)
        return self.files, path

    def changed(self, path: str) -> None:
        """Report a file that was written, by its place in the workspace."""
        if self.own_path(path) is not None:
            return
        root = self.context.cwd.resolve()
        self.context.report(FileChanged(os.path.relpath((root / path).resolve(), root)))


@cache
def tool_named(name: str) -> Tool[ToolContext]:
    """Return the tool of this name."""
    # Kept for the life of the process: describing a function to a model takes 2 ms, and a forked runner inherits it.
    # `sequential`: two edits of one turn must not meet in one file.
    return Tool(_FUNCTIONS[name], name=name, takes_ctx=True, sequential=name in WRITE_TOOLS)


def args_preview(args: Mapping[str, Any], limit: int = 160) -> str:
    """Return what a person wants to see of a call's arguments: the command or path first, only texts, one line."""
    ordered = [
        key for key in ("command", "code", "path", "pattern", "include", "question", "agent", "task") if key in args
    ]
    rest = [key for key in args if key not in ordered and key not in ("content", "old_text", "new_text")]
    flat = "  ".join(
        " ".join(str(args[key])[:limit].split()) for key in [*ordered, *rest] if isinstance(args[key], str)
    )
    return shortened(flat, limit)


async def _read(ctx: RunContext[ToolContext], path: str, offset: int = 0, limit: int | None = None) -> str:
    """Read a text file, with line numbers.

    Args:
        ctx: The run.
        path: File path, relative to the workspace.
        offset: How many lines to skip.
        limit: How many lines to return at most (default 2000).
    """
    files, path, seen = ctx.deps.for_reading(path, ctx.deps.context.reads.reading)
    return await _in_thread(lambda: files.read_file(path, offset=offset, limit=limit), seen)


async def _list(ctx: RunContext[ToolContext], path: str = ".") -> str:
    """List a directory.

    Args:
        ctx: The run.
        path: Directory path, relative to the workspace.
    """
    reads = ctx.deps.context.reads
    files, path, seen = ctx.deps.for_reading(path, lambda path: reads.listing(path, sizes=True))
    return await _in_thread(lambda: files.list_directory(path), seen)


async def _find(ctx: RunContext[ToolContext], pattern: str, path: str = ".") -> str:
    """Find files by name.

    Args:
        ctx: The run.
        pattern: Glob pattern, such as '*.csv' or '**/*.py'.
        path: Directory to look in, relative to the workspace.
    """
    reads = ctx.deps.context.reads
    files, path, seen = ctx.deps.for_reading(path, lambda path: reads.listing(path, pattern))
    async with _noting(seen):
        return _cap(await files.find_files(pattern, path=path))


async def _grep(ctx: RunContext[ToolContext], pattern: str, path: str = ".", include: str | None = None) -> str:
    """Search file contents by a regular expression; answers file:line:text.

    Args:
        ctx: The run.
        pattern: Python regular expression.
        path: Directory or file to search, relative to the workspace.
        include: Only files whose path matches this glob, such as '*.py'.
    """
    context = ctx.deps.context
    files, path, seen = ctx.deps.for_reading(path, lambda path: context.reads.searching(path, include))
    # A pattern that takes for ever is no fault of the run's: the model is told before the tool's limit would end that.
    limit_s = context.limits.tool_timeout_s
    seconds = _SEARCH_SECONDS if limit_s is None else 0.8 * limit_s
    async with _noting(seen):
        return _cap(
            await files.search(pattern, path=path, include=include, environ=context.tool_environ, seconds=seconds)
        )


async def _write(ctx: RunContext[ToolContext], path: str, content: str) -> str:
    """Write a text file, replacing what was there; missing directories are made.

    Args:
        ctx: The run.
        path: File path, relative to the workspace.
        content: The whole new content.
    """
    files, place = ctx.deps.for_writing(path)
    parent = str(PurePath(place).parent)
    if parent != ".":
        await files.create_directory(parent)
    written = await files.write_file(place, content)
    ctx.deps.changed(path)
    return written


async def _edit(ctx: RunContext[ToolContext], path: str, old_text: str, new_text: str) -> str:
    """Replace one passage of a text file.

    Args:
        ctx: The run.
        path: File path, relative to the workspace.
        old_text: The exact passage; it must occur once.
        new_text: What to put in its place.
    """
    files, place = ctx.deps.for_writing(path)
    seen = ctx.deps.context.reads.reading(path) if files is ctx.deps.files else nullcontext()
    edited = await _in_thread(lambda: files.edit_file(place, old_text, new_text), seen)
    ctx.deps.changed(path)
    return edited


async def _bash(ctx: RunContext[ToolContext], command: str, timeout_seconds: float | None = None) -> str:
    """Run a shell command in the workspace and return its output. Nothing it starts lives on afterwards.

    Args:
        ctx: The run.
        command: The command.
        timeout_seconds: When to end it (default 120).
    """
    if "\0" in command:
        raise ModelRetry("The command contains a NUL character.")
    context = ctx.deps.context
    if timeout_seconds is None:
        # A limit that was given for all tools stands in for ours.
        timeout_seconds = COMMAND_SECONDS if context.limits.tool_timeout_s is None else _LONGEST_COMMAND_S
    seconds = min(max(0.1, timeout_seconds), _LONGEST_COMMAND_S)
    named = context.reads.asked.by(mentions_of_command(command), context.tool_environ)
    async with named, context.reads.watch.during() as changed:
        end = await run_command(
            command,
            cwd=context.cwd,
            environ=context.tool_environ,
            seconds=seconds,
            limit=OUTPUT_CHARS,
            sandbox=context.sandbox,
        )
    for path in changed:
        context.report(ChangedMeanwhile(path))  # the shell's doing or another's: nobody says
    output = end.output or "(no output)"
    if end.code is None:
        raise ModelRetry(f"{output}\n[ended after {seconds:g} seconds, its time limit]")
    return output if end.code == 0 else f"{output}\n[exit code: {end.code}]"


async def _python(ctx: RunContext[ToolContext], code: str, timeout_seconds: float | None = None) -> str:
    """Run Python code in a kernel of your own and return what it prints and shows.

    The variables stay until your work is over. Figures and tables that a cell shows are kept, and named in the answer.

    Args:
        ctx: The run.
        code: The code of one cell; the value of its last line is shown.
        timeout_seconds: When to interrupt it (default 120).
    """
    context = ctx.deps.context
    if context.python is None:
        raise ModelRetry("There is no Python here.")
    end = await context.python.run(code, seconds=cell_seconds(timeout_seconds, context.limits.tool_timeout_s))
    if not end.ok:
        raise ModelRetry(end.text)
    return end.text


async def _ask(ctx: RunContext[ToolContext], question: str, choices: Sequence[str] = ()) -> str:
    """Ask who started this work and wait for the answer. Ask only what the work cannot go on without.

    Args:
        ctx: The run.
        question: The question, understandable by itself.
        choices: Likely answers; another one may be given too.
    """
    if ctx.deps.context.ask is None:
        raise ModelRetry("Nobody can be asked.")
    return await ctx.deps.context.ask(question, choices, call_id=ctx.tool_call_id or "")


async def _delegate(ctx: RunContext[ToolContext], agent: str, task: str) -> str:
    """Have another agent work on a part of the task, and return its answer. Several calls at once work side by side.

    It knows nothing of this conversation: the task has to say all that it needs.

    Args:
        ctx: The run.
        agent: Which agent.
        task: What it is to do, understandable by itself.
    """
    delegate = ctx.deps.context.delegate
    if delegate is None:
        raise ModelRetry("There is nobody to delegate to.")
    try:
        return await delegate(agent, task)
    except NotDelegated as error:
        raise ModelRetry(str(error)) from PermissionError(str(error))
    except ChildFailed as error:
        raise ModelRetry(str(error)) from error


async def _reply(ctx: RunContext[ToolContext], child: str, text: str = "", to_person: bool = False) -> str:
    """Answer what an agent that you delegated to asks you, and wait for it; return its answer.

    Args:
        ctx: The run.
        child: Who asked, as it was named.
        text: Your answer, understandable by itself.
        to_person: Instead of an answer: have the person decide it.
    """
    delegate = ctx.deps.context.delegate
    if delegate is None:
        raise ModelRetry("There is nobody who asks.")
    try:
        return await delegate.reply(child, text, to_person=to_person)
    except NotDelegated as error:
        raise ModelRetry(str(error)) from PermissionError(str(error))
    except ChildFailed as error:
        raise ModelRetry(str(error)) from error


_FUNCTIONS: dict[str, Callable[..., Awaitable[str]]] = {
    "read": _read,
    "list": _list,
    "find": _find,
    "grep": _grep,
    "write": _write,
    "edit": _edit,
    "bash": _bash,
    "python": _python,
    "ask": _ask,
    "delegate": _delegate,
    "reply": _reply,
}


async def _in_thread(work: Callable[[], Coroutine[Any, Any, str]], seen: AbstractContextManager[None]) -> str:
    def carry_out() -> str:
        with seen:
            return asyncio.run(work())

    # Files are read and hashed without ever giving the loop a turn.
    return await in_thread(carry_out)


@contextlib.asynccontextmanager
async def _noting(seen: AbstractContextManager[None]) -> AsyncIterator[None]:
    """Have noted what is seen inside; who is cancelled does not wait for that."""
    await in_thread(seen.__enter__)
    try:
        yield
    except asyncio.CancelledError:
        threading.Thread(target=seen.__exit__, args=(None, None, None), daemon=True).start()
        raise
    except BaseException:
        await in_thread(lambda: seen.__exit__(None, None, None))
        raise
    await in_thread(lambda: seen.__exit__(None, None, None))


def _cap(text: str) -> str:
    return text if len(text) <= OUTPUT_CHARS else text[:OUTPUT_CHARS] + "\n[... cut here; narrow the search]"
