"""The deterministic twin of a model: for tests, documentation and demonstrations, without a key and without luck."""

from __future__ import annotations

import asyncio
import time

from subagents_nb.domain.agents.guarded import is_secret
from subagents_nb.domain.agents.scripts import BUILTIN_SCRIPTS, script_paths
from subagents_nb.domain.plans.plan import StepPlan
from subagents_nb.domain.runs.events import Noticed, StepFailed, StepOutcome
from subagents_nb.domain.runs.records import Usage
from subagents_nb.domain.values.words import duration
from subagents_nb.runner.engines.engine import StepContext
from subagents_nb.runner.engines.scripted.player import Player
from subagents_nb.runner.engines.scripted.script import Script, ScriptedFailure, ScriptStep, read_script
from subagents_nb.runner.engines.scripted.scripted_history import Transcript
from subagents_nb.runner.engines.session_file import save_session
from subagents_nb.signals import end_self
from subagents_nb.store.files.opener import read_plain

_TICK_S = 0.1
_SLOW_S = 600.0
_STUBBORN_S = 30.0
_SMALL_BYTES = 8192


class ScriptedEngine:
    """Carry out a step as its script says."""

    async def run(self, step: StepPlan, context: StepContext) -> StepOutcome:
        """Play the step's script, then say back whatever else is said to it.

        Raises:
            StepFailed: the script says so, or can't be used.
        """
        name = step.model.name
        _note_script(name, context)
        own = name not in BUILTIN_SCRIPTS
        script = read_script(name, context.workspace or context.cwd, allowed=step.script) if own else None
        _note_script(name, context)  # again: were it another one by now, nobody could say which one was played
        player = Player(step, context, await Transcript.after(context.history))
        try:
            player.first_request()
            if script is not None:
                await perform(player, script)
            else:
                await _BUILTIN[name](player)
            while texts := player.more():
                await _say(player, "\n".join(texts))
            return player.outcome()
        except StepFailed as failure:
            failure.usage = player.usage
            raise
        finally:
            _save(context, player.transcript)


def _note_script(name: str, context: StepContext) -> None:
    if context.workspace not in (None, context.cwd):
        if name not in BUILTIN_SCRIPTS:
            context.reads.untracked("its script lies outside of its folder")
        return
    for place in script_paths(name):
        with context.reads.reading(place):
            pass


def _save(context: StepContext, transcript: Transcript) -> None:
    try:
        save_session(context.step_dir, transcript.content())
    except OSError as error:
        why = error.strerror or type(error).__name__
        context.report(Noticed("session-not-saved", f"The history of this step could not be saved: {why}."))


async def _say(player: Player, text: str) -> None:
    words = text.split(" ")
    for index, word in enumerate(words):
        player.text(word + " " * (index < len(words) - 1))
        await asyncio.sleep(0)


async def _echo(player: Player) -> None:
    """Say the task back, word by word; after an earlier run, say first how many messages came before."""
    earlier = player.transcript.earlier
    await _say(player, f"[{earlier} earlier] {player.step.task}" if earlier else player.step.task)


async def _slow(player: Player) -> None:
    """Tick for ten minutes, ten times a second."""
    ends, number = time.monotonic() + _SLOW_S, 0
    while time.monotonic() < ends:
        number += 1
        player.text(f"tick {number}\n")
        await asyncio.sleep(_TICK_S)


async def _tools(player: Player) -> None:
    """List the workspace and read its first small text file, really."""
    root, gate, reads = player.context.cwd.resolve(), player.calls.gate, player.context.reads
    names = sorted(entry.name + "/" * entry.is_dir() for entry in root.iterdir() if not entry.name.startswith("."))
    entries = [name for name in names if gate is None or gate.allows("read", {"path": name})]
    with reads.listing("."):
        if not await player.calls.look("list", ".", "\n".join(entries)):
            return player.text("I was not allowed to look around.")
    await asyncio.sleep(0)
    for entry in entries:
        path = root / entry
        if path.is_symlink() or not path.is_file() or is_secret(entry) or path.stat().st_size > _SMALL_BYTES:
            continue
        try:
            with reads.reading(entry):
                content = read_plain(path, _SMALL_BYTES, within=root).decode("utf-8")
        except (OSError, UnicodeDecodeError):
            continue
        if await player.calls.look("read", entry, content):
            player.text(f"The workspace has {len(entries)} entries. {entry} has {len(content.splitlines())} lines.")
        return None
    return player.text(f"The workspace has {len(entries)} entries and no small text file.")


