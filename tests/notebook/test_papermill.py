"""papermill: parameters, a run that fails; and what nbconvert makes of the notebook that it leaves."""

from __future__ import annotations

import tempfile
from pathlib import Path

import nbconvert
import nbformat
import papermill
import pytest
from kernels import own_sockets
from papermill.exceptions import PapermillExecutionError
from traitlets.config import Config

from subagents_nb import attach
from subagents_nb.store import StoreHome

CELLS = [
    "words = 'nothing'",
    "%load_ext subagents_nb",
    "%%subagent --model scripted:echo --name said --template -o said --wait\nSay <i>{{words}}</i>",
    "%%subagent --model scripted:fail --name fails --wait\nx",
    "print('never run')",
]


@pytest.mark.host(
    "papermill",
    magics="yes",
    live="no",
    buttons="no",
    reload="",
    saved="a card; a run that fails stops the notebook, and its card stands",
)
@pytest.mark.host("nbconvert to HTML and Markdown", magics="", live="no", buttons="no", reload="", saved="a card, text")
@pytest.mark.timeout(120)
def test_a_notebook_gets_parameters_keeps_its_outputs_and_is_converted(shared_home: StoreHome, tmp_path: Path) -> None:
    del shared_home
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code) for code in CELLS])
    book.cells[0].metadata["tags"] = ["parameters"]
    nbformat.write(book, tmp_path / "in.ipynb")
    with (
        tempfile.TemporaryDirectory(prefix="k") as sockets,
        pytest.raises(PapermillExecutionError, match="RunFailed"),
    ):
        papermill.execute_notebook(
            tmp_path / "in.ipynb", tmp_path / "out.ipynb", {"words": "this & that"},
            kernel_name="python3", language="python", cwd=tmp_path,
            progress_bar=False, config=Config(KernelManager=own_sockets(Path(sockets))),
        )  # fmt: skip
    assert attach("said").text.strip() == "Say <i>this & that</i>"
    done = nbformat.read(tmp_path / "out.ipynb", as_version=4)
    shown = {
        one.source: [output.get("data", {}) for output in one.outputs] for one in done.cells if one.cell_type == "code"
    }
    (card,) = shown[CELLS[2]]
    assert "Say &lt;i&gt;this &amp; that&lt;/i&gt;" in card["text/html"]
    assert "fails" in shown[CELLS[3]][0]["text/html"]
    assert shown[CELLS[4]] == []

    html, _ = nbconvert.HTMLExporter().from_notebook_node(done)
    assert "Say &lt;i&gt;this &amp; that&lt;/i&gt;" in html and "<i>this" not in html
    markdown, _ = nbconvert.MarkdownExporter().from_notebook_node(done)
    assert "subagents-nb-card" in markdown and "<i>this" not in markdown
