"""Carry out the script of a file."""

from __future__ import annotations

import asyncio

from subagents_nb.domain.runs.events import Noticed, StepFailed
from subagents_nb.domain.runs.records import Usage
from subagents_nb.domain.values.words import duration
from subagents_nb.runner.engines.engine import StepContext
from subagents_nb.runner.engines.scripted.player import Player
from subagents_nb.runner.engines.scripted.script import Script, ScriptedFailure, ScriptStep


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
            said = await player.calls.python(item.python or "")
            if item.say:
                player.text(said)
        case "rate_limited":
            await _wait(player.context, item.rate_limited or 0.0)
        case _:
            failure = item.fail or ScriptedFailure()
            raise StepFailed(failure.reason, failure.message)


async def _wait(context: StepContext, seconds: float) -> None:
    context.report(Noticed("rate-limited", f"The provider asks to wait {duration(seconds)}."))
    with context.waiting():
        await asyncio.sleep(seconds)
