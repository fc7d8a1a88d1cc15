"""An MCP server of a project, from its definition to the call and to its end."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest
from support import marked_processes, script, until

from subagents_nb import launch, preflight, trust
from subagents_nb.store import StoreHome

pytestmark = pytest.mark.timeout(90)
SERVER = Path(__file__).parents[1] / "children" / "mcp_server.py"


@pytest.fixture(autouse=True)
def ground(shared_home: StoreHome) -> None:
    shutil.copy(SERVER, "server.py")
    define({"adding": {"command": sys.executable, "args": ["server.py"]}})
    agent("adder", tools="mcp:adding")
    script("adds", {"call": "mcp__adding__add", "args": {"one": 2, "other": 3}, "say": True})


def define(servers: object) -> None:
    Path(".mcp.json").write_text(json.dumps({"mcpServers": servers}))


def agent(name: str, **fields: object) -> None:
    folder = Path.home() / ".subagents/agents"
    folder.mkdir(parents=True, exist_ok=True)
    lines = "".join(f"{key}: {value}\n" for key, value in fields.items())
    (folder / f"{name}.md").write_text(f"---\nname: {name}\ndescription: d\n{lines}---\nwork\n")


def test_a_server_that_a_project_defines_waits_for_a_yes_and_then_its_tools_are_called_as_any() -> None:
    (reason,) = preflight("adder", "add", model="scripted:adds").reasons
    assert "MCP server adding" in reason and "%subagent_trust" in reason
    trust(contents=True)

    run = launch("adder", "add", model="scripted:adds")

    assert run.wait(60) and run.state == "complete", run.error
    assert run.text == "5"
    assert [row.name for row in run.status.steps[0].tools] == ["adding/add"]
    until(lambda: not marked_processes([run.id]), what="no process of it")
