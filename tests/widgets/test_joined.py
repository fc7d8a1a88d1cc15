"""The text that a host loads, made of the widget's modules, is a module of its own and needs no other."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from subagents_nb.notebook.board.board_widget import BoardWidget
from subagents_nb.notebook.comparing.compare_show import CompareWidget
from subagents_nb.notebook.comparing.sweep_widget import SweepWidget
from subagents_nb.notebook.full.full_view import FullWidget
from subagents_nb.notebook.views.widget import ChainWidget, FinderWidget, RunWidget


@pytest.mark.parametrize(
    ("kind", "renders"),
    [(RunWidget, "function"), (ChainWidget, "function"), (SweepWidget, "function"), (FinderWidget, "undefined"),
     (CompareWidget, "undefined"), (BoardWidget, "function"), (FullWidget, "undefined")],
)  # fmt: skip
def test_the_joined_text_is_one_module(tmp_path: Path, kind: type[RunWidget], renders: str) -> None:
    node = shutil.which("node")
    assert node, "these tests need node; install it: apt-get install nodejs"
    text = str(kind._esm)
    assert len(text.encode()) < {ChainWidget: 60_000, BoardWidget: 56_000, FullWidget: 48_000}.get(kind, 40_000)
    (tmp_path / "widget.mjs").write_text(text)
    check = "const { default: it } = await import('./widget.mjs'); console.log(typeof it.render, typeof it.initialize)"
    done = subprocess.run(
        [node, "--input-type=module", "-e", check],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (done.stdout, done.stderr) == (f"{renders} function\n", "")
