"""Two texts beside one another: which lines stand together, which words are marked, and how long it may take."""

from __future__ import annotations

import random
import time
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import make_plan, make_recovery, make_result

from subagents_nb.cli import main
from subagents_nb.experiments.comparison.run_diffs import Part
from subagents_nb.experiments.comparison.side_by_side import Row, Side, side_by_side
from subagents_nb.notebook.comparing.compare_view import diff_html
from subagents_nb.store import StoreHome, create_run


def written(side: Side) -> str:
    """Return a side as text, with what is marked in brackets."""
    return "-" if side is None else "".join(f"[{bit.text}]" if bit.marked else bit.text for bit in side)


def pairs(before: str, after: str) -> list[tuple[str, str]]:
    return [(written(row.left), written(row.right)) for row in side_by_side(before, after)]


@pytest.mark.parametrize(
    ("before", "after", "shown"),
    [
        ("a\nb", "a\nb", []),
        ("keep the old name", "keep the new name", [("keep the [old] name", "keep the [new] name")]),
        ("one\nsame", "same", [("[one]", "-"), ("same", "same")]),
        ("same", "same\nmore", [("same", "same"), ("-", "[more]")]),
        ("alpha beta\ngamma delta", "unlike\ngamma epsilon",
         [("[alpha beta]", "-"), ("-", "[unlike]"), ("gamma [delta]", "gamma [epsilon]")]),
        ("", "new", [("-", "[new]")]),
    ],
)  # fmt: skip
def test_lines_stand_beside_what_they_became_and_other_words_are_marked(
    before: str, after: str, shown: list[tuple[str, str]]
) -> None:
    assert pairs(before, after) == shown


def test_what_is_the_same_is_left_out_and_counted() -> None:
    lines = [f"line {n}" for n in range(40)]
    after = [*lines[:20], "changed", *lines[21:]]
    rows: list[Row] = list(side_by_side("\n".join(lines), "\n".join(after)))
    assert [row.gap for row in rows if row.gap] == [18]
    assert len(rows) == 6


@given(st.text("ab \n", max_size=60), st.text("ab \n", max_size=60))
def test_each_side_is_its_text(before: str, after: str) -> None:
    rows = list(side_by_side(before, after))
    gone = [written_plain(row.left) for row in rows if row.left is not None]
    assert set(gone) <= set(before.splitlines())
    assert {written_plain(row.right) for row in rows if row.right is not None} <= set(after.splitlines())
    assert bool(rows) == (before.splitlines() != after.splitlines())


def written_plain(side: Side) -> str:
    return "".join(bit.text for bit in side or ())


def test_texts_of_models_are_compared_in_time() -> None:
    chance = random.Random(1)
    words = ["the", "a", "of", "run", "table", "column", "is", "wrong"]
    texts = ["\n".join(" ".join(chance.choices(words, k=300)) for _ in range(60)) for _ in range(2)]
    blank = ["\n" * 1999, "x\n" * 1999]
    began = time.process_time()
    for before, after in (texts, blank, ["x " * 50_000, "y " * 50_000]):
        assert list(side_by_side(before, after))
    assert time.process_time() - began < 5


def test_a_cell_and_a_terminal_put_the_texts_of_two_runs_beside_one_another(
    store_home: StoreHome, capsys: pytest.CaptureFixture[str]
) -> None:
    for number in (1, 2):
        writer = create_run(store_home, make_plan(number), make_recovery(number))
        step = make_result(number).steps[0].model_copy(update={"value": f"{number} rows"})
        writer.result(make_result(number, steps=(step,)))
    assert main(["compare", "scout-1", "scout-2", "--texts"]) == 0
    said = capsys.readouterr().out
    assert "== output" in said and '-"1 rows"' in said and '+"2 rows"' in said
    assert main(["compare", "scout-1", "--texts"]) != 0
    assert "name two, and not 1" in capsys.readouterr().err


def test_on_a_page_marks_are_no_matter_of_colour_alone_and_what_is_hidden_is_said() -> None:
    part = Part("output", "keep the old name", "keep the new name")
    found: Any = SimpleNamespace(names=("first", "second"), parts=[part, Part("task", "a", "a\u200b")])
    html = diff_html(found)
    assert "text-decoration:line-through" in html and ">old</strong>" in html and ">new</strong>" in html
    assert "they differ in marks that are not shown" in html
