"""The verbs of the terminal about many runs, on real ones."""

from __future__ import annotations

import pytest
from support import script

from subagents_nb import launch, runs
from subagents_nb.cli import main
from subagents_nb.domain.runs.states import RunState
from subagents_nb.store import StoreHome

pytestmark = [pytest.mark.timeout(90), pytest.mark.usefixtures("shared_home")]

Said = pytest.CaptureFixture[str]


def test_an_experiment_is_compared_and_what_failed_is_launched_again(capsys: Said, shared_home: StoreHome) -> None:
    good = launch("scout", "one", model="scripted:echo", experiment="mine", wait=True)
    bad = launch("scout", "one", model=script("moody", {"fail": {}}), experiment="mine", wait=True)
    good.score("acc", 1)

    assert main(["compare", "--experiment", "mine", "--baseline", "model=scripted:echo", "--metric", "acc"]) == 0
    said = capsys.readouterr().out
    assert "scripted:moody  1, 1 failed" in said and "missing" in said and "Baseline: model=scripted:echo." in said

    script("moody", {"text": "now"})
    assert main(["retry", good.id, bad.id]) == 0
    assert capsys.readouterr().out.count("works in a process of its own") == 1
    (fresh,) = (run for run in runs(experiment="mine") if run.id not in (good.id, bad.id))
    assert fresh.wait(30) and fresh.state is RunState.COMPLETE


def test_nothing_to_compare_is_said(capsys: Said) -> None:
    assert main(["compare"]) == 1 and main(["retry", "--experiment", "none"]) == 1
    said = capsys.readouterr().err
    assert "Say which runs" in said and "None of these 0 runs failed" in said
