"""A chain as rows and lines: names, counts, what a lost run's steps are called."""

from __future__ import annotations

from dataclasses import replace

from card_page import card_html
from card_samples import AT, RUN_ID
from chain_samples import C, F, P, R, live, over

from subagents_nb.domain.plans.acceptance import Finding, Ledger
from subagents_nb.domain.plans.worktree import WorktreeRecord
from subagents_nb.domain.runs.postmortem import Verdict
from subagents_nb.domain.runs.records import SavedOutput, StepResult
from subagents_nb.domain.runs.states import StepState
from subagents_nb.notebook.cards.graph import chosen, remarks, so_far, stage_rows, stages_text, step_rows
from subagents_nb.notebook.cards.view import now, text_line

FAULT = Finding(id="a", ok=False)


def test_a_step_is_called_by_its_label_and_says_what_it_does() -> None:
    rows = step_rows(live())
    assert [row.name for row in rows] == [
        "map files",
        "synthesis",
        "pkg/module_0.py",
        "pkg/module_1.py",
        "pkg/module_2.py",
    ]
    assert [row.state for row in rows] == ["complete", "pending", "running", "running", "running"]
    assert rows[0].took_s is not None
    assert round(rows[0].took_s, 1) == 11.4
    assert (rows[2].activity, rows[2].took_s, rows[1].started_s) == ("grep", None, None)


def test_a_stage_says_what_it_is_about() -> None:
    first, second, third = stage_rows(live())
    assert (first.title, first.state, first.output_name, first.aside) == ("map files", "complete", "found", "")
    assert (second.title, second.state, second.aside) == ("review each", "running", "for each of found")
    assert third.state == "pending"
    waiting = stage_rows(live(0, [R, P]))[1]
    assert (waiting.aside, waiting.steps) == ("for each of found, at most 100", ())


def test_a_chain_is_told_by_how_far_it_is() -> None:
    assert so_far(step_rows(live())) == "1 of 5 steps"
    assert now(live()) == "1 of 5 steps"
    assert text_line(live()) == "review-release (chain) running · attach again with %subagent_attach review-release"
    assert text_line(over()) == "review-release (chain) complete: All is well."


def test_what_is_paused_is_not_counted_as_done() -> None:
    rows = [replace(row, state="paused") if row.state == "running" else row for row in step_rows(live())]
    assert so_far(rows) == "1 of 5 steps"


def test_the_steps_of_a_run_whose_process_is_gone_are_not_at_work_any_more() -> None:
    verdict = Verdict(run_id=RUN_ID, state="lost", reason="vanished", message="Gone.", judged_at=AT, judged_by="sweep")
    gone = live().model_copy(update={"verdict": verdict})
    assert [row.state for row in step_rows(gone)] == ["complete", "skipped", "failed", "failed", "failed"]
    assert [row.state for row in stage_rows(gone)] == ["complete", "failed", "skipped"]
    assert [row.activity for row in step_rows(gone)] == ["", "", "cut short", "cut short", "cut short"]
    assert "     2  failed    pkg/module_0.py (cut short)" in stages_text(gone).splitlines()
    assert "running" not in stages_text(gone)
    assert "· cut short" in card_html(gone)
    assert "↻ running" not in card_html(gone)


def test_the_lines_say_stages_and_steps_with_their_numbers() -> None:
    assert stages_text(over(2, [C, C, F, C])).splitlines() == [
        "   0  complete  map files as found",
        "      partial   review each as reviews (for each of found, 2 of 2 steps)",
        "     2  failed    pkg/module_0.py",
        "     3  complete  pkg/module_1.py",
        "   1  complete  synthesis",
    ]
    assert "   0  complete  map files as found (0:11 · 20.5k tokens)" in stages_text(over(), figures=True)


def test_of_many_steps_those_that_went_wrong_are_named_and_the_rest_is_counted() -> None:
    text = stages_text(over(100, [C, C, *[C] * 99, F]))
    assert "   101  failed    pkg/module_99.py" in text
    assert "… and 70 more complete" in text
    assert len(text.splitlines()) < 40
    assert 101 in chosen(over(100, [C, C, *[C] * 99, F]), 64, of_many=24)
    assert len(chosen(over(62), 64, of_many=24)) == 64


def test_what_became_of_a_step_besides_its_text_is_said_in_a_line_each() -> None:
    step = StepResult(
        agent="worker", model="m", state=StepState.COMPLETE,
        saved=SavedOutput(path="out.md", bytes=10, lines=3, written_by="runner"),
        acceptance=Ledger(level="checked", explicit=True, status="rejected", reason="no", checks=(FAULT,)),
        worktree=WorktreeRecord(
            step=0, path="/x", branch="subagents/a", base_commit="0" * 40, repo_root="/y", state="preserved",
            reason="dirty",
        ),
    )  # fmt: skip
    assert remarks(step) == [
        "saved to out.md (3 lines)",
        "acceptance rejected, 0 of 1 check held: no",
        "worktree kept on subagents/a: dirty",
    ]
    assert remarks(StepResult(agent="a", model="m", state=StepState.COMPLETE)) == []
