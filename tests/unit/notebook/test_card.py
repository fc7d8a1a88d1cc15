"""The static card: order, shapes of values, cuts, caps."""

from __future__ import annotations

import json
from typing import Any

import pytest
from card_page import Page, card_html, card_text
from card_samples import (
    AT,
    FINDINGS,
    RUN_ID,
    answered,
    asking,
    ended,
    gave,
    lost,
    planned,
    queued,
    refused,
    running,
    unreadable,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from subagents_nb.domain.agents.attention import Attention
from subagents_nb.domain.runs.control import Retuned
from subagents_nb.domain.runs.postmortem import Verdict
from subagents_nb.domain.runs.records import ToolRow
from subagents_nb.domain.runs.snapshot import Snapshot
from subagents_nb.domain.runs.states import RunState
from subagents_nb.notebook.cards.card import MAX_CARD_BYTES, CardContext
from subagents_nb.notebook.page.lines import fold

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(st.text(), inner, max_size=6),
    max_leaves=40,
)


def in_order(text: str, *parts: str) -> None:
    at = 0
    for part in parts:
        found = text.find(part, at)
        assert found >= 0, f"{part!r} does not follow in {text!r}"
        at = found + len(part)


def test_a_complete_card_reads_in_order_with_all_styles_stripped() -> None:
    text = Page(
        card_html(planned(gave(FINDINGS, notes=("model chosen: the first key",))), CardContext("findings"))
    ).text
    in_order(
        text, "✓", "complete", "find-outliers", "scout · anthropic:claude-sonnet", "1:04", "18.9k / 1.6k tokens",
        "$0.081", "columns", "column", "problem", "rows", "why", "unit_price", "negative values", "14", "region",
        "quantity", "model chosen", "findings.output", "Findings, 3 items",
        'again: findings = subagents_nb.attach("r-06f3k2m9")',
    )  # fmt: skip


def test_a_failed_card_leads_with_the_reason_then_the_last_lines_then_one_command() -> None:
    snapshot = ended(
        "failed", reason="timeout", actor="deadline", error="bash was open for 12 min.", tail="$ pytest\n..F"
    )
    page = Page(card_html(snapshot))
    in_order(
        page.text, "✕", "failed", "find-outliers", "bash was open", "$ pytest ..F",
        "go on from here: %subagent_resume r-06f3k2m9 --timeout 60m -- …", "again: run = ",
    )  # fmt: skip
    assert page.tags.index("pre") > page.tags.index("p")


def test_a_failed_card_names_the_files_that_were_changed_and_the_tool_that_was_at_work() -> None:
    tool = ToolRow(call_id="1", name="bash", args="pytest -q tests", seconds=720.4)
    files = ("pkg/io.py", "pkg/cli.py")
    snapshot = ended("failed", reason="timeout", actor="deadline", changed_files=files, open_tools=(tool,))
    in_order(
        Page(card_html(snapshot)).text, "The deadline of 30 min passed",
        "At work at the end: bash (pytest -q tests) for 12 min.",
        "2 files were changed and kept: pkg/io.py , pkg/cli.py . Nothing restarts by itself.",
    )  # fmt: skip


def test_of_many_changed_files_eight_are_named() -> None:
    files = tuple(f"file-{number}.py" for number in range(41))
    text = Page(card_html(ended("failed", reason="provider", changed_files=files))).text
    in_order(text, "41 files were changed and kept:", "file-7.py and 33 more.")
    assert "file-8.py" not in text


def test_a_lost_card_names_the_files_that_its_events_tell() -> None:
    text = Page(card_html(lost(), CardContext(changed_files=("pkg/io.py",)))).text
    assert "1 file was changed and kept: pkg/io.py ." in text


def test_a_paused_card_says_that_it_can_go_on_and_how() -> None:
    snapshot = ended("paused", reason="interrupted", actor="person", error="Interrupted on request from a cell.")
    in_order(
        Page(card_html(snapshot)).text, "‖", "paused", "Interrupted on request from a cell.",
        "go on from here: %subagent_resume r-06f3k2m9 -- …",
    )  # fmt: skip


