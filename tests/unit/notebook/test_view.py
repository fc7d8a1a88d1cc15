"""What the page is told, and the one plain line."""

from __future__ import annotations

from typing import Any

import pytest
from card_page import card_html, runs_table_text
from card_samples import RUN_ID, answered, asking, ended, gave, lost, planned, queued, refused, running, unreadable
from chain_samples import live

from subagents_nb.domain.agents.attention import Attention
from subagents_nb.domain.plans.budgets import UsageBudget
from subagents_nb.domain.runs.events import ASKS_MODEL, LOADS_MODEL
from subagents_nb.domain.runs.questions import OpenQuestion
from subagents_nb.domain.runs.records import StepStatus, ToolRow
from subagents_nb.domain.runs.snapshot import Snapshot
from subagents_nb.domain.runs.stages import Stage
from subagents_nb.domain.runs.states import RunState, StepState
from subagents_nb.notebook.cards.end_notes import ending
from subagents_nb.notebook.cards.view import live_text, now, text_line, widget_state

TRAITS = {
    "run_id", "name", "state", "agent", "model", "elapsed_s", "deadline_s", "tokens_in", "tokens_out", "cost",
    "tool_calls", "tool_limit", "spend", "spent", "refusals", "tools", "tail", "tail_end", "note", "error", "reason",
    "stopping", "questions", "attention", "waited_s", "graph", "tree", "reused", "silent",
}  # fmt: skip


@pytest.mark.parametrize("snapshot", [running(), ended(), lost(), unreadable(), Snapshot(run_id=RUN_ID)])
def test_the_page_gets_exactly_the_traits_it_knows(snapshot: Snapshot) -> None:
    assert set(widget_state(snapshot)) == TRAITS


def test_a_run_at_work_is_told_with_figures_tools_and_tail() -> None:
    state = widget_state(running())
    assert (state["state"], state["name"], state["agent"]) == ("running", "find-outliers", "scout")
    assert (state["tokens_in"], state["tokens_out"], state["cost"]) == (18_900, 1_640, "$0.081")
    assert (state["elapsed_s"], state["deadline_s"]) == (42.3, 1800.0)
    assert state["tools"][1] == {"name": "grep", "args": "-c ,, data/sales.csv", "state": "running", "seconds": None}
    assert (state["tail"], state["tail_end"]) == ("Three columns stand out.", 240)
    assert (state["error"], state["reason"], state["stopping"]) == ("", "", False)


def test_a_run_without_text_yet_says_whether_the_model_is_loading_or_silent() -> None:
    def silent(activity: str, tail: str = "") -> str:
        step = StepStatus(agent="scout", model="m:x", state=StepState.RUNNING, activity=activity, tail=tail)
        return str(widget_state(running(steps=(step,)))["silent"])

    assert silent(LOADS_MODEL) == "The local model is being loaded; nothing was sent to it yet."
    assert silent(ASKS_MODEL) == "The request was sent; m:x has sent nothing yet."
    assert (silent(ASKS_MODEL, "text"), silent("thinking")) == ("", "")


def test_the_latest_five_tools_and_4000_characters_are_told() -> None:
    rows = tuple(ToolRow(call_id=str(i), name=f"tool{i}") for i in range(9))
    step = StepStatus(
        agent="a", model="m", state=StepState.RUNNING, tools=rows, tail="x" * 3_999 + "end", tail_end=50_000
    )
    state = widget_state(running(steps=(step,)))
    assert [tool["name"] for tool in state["tools"]] == ["tool4", "tool5", "tool6", "tool7", "tool8"]
    assert len(state["tail"]) == 4_000
    assert state["tail"].endswith("end")
    assert state["tail_end"] == 50_000


def test_budgets_are_told_with_what_was_used_of_them() -> None:
    assert [widget_state(running())[name] for name in ("tool_limit", "spend", "spent")] == [None, "", None]
    step = StepStatus(agent="a", model="m", state=StepState.RUNNING, tool_limit=40)
    budget = UsageBudget.model_validate({"tokens": {"hard": 41_080}})
    snapshot = running(steps=(step,), usage_budget=budget)
    assert [widget_state(snapshot)[name] for name in ("tool_limit", "spend")] == [40, "20,540 of 41,080 tokens"]
    assert widget_state(snapshot)["spent"] == 0.5
    assert "used 20,540 of 41,080 tokens" in card_html(snapshot)


def test_a_queued_run_is_told_from_its_plan() -> None:
    state = widget_state(planned(Snapshot(run_id=RUN_ID)))
    assert (state["state"], state["agent"], state["model"]) == ("queued", "scout", "anthropic:claude-sonnet-4-5")
    assert state["deadline_s"] == 1800.0


def test_a_run_that_waits_for_its_turn_is_told_with_what_it_waits_for() -> None:
    state = widget_state(planned(queued()))
    assert (state["state"], state["agent"], state["reason"]) == ("queued", "scout", "It waits for a free place.")


