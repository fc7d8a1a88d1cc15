"""Items of a fan-out: all of them or none, each with a key of its own."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from subagents_nb.domain.plans.fanout import FanOutProblem, items_of, slug


def keys(value: Any, key: str | None = None, *, path: str = "", most: int = 10) -> list[str]:
    return [item.key for item in items_of(value, path, key=key, max_items=most)]


def problem(value: Any, key: str | None = None, *, path: str = "", most: int = 10) -> str:
    with pytest.raises(FanOutProblem) as caught:
        items_of(value, path, key=key, max_items=most)
    return str(caught.value)


def test_items_are_numbered_and_named_by_their_number_or_their_key() -> None:
    assert keys(["a", "b"]) == ["0", "1"]
    found = items_of({"files": [{"n": "x"}, {"n": "y"}]}, "/files", key="/n", max_items=2)
    assert [(item.index, item.key, item.value) for item in found] == [(0, "x", {"n": "x"}), (1, "y", {"n": "y"})]


def test_keys_may_be_texts_numbers_and_truth_values() -> None:
    assert keys(["a", 2, 1.5, True, False], "") == ["a", "2", "1.5", "true", "false"]


def test_no_items_are_no_problem() -> None:
    assert keys([]) == [] and keys([], most=0) == []


def test_too_many_items_are_refused_and_none_is_cut() -> None:
    assert "there are 3 items, more than max_items (2)" in problem([1, 2, 3], most=2)


@pytest.mark.parametrize("value", [{}, "abc", 3, None, {"0": 1}])
def test_only_an_array_can_be_expanded(value: Any) -> None:
    assert problem(value) == "'the whole value' is no array"
    assert problem({"a": value}, path="/a") == "'/a' is no array"


def test_a_path_that_leads_nowhere_is_the_pointers_problem() -> None:
    assert "leads nowhere" in problem({}, path="/files")


@pytest.mark.parametrize(
    ("key", "told"),
    [
        (None, "the key of item 0 is no text, number or truth value"),
        ([], "is no text, number or truth value"),
        ({}, "is no text, number or truth value"),
        ("", "the key of item 0 is empty"),
        (" \t", "the key of item 0 is empty"),
        ("a\nb", "holds control characters"),
        ("a\x7f", "holds control characters"),
        ("x" * 201, "has 201 characters, more than 200"),
    ],
)
def test_a_key_that_is_none_is_refused_with_its_item(key: Any, told: str) -> None:
    assert told in problem([{"k": key}], "/k")


def test_an_item_without_the_key_is_named() -> None:
    assert problem([{"k": 1}, {}], "/k").startswith("item 1 has no key:")


def test_the_same_key_twice_is_refused() -> None:
    assert problem(["a", "b", "a"], "") == "items 0 and 2 have the same key ('a')"


@pytest.mark.parametrize("pair", [("A b", "a-b"), ("a.b", "a_b"), ("ä", "Ä"), ("x" * 81, "x" * 82), ("!", "?")])
def test_different_keys_are_different_items_whatever_files_could_make_of_them(pair: tuple[str, str]) -> None:
    assert keys(list(pair), "") == list(pair)


def test_keys_of_any_script_are_told_apart() -> None:
    assert keys(["北京", "上海", "Müller", "Moller", "ελ"], "") == ["北京", "上海", "Müller", "Moller", "ελ"]


@pytest.mark.parametrize(
    ("key", "name"),
    [
        ("Data/2024 report.CSV", "data-2024-report-csv"),
        ("../../etc/passwd", "etc-passwd"),
        ("--", "item"),
        ("北京 1", "北京-1"),
        ("e\u0301", "é"),
        ("a_b", "a-b"),
    ],
)
def test_a_key_becomes_a_plain_name(key: str, name: str) -> None:
    assert slug(key) == name


@given(st.text(min_size=1, max_size=200))
def test_a_name_is_always_one_that_a_file_can_have(key: str) -> None:
    name = slug(key)
    assert 1 <= len(name) <= 80 and len(name.encode()) <= 200
    assert not set(name) & set("/\\.\0 \n") and not name.startswith("-") and not name.endswith("-")
    assert slug(name) == name