def test_what_the_run_said_of_its_end_is_not_repeated_in_our_words() -> None:
    error = "The run passed its deadline of 30 min while the tool bash was at work. Give it more with --timeout."
    text = Page(card_html(ended("failed", reason="timeout", actor="deadline", error=error))).text
    assert text.count("deadline") == 1
    assert "its session is kept" in Page(card_html(ended("paused", reason="interrupted", actor="person"))).text


@pytest.mark.parametrize(
    ("state", "reason", "actor", "ours", "error"),
    [
        ("stopped", "stopped", "person", "A person ended it", "Stopped on request from a cell: enough."),
        ("stopped", "signal", "outside", "Something outside", "A signal from outside (SIGTERM) ended the run."),
        ("failed", "budget", "budget", "Its budget is", "The usage budget is used up: 200k tokens. Give it more."),
    ],
)
def test_nor_is_a_stop_a_signal_or_a_budget(state: str, reason: str, actor: str, ours: str, error: str) -> None:
    assert ours in Page(card_html(ended(state, reason=reason, actor=actor))).text
    text = Page(card_html(ended(state, reason=reason, actor=actor, error=error))).text
    assert error in text
    assert ours not in text


def test_a_run_that_was_stopped_while_it_waited_says_that_it_never_began() -> None:
    snapshot = queued(verdict=Verdict(
        run_id=RUN_ID, state=RunState.STOPPED, reason="stopped", message="Stopped before it began.", judged_at=AT,
        judged_by="supervisor",
    ))  # fmt: skip
    in_order(Page(card_html(snapshot)).text, "It waited for a free place and never began.", "Stopped before it began.")


def test_code_in_an_answer_stands_apart_from_the_prose() -> None:
    card = card_html(answered("Do this:\n\n```python\nprint('<b> margin:0 0 8px')\n```\n\nThen stop."))
    page = Page(card)
    assert "print('<b> margin:0 0 8px')" in page.text
    first, code, last = (
        card.index(tag)
        for tag in ('<p style="margin:0 0 8px">Do', '<pre style="margin:0 0 8px;', '<p style="margin:0">Then')
    )
    assert first < code < last
    assert "currentColor 6%" in card[code:last]
    at_the_end = card_html(answered('Do this:\n\n```\nx <pre style="margin:0 0 8px\n```'))
    assert '<pre style="margin:0;padding:8px' in at_the_end
    assert 'x <pre style="margin:0 0 8px' in Page(at_the_end).text


def test_a_lost_card_says_once_that_nothing_restarts() -> None:
    message = "The run's process went away without a result. What it had written is kept; nothing restarts by itself."
    text = Page(card_html(lost(message=message), CardContext(changed_files=("pkg/io.py",)))).text
    in_order(text, "nothing restarts by itself.", "1 file was changed and kept: pkg/io.py .")
    assert text.count("restarts by itself") == 1


def test_the_plain_card_of_a_partial_run_says_what_is_missing() -> None:
    cut_off = ended(
        "partial", reason="budget", error="The usage budget is used up.\nGive it more.", step={"text": "Two."}
    )
    assert card_text(cut_off).splitlines() == [
        "find-outliers (scout) partial: Two.", "The usage budget is used up. Give it more.", "", "Two.",
    ]  # fmt: skip
    silent = ended("partial", reason="no-answer", step={"text": "Two."})
    assert "\nIt gave up: the model gave no answer.\n" in card_text(silent)


def test_the_run_that_another_goes_on_from_is_named_if_its_name_is_known() -> None:
    snapshot = answered("Done.", resumed_from="r-06f3k2m1")
    assert "goes on from rename-api (r-06f3k2m1)" in Page(card_html(snapshot, CardContext(source="rename-api"))).text
    assert "goes on from r-06f3k2m1 " in Page(card_html(snapshot, CardContext(source="r-06f3k2m1"))).text


