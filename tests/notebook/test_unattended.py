"""Notebooks that a program executes: nobody is told anything, and the kernel waits a moment for its runs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import nbformat
import pytest
from kernels import dismiss_supervisors, end_runs, own_sockets
from support import SECRET_PREFIXES

from subagents_nb.store import FileRuns, StoreHome

CELLS = [
    "%load_ext subagents_nb",
    "%subagent --model scripted:fail --name fails -q -- x",
    "import subagents_nb, time\nwhile not subagents_nb.attach('fails').status.ended: time.sleep(0.01)",
    "time.sleep(0.3)\nprint('a cell that is told nothing')",
    "%%subagent --model scripted:slow --name takes-long -q\nx",
    # However busy the machine, both are at work when the kernel is asked to leave, and neither has ended.
    "while not subagents_nb.attach('takes-long').status.tail: time.sleep(0.01)",
    "%%subagent --model scripted:script.json --name takes-a-second\nx",
    "while not subagents_nb.attach('takes-a-second').status.tail: time.sleep(0.01)",
]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A directory, a home and a store of its own for the notebook."""
    for name in list(os.environ):
        if name.startswith((*SECRET_PREFIXES, "SUBAGENTS_NB_", "JPY_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("SUBAGENTS_NB_HOME", str(tmp_path / "store"))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("SUBAGENTS_NB_DRAIN_S", "4.5")  # nbclient ends a kernel after five seconds
    (tmp_path / "script.json").write_text(json.dumps([{"text": "Working. "}, {"sleep": 2.0}, {"text": "Done."}]))
    yield tmp_path
    end_runs(StoreHome(tmp_path / "store"))
    dismiss_supervisors(StoreHome(tmp_path / "store"))


def executed(place: Path) -> tuple[nbformat.NotebookNode, dict[str, str]]:
    """Execute the notebook and return it with the states of its runs at the moment when its kernel has left."""
    path = place / "book.ipynb"
    nbformat.write(nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code) for code in CELLS]), path)
    with tempfile.TemporaryDirectory(prefix="k") as sockets:
        apart = [f"--KernelManager.{name}={value}" for name, value in own_sockets(Path(sockets)).items()]
        execute = Path(sys.executable).with_name("jupyter-execute")
        subprocess.run([execute, "--inplace", *apart, path.name], cwd=place, check=True, timeout=100)
    notebook = nbformat.read(path, as_version=4)
    return notebook, {s.name: str(s.state) for s in FileRuns(StoreHome(place / "store")).all()}


@pytest.mark.host(
    "nbclient, `jupyter execute`",
    magics="yes",
    live="no",
    buttons="no",
    reload="",
    saved="a card: the last state that was there while a cell ran, or soon after the last",
)
def test_the_kernel_waits_for_what_ends_soon_and_not_for_the_rest(place: Path) -> None:
    notebook, states = executed(place)
    assert states == {"fails": "failed", "takes-a-second": "complete", "takes-long": "running"}
    outputs = [cell.outputs for cell in notebook.cells]
    assert [output.text for output in outputs[3]] == ["a cell that is told nothing\n"]
    assert "Meanwhile" not in json.dumps(notebook)
    # Saved before the run had ended: the card says where it stood, and how to see it again.
    (card,) = outputs[6]
    assert "%subagent_attach takes-a-second" in card.data["text/plain"]
