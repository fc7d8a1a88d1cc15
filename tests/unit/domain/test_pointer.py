"""JSON Pointer, by the examples of RFC 6901."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from subagents_nb.domain.values.pointer import PointerError, parse_pointer, resolve_pointer

# Section 5 of the RFC.
DOCUMENT = {"foo": ["bar", "baz"], "": 0, "a/b": 1, "c%d": 2, "e^f": 3, "g|h": 4, "i\\j": 5, 'k"l': 6, " ": 7, "m~n": 8}


@pytest.mark.parametrize(
    ("pointer", "value"),
    [
        ("", DOCUMENT),
        ("/foo", ["bar", "baz"]),
        ("/foo/0", "bar"),
        ("/", 0),
        ("/a~1b", 1),
        ("/c%d", 2),
        ("/e^f", 3),
        ("/g|h", 4),
        ("/i\\j", 5),
        ('/k"l', 6),
        ("/ ", 7),
        ("/m~0n", 8),
    ],
)
def test_the_examples_of_the_rfc(pointer: str, value: Any) -> None:
    assert resolve_pointer(DOCUMENT, pointer) == value


def test_escapes_are_undone_in_the_order_that_the_rfc_asks_for() -> None:
    assert parse_pointer("/~01") == ("~1",)
    assert parse_pointer("/~00/~10") == ("~0", "/0")


@pytest.mark.parametrize("pointer", ["foo", "#/foo", " /foo", "/a~b", "/~", "/~2", "/~~01", "/~~11"])
def test_what_is_no_pointer_is_refused(pointer: str) -> None:
    with pytest.raises(PointerError, match="is no JSON Pointer"):
        parse_pointer(pointer)


@pytest.mark.parametrize(
    "pointer",
    ["/foo/2", "/foo/-", "/foo/-1", "/foo/00", "/foo/01", "/foo/1.0", "/foo/٢", "/foo/bar", "/gone", "/foo/0/x", "//x"],
)
def test_what_leads_nowhere_is_said_to(pointer: str) -> None:
    with pytest.raises(PointerError, match="leads nowhere"):
        resolve_pointer(DOCUMENT, pointer)


def test_an_index_of_any_length_is_only_past_the_end() -> None:
    with pytest.raises(PointerError, match="leads nowhere"):
        resolve_pointer([1], "/" + "9" * 5000)


def test_an_object_may_have_keys_that_look_like_indices() -> None:
    assert resolve_pointer({"0": "zero", "-": "dash"}, "/0") == "zero"
    assert resolve_pointer({"0": "zero", "-": "dash"}, "/-") == "dash"


@given(st.lists(st.text(), min_size=1, max_size=4))
def test_every_key_can_be_reached_by_its_escaped_name(keys: list[str]) -> None:
    value: Any = "found"
    for key in reversed(keys):
        value = {key: value}
    pointer = "".join("/" + key.replace("~", "~0").replace("/", "~1") for key in keys)
    assert parse_pointer(pointer) == tuple(keys)
    assert resolve_pointer(value, pointer) == "found"
