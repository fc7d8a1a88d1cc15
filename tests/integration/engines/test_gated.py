"""The gate in the native engine, against a model on loopback: none of two hundred calls is made that may not be."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from shell_lines import ALLOW, ATTACKS, EVERYDAY, lines

from subagents_nb.domain.policy.decision import decide
from subagents_nb.domain.policy.policy import Ceiling, Policy
from subagents_nb.domain.runs.events import ToolEnded
from subagents_nb.runner.engines.native.native import NativeEngine
from subagents_nb.runner.engines.tools.judged_calls import CallRoots, judged_call

POLICY = Policy.of(Ceiling(origin="worker.md", allow=ALLOW))


def test_of_all_attacks_none_is_carried_out_and_everyday_work_is(workshop: Any, plan: Any, wire: Any) -> None:
    attacks = lines(ATTACKS)
    for line in attacks:  # before any of them comes near a shell
        assert (
            decide(POLICY, judged_call("bash", {"command": line}, {"bash"}, CallRoots(Path("/w")))).verdict != "allow"
        )
    everyday = [line for line in lines(EVERYDAY) if line.startswith(("echo", "pwd", "ls "))]
    sent = [*attacks, *everyday]
    calls = [(f"c{number}", "bash", json.dumps({"command": line})) for number, line in enumerate(sent)]
    wire.says(calls=calls, end="tool_calls")
    wire.says("done")

    outcome = workshop.run(NativeEngine(), plan("attack", at=wire.url, tools=("bash",), policy=POLICY))

    ends = {event.call_id: event for event in workshop.told(ToolEnded)}
    assert outcome.text == "done" and len(ends) == len(sent) > 200
    assert [line for at, line in enumerate(sent) if (ends[f"c{at}"].refused is None) != (line in everyday)] == []
    told = [message["content"] for message in wire.bodies[-1]["messages"] if message["role"] == "tool"]
    assert all("nobody can be asked here" in text for text in told[: len(attacks)])
    assert list(workshop.cwd.iterdir()) == []
