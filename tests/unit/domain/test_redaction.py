"""Secrets do not leave in a text."""

from __future__ import annotations

import pytest

from subagents_nb.domain.redaction import Redactor

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
