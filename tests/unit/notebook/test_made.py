from __future__ import annotations

from support import make_plan, make_result, make_status, run_id

from subagents_nb.domain.records import Artifact
from subagents_nb.domain.snapshot import Snapshot
from subagents_nb.notebook.card import card_html
from subagents_nb.notebook.made import made_line


def ended(*names: str) -> Snapshot:
    left = tuple(Artifact(path="p", size=1, sha256="0", name=name) for name in names)
    return Snapshot(run_id=run_id(), status=make_status(), result=make_result(artifacts=left), plan=make_plan())


def test_the_line_names_some_and_says_how_to_get_them() -> None:
    assert made_line(ended("table1", "fig1"), "report") == "Made table1, fig1: report.artifacts"
    many = made_line(ended(*(f"f{n}" for n in range(9))), None)
    assert many == "Made f0, f1, f2, f3, f4, f5 and 3 more: run.artifacts"
    assert made_line(ended(), None) == ""
    assert made_line(Snapshot(run_id=run_id(), status=make_status(), plan=make_plan()), None) == ""


def test_a_hostile_name_is_text_in_the_card() -> None:
    name = "<img src=x onerror=alert(1)>\n\u202e" + "x" * 300
    card = card_html(ended(name))
    assert "<img" not in card and "&lt;img src=x" in card
    assert len(made_line(ended(name), None)) < 100