def test_a_card_says_quietly_where_the_run_goes_on_from_and_which_limits_were_changed() -> None:
    changes = [
        Retuned(at="2026-05-03T14:02:11Z", by="a cell", changes={"timeout_s": 3600.0, "max_requests": 80.0}),
        Retuned(at="odd", by="", changes={"tool_timeout_s": 89.0}),
    ]
    snapshot = answered("Done.", resumed_from="r-06f3k2m1", retunes=tuple(changes))
    assert (
        "goes on from r-06f3k2m1 · limits changed: timeout 60 min, requests 80 (a cell, 14:02 UTC); tool timeout 89 s"
    ) in Page(card_html(snapshot)).text
    many = answered("Done.", retunes=(changes[0],) * 9)
    assert "limits changed: 6 earlier changes; timeout" in Page(card_html(many)).text


def test_a_card_of_a_run_that_asks_says_what_and_how_to_answer() -> None:
    text = Page(card_html(asking())).text
    in_order(
        text, "‖", "asks you", "find-outliers", "0:42 · waited 0:40", "“Keep the old name as an alias?” (yes / no)",
        "answer it: %subagent_answer r-06f3k2m9 -- …",
    )  # fmt: skip
    several = asking("Keep it?", "Delete the file?")
    assert "%subagent_answer r-06f3k2m9 --question q1 -- …" in Page(card_html(several)).text


def test_a_card_points_at_a_live_run_that_may_need_a_look() -> None:
    seen = Attention(kind="idle", text="Nothing was heard for 60 s.", since_s=10.0)
    assert "Nothing was heard for 3 min." in Page(card_html(running(attention=seen, elapsed_s=190.0))).text


def test_a_card_of_a_run_that_waits_for_its_turn_says_so() -> None:
    assert "It waits for a free place." in Page(card_html(queued())).text


def test_a_run_that_never_got_its_turn_has_one_command() -> None:
    snapshot = queued(verdict=Verdict(
        run_id=RUN_ID, state=RunState.FAILED, reason="startup", message="Its supervisor went away.", judged_at=AT,
        judged_by="sweep",
    ))  # fmt: skip
    text = Page(card_html(snapshot)).text
    in_order(
        text, "failed", "It waited for a free place and never began.", "Its supervisor went away.",
        "start over: %subagent_again r-06f3k2m9",
    )  # fmt: skip
    assert "At work" not in text


def test_a_lost_card_says_that_something_outside_ended_it() -> None:
    in_order(Page(card_html(lost())).text, "lost", "find-outliers", "Something outside", "SIGKILL", "reading chunk 8")


def test_an_unreadable_run_has_a_card_too() -> None:
    in_order(Page(card_html(unreadable())).text, "unreadable", "r-06f3k2m9", "can't be read", "not JSON at line 3")


def test_a_run_at_work_has_a_card_with_its_last_lines() -> None:
    in_order(Page(card_html(running())).text, "running", "find-outliers", "Three columns stand out.", "see it live:")


def test_refusals_are_said_on_a_complete_card_before_the_answer() -> None:
    snapshot = refused(("bash", "not among the tools"), ("bash", "not among the tools"), ("write", "read-only"))
    text = Page(card_html(snapshot)).text
    in_order(text, "Warning: 3 tool calls were refused: bash (not among the tools) ×2, write (read-only)", "Done.")


def test_a_text_is_shown_as_markdown() -> None:
    page = Page(card_html(answered("# Found\n\n- **a**\n- [b](https://e.example)\n")))
    assert {"h3", "ul", "li", "strong", "a"} <= set(page.tags)
    assert ("a", "rel", "noopener noreferrer") in page.attributes


def test_a_complete_run_without_any_answer_says_so() -> None:
    assert "The run gave no text." in Page(card_html(answered(" \n"))).text


