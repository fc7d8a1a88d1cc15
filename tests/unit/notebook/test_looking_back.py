"""What a fresh kernel tells of the runs that the one before left: once, under the cell that loaded the extension."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from card_samples import answered, asking, lost

from subagents_nb.notebook.board.looking_back import LookingBack, left_line
from subagents_nb.notebook.page.idle import when_idle

PAGE = {"metadata": {"cellId": "c"}, "content": {"allow_stdin": True}}


class Shell:
    """A shell whose cells were asked for by these requests, one after the other."""

    def __init__(self, *requests: dict[str, Any]) -> None:
        self.sent: list[tuple[str, Any]] = []
        self.events = SimpleNamespace(register=lambda *_: None, unregister=lambda *_: None)
        self._requests = list(requests)

    def get_parent(self) -> dict[str, Any]:
        return self._requests.pop(0)

    @property
    def display_pub(self) -> Any:
        def send(_: object, kind: str, content: dict[str, Any], *, parent: object, ident: bytes) -> None:
            assert (kind, ident) == ("display_data", b"display_data")
            self.sent.append((content["data"]["text/plain"], parent))

        return SimpleNamespace(session=SimpleNamespace(send=send), pub_socket=None, topic=b"display_data")


def told(shell: Shell, *answers: str | Exception) -> list[tuple[str, Any]]:
    def look() -> str:
        if isinstance(answer := answers[0], Exception):
            raise answer
        return answer

    async def cells() -> None:
        looking = LookingBack(shell, look)
        for _ in range(2):
            looking._start()
        done = asyncio.Event()
        when_idle(done.set)  # timers fire in their order: what was begun before has been done by then
        await done.wait()

    asyncio.run(cells())
    return shell.sent


@pytest.fixture(autouse=True)
def _notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JPY_SESSION_NAME", "look.ipynb")
    monkeypatch.delenv("SUBAGENTS_NB_NONINTERACTIVE", raising=False)


def test_it_is_told_once_under_the_cell_that_loaded_the_extension() -> None:
    load, later = PAGE | {"header": "load"}, PAGE | {"header": "later"}
    assert told(Shell(load, later), "left running") == [("left running", load)]
    assert told(Shell(load), "") == []


@pytest.mark.parametrize("request_", [{"metadata": {}}, PAGE | {"content": {"allow_stdin": False}}])
def test_who_only_executes_a_notebook_is_told_nothing(request_: dict[str, Any]) -> None:
    assert told(Shell(request_), "left running") == []


def test_what_is_no_notebooks_kernel_looks_at_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JPY_SESSION_NAME")
    assert told(Shell(PAGE), RuntimeError("it looked")) == []


def test_a_fault_in_it_is_kept_from_the_person(capfd: pytest.CaptureFixture[str]) -> None:
    assert told(Shell(PAGE), RuntimeError("no store")) == []


def test_of_many_runs_those_that_need_the_person_are_named_first() -> None:
    left = left_line([*(answered("x", name=f"done-{number}") for number in range(9)), lost(), asking("Go on?")])
    runs = left.partition("UTC: ")[2]
    assert runs.startswith("find-outliers asks you, find-outliers lost, done-0 complete, ")
    assert runs.endswith("done-5 complete and 3 more. Their board: %subagent_status --here")
