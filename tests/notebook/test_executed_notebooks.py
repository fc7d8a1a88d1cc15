"""The notebooks after they were executed and saved: valid, small, and with nothing in them that should not travel."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import nbformat
import pytest
from kernels import execute

from subagents_nb import runs
from subagents_nb.store import StoreHome

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
SECRET = "sk-planted-7c1e4a9b2d6f8e3a"  # made up
GROWTH = 5_000


@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", ["02_chains", "03_data_analysis", "04_experiments", "05_agents"])
def test_a_saved_notebook_is_valid_small_and_keeps_no_secret(
    shared_home: StoreHome, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    del shared_home
    for variable in ("SUBAGENTS_NB_REUSE", "SUBAGENTS_NB_SPAWN"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("MY_SERVICE_TOKEN", SECRET)
    here = Path.cwd() / "notebooks"
    shutil.copytree(NOTEBOOKS, here, ignore=shutil.ignore_patterns("__pycache__", ".ipynb_checkpoints"))
    # With the scripted model, as in an image without the embedded one: under nbval they meet that in any case.
    source = (here / f"{name}.ipynb").read_text(encoding="utf-8").replace("local:smollm2", "scripted:echo")
    book = nbformat.reads(source, as_version=4)
    execute(book, here, timeout=200)
    text = nbformat.writes(book)
    nbformat.validate(nbformat.reads(text, as_version=4))
    shown = sum(len(json.dumps(output)) for output in of_ours(book))
    assert 0 < shown / len(runs()) < GROWTH, f"{shown} characters for {len(runs())} runs"
    assert SECRET not in text
    for folder in (str(here), str(Path.home()), os.environ["SUBAGENTS_NB_HOME"]):
        assert folder not in text, "an absolute path is in the saved notebook"
    assert json.loads(text)["metadata"].get("widgets", {}) == {}, "widget state is in the saved notebook"


def of_ours(book: nbformat.NotebookNode) -> list[nbformat.NotebookNode]:
    """Return the outputs that show runs; neither a person's own tables nor plans and trust, shown when asked for."""
    outputs = [output for cell in book.cells if cell.cell_type == "code" for output in cell.outputs]
    shown = [output for output in outputs if "text/html" in output.get("data", {})]
    others = ('class="dataframe"', 'aria-label="Plan', 'aria-label="Trust')
    return [output for output in shown if not any(word in output.data["text/html"] for word in others)]
