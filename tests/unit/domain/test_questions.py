"""What a question is called where it is printed."""

from __future__ import annotations

from subagents_nb.domain.runs.questions import Question


def test_a_question_is_one_line_where_it_is_printed_and_steers_no_terminal() -> None:
    question = Question(
        run_id="r-1", question_id="q1", text="Which\n\x1b[31mregion?", choices=("north", "south"), asked_at="2026-01-01"
    )
    shown = repr([question])
    assert shown.startswith("[<Question q1: Which") and shown.endswith("region? (north, south)>]")
    assert "\x1b" not in shown and "\n" not in shown
