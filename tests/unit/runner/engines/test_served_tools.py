"""A model's calls of a server's tools: through the native engine, the gate and the limits, as of any tool."""

from __future__ import annotations

import json
from typing import Any

from subagents_nb.domain.policy.permissions import PermissionAnswer, PermissionRequest
from subagents_nb.domain.policy.policy import Ceiling, Policy
from subagents_nb.domain.runs.events import ToolEnded, ToolStarted
from subagents_nb.runner.engines.engine import ServedTool, ToolCallFailed
from subagents_nb.runner.engines.native.native import NativeEngine

SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}


class Two:
    """Two tools of a server, without one."""

    def __init__(self) -> None:
        self.made: list[tuple[str, dict[str, Any]]] = []
        self.tools = tuple(
            ServedTool(f"mcp__files__{own}", "files", own, f"{own} a file", SCHEMA, "it only reads")
            for own in ("read", "wipe")
        )

    async def call(self, name: str, args: dict[str, Any]) -> str:
        self.made.append((name, args))
        if args["path"] == "gone":
            raise ToolCallFailed("there is no such file")
        return f"did {name}"

    async def close(self) -> None:
        return None


def told(workshop: Any) -> list[str]:
    messages = json.loads((workshop.step_dir / "session.json").read_bytes())
    parts = [part for message in messages for part in message["parts"]]
    return [part["content"] for part in parts if part["part_kind"] == "tool-return"]


def test_calls_are_made_judged_by_their_whole_name_and_shown_by_server_and_tool(
    workshop: Any, plan: Any, plays: Any
) -> None:
    servers, asked = Two(), list[PermissionRequest]()

    async def permit(question: PermissionRequest, *, call_id: str = "") -> PermissionAnswer:
        asked.append(question)
        return PermissionAnswer(decision="edit", args={"path": "b"})

    permit.granted = set()  # type: ignore[attr-defined]
    workshop.more |= {"mcp": servers, "permit": permit}
    policy = Policy.of(Ceiling(origin="me", deny=("mcp:files/wipe",), ask=("mcp:files/read",)))
    calls = [("mcp__files__read", {"path": "a"}), ("mcp__files__wipe", {"path": "a"}), ("read", {"path": "a"})]
    outcome = workshop.run(
        NativeEngine(plays(*[[call] for call in calls], ["done"])), plan(tools=("mcp__files",), policy=policy)
    )

    assert outcome.text == "done" and servers.made == [("mcp__files__read", {"path": "b"})]
    assert [event.name for event in workshop.told(ToolStarted)] == ["files/read", "files/wipe", "read"]
    ends = [event.refused for event in workshop.told(ToolEnded)]
    assert ends[0] is None and "denies mcp:files/wipe" in ends[1] and "not one of this step's tools" in ends[2]
    assert asked[0].tool == "files/read" and asked[0].parts[-1].text == "it only reads"
    assert told(workshop)[0].endswith("did mcp__files__read")


def test_a_call_that_fails_is_told_and_the_work_goes_on(workshop: Any, plan: Any, plays: Any) -> None:
    workshop.more["mcp"] = Two()
    model = plays([("mcp__files__read", {"path": "gone"})], ["done"])
    outcome = workshop.run(NativeEngine(model), plan(tools=("mcp__files",)))
    assert outcome.text == "done" and workshop.told(ToolEnded)[0].ok is False
    assert "there is no such file" in told(workshop)[0]
