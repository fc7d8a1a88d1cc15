"""The shell of the native engine in a sandbox, called by a model on loopback, which the sandbox itself can't reach."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from typing import Any

import pytest
from support import makes_namespaces

from subagents_nb.domain.policy.sandbox_plan import SandboxPlan
from subagents_nb.domain.runs.events import ToolEnded
from subagents_nb.runner.engines.native.native import NativeEngine
from subagents_nb.runner.sandbox.mounts import Place
from subagents_nb.runner.sandbox.step_sandbox import sandbox_of


@pytest.mark.skipif(not makes_namespaces(), reason="a kernel that makes no namespaces")
def test_a_command_of_a_model_reaches_its_workspace_and_nothing_else(workshop: Any, plan: Any, wire: Any) -> None:
    (workshop.step_dir / "session").write_text("canary", encoding="utf-8")
    port = wire.url.rpartition(":")[2]
    line = f"echo x > made; cat {workshop.step_dir}/session; exec 3<>/dev/tcp/127.0.0.1/{port} && echo reached"
    wire.says(calls=[("c1", "bash", json.dumps({"command": line}))], end="tool_calls")
    wire.says("done")
    place = Place(workspace=workshop.cwd, store=workshop.step_dir, tmp=workshop.step_dir / "tmp")
    sandbox = sandbox_of(SandboxPlan(), place, os.environ)
    made = workshop.context
    workshop.context = lambda step: replace(made(step), sandbox=sandbox)

    outcome = workshop.run(NativeEngine(), plan("t", at=wire.url, tools=("bash",), sandbox=SandboxPlan()))

    (end,) = workshop.told(ToolEnded)
    assert (outcome.text, (workshop.cwd / "made").read_text()) == ("done", "x\n")
    assert end.ok
    (told,) = [message["content"] for message in wire.bodies[-1]["messages"] if message["role"] == "tool"]
    assert "canary" not in told and "reached" not in told and "Connection refused" in told
