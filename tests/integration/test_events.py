"""The hook for programs."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from support import until

from subagents_nb import launch, on_event
from subagents_nb.launching.event_hook import Event

pytestmark = [pytest.mark.timeout(90), pytest.mark.usefixtures("shared_home")]
_ELSEWHERE = (
    "import subagents_nb as s; s.launch(task='e', model='scripted:echo', name='elsewhere', fresh=True, wait=True)"
)


def test_a_program_hears_of_launches_questions_ends_and_proofs_here_and_elsewhere() -> None:
    heard: list[tuple[str, str, str]] = []

    def hear(event: Event) -> None:
        heard.append((event.run.name, event.kind, event.detail))
        raise RuntimeError("a callback of the person's that fails")

    def of(name: str) -> list[Any]:
        return [found[1:] for found in heard if found[0] == name]

    earlier = launch(task="earlier", model="scripted:ask", name="earlier", fresh=True)
    with on_event(hear):
        asks = launch(task="asks", model="scripted:ask", name="asks", fresh=True)
        until(lambda: ("asked", "q1") in [(kind, detail[:2]) for kind, detail in of("asks")], 20)
        subprocess.run([sys.executable, "-c", _ELSEWHERE], check=True, timeout=60)
        asks.answer("yes")
        for name in ("asks", "elsewhere"):
            until(lambda name=name: any(kind == "proved" for kind, _ in of(name)), 20)
        earlier.stop()
        until(lambda: ("ended", "stopped") in of("earlier"), 20)
    assert [kind for kind, _ in of("asks")] == ["launched", "asked", "ended", "proved"]
    assert [kind for kind, _ in of("elsewhere")] == ["launched", "ended", "proved"]
    assert ("ended", "complete") in of("elsewhere") and ("launched", "") not in of("earlier")
    count = len(heard)
    launch(task="l", model="scripted:echo", name="later", fresh=True, wait=True)
    assert len(heard) == count
