"""marimo, which has no magics and no IPython: the functions, and what it shows of their values."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from kernels import end_runs

from subagents_nb.store import StoreHome

BOOK = Path(__file__).parents[1] / "fixtures" / "marimo_book.py"


@pytest.mark.host(
    "marimo",
    magics="no: functions",
    live="yes",
    buttons="yes; not what opens a run in full",
    reload="not run",
    saved="a card of what had ended",
)
@pytest.mark.timeout(120)
def test_a_notebook_is_executed_and_exported(shared_home: StoreHome, tmp_path: Path) -> None:
    shutil.copy(BOOK, tmp_path)
    argv = [sys.executable, "-m", "marimo", "export", "html", BOOK.name, "-o", "out.html", "--no-include-code"]
    done = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=100)
    end_runs(shared_home)
    assert done.returncode == 0, done.stderr
    assert "ended: True True stopped" in done.stdout + done.stderr
    shown = [cell["outputs"][0]["data"] for cell in session_of(tmp_path / "out.html")["cells"]]
    html = [one.get("text/html", "") for one in shown]
    assert "subagents-nb-card" in html[1] and "Say hi" in html[1]
    for live in (html[2], html[3], html[5]):
        assert "<marimo-anywidget" in live
    assert "<table" in html[4] and "slow-one" in html[4]
    assert "2 of 2 done" in html[6]


def session_of(page: Path) -> dict[str, list[dict[str, list[dict[str, dict[str, str]]]]]]:
    """Return what an exported page holds of the outputs."""
    text = page.read_text(encoding="utf-8")
    begin = text.index("{", text.index('"session":'))
    found: dict[str, list[dict[str, list[dict[str, dict[str, str]]]]]] = json.JSONDecoder().raw_decode(text[begin:])[0]
    return found
