"""What a fresh kernel tells of the runs that the one before left: once, under the cell that loaded the extension."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from subagents_nb.notebook.views.looking_back import LookingBack

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
        await asyncio.sleep(0.1)

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
