"""Picking an engine, and the warm-up that a fork server makes before its first fork."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest

from subagents_nb.runner.engines import engine_for

WARM = """
import gc, os, sys, warnings
from subagents_nb.runner.engines import warm_up
assert "pydantic_ai" not in sys.modules
descriptors = len(os.listdir("/proc/self/fd"))
warm_up()
assert gc.isenabled()
assert os.listdir("/proc/self/task") == [str(os.getpid())], "exactly one thread may live in a process that forks"
assert len(os.listdir("/proc/self/fd")) <= descriptors + 1, "no socket and no loop stays open"
for client in ("anthropic", "google.genai", "fastmcp", "mcp", "xllamacpp"):
    assert client not in sys.modules, client
import asyncio
try:
    asyncio.get_running_loop()
except RuntimeError:
    print("warm")
"""


def test_each_kind_of_model_has_its_engine(plan: Any) -> None:
    names = [type(engine_for(plan(model))).__name__ for model in ("scripted:echo", "openai:gpt-5", "local:smollm2")]

    assert names == ["ScriptedEngine", "NativeEngine", "NativeEngine"]


@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="threads are counted in /proc")
def test_warming_up_leaves_one_thread_and_no_open_connection() -> None:
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    environ.pop("OPENAI_API_KEY", None)
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", WARM], capture_output=True, text=True, timeout=120, env=environ
    )

    assert done.returncode == 0, done.stderr
    assert done.stdout == "warm\n" and done.stderr == ""