def test_open_questions_are_told_with_their_choices_and_the_state_stays_what_it_is() -> None:
    state = widget_state(asking("Keep it?", "Which\nof them?" + "x" * 3_000))
    assert (state["state"], state["waited_s"], state["attention"]) == ("running", 40.0, "")
    assert state["questions"][0] == {"id": "q1", "text": "Keep it?", "choices": ["yes", "no"]}
    assert state["questions"][1]["text"].startswith("Which\nof them?x")
    assert len(state["questions"][1]["text"]) < 2_010
    assert len(widget_state(asking(*"abcdefgh"))["questions"]) == 4


def test_in_a_chain_a_question_says_which_step_asks() -> None:
    steps = tuple(
        StepStatus(index=index, agent="scout", model="m", state=StepState.RUNNING, label=label)
        for index, label in enumerate(("", "beta"))
    )
    stage = Stage(kind="parallel", label="2 agents", state=StepState.RUNNING, steps=(0, 1))
    asked = OpenQuestion(question_id="q1", step=1, text="Keep it?", asked_at="2026-01-01T00:00:00Z")
    snapshot = asking(questions=(asked, asked.model_copy(update={"step": 0})), steps=steps, stages=(stage,))
    assert [one["text"] for one in widget_state(snapshot)["questions"]] == [
        "steps[1] (beta): Keep it?",
        "steps[0] (scout): Keep it?",
    ]
    assert "asks you: steps[1] (beta): “Keep it?”" in text_line(snapshot)
    assert now(snapshot) == "steps[1] (beta): “Keep it?”"
    assert "steps[1] (beta): “Keep it?”" in card_html(snapshot)


def test_an_ended_run_asks_nothing_and_needs_no_look() -> None:
    seen = Attention(kind="idle", text="Nothing was heard for 60 s.", since_s=0.0)
    snapshot = asking(attention=seen).model_copy(update={"result": ended("stopped").result})
    state = widget_state(snapshot)
    assert (state["questions"], state["attention"], state["state"]) == ([], "", "stopped")


@pytest.mark.parametrize(
    ("kind", "text", "said"),
    [
        ("idle", "Nothing was heard for 60 s.", "Nothing was heard for 71 s."),
        ("long-tool", "The tool wait for me is at work for 4 min.", "The tool wait for me is at work for 71 s."),
        ("failing-edits", "The last 3 edits failed.", "The last 3 edits failed."),
        ("question", "A question waits for you.", ""),
    ],
)
def test_why_a_run_may_need_a_look_is_told_up_to_its_last_sign_of_life(kind: Any, text: str, said: str) -> None:
    seen = Attention(kind=kind, text=text, since_s=10.0)
    assert widget_state(running(attention=seen, elapsed_s=81.2))["attention"] == said


def test_a_run_that_can_not_be_read_is_lost_for_the_page_and_says_why() -> None:
    state = widget_state(unreadable())
    assert state["state"] == "lost"
    assert state["error"] == "status.json can't be read: not JSON at line 3"
    assert "can't be read" in state["reason"]


def test_a_run_of_which_nothing_is_there_yet_is_unknown() -> None:
    assert widget_state(Snapshot(run_id=RUN_ID))["state"] == "unknown"


def test_a_run_whose_process_is_frozen_says_so_wherever_it_is_shown() -> None:
    frozen = running().model_copy(update={"unheard_s": 75.0})
    assert now(frozen) == widget_state(frozen)["attention"] == "No word came from its process for 75 s."
    assert "No word came from its process for 75 s." in card_html(frozen)
    assert "running · no word from its process · attach again" in text_line(frozen)
    assert text_line(frozen) == text_line(frozen.model_copy(update={"unheard_s": 90.0}))
    told = runs_table_text([frozen])
    assert "No word came from its process for 75 s." in told
    for other in (running().model_copy(update={"unheard_s": 14.0}), ended().model_copy(update={"unheard_s": 75.0})):
        assert "No word" not in now(other) + text_line(other)


def test_stopping_is_told_only_while_the_run_lives() -> None:
    assert widget_state(running(stopping=True))["stopping"] is True
    stopped = running(stopping=True).model_copy(update={"result": ended("stopped").result})
    assert widget_state(stopped)["stopping"] is False


