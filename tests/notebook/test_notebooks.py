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
PLUGINS = "-p", "nbval", "-p", "no:randomly", "-p", "no:xdist", "-p", "no:hypothesispytest"


@pytest.mark.timeout(600)
def test_each_cell_runs_and_shows_what_it_showed(shared_home: StoreHome) -> None:
    # The quickstart is carried out whole by the demo, which see.
    notebooks = sorted(str(path) for path in ROOT.glob("notebooks/*.ipynb") if path.name != "01_quickstart.ipynb")
    assert len(notebooks) == 4
    command = [sys.executable, "-m", "pytest", "-q", *PLUGINS, "--nbval", *notebooks]
    environ = {key: value for key, value in os.environ.items() if not key.startswith(("PYTEST_", "SUBAGENTS_NB_"))}
    environ |= {"NOTEBOOKS_STORE": str(shared_home.root), "SUBAGENTS_NB_SPAWN": "warm"}
    environ |= {"SUBAGENTS_NB_MODELS": str(MODELS)}
    done = subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True, check=False)
    stop(shared_home.root)
    assert done.returncode == 0, done.stdout[-20_000:] + done.stderr[-2_000:]
