"""What stands on a card beside an answer: acceptance and changes, how to take them over, how large they may become."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from itertools import cycle
from typing import Any

import pytest
from card_page import Page, card_html, card_text
from card_payloads import PAYLOADS
from card_samples import ended, lost, tree
from chain_samples import over

from subagents_nb.domain.plans.acceptance import Finding, Ledger, VerifyRun
from subagents_nb.domain.plans.worktree import Change
from subagents_nb.domain.runs.records import SavedOutput
from subagents_nb.domain.runs.snapshot import Snapshot
from subagents_nb.notebook.cards.card import MAX_CARD_BYTES, CardContext
from subagents_nb.notebook.cards.graph_feed import detail

PATCH = """diff --git a/app.py b/app.py
--- a/app.py
+++ b/app.py
@@ -1,2 +1,2 @@
 keep
-old
+new
"""
VERIFIED = Ledger(
    level="verified", explicit=True, status="verified",
    verify_runs=(VerifyRun(id="gate", command="make test", passed=True, exit_code=0, output="3 passed"),),
)  # fmt: skip
REJECTED = VERIFIED.model_copy(update={"status": "rejected", "reason": "gate: exit code 1"})
INFERRED = Ledger(level="checked", explicit=False, status="checked", checks=(Finding(id="no-staged-files", ok=True),))


def worked(state: str = "complete", **step: Any) -> Snapshot:
    return ended(state, step={"text": "Done.", **step})


def with_step(snapshot: Snapshot, number: int, **changes: Any) -> Snapshot:
    result = snapshot.result
    assert result is not None
    steps = [one.model_copy(update=changes) if one.index == number else one for one in result.steps]
    return snapshot.model_copy(update={"result": result.model_copy(update={"steps": tuple(steps)})})


def test_the_acceptance_stands_below_the_answer() -> None:
    text = Page(card_html(worked(acceptance=VERIFIED))).text
    assert text.index("Done.") < text.index("verified: the commands succeeded") < text.index("make test")
    assert "3 passed" in text


def test_an_acceptance_that_nobody_asked_for_is_one_line_unless_it_failed() -> None:
    shown = Page(card_html(worked(acceptance=INFERRED))).text
    assert "acceptance checked, 1 of 1 check held" in shown
    assert "no-staged-files" not in shown
    failed = INFERRED.model_copy(update={"status": "rejected"})
    assert "no-staged-files" in Page(card_html(worked(acceptance=failed))).text


def test_what_was_changed_in_a_worktree_is_shown_with_the_call_that_takes_it_over() -> None:
    text = Page(card_html(worked(worktree=tree()), CardContext(binding="mended", patches={0: PATCH}))).text
    assert "It worked in a git worktree of its own. Take it over: mended.apply()" in text
    assert "1 file changed, +1 −1" in text
    assert "-old" in text


def test_changes_that_can_not_be_shown_are_told_by_their_figures() -> None:
    text = Page(card_html(worked(worktree=tree()))).text
    assert "1 file changed, +1 −1, in a git worktree of its own. Take it over: run.apply()" in text
    nothing = tree(changes=(), patch=None)
    assert "nothing changed, in a git worktree of its own" in (said := Page(card_html(worked(worktree=nothing))).text)
    assert "apply" not in said


def test_a_tree_that_was_kept_says_why_and_how_to_be_rid_of_it() -> None:
    kept = tree(state="preserved", applies=None, patch=None, reason="its patch was too large")
    text = Page(card_html(worked(worktree=kept))).text
    assert "worktree kept on subagents/ab/s0, 1 changed file: its patch was too large" in text
    assert "Throw the tree away: run.discard()" in text
    assert "/x" not in text


def test_a_lost_run_says_that_its_tree_is_still_there() -> None:
    text = Page(card_html(lost(), CardContext(binding="work", trees=1))).text
    assert "1 git worktree of its own is still there, with what was done: work.diff()" in text
    assert "worktree" not in Page(card_html(lost())).text


def test_the_plain_twin_has_findings_figures_and_the_call() -> None:
    saved = SavedOutput(path="out.md", bytes=10, lines=3, written_by="runner")
    shown = card_text(worked("failed", acceptance=REJECTED, worktree=tree(), saved=saved, error="Not accepted."))
    assert shown.splitlines()[1:] == [
        "saved to out.md (3 lines)",
        "acceptance ⊘ not accepted: gate: exit code 1",
        "  ✓ passed  gate: make test",
        "1 file changed, +1 −1, in a git worktree of its own",
        "  app.py +1 -1",
        "Take it over: run.apply()",
    ]


def test_a_step_of_a_chain_has_its_own() -> None:
    chain = with_step(over(), 3, worktree=tree(3), acceptance=REJECTED)
    text = Page(card_html(chain, CardContext(binding="work", patches={3: PATCH}))).text
    assert "Take it over: work.apply(step=3)" in text
    assert text.index("not accepted") < text.index("+new")
    assert "steps[3], pkg/module_1.py:\n  acceptance ⊘ not accepted" in card_text(chain)
    assert "Take it over: work.apply(step=3)" in card_text(chain, CardContext(binding="work"))


def test_the_panel_of_a_step_has_it_as_text() -> None:
    result = with_step(over(), 3, worktree=tree(3), acceptance=REJECTED).result
    assert result is not None
    told = detail(result.steps[3], "answer")
    assert told["work"].splitlines()[0] == "acceptance ⊘ not accepted: gate: exit code 1"
    assert told["work"].endswith("Take it over: run.apply(step=3)")
    assert detail(result.steps[2], "answer")["work"] == ""


def rejected_with(hostile: str) -> dict[str, Any]:
    """Return what a step has of both when every text of it is this one."""
    finding = Finding(id=hostile, ok=False, text=hostile)
    many = VerifyRun(id=hostile, command=hostile, passed=False, output=hostile * 20)
    ledger = Ledger(
        level="verified", explicit=True, status="rejected", reason=hostile, criteria=(finding,) * 40,
        verify_runs=(many,) * 40, report_problem=hostile,
    )  # fmt: skip
    record = tree(branch=hostile, reason=hostile, changes=(Change(path=hostile, added=1, removed=0),) * 40)
    return {"acceptance": ledger, "worktree": record}


def patch_of(hostile: str) -> str:
    flat = hostile.replace("\n", " ")
    return "".join(f"diff --git a/{flat} b/{flat}\n@@ -0,0 +1,9 @@\n" + f"+{flat}\n" * 9 for _ in range(60))


def chain_is_bounded(hostile: Sequence[str]) -> None:
    """Try a chain of 32 steps, each of which has one of these."""
    chain = over(30)
    for number, text in zip(range(32), cycle(hostile), strict=False):
        had = rejected_with(text)
        chain = with_step(chain, number, **{**had, "worktree": had["worktree"].model_copy(update={"step": number})})
    patches = {number: patch_of(text) for number, text in zip(range(8), cycle(hostile), strict=False)}
    whole = card_html(chain, CardContext(patches=patches))
    Page(whole)
    assert len(whole.encode()) <= MAX_CARD_BYTES
    assert len(card_text(chain)) < 8_000


@pytest.mark.parametrize("hostile", PAYLOADS)
def test_no_text_in_it_gets_out_or_makes_the_card_larger_than_the_cap(hostile: str) -> None:
    had = rejected_with(hostile)
    for state in ("removed", "preserved"):
        step = {**had, "worktree": had["worktree"].model_copy(update={"state": state})}
        single = card_html(worked(**step), CardContext(patches={0: patch_of(hostile)}))
        Page(single)
        assert len(single.encode()) <= MAX_CARD_BYTES
        card_text(worked(**step)).encode()


@pytest.mark.parametrize("first", range(0, len(PAYLOADS), 8))
def test_none_of_them_gets_out_of_a_chain_or_makes_its_card_larger_than_the_cap(first: int) -> None:
    chain_is_bounded(PAYLOADS[first : first + 8])


@pytest.mark.parametrize("hostile", sorted(PAYLOADS, key=lambda text: len(escape(text)))[-2:])
def test_a_chain_whose_every_step_was_rejected_at_length_has_a_card_below_the_cap(hostile: str) -> None:
    chain_is_bounded([hostile])
