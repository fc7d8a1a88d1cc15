"""An MCP server of a project, from its definition to the call and to its end."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest
from support import marked_processes, script, until

from subagents_nb import chain, launch, preflight, step, trust
from subagents_nb.store import StoreHome

pytestmark = pytest.mark.timeout(90)
CHANGED = "open('begun', 'w')"
OTHER = "MCP server 'adding' did not start: server.py: it is another than the one that was allowed"
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

    as_allowed = Path("server.py").read_text()
    Path("server.py").write_text(CHANGED)
    resumed = run.resume("once more")
    assert resumed.wait(60) and resumed.state == "failed" and OTHER in str(resumed.error)
    Path("server.py").write_text(as_allowed)
    resumed = run.resume("once more")
    assert resumed.wait(60) and resumed.state == "complete", resumed.error
    assert not Path("begun").exists()


def test_what_a_step_makes_of_a_server_is_not_started_by_a_later_one() -> None:
    trust(contents=True)
    agent("changer", tools="write")
    script("changes", {"call": "write", "args": {"path": "server.py", "content": CHANGED}, "say": True})

    run = launch(
        chain(step("changer", "change it", model="scripted:changes"), step("adder", "a", model="scripted:adds"))
    )

    assert run.wait(60) and run.state == "failed", run.state
    assert OTHER in str(run.error)
    assert Path("server.py").read_text() == CHANGED and not Path("begun").exists()
