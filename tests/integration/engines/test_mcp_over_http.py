"""A whole run of the native engine with a server over HTTP: called, lost in a call, and given what nobody may see."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from subagents_nb import launch
from subagents_nb.store import StoreHome

pytestmark = pytest.mark.timeout(120)
SERVER = Path(__file__).parents[2] / "children" / "mcp_sdk_server.py"


@pytest.fixture
def address() -> Iterator[str]:
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, str(SERVER), "http"]
    with subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        try:
            assert process.stdout is not None
            yield f"http://127.0.0.1:{int(process.stdout.readline())}/mcp"
        finally:
            process.kill()


def test_a_server_over_http_is_called_then_lost_and_its_headers_are_kept_nowhere(
    shared_home: StoreHome, loopback: Any, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    secrets = {"FAR_PASS": "canary-pass-41f7", "FAR_ID": "canary-identity-9c02", "LAB_KEY": "canary-key-77aa"}
    for name, value in secrets.items():
        monkeypatch.setenv(name, value)
    home = Path.home() / ".subagents"
    (home / "agents").mkdir(parents=True, exist_ok=True)
    (home / "settings.toml").write_text(
        f'[endpoints.lab]\nbase_url = "{loopback.url}/v1"\nkey_env = "LAB_KEY"\n'
        f'[mcp.far]\nurl = "{address}"\nheaders = {{Authorization = "Bearer ${{FAR_PASS}}", X-Lab = "${{FAR_ID}}"}}\n'
    )
    (home / "agents/far.md").write_text("---\nname: far\ndescription: d\ntools: mcp:far\n---\nwork\n")
    for tool, args in (("add", {"one": 40, "other": 2}), ("headers", {}), ("die", {}), ("add", {"one": 1, "other": 1})):
        loopback.says(calls=[(f"c{len(loopback.turns)}", f"mcp__far__{tool}", json.dumps(args))], end="tool_calls")
    loopback.says("done")

    run = launch("far", "use it", model="lab:m")

    assert run.wait(90) and run.state == "complete", run.error
    assert run.text == "done"
    told = [message["content"] for message in loopback.bodies[-1]["messages"] if message["role"] == "tool"]
    added, headers, lost, after = told
    assert added == "42"
    assert headers.startswith(hashlib.sha256(b"Bearer canary-pass-41f7").hexdigest()), "it was given what it needs"
    assert "authorization: [redacted]" in headers and "x-lab: [redacted]" in headers
    assert "MCP server 'far' gave no answer: " in lost and "MCP server 'far'" in after
    assert [row.name for row in run.status.steps[0].tools] == ["far/add", "far/headers", "far/die", "far/add"]
    for path in (path for path in shared_home.root.rglob("*") if path.is_file()):
        data = path.read_bytes()
        assert not [name for name, value in secrets.items() if value.encode() in data], path
    shown = " ".join([run.status.model_dump_json(), *map(str, run.events()), json.dumps(loopback.bodies)])
    assert not [name for name, value in secrets.items() if value in shown]
