"""Near misses and refused values are told in one way."""

from __future__ import annotations

from pathlib import Path

import subagents_nb
from subagents_nb.domain.values.faults import nearest, shown, snake


def test_a_name_is_known_however_it_is_spelt_and_a_near_one_keeps_its_spelling() -> None:
    assert [snake(name) for name in ("toolTimeout", "tool-timeout", " tool_timeout ")] == ["tool_timeout"] * 3
    assert nearest("changed_file", ("changed-files", "tests-added")) == "changed-files"
    assert nearest("tool-timeuot", ("tool_timeout", "timeout")) == "tool_timeout"
    assert nearest("x" * 10_000, ("tool_timeout",)) == ""


def test_a_refused_value_is_one_short_line() -> None:
    assert shown("a\nb\u202e") == r"'a\nb\u202e'" and len(shown("a" * 999)) == 60


def test_one_function_looks_for_near_misses() -> None:
    root = Path(subagents_nb.__file__).parent
    assert [path.name for path in root.rglob("*.py") if "get_close_matches" in path.read_text()] == ["faults.py"]
