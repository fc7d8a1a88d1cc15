"""A run shown where there is no page."""

from __future__ import annotations

import pytest
from support import make_plan, make_recovery, make_result, make_status

from subagents_nb.domain.runs.records import Artifact
from subagents_nb.launching import Run
from subagents_nb.notebook.views.show import show_run
from subagents_nb.store import StoreHome, create_run

FIGURE = Artifact(path="artifacts/fig1.png", size=1, sha256="0", name="fig1", kind="figure")


def test_a_terminal_is_told_what_an_ended_run_made(store_home: StoreHome, capsys: pytest.CaptureFixture[str]) -> None:
    plan = make_plan()
    writer = create_run(store_home, plan, make_recovery())
    writer.status(make_status(), milestone=False)
    writer.result(make_result(artifacts=(FIGURE,)))
    assert show_run(Run(store_home, plan.run_id))
    assert "Made fig1: run.artifacts" in capsys.readouterr().out.splitlines()
