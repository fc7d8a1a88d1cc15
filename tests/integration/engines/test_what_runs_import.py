"""What a whole run imports: nothing of what its plan does not need."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from subagents_nb import launch
from subagents_nb.store import StoreHome

pytestmark = pytest.mark.timeout(120)
# An audit hook hears of every module that is imported, also in a process that ends without a word.
LISTENER = """
import os, sys
if os.environ.get("TOLD_TO"):
    def told(event, args, fd=os.open(os.environ["TOLD_TO"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)):
        if event == "import":
            os.write(fd, f"{args[0]}\\n".encode())
    sys.addaudithook(told)
"""
# By what a plan would have to say to need them: MCP servers, a sandbox, skills, memory, delegation, a kernel.
NOT_NEEDED = (
    "mcp", "mcp_types", "fastmcp", "subagents_nb.runner.mcp",
    "subagents_nb.runner.sandbox",
    "pydantic_ai_harness.memory", "pydantic_ai_harness.skills", "subagents_nb.runner.engines.native.skill_loading",
    "subagents_nb.runner.engines.native.notes",
    "subagents_nb.runner.tree.delegating", "subagents_nb.runner.tree.child_runs",
    "jupyter_client", "zmq", "tree_sitter",
)  # fmt: skip


@pytest.mark.parametrize("model", ["lab:m", "scripted:echo"])
def test_a_plain_run_imports_nothing_of_what_its_plan_does_not_need(
    shared_home: StoreHome, loopback: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, model: str
) -> None:
    del shared_home
    (tmp_path / "listener").mkdir()
    (tmp_path / "listener/sitecustomize.py").write_text(LISTENER)
    told = tmp_path / "told"
    before = os.environ.get("PYTHONPATH", "")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, (str(tmp_path / "listener"), before))))
    monkeypatch.setenv("TOLD_TO", str(told))
    monkeypatch.setenv("SUBAGENTS_NB_SPAWN", "cold")
    settings = Path.home() / ".subagents/settings.toml"
    settings.parent.mkdir(exist_ok=True)
    settings.write_text(f'[endpoints.lab]\nbase_url = "{loopback.url}/v1"\n')

    loopback.says("done")

    run = launch("scout", "say it", model=model)

    assert run.wait(60) and run.state == "complete", run.error
    imported = set(told.read_text().split())
    assert "subagents_nb.runner.steps.step_run" in imported, "the runner was heard"
    assert ("pydantic_ai" in imported) == (model == "lab:m")
    found = sorted(name for name in imported if any(f"{name}.".startswith(f"{one}.") for one in NOT_NEEDED))
    assert found == []
