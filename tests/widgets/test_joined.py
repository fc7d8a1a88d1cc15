"""The text that a host loads, made of the widget's modules, is a module of its own and needs no other."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from subagents_nb.notebook.widget import RunWidget


def test_the_joined_text_is_one_module_with_a_render(tmp_path: Path) -> None:
    node = shutil.which("node")
    assert node, "these tests need node; install it: apt-get install nodejs"
    text = str(RunWidget._esm)
    assert len(text.encode()) < 40_000
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
    assert (done.stdout, done.stderr) == ("function function\n", "")
