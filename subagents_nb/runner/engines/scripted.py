"""The deterministic twin of a model: for tests, documentation and demonstrations, without a key and without luck."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import time
from typing import Any

import jsonschema_rs

from subagents_nb.domain.events import (
    ModelAsked,
    ModelNamed,
    Noticed,
    StepFailed,
    StepOutcome,
    TextStreamed,
    ThoughtStreamed,
    ToolEnded,
    ToolStarted,
    UsageChanged,
)
from subagents_nb.domain.plan import StepPlan
from subagents_nb.domain.records import Usage
from subagents_nb.domain.scripts import BUILTIN_SCRIPTS
from subagents_nb.runner.engines.base import Desk
from subagents_nb.runner.engines.guarded import is_secret
from subagents_nb.runner.engines.instances import minimal_instance
from subagents_nb.runner.engines.redaction import one_line
from subagents_nb.runner.engines.script import Script, ScriptedFailure, ScriptStep, read_script
from subagents_nb.runner.engines.session import save_session

_TICK_S = 0.1
_SLOW_S = 600.0
_STUBBORN_S = 30.0
_SMALL_BYTES = 8192
_TOKEN_CHARS = 4


class ScriptedEngine:
    """Carry out a step as its script says."""

    async def run(self, step: StepPlan, desk: Desk) -> StepOutcome:
        """Play the step's script.

        Raises:
            StepFailed: the script says so, or can't be used.
        """
        name = step.model.name
        script = None if name in BUILTIN_SCRIPTS else read_script(name, desk.cwd)
        player = Player(step, desk)
        try:
            player.begin()
            if script is not None:
                await player.play(script)
            else:
                await _BUILTIN[name](player)
            return player.outcome()
        except StepFailed as failure:
            failure.usage = player.usage
            raise
        finally:
            player.save()


class Player:
    """What a script acts on: it streams, calls pretended tools and keeps the deterministic count."""

    def __init__(self, step: StepPlan, desk: Desk) -> None:
        self.step = step
        self.desk = desk
        self._counted = Usage(input_tokens=len(step.task) // _TOKEN_CHARS, requests=1, cost_usd=0.0)
        self._length = 0
        self._text: list[str] = []
        self._value: tuple[Any] | None = None
        self._calls = 0

    @property
    def usage(self) -> Usage:
        """Return the count so far: a token is four characters, whatever the text."""
        written = self._counted.output_tokens + self._length // _TOKEN_CHARS
        return self._counted.model_copy(update={"output_tokens": written})

    def begin(self) -> None:
        """Report what a model's first request would."""
        self.desk.report(ModelAsked(1))
        self.desk.report(ModelNamed(self.step.model.label))

    def text(self, text: str) -> None:
        """Stream a piece of the answer."""
        self._text.append(text)
        self._length += len(text)
        self.desk.report(TextStreamed(text))
        self.desk.report(UsageChanged(self.usage))

    def count(self, more: Usage) -> None:
        """Add to the usage."""
        self._counted = self._counted.plus(more.model_copy(update={"cost_usd": more.cost_usd or 0.0}))
        self.desk.report(UsageChanged(self.usage))

    def tool(self, name: str, args: dict[str, Any], result: str, *, refused: str | None = None) -> None:
        """Report one tool call, from its start to its end."""
        self._calls += 1
        call_id = f"call-{self._calls}"
        preview = one_line("  ".join(str(v)[:160] for v in args.values() if isinstance(v, str)), 160)
        self.desk.report(ToolStarted(call_id, name, preview))
        ended = ToolEnded(call_id, ok=refused is None, seconds=0.0, preview=one_line(result, 160), refused=refused)
        self.desk.report(ended)
        self.count(Usage(tool_calls=1))

    async def play(self, script: Script) -> None:
        """Do one thing of the script after the other."""
        for item in script:
            await self._do(item)
            await asyncio.sleep(0)

    async def _do(self, item: ScriptStep) -> None:
        match item.verb:
            case "text":
                self.text(item.text or "")
            case "think":
                self.desk.report(ThoughtStreamed(item.think or ""))
            case "tool":
                self.tool(item.tool or "", item.args, item.result, refused=item.refused)
            case "sleep":
                await asyncio.sleep(item.sleep or 0.0)
            case "value":
                self._value = (item.value,)
            case "usage":
                self.count(item.usage or Usage())
            case _:
                failure = item.fail or ScriptedFailure()
                raise StepFailed(failure.reason, failure.message)

    def outcome(self) -> StepOutcome:
        """Return what the step came to; with a schema, its value is validated like a model's."""
        text = "".join(self._text)
        schema = self.step.output_schema
        if schema is None:
            if not text and self._value is not None:
                text = json.dumps(self._value[0], ensure_ascii=False)
            if not text:
                raise StepFailed("no-answer", "The script ended without an answer.")
            return StepOutcome(text=text, usage=self.usage, model=self.step.model.label)
        value = self._checked(schema)
        shown = json.dumps(value, ensure_ascii=False)
        return StepOutcome(text=shown, has_value=True, value=value, usage=self.usage, model=self.step.model.label)

    def _checked(self, schema: dict[str, Any]) -> Any:
        try:
            validator = jsonschema_rs.validator_for(schema)
        except (ValueError, jsonschema_rs.ReferencingError) as error:
            raise StepFailed("setup", f"The output schema is not usable: {one_line(str(error))}") from error
        given = self._value is not None
        value = self._value[0] if self._value is not None else minimal_instance(schema)
        first = next(iter(validator.iter_errors(value)), None)
        if first is None:
            return value
        where = ".".join(str(part) for part in first.instance_path) or "the whole value"
        what = f"{where}: {one_line(first.message, 200)}"
        if given:
            raise StepFailed("schema", f"The script's value does not fit the schema: {what}.")
        raise StepFailed("setup", f"No value could be made up for this schema ({what}); give one in a script.")

    def save(self) -> None:
        """Save the history, in the form in which a model's is saved."""
        history: list[dict[str, Any]] = [
            {"kind": "request", "parts": [{"part_kind": "user-prompt", "content": self.step.task}]}
        ]
        if self._text:
            history.append({"kind": "response", "parts": [{"part_kind": "text", "content": "".join(self._text)}]})
        try:
            save_session(self.desk.step_dir, json.dumps(history, ensure_ascii=False).encode())
        except OSError as error:
            why = error.strerror or type(error).__name__
            self.desk.report(Noticed("session-not-saved", f"The history of this step could not be saved: {why}."))


