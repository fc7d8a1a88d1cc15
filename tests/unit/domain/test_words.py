"""Figures and untrusted text as people see them."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from subagents_nb.domain.runs.records import Usage
from subagents_nb.domain.values.words import (
    ago,
    cost,
    count,
    duration,
    elapsed,
    one_line,
    parse_duration,
    plain,
    tokens,
    visible,
)
from subagents_nb.plain_text import shortened


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0, "0:00"), (42.9, "0:42"), (725, "12:05"), (3723, "1:02:03"), (360000, "100:00:00"), (-5, "0:00")],
)
def test_elapsed_time_is_said_like_a_clock(seconds: float, said: str) -> None:
    assert elapsed(seconds) == said


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0.4, "just now"), (60, "60 s ago"), (90, "2 min ago"), (7300, "2 h ago"), (200_000, "2 days ago")],
)
def test_an_age_is_said_in_one_unit(seconds: float, said: str) -> None:
    assert ago(seconds) == said


@pytest.mark.parametrize(
    ("number", "said"),
    [
        (0, "0"), (861, "861"), (999, "999"), (1000, "1.0k"), (12_400, "12.4k"), (99_949, "99.9k"), (99_950, "100k"),
        (99_999, "100k"), (123_456, "123k"), (999_499, "999k"), (999_500, "1.0M"), (1_200_000, "1.2M"),
        (99_960_000, "100M"), (999_999_999, "1.0G"), (2_500_000_000, "2.5G"),
    ],
)  # fmt: skip
def test_counts_are_said_short(number: int, said: str) -> None:
    assert count(number) == said


@given(st.integers(0, 99 * 10**9))
def test_a_count_has_at_most_five_characters(number: int) -> None:
    assert len(count(number)) <= 5


def test_tokens_and_costs() -> None:
    assert tokens(Usage(input_tokens=12_400, output_tokens=861)) == "12.4k / 861"
    assert [cost(usd) for usd in (None, 0, 0.0004, 0.0123, 1.5)] == ["", "$0", "<$0.001", "$0.012", "$1.500"]


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (90, 90), (0.5, 0.5), ("45", 45), ("45s", 45), ("30m", 1800), ("30 min", 1800), ("1.5h", 5400), ("250ms", 0.25),
        (" 2h ", 7200), ("168h", 604800),
    ],
)  # fmt: skip
def test_durations_are_read(value: float | str, seconds: float) -> None:
    assert parse_duration(value) == seconds


@pytest.mark.parametrize(
    "value",
    [
        0, -1, "0", "-5", "", "soon", "5 days", "1e3", "inf", "nan", float("inf"), float("nan"), True, False, "169h",
        10**400, "9" * 400, "1.5.2", "5ss", "1h30m", "\0",
    ],
    ids=lambda value: repr(value)[:12],
)  # fmt: skip
def test_what_is_no_timeout_is_refused_in_words(value: float | str) -> None:
    with pytest.raises(ValueError, match="length of time"):
        parse_duration(value)


@pytest.mark.parametrize(("seconds", "said"), [(45, "45 s"), (0.25, "0.25 s"), (1800, "30 min"), (100, "1.7 min"),
                                               (5400, "1.5 h"), (604800, "168 h")])  # fmt: skip
def test_a_length_of_time_is_said_in_a_sentence(seconds: float, said: str) -> None:
    assert duration(seconds) == said


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07shown", "shown"),
        ("\x1b]8;;http://evil\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1b[2J\x1b[1;1Hgone", "gone"),
        ("a\u202egnp.exe", "agnp.exe"),
        ("a\u2066b\u2069c\u200bd\ufeff", "abcd"),
        ("back\b\b\bspace", "backspace"),
        ("one\r\ntwo\rthree", "one\ntwothree"),
        ("tab\tnew\nline", "tab\tnew\nline"),
        ("nul\0\x9bcsi", "nulcsi"),
        ("é 漢字 🙂", "é 漢字 🙂"),
    ],
)
def test_untrusted_text_loses_escapes_controls_and_directions(text: str, left: str) -> None:
    assert plain(text) == left


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("echo ok \x1b]; rm -rf x; #\x07", "echo ok ⟨U+001B⟩]; rm -rf x; #⟨U+0007⟩"),
        ("echo \x1b[; rm x; m", "echo ⟨U+001B⟩[; rm x; m"),
        ("a\u202eb\u200bc\U000e0041\ud800", "a⟨U+202E⟩b⟨U+200B⟩c⟨U+E0041⟩⟨U+D800⟩"),
        ("one\rtwo\u2028three", "one⟨U+000D⟩two⟨U+2028⟩three"),
        ("ls" + " " * 500 + "; rm x", "ls ⟨500 blanks⟩ ; rm x"),
        ("ls" + "\n" * 301 + "rm x", "ls\n⟨300 empty lines⟩\nrm x"),
        ("def f():\r\n\treturn 'é 漢字 🙂'\n\n\n", "def f():\n\treturn 'é 漢字 🙂'\n\n\n"),
    ],
)
def test_who_decides_by_a_text_sees_all_that_is_in_it(text: str, seen: str) -> None:
    assert visible(text) == seen


@given(st.text(alphabet=st.sampled_from("ab \n\x1b]\x07[m\u202e;")))
def test_of_what_is_shown_to_who_decides_no_visible_character_is_left_out(text: str) -> None:
    assert [char for char in visible(text) if char in "ab;"] == [char for char in text if char in "ab;"]


PIECES = st.sampled_from(
    ["a", "b ", "\n", "\r\n", "\r", "\x1b", "\x1b[", "31", ";", "m", "\x1b]", "8;;http://x", "\x07", "\x1b\\", "\u202e"]
)


@given(st.lists(PIECES, max_size=80).map("".join), st.integers(2, 12))
def test_one_line_of_a_beginning_is_that_of_the_whole_text(text: str, limit: int) -> None:
    assert one_line(text, limit) == shortened(" ".join(plain(text).split()), limit)


def test_a_long_text_costs_its_line_no_more_than_a_short_one() -> None:
    long = "<img src=x> \x1b[31m" * 1_000_000
    one_line(long)
    began = time.thread_time()
    for _ in range(100):
        one_line(long)
    assert time.thread_time() - began < 1


@given(st.text())
def test_one_line_is_one_line_of_the_given_length(text: str) -> None:
    line = one_line(text, 20)
    assert len(line) <= 20
    assert "\n" not in line and "\x1b" not in line and "\u202e" not in line
