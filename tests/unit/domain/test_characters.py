"""Texts that UTF-8 can't say."""

from __future__ import annotations

import os

import pytest

from subagents_nb.domain.values.characters import sayable, sayable_data


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("plain", "plain"),
        ("größer 😀", "größer 😀"),
        ("a \ud83d b", "a \ufffd b"),
        ("\ude00", "\ufffd"),
        ("\ud83d\ude00 é", "😀 é"),
        (os.fsdecode(b"caf\xe9.csv"), "caf\ufffd.csv"),
    ],
)
def test_half_characters_become_a_sign_and_two_halves_become_one_character(text: str, said: str) -> None:
    assert sayable(text) == said
    assert sayable_data({text: [text, 1, None]}) == {said: [said, 1, None]}
