"""What people see of a tree: its size, a line for each run, and nothing that a name or an error could break."""

from __future__ import annotations

from support import make_status, run_id

from subagents_nb.domain.plans.budgets import Amount, UsageBudget
from subagents_nb.domain.policy.permissions import call_as_shown, question_of
from subagents_nb.domain.runs.questions import OpenQuestion
from subagents_nb.domain.runs.snapshot import Snapshot
from subagents_nb.domain.runs.states import RunState
from subagents_nb.domain.runs.tree_rows import TreeRow
from subagents_nb.domain.values.usage import Usage
from subagents_nb.notebook.cards.card import card_page
from subagents_nb.notebook.cards.tree_card import tree_line, tree_rows
from subagents_nb.notebook.cards.view import now, text_line, widget_state

ASKED = OpenQuestion(question_id="q1", text="may it?", asked_at="2026-03-01T12:00:00Z")


def row(path: str, state: RunState = RunState.RUNNING, **more: object) -> TreeRow:
    used = Usage(input_tokens=100, requests=1, cost_usd=0.5)
    fields = {"path": path, "run_id": run_id(9), "agent": path.rpartition("/")[2], "state": state, "usage": used}
    return TreeRow.model_validate(fields | more)


def snapshot(*rows: TreeRow) -> Snapshot:
    used = Usage(input_tokens=200, requests=1, cost_usd=1.0)
    return Snapshot(run_id=run_id(1), status=make_status(usage=used, tree=rows))


def test_the_line_on_a_tree_says_how_large_it_is_and_what_all_of_it_used() -> None:
    seen = snapshot(row("mid", activity="delegate"), row("mid/leaf", RunState.COMPLETE))
    assert tree_line(seen) == "a tree of 3 runs on 3 levels · 1 at work · 400 / 0 tokens · $2.000 with all"
    assert tree_line(snapshot()) == ""
    assert widget_state(snapshot())["tree"] == []


def test_a_row_says_whom_it_waits_for_what_it_asks_or_why_it_failed() -> None:
    rows = tree_rows(
        snapshot(
            row("mid", activity="delegate"),
            row("mid/leaf", questions=(ASKED,)),
            row("mid/other", RunState.FAILED, error="It broke."),
        )
    )
    assert [one["now"] for one in rows] == ["waits for leaf", "“may it?”", "It broke."]
    assert [(one["level"], one["state"]) for one in rows] == [(1, "running"), (2, "asking"), (2, "failed")]
    assert rows[0]["share"] == 0.2


def test_a_run_that_asks_its_parent_does_not_ask_the_person() -> None:
    seen = snapshot(row("mid", questions=(ASKED.model_copy(update={"to": "parent"}),)))
    assert [(one["state"], one["now"]) for one in tree_rows(seen)] == [("running", "asks its parent: “may it?”")]
    assert "asks you" not in card_page(seen) and "asks its parent: “may it?”" in card_page(seen)


def test_what_a_tree_used_of_its_budget_is_what_all_of_it_used() -> None:
    budget = UsageBudget(tokens=Amount(hard=500))
    state = widget_state(
        Snapshot(
            run_id=run_id(1),
            status=make_status(usage=Usage(input_tokens=2), tree=(row("a"), row("b")), usage_budget=budget),
        )
    )
    assert (state["spend"], state["spent"]) == ("202 of 500 tokens", 202 / 500)


def test_a_row_that_waits_for_nobody_any_more_says_its_task() -> None:
    done = snapshot(row("mid", activity="delegate", label="count it"), row("mid/leaf", RunState.COMPLETE))
    assert tree_rows(done)[0]["now"] == "count it"


def test_a_call_that_waits_for_a_yes_is_one_short_line_wherever_a_line_is_all_there_is() -> None:
    call = call_as_shown("bash", {"command": "rm -r build &&\nmake", "seconds": 9}, "no rule allows `rm`", ("bash",))
    asks = OpenQuestion(question_id="q1", text=question_of(call), asked_at="2026-03-01T12:00:00Z", permission=call)
    seen = snapshot(row("mid", questions=(asks,)))
    assert tree_rows(seen)[0]["now"] == "“May it run this? rm -r build && make”"
    assert now(seen) == "mid: “May it run this? rm -r build && make”"
    assert "mid: “May it run this? rm -r build && make” · answer with" in text_line(seen)


def test_a_question_of_any_level_makes_its_root_ask_and_names_who_asks() -> None:
    seen = snapshot(row("mid"), row("mid/leaf", questions=(ASKED,)))
    assert seen.questions[0].question_id == "mid/leaf/q1"
    assert "asks you: mid/leaf: “may it?”" in text_line(seen)
    assert widget_state(seen)["questions"][0]["text"] == "mid/leaf: may it?"


def test_a_card_has_the_tree_escaped_and_bounded() -> None:
    bad = row("mid", RunState.FAILED, error="<script>alert(1)</script>" * 20)
    page = card_page(snapshot(bad, *(row(f"w-{number}") for number in range(200))))
    assert "<script>" not in page and len(page.encode()) <= 16_000
    assert "more runs" in page
