"""What a run is called, and which run a name means."""

from __future__ import annotations

from pathlib import Path

import pytest

from subagents_nb import attach, launch, retry, runs
from subagents_nb.domain.plans.plan import Origin
from subagents_nb.domain.values.ids import short_id
from subagents_nb.errors import AmbiguousRun
from subagents_nb.launching.gathering.lineage import left_by_the_kernel_before
from subagents_nb.notebook.board.looking_back import left_before
from subagents_nb.store import StoreHome

pytestmark = [pytest.mark.timeout(90), pytest.mark.usefixtures("shared_home")]


def test_a_generated_name_ends_in_its_own_id_however_the_run_was_launched() -> None:
    run = launch(task="x", model="scripted:fail", wait=True)
    (retried,) = retry(run)
    runs = [run, run.launch_again(), retried, run.resume("go on")]
    for one in runs:
        one.wait(30)
        assert one.name == f"delegate-{short_id(one.id)}"
        assert attach(one.name).id == one.id


def test_a_given_name_means_the_newest_of_this_notebook_else_of_this_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = {"task": "x", "model": "scripted:echo", "name": "mine", "fresh": True, "wait": True}
    ours = launch(**options)
    assert launch(**options, origin=Origin(notebook="other.ipynb")).id != ours.id
    assert attach("mine").id == ours.id
    again = ours.launch_again()
    again.wait(30)
    assert (attach("mine").id, again.name) == (again.id, "mine")
    for folder in ("a", "b"):
        (tmp_path / folder / ".subagents").mkdir(parents=True)
        monkeypatch.chdir(tmp_path / folder)
        for notebook in ("one.ipynb", "two.ipynb"):
            last = launch(**{**options, "name": "far"}, origin=Origin(notebook=notebook))
    assert attach("far").id == last.id
    monkeypatch.chdir(tmp_path)
    with pytest.raises(AmbiguousRun, match=r"far  complete, (just now|\d+ s ago)"):
        attach("far")


def test_a_fresh_kernel_says_what_became_of_the_runs_of_the_one_before(
    shared_home: StoreHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    for session, name in (("oldest", "too-old"), ("before", "left")):
        origin = Origin(session=session, notebook="look.ipynb")
        launch(task=name, model="scripted:echo", name=name, fresh=True, wait=True, origin=origin)
    launch(task="o", model="scripted:echo", fresh=True, wait=True, origin=Origin(session="x", notebook="other.ipynb"))
    found = left_by_the_kernel_before(shared_home, "look.ipynb")
    assert [(one.name, str(one.state)) for one in found] == [("left", "complete")]
    assert [run.name for run in runs(notebook="look.ipynb")] == ["left", "too-old"]
    monkeypatch.setenv("JPY_SESSION_NAME", "look.ipynb")
    assert left_before() == ""  # no notebook runs here
