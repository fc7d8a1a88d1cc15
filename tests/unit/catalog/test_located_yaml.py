"""YAML with the line of each value, as strict as an agent file's."""

from __future__ import annotations

import pytest

from subagents_nb.catalog.strict_yaml import YamlRefused, load_located


def test_each_value_has_the_line_of_its_key_or_of_its_beginning() -> None:
    data, lines = load_located("- a: 1\n  b:\n  - x\n  - {c: 2}\n\n- d\n", lines_above=1)
    assert data == [{"a": 1, "b": ["x", {"c": 2}]}, "d"]
    assert lines[0, "a"] == 2
    assert lines[0, "b"] == 3
    assert (lines[0, "b", 0], lines[0, "b", 1, "c"]) == (4, 5)
    assert lines[1,] == 7


@pytest.mark.parametrize("text", ["", "# only a comment\n", "\n\n"])
def test_no_value_is_none(text: str) -> None:
    assert load_located(text)[0] is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("word", "neither a list nor a mapping"),
        ("- &a x\n- *a", "anchors and aliases"),
        ("- !!python/object:x.Y {}", "is not accepted"),
        ("- a: 1\n  a: 2", "the key 'a' is given twice (line 2)"),
        ("- a\n---\n- b", "bad YAML"),
        ("[" * 40 + "]" * 40, "nested deeper"),
        ("- .nan", "bad YAML"),
    ],
)
def test_what_is_not_plain_is_refused(text: str, said: str) -> None:
    with pytest.raises(YamlRefused) as caught:
        load_located(text)
    assert said in str(caught.value)


def test_dates_and_keys_stay_text() -> None:
    assert load_located("on: 2026-01-01\n1: x")[0] == {"on": "2026-01-01", "1": "x"}
