from __future__ import annotations

import pytest
from card_page import Page, card_html, card_text
from chain_samples import over
from support import make_plan, make_result, make_status, run_id

from subagents_nb.domain.runs.records import Artifact
from subagents_nb.domain.runs.snapshot import Snapshot
from subagents_nb.notebook.cards.card import CardContext
from subagents_nb.notebook.cards.work_summary import work_line


def ended(*names: str) -> Snapshot:
    left = tuple(Artifact(path="p", size=1, sha256="0", name=name) for name in names)
    return Snapshot(run_id=run_id(), status=make_status(), result=make_result(artifacts=left), plan=make_plan())


def test_the_line_names_some_and_says_how_to_get_them() -> None:
    assert work_line(ended("table1", "fig1"), "report") == "Made table1, fig1: report.artifacts"
    many = work_line(ended(*(f"f{n}" for n in range(9))))
    assert many == "Made f0, f1, f2, f3, f4, f5 and 3 more: run.artifacts"
    assert work_line(ended()) == ""
    assert work_line(Snapshot(run_id=run_id(), status=make_status(), plan=make_plan())) == ""


def test_a_hostile_name_is_text_in_the_card() -> None:
    name = "<img src=x onerror=alert(1)>\n\u202e" + "x" * 300
    card = card_html(ended(name))
    assert "<img" not in card and "&lt;img src=x" in card
    assert len(work_line(ended(name))) < 100


@pytest.mark.parametrize("name", ["table1", "plots/by region.png", "<b>\x1b[31m\n" + "x" * 300])
def test_the_plain_card_names_them_in_the_words_of_the_other(name: str) -> None:
    snapshot, beside = ended(name, "fig1"), CardContext("report")
    said = work_line(snapshot, "report")
    assert said in card_text(snapshot, beside).splitlines()
    assert said in Page(card_html(snapshot, beside)).text


def test_those_of_a_chain_and_of_a_run_that_failed_are_named_too() -> None:
    left = (Artifact(path="p", size=1, sha256="0", name="fig1", step=0, kind="figure"),)
    for snapshot in (
        over(artifacts=left),
        Snapshot(run_id=run_id(), result=make_result(state="failed", reason="model", artifacts=left)),
    ):
        assert "\nMade fig1: run.artifacts" in card_text(snapshot)
        assert "Made fig1: run.artifacts" in Page(card_html(snapshot)).text


def test_however_many_were_made_the_plain_card_stays_short() -> None:
    assert len(card_text(ended(*("x" * 500 for _ in range(5_000))))) < 1_000
