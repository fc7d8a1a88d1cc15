"""What a kernel says, as outputs of a notebook and as text for the model."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import nbformat
import pytest

from subagents_nb.runner.engines.kernel.cell_files import look, stamps
from subagents_nb.runner.engines.kernel.cell_output import Cell
from subagents_nb.runner.engines.kernel.preload import TABLE_MIME
from subagents_nb.runner.engines.kernel.tool import CellNotebook
from subagents_nb.store.files.disk import DISK

PNG = base64.b64encode(b"\x89PNG\r\n\x1a\nrest").decode()


def heard(*messages: tuple[str, dict[str, Any]]) -> Cell:
    cell = Cell("x")
    for kind, content in messages:
        cell.on_message({"msg_type": kind, "content": content})
    return cell


def test_streams_are_joined_and_lose_their_colours() -> None:
    cell = heard(
        ("stream", {"name": "stdout", "text": "\x1b[31ma\x1b[0m"}),
        ("stream", {"name": "stdout", "text": "b\n"}),
        ("stream", {"name": "stderr", "text": "careful\n"}),
    )
    assert cell.text() == "ab\ncareful"
    assert [(o["name"], o["text"]) for o in cell.outputs] == [("stdout", "ab\n"), ("stderr", "careful\n")]


def test_the_last_value_is_shown_and_a_table_beside_it_is_named() -> None:
    data = {"text/plain": "   a\n0  1", "text/html": "<table>", TABLE_MIME: {"file": "1.parquet", "shape": [1, 1]}}
    cell = heard(("execute_result", {"data": data, "execution_count": 4}))
    assert cell.text() == "   a\n0  1"
    assert (cell.number, cell.tables) == (4, [{"file": "1.parquet", "shape": [1, 1]}])
    assert set(cell.outputs[0]["data"]) == {"text/plain"}


def test_a_figure_is_taken_out_and_its_repr_not_told() -> None:
    cell = heard(("display_data", {"data": {"image/png": PNG, "text/plain": "<Figure size 640x480>"}}))
    assert cell.figures == [b"\x89PNG\r\n\x1a\nrest"]
    assert cell.text() == "(no output)"


@pytest.mark.parametrize("data", ["not base64!", base64.b64encode(b"no png").decode(), 3, None, ["a"]])
def test_what_is_no_picture_is_left_out(data: Any) -> None:
    cell = heard(("display_data", {"data": {"image/png": data, "text/plain": "picture"}}))
    assert (cell.figures, cell.text(), cell.outputs[0]["data"]) == ([], "picture", {"text/plain": "picture"})


def test_nothing_that_a_page_would_run_is_kept() -> None:
    cell = heard(("display_data", {"data": {"application/javascript": "alert(1)", "image/svg+xml": "<svg onload>"}}))
    assert cell.outputs[0]["data"] == {}


def test_an_exception_is_told_with_its_traceback() -> None:
    trace = ["\x1b[31m----\x1b[0m", "ZeroDivisionError: division by zero"]
    cell = heard(("error", {"ename": "ZeroDivisionError", "evalue": "division by zero", "traceback": trace}))
    assert (cell.error, cell.text()) == ("ZeroDivisionError", "----\nZeroDivisionError: division by zero")


@pytest.mark.parametrize("message", [{}, {"msg_type": "stream"}, {"msg_type": "error", "content": {}}, {"content": 3},
                                     {"msg_type": "display_data", "content": {"data": "x"}}])  # fmt: skip
def test_messages_of_no_sense_do_no_harm(message: dict[str, Any]) -> None:
    Cell("x").on_message(message)


def test_a_flood_is_cut_in_the_middle() -> None:
    cell = Cell("x")
    for number in range(3000):
        cell.on_message({"msg_type": "stream", "content": {"name": "stdout", "text": f"line {number} {'x' * 200}\n"}})
    cell.say("said at the end")
    text = cell.text()
    assert len(text) < 52_000
    assert text.startswith("line 0 ") and "bytes left out" in text and text.endswith("[said at the end]")
    assert len(cell.outputs[0]["text"]) <= 200_000


def test_the_notebook_is_valid_after_every_cell(tmp_path: Path) -> None:
    record = CellNotebook(tmp_path / "python.ipynb", DISK)
    messages = [
        ("execute_input", {"execution_count": 1}),
        ("stream", {"name": "stdout", "text": "a"}),
        ("execute_result", {"data": {"text/plain": "1"}, "execution_count": 1}),
        ("display_data", {"data": {"image/png": PNG}}),
        ("error", {"ename": "E", "evalue": "e", "traceback": ["t"]}),
    ]
    for count in range(1, 4):
        record.add(heard(*messages))
        notebook = nbformat.read(tmp_path / "python.ipynb", as_version=4)
        nbformat.validate(notebook)
        assert (notebook.nbformat_minor, len(notebook.cells)) == (5, count)
    assert [o.output_type for o in notebook.cells[0].outputs] == ["stream", "execute_result", "display_data", "error"]
    assert len({cell.id for cell in notebook.cells}) == 3


def test_a_notebook_that_would_be_too_large_leaves_old_outputs_out(tmp_path: Path) -> None:
    record = CellNotebook(tmp_path / "python.ipynb", DISK, most=5000)
    for number in range(20):
        record.add(heard(("stream", {"name": "stdout", "text": f"{number} " + "x" * 1500})))
    notebook = nbformat.read(tmp_path / "python.ipynb", as_version=4)
    nbformat.validate(notebook)
    assert (tmp_path / "python.ipynb").stat().st_size < 6000
    assert notebook.cells[-1].outputs[0].text.startswith("19 ")
    assert notebook.cells[0].outputs[0].text.startswith("(left out")


def test_files_that_came_or_changed_are_seen_and_hidden_ones_are_not(tmp_path: Path) -> None:
    (tmp_path / "kept.txt").write_text("a")
    before = look(tmp_path)
    (tmp_path / "kept.txt").write_text("longer")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub/new.txt").write_text("a")
    (tmp_path / ".hidden").write_text("a")
    (tmp_path / "link").symlink_to("kept.txt")
    after = look(tmp_path)
    assert before is not None and after is not None
    assert {path for path in after if after[path] != before.get(path)} == {"kept.txt", "sub/new.txt"}
    asked = stamps(tmp_path, ["kept.txt", "sub/new.txt", "sub", ".hidden", "link", "gone", "a\0b"])
    assert asked == after, "asked for by name they are the same"


SCRIPT = "<script>alert(1)</script>"


@pytest.mark.parametrize(
    "kind",
    ["text/html", "text/markdown", "text/latex", "image/svg+xml", "application/javascript", "text/x-other",
     "application/vnd.jupyter.widget-view+json", "image/png", "image/jpeg", "image/gif"],
)  # fmt: skip
def test_nothing_that_a_page_made_of_the_notebook_would_run_is_kept(kind: str) -> None:
    for data in (SCRIPT, f'{PNG}">{SCRIPT}', f'/9j/4AAQ">{SCRIPT}'):
        cell = heard(
            ("display_data", {"data": {kind: data, "text/plain": "words"}, "metadata": {kind: {"width": SCRIPT}}})
        )
        assert cell.outputs[0] == {"output_type": "display_data", "data": {"text/plain": "words"}, "metadata": {}}


def test_of_markdown_and_formulas_the_source_is_kept_as_plain_words() -> None:
    shown = {"text/markdown": f"# {SCRIPT}", "text/plain": "<IPython.core.display.Markdown object>"}
    assert heard(("display_data", {"data": shown})).outputs[0]["data"] == {"text/plain": f"# {SCRIPT}"}


def test_pictures_are_kept_in_an_encoding_of_ours() -> None:
    jpeg = base64.b64encode(b"\xff\xd8\xff\xe0picture").decode()
    cell = heard(("display_data", {"data": {"image/png": f"{PNG[:8]}\n{PNG[8:]}\n", "image/jpeg": jpeg}}))
    assert cell.outputs[0]["data"] == {"image/png": PNG, "image/jpeg": jpeg}


def test_no_escape_of_a_terminal_is_kept_and_a_progress_bar_stays_one() -> None:
    said = "\x1b]0;title\x07\x1b[2J10%\r20%\u202e\n"
    cell = heard(("stream", {"name": "stdout", "text": said}), ("error", {"ename": "E\x1b[1m", "evalue": said}))
    assert cell.outputs[0]["text"] == "10%\r20%\n"
    assert (cell.outputs[1]["ename"], cell.outputs[1]["evalue"]) == ("E", "10%\r20%\n")