async def _echo(player: Player) -> None:
    """Say the task back, word by word."""
    words = player.step.task.split(" ")
    for index, word in enumerate(words):
        player.text(word + " " * (index < len(words) - 1))
        await asyncio.sleep(0)


async def _slow(player: Player) -> None:
    """Tick for ten minutes, ten times a second."""
    ends, number = time.monotonic() + _SLOW_S, 0
    while time.monotonic() < ends:
        number += 1
        player.text(f"tick {number}\n")
        await asyncio.sleep(_TICK_S)


async def _tools(player: Player) -> None:
    """List the workspace and read its first small text file, really."""
    root = player.desk.cwd.resolve()
    entries = sorted(entry.name + "/" * entry.is_dir() for entry in root.iterdir() if not entry.name.startswith("."))
    player.tool("list", {"path": "."}, "\n".join(entries))
    await asyncio.sleep(0)
    for entry in entries:
        path = root / entry
        if path.is_symlink() or not path.is_file() or is_secret(entry) or path.stat().st_size > _SMALL_BYTES:
            continue
        try:
            content = path.read_bytes().decode("utf-8")
        except (OSError, UnicodeDecodeError):
            continue
        player.tool("read", {"path": entry}, content)
        player.text(f"The workspace has {len(entries)} entries. {entry} has {len(content.splitlines())} lines.")
        return
    player.text(f"The workspace has {len(entries)} entries and no small text file.")


async def _refused(player: Player) -> None:
    """Ask for a tool that is not there, then answer without it."""
    refused = "'bash' is not one of this step's tools."
    player.tool("bash", {"command": "rm -rf build"}, refused, refused=refused)
    await asyncio.sleep(0)
    player.text("I was not allowed to run the command, so nothing was changed.")


async def _fail(player: Player) -> None:
    player.text("This will not end well.")
    raise StepFailed("model", "The scripted model failed, as its script says.")


async def _crash(player: Player) -> None:
    player.text("The process dies now.\n")
    await asyncio.sleep(3 * _TICK_S)  # a crash is worth more when its last line was seen
    os.kill(os.getpid(), signal.SIGKILL)


async def _hang(player: Player) -> None:
    del player
    await asyncio.Event().wait()


async def _stubborn(player: Player) -> None:
    """Go on for half a minute after being told to stop; until then, tick."""
    ends, number = time.monotonic() + _SLOW_S, 0
    asked: asyncio.CancelledError | None = None
    while time.monotonic() < ends:
        number += 1
        try:
            player.text(f"tick {number}\n")
            await asyncio.sleep(_TICK_S)
        except asyncio.CancelledError as error:
            if asked is None:
                ends = time.monotonic() + _STUBBORN_S
                player.text("I was asked to stop and go on.\n")
            asked = error
    if asked is not None:
        raise asked


_BUILTIN = {
    "echo": _echo,
    "slow": _slow,
    "tools": _tools,
    "refused": _refused,
    "fail": _fail,
    "crash": _crash,
    "hang": _hang,
    "stubborn": _stubborn,
}