@pytest.mark.parametrize(
    "snapshot", [planned(gave(FINDINGS)), answered("Three columns.\n" * 40), lost(), refused(("a", "b"))]
)
def test_a_typical_card_is_under_five_kilobytes(snapshot: Snapshot) -> None:
    assert len(card_html(snapshot, CardContext("findings")).encode()) < 5_000


def test_numbers_are_on_the_right_and_headings_have_a_scope() -> None:
    card = card_html(gave([{"name": "a", "n": 1, "flag": True}, {"name": "b", "n": None, "flag": False}]))
    heads = [value for tag, name, value in Page(card).attributes if tag == "th" and name == "style"]
    assert [("right" in style) for style in heads] == [False, True, False]
    assert card.count('scope="col"') == 3


def test_a_long_table_says_how_many_rows_and_columns_are_left_out() -> None:
    rows = [{f"c{c}": r * c for c in range(11)} for r in range(1_000)]
    page = Page(card_html(gave(rows), CardContext("found")))
    assert "… 980 more rows and 3 more columns, all of it: found.output" in page.text
    assert page.tags.count("tr") == 21


def test_an_object_with_one_list_of_objects_shows_it_under_its_name_and_the_rest_above() -> None:
    page = Page(card_html(gave({"verdict": "good", "rows": [{"a": 1}, {"a": 2}]})))
    in_order(page.text, "verdict good", "rows", "a", "1", "2")
    assert page.tags.count("table") == 2
    assert page.tags.count("caption") == 1


def test_an_object_is_two_columns_and_what_is_nested_is_a_tree() -> None:
    page = Page(card_html(gave({"score": 0.5, "where": {"file": "a.py", "deep": {"list": [[1], [2]]}}, "none": None})))
    in_order(page.text, "score 0.5", "where", "file : a.py", "deep", "none null")
    assert page.tags.count("table") == 1
    assert "ul" in page.tags
    assert ("th", "scope", "row") in page.attributes


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (True, "true"),
        (None, "null"),
        (7, "7"),
        (0.1, "0.1"),
        ("läng", "läng"),
        ([], "[]"),
        ({}, "{}"),
        ([1, 2], "1, 2"),
    ],
)
def test_scalars_and_small_values_are_said_in_a_line(value: Any, shown: str) -> None:
    in_order(Page(card_html(gave(value))).text, "$0.081", shown, "the answer")


@pytest.mark.parametrize("make", [lambda v: [v], lambda v: {"k": v}, lambda v: [{"k": v}]])
def test_a_value_a_thousand_levels_deep_is_cut_not_followed(make: Any) -> None:
    value: Any = "bottom"
    for _ in range(1_000):
        value = make(value)
    page = Page(card_html(gave(value)))
    assert "…" in page.text
    assert "…" in card_text(gave(value))


def test_a_long_text_is_cut_with_how_much_and_where_the_rest_is() -> None:
    snapshot = answered("word " * 4_000)
    assert (
        "… cut: 17,000 more characters, all of it: found.output" in Page(card_html(snapshot, CardContext("found"))).text
    )
    text = card_text(snapshot, CardContext("found"))
    assert "… cut: 16,000 more characters in found.output …\n" in text and text.endswith("word word")


def test_of_a_long_answer_the_middle_is_folded() -> None:
    rows = [f"row {n}" for n in range(2_000)]
    page = Page(card_html(answered("\n\n".join(rows)))).text
    assert "row 0" in page and "row 1999" in page and "row 1000" not in page
    assert page.index("row 0") < page.index("more characters, all of it: run.output") < page.index("row 1999")
    head, left_out, tail = fold("\n".join(["Intro", "```python", *rows, "```", "The end."]), 3_000)
    assert head.splitlines()[-1] in rows and left_out > 0  # both end with a line
    assert tail.splitlines()[0] == "```" and tail.splitlines()[1] in rows and tail.endswith("```\nThe end.")
    assert fold("short", 5) == ("short", 0, "") and fold("long text", 0)[0] == ""


