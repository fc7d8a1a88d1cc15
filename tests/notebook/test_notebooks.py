"""The notebooks of the project under nbval: each cell runs, and shows what it showed where that stays the same."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from subagents_nb.local_model import stop
from subagents_nb.local_model.weights import models_directory
from subagents_nb.store import StoreHome

MODELS = models_directory()  # the user's own: the weights are fetched once for all tests
ROOT = Path(__file__).parents[2]
# What a frame looks like is pandas' matter: --nbval-lax. The quickstart is carried out whole by the demo, which see.
NOTEBOOKS = {"02_chains": "", "03_data_analysis": "lax", "04_experiments": "", "05_agents": ""}


@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", NOTEBOOKS)
def test_each_cell_runs_and_shows_what_it_showed(name: str, shared_home: StoreHome) -> None:
    flag = "-".join(filter(None, ("--nbval", NOTEBOOKS[name])))
    command = [sys.executable, "-m", "pytest", "-q", "-p", "nbval", "-p", "no:randomly", "-p", "no:xdist", flag]
    environ = {key: value for key, value in os.environ.items() if not key.startswith(("PYTEST_", "SUBAGENTS_NB_"))}
    environ |= {"SUBAGENTS_NB_HOME": str(shared_home.root), "SUBAGENTS_NB_MODELS": str(MODELS)}
    command.append(f"notebooks/{name}.ipynb")
    done = subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True, check=False)
    stop(shared_home.root)
    assert done.returncode == 0, done.stdout[-20_000:] + done.stderr[-2_000:]
