"""Secrets do not leave in a text."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from subagents_nb.domain.texts.redaction import RedactedStream, Redactor

SHAPES = [
    "sk-proj-" + "a1B2" * 6,
    "ghp_" + "a" * 36,
    "AKIA" + "ABCDEFGHIJKLMNOP",
    "hf_" + "x" * 34,
    "eyJhbGciOiJIUzI1NiJ9" + ".eyJzdWIiOiIxMjM0NTY3" + ".SflKxwRJSMeKKF2QT4",
    "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----",
]


def test_values_of_secret_looking_variables_go_and_others_stay() -> None:
    redact = Redactor({"SOME_API_KEY": "value-of-it", "LANG": "en_GB.UTF-8"})
    assert redact("it is value-of-it in en_GB.UTF-8") == "it is [redacted] in en_GB.UTF-8"


@pytest.mark.parametrize("secret", SHAPES)
def test_what_looks_like_a_key_goes_where_the_text_leaves_the_machine(secret: str) -> None:
    assert Redactor({}, shapes=True)(f"use {secret} now") == "use [redacted] now"
    assert secret in Redactor({})(f"use {secret} now")


def test_a_password_in_an_address_goes_and_the_address_stays() -> None:
    redact = Redactor({}, shapes=True)
    assert redact("see https://me:hunter2@example.org/x") == "see https://[redacted]@example.org/x"
    assert redact("Authorization: Bearer abcdefghijklmnop1234") == "Authorization: Bearer [redacted]"
    assert redact("see https://example.org/a:b@c") == "see https://example.org/a:b@c"


def test_data_is_redacted_all_through() -> None:
    redact = Redactor({"A_TOKEN": "12345678"})
    assert redact.data({"12345678": ["a 12345678", 3, None, {"x": True}]}) == {
        "[redacted]": ["a [redacted]", 3, None, {"x": True}]
    }


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("GIT_AUTHOR_NAME", "Ada Lovelace"),
        ("KEYBOARD_LAYOUT", "gb-extended-1"),
        ("AUTH_BACKEND", "production"),
        ("SSH_AUTH_SOCK", "/tmp/agent.123"),
        ("TOKENIZERS_PARALLELISM", "disabled0"),
        ("PASSWORD_FILE", "/run/passwords"),
        ("PORT_KEY", "1234567"),
    ],
)
def test_what_only_sounds_like_a_secret_stays(name: str, value: str) -> None:
    assert Redactor({name: value})(f"it is {value}") == f"it is {value}"


@pytest.mark.parametrize(
    ("name", "value"),
    [("SESSION_COOKIE", "abc-123-def"), ("DB_PASSWORD", "correct horse"), ("SENTRY_DSN", "https://1@x/2"),
     ("AUTHORIZATION", "Basic abcdef12")],
)  # fmt: skip
def test_what_tools_may_not_see_goes(name: str, value: str) -> None:
    assert Redactor({name: value})(f"it is {value}") == "it is [redacted]"


def test_a_value_goes_in_json_and_on_one_line_too() -> None:
    redact = Redactor({"PRIVATE_KEY": 'line "one"\nline two'})
    assert redact('{"key": "line \\"one\\"\\nline two"}') == '{"key": "[redacted]"}'
    assert redact('key: line "one" line two') == "key: [redacted]"


def test_a_variable_that_is_named_goes_whatever_its_name_and_form() -> None:
    assert Redactor({"LAB": "production"}, ["LAB"])("in production") == "in [redacted]"


ENVIRON = {"A_TOKEN": "abcd1234", "B_TOKEN": "abcd1234efgh", "C_TOKEN": "4xyz5678"}


@given(
    text=st.lists(
        st.sampled_from([*ENVIRON.values(), "abcd", "1234", "ab", "4", "4xyz", " ", "x", "efg"]), max_size=8
    ).map("".join),
    cuts=st.lists(st.integers(0, 60), max_size=8),
)
def test_no_value_passes_a_stream_however_it_is_cut(text: str, cuts: list[int]) -> None:
    redact = Redactor(ENVIRON)
    stream, places = RedactedStream(redact), sorted({min(cut, len(text)) for cut in [0, *cuts, len(text)]})
    shown = [stream.push(text[start:end]) for start, end in itertools.pairwise(places)]
    whole = "".join(shown) + stream.end()
    assert not any(value in whole for value in ENVIRON.values())
    assert len(whole.replace("[redacted]", "")) <= len(text)
    if not any(value in text for value in ENVIRON.values()):
        assert whole == text


def test_usual_text_is_not_kept_back() -> None:
    stream = RedactedStream(Redactor(ENVIRON))
    pieces = ["the", " text", " of", " an", " answer", ".", " A", "\n"]
    assert [stream.push(piece) for piece in pieces] == pieces
    assert not stream.waits
    assert (stream.push(" is abcd"), stream.push("12"), stream.push("x"), stream.end()) == (" is ", "", "abcd12x", "")
    assert (stream.push("abcd12"), stream.push("34"), stream.push("efgh!")) == ("", "", "[redacted]!")
    assert (stream.push("abcd1234"), stream.end()) == ("", "[redacted]")
