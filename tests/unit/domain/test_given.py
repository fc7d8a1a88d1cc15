"""One grammar for what people write, wherever they write it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from magic_parsers import PARSERS

from subagents_nb.catalog import load_settings
from subagents_nb.catalog.parse import parse_agent
from subagents_nb.domain.plans.flow import Parallel, Step
from subagents_nb.domain.plans.plan import LaunchRequest
from subagents_nb.domain.values.durations import MAX_TIMEOUT_S, looks_like_duration, parse_duration
from subagents_nb.domain.values.given import parse_amount, parse_flag, parse_whole
from subagents_nb.domain.values.reasons import Reasons
from subagents_nb.notebook.magics.line_parser import split_text
from subagents_nb.planning.steps.step_plan import parse_time

DURATIONS = ["30min", "30m", "90 s", "1.5h", "500ms", "2d", "45", "45sec", "0s", "400h", "soon", "٣0s", "", "1w", "-5s"]


@pytest.mark.parametrize("text", DURATIONS)
def test_a_length_of_time_means_the_same_on_a_line_in_a_file_and_in_settings(text: str, tmp_path: Path) -> None:
    reasons = Reasons()
    in_python = parse_time("timeout", text, reasons)
    head = f"---\nname: a\ndescription: d\ntimeout: {json.dumps(text)}\n---\n"
    in_file = parse_agent(head, where="a.md", source="user")
    assert getattr(in_file, "timeout_s", None) == in_python
    try:
        variable = load_settings(tmp_path, home=tmp_path, environ={"SUBAGENTS_NB_TIMEOUT": text or "-"}).timeout_s
    except Exception as error:  # noqa: BLE001
        assert "SUBAGENTS_NB_TIMEOUT" in str(error)
        variable = None
    assert variable == in_python
    if in_python is not None and " " not in text:
        assert looks_like_duration(text)
        assert PARSERS["subagent"]().read(f"--wait {text} scout").wait == text


def test_no_length_of_time_is_longer_than_seven_days() -> None:
    assert parse_duration("168h") == parse_duration("7d") == MAX_TIMEOUT_S
    for text in ("169h", "8d", "400h"):
        with pytest.raises(ValueError, match="at most 7 days"):
            parse_duration(text)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("200k", (200_000, "")), ("5k tokens", (5000, "tokens")), ("1 token", (1, "tokens")), ("$5", (5, "usd")),
        ("5$", (5, "usd")), ("5 USD", (5, "usd")), ("$ .50", (0.5, "usd")), ("1,000", (1000, "")), ("2e3", (2000, "")),
    ],
)  # fmt: skip
def test_an_amount_has_its_unit_before_or_behind_it(text: str, meant: tuple[float, str]) -> None:
    assert parse_amount(text) == meant


@pytest.mark.parametrize("text", ["", "$", "k", "²", "5€", "$5$", "$5 tokens", "5 apples", "1.2.3", "nan", "inf", "٣"])
def test_what_is_no_amount_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is no amount"):
        parse_amount(text)


def test_whole_numbers_and_flags_are_read_alike() -> None:
    assert [parse_whole(text) for text in ("20", " 1_000 ", "1,000")] == [20, 1000, 1000]
    for text in ("²", "٣", "-1", "1.5", "", "x"):
        with pytest.raises(ValueError, match="no whole number"):
            parse_whole(text)
    assert [parse_flag(word) for word in (True, "yes", "Off")] == [True, True, False]
    with pytest.raises(ValueError, match="must be true or false, not 1"):
        parse_flag(1)


@pytest.mark.parametrize(
    ("kind", "given"),
    [
        (LaunchRequest, {"task": "x", "max_requests": True}), (LaunchRequest, {"task": "x", "temperature": True}),
        (LaunchRequest, {"task": "x", "timeout": True}), (LaunchRequest, {"task": "x", "max_children": True}),
        (Step, {"max_requests": True}), (Step, {"count": True}), (Step, {"tool_timeout": False}),
        (Parallel, {"steps": (), "concurrency": True}),
    ],
)  # fmt: skip
def test_true_is_no_number(kind: Any, given: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="must be a number"):
        kind(**given)


@pytest.mark.parametrize(
    ("line", "head", "text"),
    [
        ('--gate "cargo test -- --nocapture" -- x', '--gate "cargo test -- --nocapture"', "x"),
        ("scout -- it's -- fine", "scout", "it's -- fine"),
        ("--gate 'a -- b'", "--gate 'a -- b'", None),
        (r"--name a\" -- b", r"--name a\"", "b"),
    ],
)
def test_the_text_begins_behind_the_first_dashes_outside_of_quotes(line: str, head: str, text: str | None) -> None:
    assert split_text(line) == (head, text)
