"""The counting rule: a lane is green only if as many cases ran as were planned.

A test says which row of the fault matrix it belongs to and how many cases it has: `@pytest.mark.row(12, cases=200)`, or
`at_least=60` where the number is found out on the way. It counts them with the fixture `case`. `test_counts.py` runs
last and compares, with the plan and with the table of README.md. A row may be tried in another folder too: there each
test compares for itself, since another process may run it, and only the numbers come here.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from crash.counting import LEDGER, Planned
from crash.lives import settings
from support import CHILDREN

HERE = Path(__file__).parent
ELSEWHERE = ("unit", "integration", "notebook")
Case = Callable[..., None]


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    ours = [item for item in items if item.path.parent == HERE]
    for item in items:
        for mark in item.iter_markers("row"):
            planned = Planned(mark.args[0], **mark.kwargs)
            if item.path.parent == HERE:
                LEDGER.plan(item.nodeid, planned)
            else:
                LEDGER.elsewhere[item.nodeid] = planned
    files = {path.name for path in HERE.glob("test_*.py")}
    options = config.option
    LEDGER.narrowed = bool(options.keyword or options.markexpr or any("::" in arg for arg in config.args))
    LEDGER.whole = files == {item.path.name for item in ours} and not LEDGER.narrowed
    LEDGER.everywhere = LEDGER.whole and _marked_elsewhere() <= {item.path for item in items}
    last = [item for item in ours if item.path.name == "test_counts.py"]
    # Of a part there is nothing to compare with the plan, or with the table of all.
    kept = [] if LEDGER.narrowed else [i for i in last if LEDGER.whole or i.name != "test_the_table_tells_the_numbers"]
    config.hook.pytest_deselected(items=[item for item in last if item not in kept])
    items[:] = [item for item in items if item not in last] + kept


def _marked_elsewhere() -> set[Path]:
    files = {path for folder in ELSEWHERE for path in (HERE.parent / folder).rglob("test_*.py")}
    return {path for path in files if "mark.row(" in path.read_text()}


@pytest.fixture
def case(request: pytest.FixtureRequest) -> Case:
    """Count one case, or `n`, of this test's row."""

    def count(n: int = 1) -> None:
        LEDGER.ran(request.node.nodeid, n)

    return count


@pytest.fixture
def not_here(request: pytest.FixtureRequest) -> Callable[[str], None]:
    """Leave this test's cases out because the platform, which is named, can't do them."""

    def leave_out(why: str) -> None:
        LEDGER.leave_out(request.node.nodeid, why)
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
