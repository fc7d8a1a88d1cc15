"""Picking an engine, and the warm-up that a fork server makes before its first fork."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from subagents_nb.runner.engines import engine_for

TESTS = str(Path(__file__).parents[3])

LOADED = """
import importlib.abc, sys
from support import make_plan
from subagents_nb.domain.agents.models import parse_model
from subagents_nb.runner.engines.choose import engine_for, load

model = parse_model("openai:gpt-5", origin="call", endpoints={})
step = make_plan().steps[0].model_copy(update={"model": model, "tools": ("python",)})
load([step])

class Gone(importlib.abc.MetaPathFinder):
    def find_spec(self, name, *_):
        if name.startswith("subagents_nb."):
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Gone())
engine_for(step)
from subagents_nb.runner.engines.kernel.kernel_session import Session
"""

WARM = """
import gc, os, sys, warnings
from subagents_nb.runner.engines import warm_up, warm_up_further
assert "pydantic_ai" not in sys.modules
descriptors = len(os.listdir("/proc/self/fd"))
warm_up()
response = "openai.types.responses.response_completed_event"
assert sys.modules[response].ResponseCompletedEvent.__pydantic_complete__ is False, "few runs need it: not at first"
pieces = sum(1 for _ in warm_up_further())
assert pieces == 3 and sys.modules[response].ResponseCompletedEvent.__pydantic_complete__
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


def test_a_run_has_loaded_what_its_steps_need_before_an_upgrade_takes_it_away() -> None:
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join([TESTS, *sys.path])}
    done = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True, timeout=120, env=environ)
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="threads are counted in /proc")
def test_warming_up_leaves_one_thread_and_no_open_connection() -> None:
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    environ.pop("OPENAI_API_KEY", None)
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", WARM], capture_output=True, text=True, timeout=120, env=environ
    )

    assert done.returncode == 0, done.stderr
    assert done.stdout == "warm\n" and done.stderr == ""
