"""What the fault matrix shares. Which row a test is of and how many cases it has stands in its mark; see README.md."""

from __future__ import annotations

import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from crash.counting import SOAK, Planned
from crash.lives import settings
from support import CHILDREN

HERE = Path(__file__).parent
ROWS = pytest.StashKey[dict[int, int]]()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Add up the planned cases of each row; of a part of the tests there is nothing to compare with the table."""
    rows: dict[int, int] = defaultdict(int)
    for item in items:
        for mark in item.iter_markers("row"):
            rows[mark.args[0]] += Planned(mark.args[0], **mark.kwargs).number
    config.stash[ROWS] = dict(rows)
    wanted = {path for path in HERE.parent.rglob("test_*.py") if "mark.row(" in path.read_text()}
    narrowed = config.option.keyword or config.option.markexpr or any("::" in arg for arg in config.args)
    if narrowed or SOAK or not wanted <= {item.path for item in items}:
        part = [item for item in items if item.name == "test_the_table_tells_the_numbers"]
        config.hook.pytest_deselected(items=part)
        items[:] = [item for item in items if item not in part]


@pytest.fixture
def planned_rows(request: pytest.FixtureRequest) -> dict[int, int]:
    """The rows of the fault matrix, with how many cases are planned by all tests that were collected."""
    return request.config.stash[ROWS]


@pytest.fixture
def not_here(case: Callable[..., None]) -> Callable[[str], None]:
    """Leave this test's cases out because the platform, which is named, can't do them."""

    def leave_out(why: str) -> None:
        case(0, left_out=why)
        pytest.skip(why)

    return leave_out


@pytest.fixture
def told(tmp_path: Path) -> Iterator[str]:
    """A model that calls bash with what the task says behind `RUN: `, and room for many live runs.

    Ask for a store first: the settings go into its user's home.
    """
    command = [sys.executable, str(CHILDREN / "chat.py")]
    peer = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    with peer:
        assert peer.stdout is not None
        port = int(peer.stdout.readline())
        settings(f'[endpoints.told]\nbase_url = "http://127.0.0.1:{port}/v1"\n', live=60)
        yield "told:m"
        assert peer.stdin is not None
        peer.stdin.close()
