"""What is made ready behind the cell that loads the extension: a supervisor, where a page has run it and wants it."""

from __future__ import annotations

import contextlib
import threading
from types import SimpleNamespace
from typing import Any

import pytest
from support import until

from subagents_nb.notebook.magics.warming import Prewarming
from subagents_nb.store import StoreHome
from subagents_nb.supervisor.protocol.reaching import connect_queue_now


def shell(*, prewarm: bool, cell: str | None = "a-cell") -> Any:
    events = SimpleNamespace(register=lambda *_: None, unregister=lambda *_: None)
    manager = SimpleNamespace(registry={"SubagentMagics": SimpleNamespace(prewarm=prewarm)})
    return SimpleNamespace(events=events, magics_manager=manager, get_parent=lambda: {"metadata": {"cellId": cell}})


def warms() -> list[threading.Thread]:
    return [one for one in threading.enumerate() if one.name == "subagents-nb-warm"]


def test_a_supervisor_comes_up_behind_the_first_cell(shared_home: StoreHome) -> None:
    Prewarming(shell(prewarm=True))._work()
    with contextlib.closing(until(lambda: connect_queue_now(shared_home), 60, what="the supervisor")):
        pass
    until(lambda: not warms(), 60, what="the end of the thread")


def test_whoever_does_not_want_it_has_none(shared_home: StoreHome) -> None:
    Prewarming(shell(prewarm=False))._work()
    assert warms() == []


def test_a_store_that_cannot_be_used_says_nothing(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("SUBAGENTS_NB_HOME", str(tmp_path / "file" / "store"))
    Prewarming(shell(prewarm=True))._work()
    assert warms() == []
    assert capsys.readouterr() == ("", "")


def test_a_program_that_executes_notebooks_starts_none() -> None:
    Prewarming(shell(prewarm=True, cell=None))._start()
    assert warms() == []
