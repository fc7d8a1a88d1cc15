"""`make demo` after the installation: the quickstart runs, its result is written, and nothing of it is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

from subagents_nb.local_model import install

pytestmark = [
    pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="watches processes in /proc"),
    pytest.mark.timeout(300),
]

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
DEMO = "import sys, pathlib, demo; sys.exit(demo.main(*map(pathlib.Path, sys.argv[1:])))"
KEY = "sk-planted-0123456789"
COLD = {"SUBAGENTS_NB_SPAWN": "cold"}  # no supervisor comes up for a single run; the quickstart has one


@pytest.fixture(scope="module", autouse=True)
def _model() -> None:
    install(lambda _: None)


def start(tmp_path: Path, notebook: Path, **more: str) -> subprocess.Popen[str]:
    # A key that would be used, if a cell named no model; and a place of our own for the demo's store.
    environ = {name: value for name, value in os.environ.items() if not name.startswith("SUBAGENTS_NB_")}
    environ |= {"TMPDIR": str(tmp_path), "OPENAI_API_KEY": KEY, "PYTHONPATH": str(NOTEBOOKS), **more}
    return subprocess.Popen(
        [sys.executable, "-c", DEMO, str(notebook), str(tmp_path / "build")],
        cwd=NOTEBOOKS.parent,
        env=environ,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )


def notebook_of(tmp_path: Path, *cells: str) -> Path:
    path = tmp_path / "small.ipynb"
    nbformat.write(new_notebook(cells=[new_code_cell(cell) for cell in cells]), path)
    return path


def left_by(tmp_path: Path) -> list[str]:
    """Return the living processes that name the demo's place in their command or environment."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            told = (process / "cmdline").read_bytes() + (process / "environ").read_bytes()
        except OSError:
            continue
        if str(tmp_path).encode() in told:
            found.append(f"{process.name}: {(process / 'cmdline').read_bytes()!r}")
    return found


def expect_nothing_left(tmp_path: Path) -> None:
    deadline = time.monotonic() + 10
    while left := left_by(tmp_path):
        assert time.monotonic() < deadline, left
        time.sleep(0.05)
    assert list(tmp_path.glob("subagents-nb-demo-*")) == []


@pytest.fixture(scope="module")
def quickstart(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """Return the place of a whole demo that went well, and what it said."""
    place = tmp_path_factory.mktemp("demo")
    demo = start(place, NOTEBOOKS / "01_quickstart.ipynb")
    said, complained = demo.communicate(timeout=280)
    assert demo.returncode == 0, said + complained
    expect_nothing_left(place)
    return place, said


def test_the_demo_shows_every_cell_and_every_answer(quickstart: tuple[Path, str]) -> None:
    _, said = quickstart
    code = [cell for cell in nbformat.read(NOTEBOOKS / "01_quickstart.ipynb", 4).cells if cell.cell_type == "code"]
    for number, cell in enumerate(code, 1):
        assert f"{number:>3}  {cell.source.splitlines()[0][:60]}" in said
    assert "'customer': 'Anna Weber'" in said
    assert said.count(" complete ") == 5
    assert "01_quickstart.html" in said


def test_the_executed_quickstart_ends_in_plain_cards(quickstart: tuple[Path, str]) -> None:
    place, _ = quickstart
    executed = nbformat.read(place / "build" / "01_quickstart.ipynb", 4)
    nbformat.validate(executed)
    assert "widgets" not in executed.metadata
    shown = {cell.id: [set(output.get("data", {})) for output in cell.get("outputs", [])] for cell in executed.cells}
    for cell in ("wish", "order", "doomed", "endless"):
        assert {"text/html", "text/plain"} in shown[cell]
    assert not any("application/vnd.jupyter.widget-view+json" in data for each in shown.values() for data in each)


def test_the_page_is_whole_without_a_network_and_no_key_was_used_or_written(quickstart: tuple[Path, str]) -> None:
    place, said = quickstart
    page = (place / "build" / "01_quickstart.html").read_text(encoding="utf-8")
    assert "The customer" in page or "Anna Weber" in page
    assert "cdnjs" not in page
    for text in (page, (place / "build" / "01_quickstart.ipynb").read_text(encoding="utf-8"), said):
        assert KEY not in text
        assert "openai:gpt" not in text.replace("--model openai:gpt-5-mini", "")


def test_a_failing_cell_is_named_and_what_still_ran_is_ended(tmp_path: Path) -> None:
    launching = "%load_ext subagents_nb", "%%subagent -q --model scripted:slow\nCount.", "1 / 0", "'never'"
    demo = start(tmp_path, notebook_of(tmp_path, *launching), **COLD)
    said, complained = demo.communicate(timeout=120)
    assert demo.returncode == 1
    assert "This cell failed: 3  1 / 0" in complained
    assert "ZeroDivisionError" in complained
    assert "FAILED" in said
    assert "never" not in said
    assert (tmp_path / "build" / "small.html").is_file()
    expect_nothing_left(tmp_path)


def test_an_interrupt_ends_the_demo_and_what_it_started(tmp_path: Path) -> None:
    waiting = "%load_ext subagents_nb", "%%subagent -q --model scripted:slow\nCount.", "import time; time.sleep(100)"
    demo = start(tmp_path, notebook_of(tmp_path, *waiting), **COLD)
    assert demo.stdout is not None
    seen = ""
    while "time.sleep(100)" not in seen:
        seen += (char := demo.stdout.read(1))
        if not char:
            pytest.fail(f"the demo ended too early: {seen}\n{demo.communicate(timeout=60)[1]}")
    os.killpg(demo.pid, signal.SIGINT)
    said, complained = demo.communicate(timeout=60)
    assert demo.returncode == 130, said + complained
    assert "interrupted" in said
    expect_nothing_left(tmp_path)