async def _refused(player: Player) -> None:
    """Ask for a tool that is not there, then answer without it."""
    refused = "'bash' is not one of this step's tools."
    await player.calls.tool("bash", {"command": "rm -rf build"}, refused, refused=refused)
    await asyncio.sleep(0)
    player.text("I was not allowed to run the command, so nothing was changed.")


async def _fail(player: Player) -> None:
    player.text("This will not end well.")
    raise StepFailed("model", "The scripted model failed, as its script says.")


async def _crash(player: Player) -> None:
    player.text("The process dies now.\n")
    await asyncio.sleep(3 * _TICK_S)  # a crash is worth more when its last line was seen
    end_self()


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


async def _ask(player: Player) -> None:
    """Ask whether to go on, and say the answer."""
    answer = await player.calls.ask("Go on?", ("yes", "no"))
    player.text("Nobody answered." if answer is None else f"The answer was: {answer}")


async def _steerable(player: Player) -> None:
    """Tick like `slow`, say what was heard, and end when that says so."""
    ends, number = time.monotonic() + _SLOW_S, 0
    while time.monotonic() < ends:
        texts = player.steers()
        for text in texts:
            player.text(f"heard: {text}\n")
        if any("finish" in text.lower() for text in texts):
            return
        number += 1
        player.text(f"tick {number}\n")
        await asyncio.sleep(_TICK_S)


_BUILTIN = {
    "echo": _echo,
    "slow": _slow,
    "tools": _tools,
    "refused": _refused,
    "fail": _fail,
    "crash": _crash,
    "hang": _hang,
    "stubborn": _stubborn,
    "ask": _ask,
    "steerable": _steerable,
}


async def perform(player: Player, script: Script) -> None:
    """Do one thing of the script after the other.

    Raises:
        StepFailed: the script says so.
    """
    for item in script:
        await _do(player, item)
        await asyncio.sleep(0)


async def _do(player: Player, item: ScriptStep) -> None:
    match item.verb:
        case "text":
            player.text(item.text or "")
        case "think":
            player.think(item.think or "")
        case "tool":
            await player.calls.tool(item.tool or "", item.args, item.result, refused=item.refused, seconds=item.seconds)
        case "call":
            result = await player.calls.real(player.step, item.call or "", item.args)
            if item.say:
                player.text(result)
        case "sleep":
            await asyncio.sleep(item.sleep or 0.0)
        case "value":
            player.value = (item.value,)
        case "usage":
            player.count(item.usage or Usage())
        case "await_steer":
            player.text(await player.steer())
        case "ask":
            player.text(await player.calls.ask(item.ask or "", item.choices) or "")
        case "python":
            result = await player.calls.python(item.python or "")
            if item.say:
                player.text(result)
        case "delegate":
            answers = await player.calls.delegate([(one.agent, one.task) for one in item.delegate or ()])
            if item.say:
                player.text("\n".join(answers))
        case "remember":
            await player.calls.remember(item.remember or "")
        case "recall":
            notes = await player.calls.recall(item.recall or "")
            if item.say:
                player.text(notes)
        case "skill":
            loaded = await player.calls.skill(player.step, item.skill or "")
            if item.say:
                player.text(loaded)
        case "rate_limited":
            await _wait(player.context, item.rate_limited or 0.0)
        case _:
            failure = item.fail or ScriptedFailure()
            raise StepFailed(failure.reason, failure.message)


async def _wait(context: StepContext, seconds: float) -> None:
    context.report(Noticed("rate-limited", f"The provider asks to wait {duration(seconds)}."))
    with context.waiting():
        await asyncio.sleep(seconds)
