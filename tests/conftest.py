"""Stores of their own for tests, and the proof that no test leaves a process behind."""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from crash.counting import Planned
from hypothesis import HealthCheck, settings
from support import SECRET_PREFIXES, ask_host, processes_of, take_away, until
from xdist.scheduler import LoadScopeScheduling

from subagents_nb.store import StoreHome, open_home
from subagents_nb.store.files.lock import probe

# jsonschema would build forty grammars to check IRIs, most of the second and a half that nbformat takes to load.
sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]

# A busy machine is no fault of what is tested; no test here is a timed one.
settings.register_profile("ours", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("ours")


class _Lanes(LoadScopeScheduling):
    """What shares expensive fixtures runs in one process: each file, and all that needs a JupyterLab.

    So does all that injects faults: what is promised in seconds is held against the machine, not against another storm.
    """

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        return next((folder for folder in ONE_LANE if file.startswith(folder)), file)


ONE_LANE = ("tests/widgets/", "tests/crash/")  # each half as long as all the rest takes four lanes
LONGEST = (
    "widgets/",
    "crash/",
    "test_exporters",
    "test_demo",
    "test_notebooks",
    "test_binder",
    "notebook/test_",
    "integration/",
)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> _Lanes:
    config.option.loadscopereorder = False
    return _Lanes(config, log)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "row(number, cases=0, at_least=0): a row of the fault matrix and its cases")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Leave modules and thousands of tests, which stay to the end, out of all searches for garbage."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    # What takes longest begins first, so that no lane is left alone with it at the end.
    items.sort(key=lambda item: [name not in item.path.as_posix() for name in LONGEST])


@pytest.fixture
def case(request: pytest.FixtureRequest) -> Iterator[Callable[..., None]]:
    """Count one case, or `n`, of this test's row of the fault matrix; fail if fewer ran than its mark plans.

    A case that the platform can't do is left out with its reason.
    """
    ran, reason = 0, ""

    def count(n: int = 1, *, left_out: str = "") -> None:
        nonlocal ran, reason
        ran, reason = ran + n, reason or left_out

    yield count
    if reason:
        return
    mark = request.node.get_closest_marker("row")
    assert mark is not None, "a test that counts its cases says which row they are of"
    fault = Planned(mark.args[0], **mark.kwargs).fault(ran)
    assert not fault, fault


def dismiss_hosts(home: StoreHome) -> None:
    """Ask every supervisor of a store to leave, those that are still coming up too, and wait until all have."""

    def gone() -> bool:
        held = [lock for lock in home.supervisor.glob("*.lock") if probe(lock) == "held"]
        for lock in held:
            ask_host(lock.with_suffix(".sock"), {"op": "leave"})
        return not held

    until(gone, 30, what=f"the leave of the supervisors of {home.root}", pause=0.05)


def expect_no_processes(home: StoreHome) -> None:
    """Fail if a process of any run of this store is still there after a moment, and end it."""
    try:
        until(lambda: not processes_of(home), 5, what=f"the end of all runs of {home.root}")
    except AssertionError:
        left = processes_of(home)
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        raise AssertionError(f"processes of runs were left behind: {left}") from None


def _settle(monkeypatch: pytest.MonkeyPatch, root: Path, user_home: Path, work: Path, spawn: str) -> None:
    """Point the package at this store and at nothing else of the user's."""
    for name in list(os.environ):
        if name.startswith((*SECRET_PREFIXES, "SUBAGENTS_NB_")):
            monkeypatch.delenv(name)
    user_home.mkdir(exist_ok=True)
    work.mkdir(exist_ok=True)
    monkeypatch.setenv("SUBAGENTS_NB_HOME", str(root))
    monkeypatch.setenv("HOME", str(user_home))
    monkeypatch.setenv("SUBAGENTS_NB_SPAWN", spawn)
    monkeypatch.setenv("SUBAGENTS_NB_REUSE", "never")  # most tests launch the same work again and mean another run
    monkeypatch.chdir(work)


@pytest.fixture
def store_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[StoreHome]:
    """A fresh store and an empty user's home; the current directory is an empty workspace. Launches are cold."""
    root = tmp_path / "store"
    _settle(monkeypatch, root, tmp_path / "user", tmp_path / "work", "cold")
    home = open_home()
    yield home
    try:
        expect_no_processes(home)
    finally:
        dismiss_hosts(home)


@pytest.fixture(scope="session")
def _session_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StoreHome]:
    home = open_home(tmp_path_factory.mktemp("shared") / "store")
    yield home
    try:
        expect_no_processes(home)
    finally:
        dismiss_hosts(home)


@pytest.fixture
def shared_home(_session_home: StoreHome, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[StoreHome]:
    """The store that tests share, so that they share one warm supervisor too. It is empty, the rest the test's own."""
    take_away(_session_home, tmp_path / "of the test before")
    _settle(monkeypatch, _session_home.root, tmp_path / "user", tmp_path / "work", "warm")
    yield _session_home
    expect_no_processes(_session_home)


@pytest.fixture(params=["warm", "cold"])
def spawn(request: pytest.FixtureRequest, shared_home: StoreHome, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both ways of starting a runner, in the shared store."""
    monkeypatch.setenv("SUBAGENTS_NB_SPAWN", request.param)
    return str(request.param)
