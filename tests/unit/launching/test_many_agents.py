"""A launch among many agents and skills reads each agent file once and no skill; the next launch reads none."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from subagents_nb import preflight
from subagents_nb.store import StoreHome

_heard: Counter[str] | None = None


def _hear(event: str, args: tuple[Any, ...]) -> None:
    if event == "open" and _heard is not None and isinstance(args[0], str | bytes):
        _heard[os.path.basename(os.fsdecode(args[0]))] += 1


@pytest.fixture
def opened() -> Iterator[Counter[str]]:
    """Count what this process opens, by the names of the files: those that are opened from a folder have no other."""
    global _heard
    if not getattr(sys, "_our_hook", False):  # one can't be taken away again
        sys.addaudithook(_hear)
        sys._our_hook = True  # type: ignore[attr-defined]
    _heard = Counter()
    yield _heard
    _heard = None


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def test_no_agent_file_is_read_twice_and_no_skill_is_read(store_home: StoreHome, opened: Counter[str]) -> None:
    project = Path.cwd()
    names = [f"a{number:03}" for number in range(200)]
    for name in names:
        write(project / ".claude/agents" / f"{name}.md", f"---\nname: {name}\ndescription: d\ntools: Read\n---\nWork.")
    for number in range(200):
        place = project / (".agents/skills" if number % 2 else ".claude/skills") / f"s{number:03}"
        write(place / "SKILL.md", f"---\nname: s{number:03}\ndescription: d\n---\nDo.")
    write(project / ".subagents/settings.toml", "[agents.a000]\nthinking = 'low'\n")
    write(project / "AGENTS.md", "Notes.")
    opened.clear()
    assert preflight("a007", "Look.", model="scripted:echo").ok
    assert {name: opened[f"{name}.md"] for name in names} == dict.fromkeys(names, 1)
    assert opened["SKILL.md"] == 0
    opened.clear()
    assert preflight("a007", "Look again.", model="scripted:echo").ok
    assert not any(opened[f"{name}.md"] for name in names)
    files = {name: count for name, count in opened.items() if Path(name).suffix in (".md", ".toml", ".txt", ".json")}
    assert files == {"AGENTS.md": 1, "settings.toml": 1}
