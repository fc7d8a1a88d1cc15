"""Globs of rules find what they say, and are as quick on what fits nowhere: files of strangers hold both sides."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from subagents_nb.domain.policy.policy import Ceiling
from subagents_nb.domain.policy.policy_rules import BadRule, hiding, parse_rule

PARTS = st.lists(st.sampled_from(("a", "b", "*", "?", "a*", "*b*a", "**", "a*b*", "x**")), min_size=1, max_size=5)
WORDS = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}


def tried_everywhere(pattern: str) -> str:
    """Return the same glob, as an expression that goes back on everything."""
    if pattern in ("**", "**/*"):
        return ".*"
    if pattern.endswith("/**"):
        return f"{tried_everywhere(pattern[:-3])}(?:/.*)?"
    return "".join(WORDS.get(piece, re.escape(piece)) for piece in re.split(r"(\*\*/|\*\*|\*|\?)", pattern))


@given(PARTS.filter(lambda parts: parts.count("x**") < 3), st.text("abx/", min_size=1, max_size=9))
def test_taking_the_first_place_that_fits_finds_the_same(parts: list[str], path: str) -> None:
    pattern = "/".join(parts)
    assert parse_rule(f"read(./{pattern})").allows_path(path, below=False) == bool(
        re.fullmatch(tried_everywhere(pattern), path, re.DOTALL)
    )


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("*a" * 12 + "*b", "a" * 250),
        ("**/a/" * 8 + "b", "a/" * 500 + "c"),
        ("**/a*a*/" * 6 + "c", "aaa/" * 500 + "d"),
        ("x**a**b", "x" + "a" * 4_000),
    ],
)
def test_a_path_that_fits_nowhere_costs_no_time(pattern: str, path: str) -> None:
    rule = parse_rule(f"read({pattern})")
    assert not rule.allows_path(path, below=False) and not rule.catches_path(path)
    assert not re.match(hiding([f"read({pattern})"], "/w", "/h") + r"\Z", f"/w/{path}")


@pytest.mark.timeout(20)
def test_a_models_name_that_fits_nowhere_costs_no_time_either() -> None:
    ceiling = Ceiling(origin="a file", models=("*a" * 12 + "*b", "openai:*-5*mini"))
    assert ceiling.forbids_model("openai:" + "a" * 200)
    assert not ceiling.forbids_model("OpenAI:gpt-5-5-mini")


def test_stars_of_folders_within_names_are_few() -> None:
    parse_rule("read(**secret**)")
    with pytest.raises(BadRule, match="beside other signs of a name more than 2 times"):
        parse_rule("read(a**b**c**)")