@pytest.mark.parametrize(
    ("snapshot", "line"),
    [
        (running(), "find-outliers (scout) running · attach again with %subagent_attach find-outliers"),
        (answered("\n\nThree stand out.\nMore."), "find-outliers (scout) complete: Three stand out."),
        (gave({"rows": [{"a": 1}, {"a": 2}]}), "find-outliers (scout) complete: object, 2 items"),
        (planned(gave([1])), "find-outliers (scout) complete: Findings, 1 item"),
        (gave({"a": 1, "b": 2}), "find-outliers (scout) complete: object with a, b"),
        (gave(0.1 + 0.2), "find-outliers (scout) complete: 0.3"),
        (gave(None), "find-outliers (scout) complete: null"),
        (
            ended("failed", reason="schema", error="The answer has no rows. It was asked twice."),
            "find-outliers (scout) failed: The answer has no rows.",
        ),
        (
            ended("failed", reason="timeout", actor="deadline"),
            "find-outliers (scout) failed: The deadline of 30 min passed, and that ended it.",
        ),
        (
            lost(),
            "find-outliers (scout) lost: The run's process went away without a result (ended by SIGKILL).",
        ),
        (unreadable(), f"{RUN_ID} unreadable: status.json can't be read: not JSON at line 3"),
        (refused(("bash", "no")), "find-outliers (scout) complete: Done. · 1 tool call refused"),
        (answered(""), "find-outliers (scout) complete"),
        (
            asking(),
            "find-outliers (scout) asks you: “Keep the old name as an alias?” (yes / no)"
            " · answer with %subagent_answer find-outliers -- …",
        ),
        (
            queued(),
            "find-outliers (scout) queued · waits for a free place · attach again with %subagent_attach find-outliers",
        ),
        (
            ended("paused", reason="interrupted", actor="person", error="Interrupted on request. Resume it to go on."),
            "find-outliers (scout) paused: Interrupted on request.",
        ),
    ],
)
def test_the_plain_line_says_state_and_what_came_of_it(snapshot: Snapshot, line: str) -> None:
    assert text_line(snapshot) == line


def test_the_plain_line_does_not_change_with_time_or_identity() -> None:
    later = running(elapsed_s=99.0, updated_at="2030-01-01T00:00:00Z", run_id="r-99999999")
    assert text_line(later) == text_line(running())


def test_a_name_that_a_shell_would_split_is_quoted_in_the_command() -> None:
    assert text_line(running(name="two words")).endswith("%subagent_attach 'two words'")


@pytest.mark.parametrize(
    ("reason", "actor", "said"),
    [
        ("timeout", "deadline", "The deadline of 30 min passed, and that ended it."),
        ("stopped", "person", "It was asked to stop. A person ended it."),
        ("signal", "outside", "Its process was ended by a signal. Something outside subagents_nb did that."),
        ("vanished", "unknown", "Its process went away without a word. Nobody knows who ended it."),
        ("auth", "provider", "The provider did not accept the key."),
        ("unknown", "provider", "The model's provider ended it."),
        (None, "self", "The run ended as failed by itself and left no reason."),
        ("unknown", "unknown", "Nobody knows who ended it."),
        ("startup", "unknown", "Its process ended before the work began."),
    ],
)
def test_an_ending_says_in_plain_words_who_ended_it(reason: str | None, actor: str, said: str) -> None:
    assert ending(ended("failed", reason=reason, actor=actor)) == said


def test_a_run_that_lives_or_is_complete_has_no_ending() -> None:
    assert ending(running()) == ending(ended()) == ending(running(state=RunState.QUEUED)) == ""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("## What I found\n\nThree problems.", "What I found"),
        ("**unit_price** is `negative`", "unit_price is negative"),
        ("- one\n- two", "one"),
        ("```python\nx = 1\n```", "x = 1"),
        ("#hashtag and 2 * 3 * 4", "#hashtag and 2 * 3 * 4"),
    ],
)
def test_one_line_of_an_answer_has_no_marks_of_markdown(text: str, said: str) -> None:
    assert now(answered(text)) == said


ANEW = "Launched anew: data.csv changed since scout-ab12."
FOUND = "reused: it was at work already (launched 2 minutes ago)"


def test_the_page_is_told_how_the_launch_came_by_the_run_and_other_notes_apart_from_it() -> None:
    for notes in (("model chosen: the first key", ANEW), (ANEW, "model chosen: the first key")):
        state = widget_state(running(notes=notes))
        assert (state["reused"], state["note"]) == (ANEW, "model chosen: the first key")
        assert widget_state(running(notes=notes), FOUND)["reused"] == FOUND
    assert (widget_state(running())["reused"], widget_state(running())["note"]) == ("", "")
    assert len(widget_state(running(), FOUND * 99)["reused"]) <= 300
    assert len(widget_state(running(notes=(ANEW * 99,)))["reused"]) <= 300


@pytest.mark.parametrize("snapshot", [running(), live()])
def test_what_stands_for_a_live_view_says_it_in_a_line_of_its_own(snapshot: Snapshot) -> None:
    assert live_text(snapshot) == text_line(snapshot)
    assert live_text(snapshot, FOUND) == f"{text_line(snapshot)}\n{FOUND}"
    assert snapshot.status is not None
    anew = snapshot.model_copy(update={"status": snapshot.status.model_copy(update={"notes": (ANEW,)})})
    assert live_text(anew) == f"{text_line(snapshot)}\n{ANEW}"
    assert live_text(anew, FOUND) == f"{text_line(snapshot)}\n{FOUND}"
