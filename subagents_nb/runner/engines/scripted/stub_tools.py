"""The tool calls of a script: nothing is done, and yet each has its row, its limit and an end at the person's word.

What is done in earnest passes the gate of the step first, as a model's calls do.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from subagents_nb.domain.agents.memory import KEEPING, LOOKING
from subagents_nb.domain.agents.skills import LOAD_TOOL
from subagents_nb.domain.plans.plan import StepPlan
from subagents_nb.domain.policy.tool_names import shown_tool
from subagents_nb.domain.runs.events import FileChanged, StepFailed, ToolEnded, ToolStarted
from subagents_nb.domain.runs.records import Usage
from subagents_nb.domain.values.base import sha256_text
from subagents_nb.runner.engines.clean_text import one_line
from subagents_nb.runner.engines.engine import ChildFailed, NotDelegated, Python, StepContext, StepMemory
from subagents_nb.runner.engines.gate import NotAllowed, gate_of, own_tools
from subagents_nb.runner.engines.memory_notes import add_note
from subagents_nb.runner.engines.meter import ToolMeter
from subagents_nb.runner.engines.opencalls import CANCELLED, CallCancelled, CallTimedOut, OpenCalls
from subagents_nb.runner.engines.scripted.scripted_history import Transcript
from subagents_nb.runner.engines.skill_texts import skill_text
from subagents_nb.runner.engines.step_limits import cell_seconds, limit_of, past_limit

Args = Mapping[str, Any]


class StubCalls:
    """Calls one tool after the other. What people, Python, skills and memory do is in earnest."""

    def __init__(
        self,
        step: StepPlan,
        context: StepContext,
        transcript: Transcript,
        count: Callable[[Usage], None],
        meter: ToolMeter,
        remind: Callable[[Sequence[str]], None],
    ) -> None:
        self._context = context
        self._transcript = transcript
        self._count = count
        self._meter = meter
        self._remind = remind
        self._open = OpenCalls(context.open_tools)
        self.gate = gate_of(step, context, own_tools(step, context))
        self._number = transcript.calls  # no id is given twice in one history

    async def tool(
        self, name: str, args: dict[str, Any], result: str, *, refused: str | None = None, seconds: float = 0.0
    ) -> None:
        """Pretend to call a tool, from its start to its end."""

        async def work(_call_id: str, _args: Args) -> str:
            if seconds:
                await asyncio.sleep(seconds)
            return result

        if await self._call(name, args, work, refused=refused, gated=False) is None or refused is not None:
            return
        path = args.get("path")
        if name in ("write", "edit") and isinstance(path, str):
            self._context.report(FileChanged(path))

    async def python(self, code: str) -> str:
        """Carry out a cell, really; return what a model would be told."""
        python = self._context.python
        if python is None:
            raise StepFailed("setup", "The script runs Python, and this agent has no such tool: give it `python`.")
        seconds = cell_seconds(None, self._context.limits.tool_timeout_s)

        async def work(_call_id: str, args: Args) -> str:
            return await _cell(python, str(args["code"]), seconds)

        return await self._call("python", {"code": code}, work) or ""

    async def look(self, name: str, path: str, found: str) -> bool:
        """List or read what was found, really; return whether that may be."""

        async def work(_call_id: str, _args: Args) -> str:
            return found

        return await self._call(name, {"path": path}, work) is not None

    async def remember(self, note: str) -> None:
        """Keep a note in the step's memory, really."""
        memory = self._memory()
        place = str(self._context.step_dir)

        async def work(call_id: str, args: Args) -> str:
            return await add_note(memory, str(args["content"]), call=sha256_text(f"{place} {call_id}"))

        await self._call(KEEPING[0], {"content": note}, work)

    async def recall(self, file: str) -> str:
        """Read a file of the step's memory, really."""
        memory = self._memory()

        async def work(_call_id: str, args: Args) -> str:
            asked = str(args["file"])
            return memory.texts().get(asked, f"There is no memory file named {asked!r}.")

        return await self._call(LOOKING[0], {"file": file}, work) or ""

    def _memory(self) -> StepMemory:
        if self._context.memory is None:
            raise StepFailed("setup", "The script uses memory, and this agent has none: name it in its file.")
        return self._context.memory

    async def skill(self, step: StepPlan, name: str) -> str:
        """Load a skill, as a model does; return its text."""
        record = next((one for one in step.skills if one.name == name), None)
        if record is None:
            raise StepFailed("setup", f"The script loads skill {one_line(name, 64)!r}, which this step does not have.")

        async def work(_call_id: str, args: Args) -> str:
            if args["id"] != name:
                raise _CellFailed(f"A script loads the skill that it names, {name}.")
            return skill_text(record, self._context)

        return await self._call(LOAD_TOOL, {"id": name}, work) or ""

    async def real(self, step: StepPlan, name: str, args: dict[str, Any]) -> str:
        """Make a call, really; return what a model would be told."""
        from subagents_nb.runner.engines.native.single_call import make_call

        async def work(call_id: str, args: Args) -> str:
            result = await make_call(step, self._context, name, dict(args), call_id=call_id)
            if not result.ok:
                raise _CellFailed(result.text, refused=result.refused is not None)
            return result.text

        return await self._call(name, args, work, limited=False, gated=False) or ""  # there it passes it

    async def ask(self, question: str, choices: Sequence[str] = ()) -> str | None:
        """Ask the person; None when the question was cancelled."""
        ask = self._context.ask
        if ask is None:
            raise StepFailed("setup", "The script asks a question, and nobody can be asked here.")
        args = {"question": question, **({"choices": list(choices)} if choices else {})}

        async def work(call_id: str, args: Args) -> str:
            return await ask(str(args["question"]), args.get("choices", ()), call_id=call_id)

        return await self._call("ask", args, work)

    async def delegate(self, tasks: Sequence[tuple[str, str]]) -> list[str]:
        """Have other agents work, really, side by side; return what a model would be told of each."""
        delegate = self._context.delegate
        if delegate is None:
            raise StepFailed("setup", "The script delegates, and this agent may not: name `agents` in its file.")

        async def one(agent: str, task: str) -> str:
            async def work(_call_id: str, args: Args) -> str:
                try:
                    return await delegate(str(args["agent"]), str(args["task"]))
                except (NotDelegated, ChildFailed) as error:
                    raise _CellFailed(str(error), refused=isinstance(error, NotDelegated)) from error

            return await self._call("delegate", {"agent": agent, "task": task}, work) or ""

        return await asyncio.gather(*(one(agent, task) for agent, task in tasks))

    async def _call(
        self,
        name: str,
        args: dict[str, Any],
        work: Callable[[str, Args], Awaitable[str]],
        *,
        refused: str | None = None,
        limited: bool = True,
        gated: bool = True,
    ) -> str | None:
        self._number += 1
        call_id = f"call-{self._number}"
        preview = one_line("  ".join(str(v)[:160] for v in args.values() if isinstance(v, str)), 160)
        self._transcript.call(call_id, name, args)
        self._context.report(ToolStarted(call_id, shown_tool(name), preview))
        began, result, failure = time.monotonic(), None, None
        failed = False
        try:
            passed = await self._passed(name, args, call_id) if gated else args
            if (spent := self._meter.refusal(call_id, name)) is not None:
                raise NotAllowed(spent)
            limit = limit_of(name, self._context.limits.tool_timeout_s) if limited else None
            async with self._open.at_work(call_id, limit):
                result = await work(call_id, passed)
        except NotAllowed as error:
            self._transcript.result(call_id, name, _not_allowed(error.why), ok=False)
            self._over(ToolEnded(call_id, ok=False, seconds=0.0, preview=one_line(error.why, 160), refused=error.why))
            return None
        except CallCancelled:
            pass
        except _CellFailed as error:
            result, failed = error.text, True
            refused = error.text if error.refused else None
        except CallTimedOut as error:
            failure = past_limit(name, error.seconds)
        text = CANCELLED if result is None else result
        shown = one_line(failure.message if failure else text, 160)
        seconds = round(time.monotonic() - began, 1)  # what takes no time takes the same each time
        ok = refused is None and result is not None and not failed
        if failure is None:  # else the run ends here, and no model is told anything
            text = text if refused is None or result is None else result or _not_allowed(refused)
            self._transcript.result(call_id, name, text, ok=ok)
        self._over(ToolEnded(call_id, ok=ok, seconds=seconds, preview=shown, refused=refused))
        if failure is not None:
            raise failure
        return result

    async def _passed(self, name: str, args: dict[str, Any], call_id: str) -> dict[str, Any]:
        """Return the arguments that the call is made with; who waits for the person can be ended like one at work."""
        if self.gate is None:
            return args
        async with self._open.at_work(call_id, None):
            passed = await self.gate.passed(name, args, call_id=call_id)
        if strange := [key for key in passed if key not in args or type(passed[key]) is not type(args[key])]:
            raise NotAllowed(f"the person changed its arguments, and they don't fit: {', '.join(map(repr, strange))}.")
        return passed

    def _over(self, end: ToolEnded) -> None:
        self._context.report(end)
        self._count(Usage(tool_calls=1))
        self._meter.forget(end.call_id)
        self._remind(self._meter.reminders())


def _not_allowed(why: str) -> str:
    return f"Not allowed: {why}"


class _CellFailed(Exception):
    """A cell ended with an exception, or not by itself; a child has no answer, or was `refused`."""

    def __init__(self, text: str, *, refused: bool = False) -> None:
        super().__init__(text)
        self.text = text
        self.refused = refused


async def _cell(python: Python, code: str, seconds: float) -> str:
    end = await python.run(code, seconds=seconds)
    if not end.ok:
        raise _CellFailed(end.text)
    return end.text
