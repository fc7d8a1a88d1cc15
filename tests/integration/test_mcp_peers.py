"""Servers that nobody here wrote, over both transports, from the settings of the person to the end of the run."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from support import free_port, is_listening, processes_of, script, until

from subagents_nb import launch, preflight
from subagents_nb.store import StoreHome

pytestmark = pytest.mark.timeout(240)
PEERS = Path(__file__).parents[1] / "peers"
PACKAGES = PEERS / "node_modules/@modelcontextprotocol"
NODE = shutil.which("node") or "node"


@pytest.fixture(scope="module")
def everything() -> Path:
    """The program, installed by its lockfile when it is not there."""
    if not (PACKAGES / "server-everything").is_dir():
        subprocess.run(["npm", "ci", "--prefix", str(PEERS), "--no-audit", "--no-fund"], check=True, timeout=170)
    return PACKAGES / "server-everything/dist/index.js"


@pytest.fixture(scope="module")
def address(everything: Path) -> Iterator[str]:
    port = free_port()
    environ = {**os.environ, "PORT": str(port)}
    process = subprocess.Popen(
        [NODE, str(everything), "streamableHttp"], env=environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        until(lambda: is_listening(port), 30, what="the server", pause=0.1)
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        process.kill()
        process.wait(10)


def test_files_and_everything_are_used_over_pipes_and_http(
    shared_home: StoreHome, everything: Path, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "canary-key")
    monkeypatch.setenv("LAB_TOKEN", "canary-token")
    monkeypatch.setenv("GIVEN", "given-value")
    Path("notes.txt").write_text("seven beds")
    files = PACKAGES / "server-filesystem/dist/index.js"
    home = Path.home() / ".subagents"
    (home / "agents").mkdir(parents=True, exist_ok=True)
    (home / "settings.toml").write_text(f"""
        [mcp.files]
        command = "{NODE}"
        args = ["{files}", "."]
        [mcp.every]
        command = "{NODE}"
        args = ["{everything}", "stdio"]
        env = {{HANDED = "${{GIVEN}}"}}
        [mcp.far]
        url = "{address}"
        headers = {{X-Who = "us"}}
    """)
    tools = "mcp:files/read_text_file, mcp__every, mcp:far/echo"
    (home / "agents/user.md").write_text(f"---\nname: user\ndescription: d\ntools: {tools}\n---\nwork\n")
    script(
        "uses",
        {"call": "mcp__files__read_text_file", "args": {"path": "notes.txt"}, "say": True},
        {"call": "mcp__files__read_text_file", "args": {"path": "/etc/passwd"}, "say": True},
        {"call": "mcp__every__get-env", "say": True},
        {"call": "mcp__far__echo", "args": {"message": "from afar"}, "say": True},
    )
    assert preflight("user", "look", model="scripted:uses").reasons == (), "the person's own are not asked for"

    run = launch("user", "look", model="scripted:uses")

    assert run.wait(60) and run.state == "complete", run.error
    assert "seven beds" in run.text and "from afar" in run.text and "denied" in run.text
    assert "HANDED" in run.text and "given-value" in run.text
    assert "canary" not in run.text and "SUBAGENTS_NB_RUN" in run.text
    rows = [(row.name, row.state) for row in run.status.steps[0].tools]
    assert rows == [("files/read_text_file", "complete"), ("files/read_text_file", "failed"),
                    ("every/get-env", "complete"), ("far/echo", "complete")]  # fmt: skip
    until(lambda: not processes_of(shared_home), 10, what="no process of the run")
