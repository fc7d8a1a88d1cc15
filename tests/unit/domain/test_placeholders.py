"""Tokens in tasks: which there are, what looks like one, and that what is put in is never looked at again."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from subagents_nb.domain.plans.placeholders import MissingField, as_text, fill, near_misses, placeholders


def filled(template: str, **more: Any) -> str:
    given: dict[str, Any] = {"task": "T", "previous": "P", "chain_dir": "/w", "outputs": {"found": "F"}}
    return fill(template, **(given | more))


def test_every_token_is_replaced() -> None:
    assert filled("{task} {previous} {chain_dir} {outputs.found}") == "T P /w F"
    assert filled("{task}{task}") == "TT"


@pytest.mark.parametrize(
    "text",
    ["{}", "{ task }", "{{x}}", "{Task}", "{other}", "{item}", "{task.x}", "{outputs}", "{outputs.a.b}", "{outputs.9}",
     "{outputs.a-b}", '{"task": 1}', "{task", "task}", "${previous.}", "{item.a}"],
)  # fmt: skip
def test_other_braces_stay_as_they_are(text: str) -> None:
    assert filled(text) == text
    assert placeholders(text) == ()


def test_doubled_braces_are_no_escape() -> None:
    assert filled("{{task}}") == "{T}"


def test_what_is_put_in_is_not_looked_at_again() -> None:
    assert filled("{previous} {task}", previous="{task} {outputs.found}") == "{task} {outputs.found} T"
    assert filled("{item}", item=("item", "{previous}")) == "{previous}"
    assert filled("\\1 {task}", task="\\g<0>") == "\\1 \\g<0>"


def test_an_item_goes_in_whole_or_by_its_fields() -> None:
    item = {"name": "ä", "tags": ["x", {"n": 2}], "a-b": True, "none": None, "0": "zero"}
    file = ("file", item)
    assert filled("{file.name} {file.tags.0} {file.tags.1.n} {file.a-b} {file.none} {file.0}", item=file) == (
        "ä x 2 true null zero"
    )
    assert json.loads(filled("{file}", item=file)) == item
    assert filled("{item} {file.tags.1}", item=file) == '{item} {"n":2}'


@pytest.mark.parametrize(
    ("template", "told"),
    [
        ("{item.b}", "{item.b} names a field that {item} does not have: it is an object with a"),
        ("{item.a.x}", "{item.a.x} names a field that {item.a} does not have: it is an array of 1"),
        ("{item.a.1}", "an array of 1"),
        ("{item.a.0.x}", "{item.a.0} does not have: it is a number"),
        ("{item.a." + "9" * 5000 + "}", "an array of 1"),
    ],
)
def test_a_field_that_is_not_there_is_named_with_what_is(template: str, told: str) -> None:
    with pytest.raises(MissingField) as caught:
        filled(template, item=("item", {"a": [7]}))
    assert told in str(caught.value)


def test_near_misses_are_told_once_each() -> None:
    assert near_misses("{outputs} {outputs.a.b} {task.x} {outputs} {task} {other.x} {outputs.ok}") == (
        "{outputs}",
        "{outputs.a.b}",
        "{task.x}",
    )


def test_tokens_come_in_their_order() -> None:
    found = placeholders("{outputs.b} {item.x} {task} {outputs.a}", item="item")
    assert [str(token) for token in found] == ["{outputs.b}", "{item.x}", "{task}", "{outputs.a}"]
    assert [str(token) for token in placeholders("{item.x}")] == []


@pytest.mark.parametrize(
    ("value", "text"), [("a b", "a b"), (1.5, "1.5"), (True, "true"), (None, "null"), ({"a": ["ä"]}, '{"a":["ä"]}')]
)
def test_values_stand_in_a_task_as_text_or_compact_json(value: Any, text: str) -> None:
    assert as_text(value) == text


@given(st.text(alphabet="{}.taskoupi x"))
def test_a_template_without_tokens_is_left_alone(template: str) -> None:
    if not placeholders(template):
        assert filled(template) == template


@given(st.lists(st.sampled_from(["{task}", "{previous}", "{outputs.found}", "x", "{", "}", " "])), st.text())
def test_each_token_brings_its_own_text_and_nothing_else_changes(parts: list[str], said: str) -> None:
    template = " ".join(parts)
    values = {"{task}": said, "{previous}": said + "!", "{outputs.found}": said + "?"}
    expected = " ".join(values.get(part, part) for part in parts)
    assert filled(template, task=said, previous=said + "!", outputs={"found": said + "?"}) == expected