def test_a_card_says_when_the_run_began() -> None:
    snapshot = answered("x")
    assert snapshot.started_at[:10] + " " + snapshot.started_at[11:16] + " UTC" in Page(card_html(snapshot)).text
    assert "UTC" not in card_text(snapshot)


@pytest.mark.parametrize(
    "text", ["<" * 90_000, "- a\n" * 9_000, "|" * 9_000, "a\n\n" * 9_000, "é漢" * 9_000, "`a` " * 9_000]
)
def test_no_text_makes_a_card_larger_than_the_cap(text: str) -> None:
    for snapshot in (
        answered(text),
        ended("failed", error=text, tail=text, notes=(text,) * 50, changed_files=(text,) * 50),
        asking(*[text[:4000]] * 12, choices=(text[:200],) * 12),
        gave([{text: text}] * 99),
    ):
        card = card_html(snapshot)
        Page(card)
        assert len(card.encode()) <= MAX_CARD_BYTES
        assert len(card_text(snapshot)) < 5_000


def test_the_last_lines_are_twelve_at_most_and_not_endless() -> None:
    tail = "\n".join(f"line {i} " + "x" * 500 for i in range(100))
    text = Page(card_html(ended("failed", reason="provider", tail=tail))).text
    assert "line 88 " in text
    assert "line 87 " not in text
    assert "x" * 161 not in text


def test_the_plain_twin_has_the_answer_or_its_json() -> None:
    assert card_text(answered("Three.\nMore.")) == "find-outliers (scout) complete: Three.\n\nThree.\nMore."
    first, _, rest = card_text(gave(FINDINGS)).partition("\n\n")
    assert first == "find-outliers (scout) complete: object, 3 items"
    assert json.loads(rest) == FINDINGS
    assert card_text(lost()).count("\n") == 0


def test_numbers_that_json_lacks_and_integers_that_python_will_not_print_are_said() -> None:
    snapshot = gave({"a": float("nan"), "b": float("inf"), "c": 10**6_000, "d": {1, 2}})
    in_order(Page(card_html(snapshot)).text, "a nan", "b inf", "an integer of 19,932 bits", "(set)")
    text = card_text(snapshot).partition("\n\n")[2]
    assert json.loads(text, parse_constant=pytest.fail)["a"] == "nan"


def test_halves_of_surrogate_pairs_do_not_reach_the_page() -> None:
    snapshot = gave({"\ud800": "\udfff", "rows": [{"\udc00": "\ud83d"}]})
    Page(card_html(snapshot))
    card_text(snapshot).encode("utf-8")


@pytest.mark.parametrize("snapshot", [gave(FINDINGS), answered("x"), lost(), running(), unreadable()])
def test_the_same_reading_gives_the_same_card(snapshot: Snapshot) -> None:
    again = Snapshot.model_validate(snapshot.model_dump())
    assert card_html(snapshot, CardContext("a")) == card_html(again, CardContext("a"))
    assert card_text(snapshot) == card_text(again)


@settings(max_examples=150, deadline=None)
@given(json_values)
def test_any_json_value_has_a_card_under_the_cap(value: Any) -> None:
    card = card_html(gave(value))
    Page(card)
    assert len(card.encode()) <= MAX_CARD_BYTES
    assert len(card_text(gave(value))) < 5_000


@settings(max_examples=150, deadline=None)
@given(st.text(max_size=2_000), st.text(max_size=300))
def test_any_text_has_a_card_under_the_cap(text: str, name: str) -> None:
    for snapshot in (answered(text, name=name), ended("failed", name=name, error=text, tail=text, notes=(text,))):
        card = card_html(snapshot)
        Page(card)
        assert len(card.encode()) <= MAX_CARD_BYTES


def test_a_run_that_takes_much_of_the_disk_says_how_much() -> None:
    assert "takes 4.2 MB of the disk" in Page(card_html(ended(), CardContext(disk=4_200_000))).text
    assert "of the disk" not in Page(card_html(ended(), CardContext(disk=900_000))).text
