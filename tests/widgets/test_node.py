"""The widgets' own tests, in node."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

WIDGETS = Path(__file__).parents[2] / "widgets"


@pytest.fixture(scope="module")
def npm() -> str:
    path = shutil.which("npm")
    assert path and shutil.which("node"), "these tests need node; install it: apt-get install nodejs npm"
    if not (WIDGETS / "node_modules" / ".package-lock.json").is_file():
        done = subprocess.run([path, "ci"], cwd=WIDGETS, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    return path


def test_the_widgets_pass_their_own(npm: str) -> None:
    done = subprocess.run([npm, "run", "test"], cwd=WIDGETS, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
