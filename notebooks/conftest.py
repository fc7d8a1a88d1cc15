"""The notebooks run in a store of the tests' own, of which nothing is left: pytest -p nbval --nbval-lax notebooks

Whoever has a store for them, with a supervisor that is up, names it: NOTEBOOKS_STORE=FOLDER. That one is left as it is.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

_HOME = pytest.StashKey[Path]()


def pytest_configure(config: pytest.Config) -> None:
    given = os.environ.get("NOTEBOOKS_STORE")
    if not given:
        config.stash[_HOME] = Path(tempfile.mkdtemp(prefix="subagents-nb-notebooks-"))
    os.environ["SUBAGENTS_NB_HOME"] = given or str(config.stash[_HOME])


def pytest_unconfigure(config: pytest.Config) -> None:
    if _HOME in config.stash:
        from demo import tidy

        tidy(config.stash[_HOME])
