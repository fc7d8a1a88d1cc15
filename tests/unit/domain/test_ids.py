"""Ids: made in the order of time, and the only texts that become paths."""

from __future__ import annotations

import random
import string
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from subagents_nb.domain.values.ids import is_run_id, is_run_name, make_run_id, short_id
from subagents_nb.errors import UnknownRun
from subagents_nb.store import StoreHome

GOOD = make_run_id(1_770_000_000_000, 2**50 - 1)


def hostile() -> list[str]:
    """Return 500 texts that are no run ids, made the same way each time."""
    rng = random.Random(7)
    fixed = [
        "", ".", "..", "/", "../..", "/etc/passwd", "\0", GOOD + "\n", "\n" + GOOD, GOOD + "\0", GOOD + "/", GOOD + ".",
        GOOD + "/..", "../" + GOOD, GOOD.upper(), GOOD[:-1], GOOD + "0", "con", "nul", "r-", "1e5", "-rf", "~", "$HOME",
        GOOD.replace("r-", "r‐"), GOOD.replace("r-", "R-"), "r-" + "l" * 19, "r-" + "i" * 19, "r-" + "o" * 19,
        "r-" + "u" * 19, "r-" + "٣" * 19, "r-" + "０" * 19, "r-" + "а" * 19, "r-" + "é" * 19, GOOD + " ", " " + GOOD,
        "r-" + "a" * 300, "\ud800", "r-" + "\ud800" * 19, GOOD + "\r", GOOD + "\u2028", "r-" + ".." + "a" * 17,
    ]  # fmt: skip
    signs = string.printable + "é٣０\0\ud800\u202e"
    while len(fixed) < 300:
        position = rng.randrange(len(GOOD))
        fixed.append(GOOD[:position] + rng.choice("ilou/\\. \n\0AZé:*") + GOOD[position + 1 :])
    while len(fixed) < 500:
        fixed.append("".join(rng.choice(signs) for _ in range(rng.randrange(1, 40))))
    return fixed


@pytest.mark.row(25, cases=500)
def test_five_hundred_hostile_texts_are_no_ids_and_become_no_path(case: Callable[..., None]) -> None:
    texts = hostile()
    home = StoreHome(root=Path("/nowhere"))
    for text in texts:
        assert not is_run_id(text), repr(text)
        with pytest.raises(UnknownRun):
            home.run(text)
        case()


@given(st.integers(0, 2**44), st.integers(0, 2**50 - 1), st.integers(1, 10**9), st.integers(0, 2**50 - 1))
def test_ids_sort_by_the_time_of_launch_whatever_the_chance(ms: int, one: int, later: int, other: int) -> None:
    first, second = make_run_id(ms, one), make_run_id(ms + later, other)
    assert first < second
    assert is_run_id(first) and is_run_id(second)
    assert len({len(first), len(second)}) == 1


def test_a_short_id_is_the_last_four_characters() -> None:
    assert short_id(GOOD) == GOOD[-4:]


@pytest.mark.parametrize("name", ["a", "Night run 3", "a.b-c_d", "9", "x" * 80])
def test_a_name_may_be_words(name: str) -> None:
    assert is_run_name(name)


@pytest.mark.parametrize(
    "name",
    ["", " a", "a ", "-a", ".a", "r-a", "a/b", "a\\b", "a\nb", "a\n", "é", "x" * 81, "a\0", "<b>", "a:b", "../a"],
)
def test_a_name_may_not_look_like_a_path_an_option_or_an_id(name: str) -> None:
    assert not is_run_name(name)
