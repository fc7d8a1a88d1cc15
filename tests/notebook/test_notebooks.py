"""The notebooks of the project under nbval: each cell runs, and shows what it showed where that stays the same.

After that they are valid, small, and hold nothing that should not travel.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from subagents_nb.local_model import stop
from subagents_nb.local_model.weights import models_directory
from subagents_nb.store import StoreHome

MODELS = models_directory()  # the user's own: the weights are fetched once for all tests
ROOT = Path(__file__).parents[2]
PLUGINS = "-p", "nbval", "-p", "kept_outputs", "-p", "no:randomly", "-p", "no:xdist", "-p", "no:hypothesispytest"
SECRET = "sk-planted-7c1e4a9b2d6f8e3a"  # made up
GROWTH = 5_000


@pytest.mark.timeout(600)
def test_each_cell_runs_and_shows_what_it_showed_and_what_is_saved_may_travel(shared_home: StoreHome) -> None:
    here, kept = Path.cwd() / "notebooks", Path.cwd() / "kept"
    shutil.copytree(ROOT / "notebooks", here, ignore=shutil.ignore_patterns("__pycache__", ".ipynb_checkpoints"))
    kept.mkdir()
    # The quickstart is carried out whole by the demo, which see.
    notebooks = sorted(str(path) for path in here.glob("*.ipynb") if path.name != "01_quickstart.ipynb")
    assert len(notebooks) == 4
    config = "-c", str(ROOT / "pyproject.toml")
    command = [sys.executable, "-m", "pytest", "-q", *config, *PLUGINS, "--nbval", *notebooks]
    environ = {key: value for key, value in os.environ.items() if not key.startswith(("PYTEST_", "SUBAGENTS_NB_"))}
    environ |= {"NOTEBOOKS_STORE": str(shared_home.root), "SUBAGENTS_NB_SPAWN": "warm"}
    environ |= {"SUBAGENTS_NB_MODELS": str(MODELS), "MY_SERVICE_TOKEN": SECRET}
    environ |= {"KEPT_OUTPUTS": str(kept), "PYTHONPATH": str(Path(__file__).parent)}
    done = subprocess.run(command, cwd=here, env=environ, capture_output=True, text=True, check=False)
    stop(shared_home.root)
    assert done.returncode == 0, done.stdout[-20_000:] + done.stderr[-2_000:]

    saved = sorted(kept.iterdir())
    assert [path.name for path in saved] == [Path(path).name for path in notebooks]
    for path in saved:
        expect_may_travel(path, here, Path.home(), shared_home.root)


def expect_may_travel(path: Path, *folders: Path) -> None:
    text = path.read_text(encoding="utf-8")
    book = nbformat.reads(text, as_version=4)
    nbformat.validate(book)
    shown = sum(len(json.dumps(output)) for output in of_ours(book))
    assert 0 < shown / book.metadata["runs"] < GROWTH, f"{path}: {shown} characters for {book.metadata['runs']} runs"
    assert SECRET not in text
    for folder in folders:
        assert str(folder) not in text, f"{path}: an absolute path is in the saved notebook"
    assert book.metadata.get("widgets", {}) == {}, f"{path}: widget state is in the saved notebook"


def of_ours(book: nbformat.NotebookNode) -> list[nbformat.NotebookNode]:
    """Return the outputs that show runs; neither a person's own tables nor plans and trust, shown when asked for."""
    outputs = [output for cell in book.cells if cell.cell_type == "code" for output in cell.outputs]
    shown = [output for output in outputs if "text/html" in output.get("data", {})]
    others = ('class="dataframe"', 'aria-label="Plan', 'aria-label="Trust')
    return [output for output in shown if not any(word in output.data["text/html"] for word in others)]
