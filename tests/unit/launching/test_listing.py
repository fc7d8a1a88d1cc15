"""What a list reads, and what it may leave unread."""

from __future__ import annotations

import gc
from pathlib import Path

import pytest
from support import make_plan, make_recovery, make_result, make_status, make_verdict, run_id

from subagents_nb.domain.plans.plan import GroupItem
from subagents_nb.domain.runs.snapshot import Snapshot
from subagents_nb.domain.runs.states import RunState
from subagents_nb.launching.listing import Runs, about, list_runs
from subagents_nb.notebook.cards.graph import launch_notes
from subagents_nb.store import FileRuns, StoreHome, create_run, open_home
from subagents_nb.store.runs.first_status import first_status
from subagents_nb.supervisor.processes.identity import identify


@pytest.fixture
def home(tmp_path: Path) -> StoreHome:
    """Twenty runs, number 1 the oldest; 1 and 4 are at work, 2 has only a verdict."""
    home = open_home(tmp_path / "store")
    for number in range(1, 21):
        writer = create_run(home, make_plan(number), make_recovery(number))
        writer.status(make_status(number, runner=identify(1, "f" * 32)), milestone=False)
        if number == 2:
            writer.verdict(make_verdict(number))
        elif number not in (1, 4):
            writer.result(make_result(number))
    return home


def listed(home: StoreHome, **more: object) -> Runs:
    fields: dict[str, object] = {"state": None, "agent": None, "name": None, "limit": None}
    return list_runs(home, **(fields | more))  # type: ignore[arg-type]


def numbers(runs: Runs) -> list[int]:
    return [next(n for n in range(1, 21) if run_id(n) == snapshot.run_id) for snapshot in runs.snapshots]


def test_a_short_list_has_the_newest_and_whatever_is_live(home: StoreHome) -> None:
    runs = listed(home, limit=3)
    assert (numbers(runs), runs.hidden) == ([20, 19, 18, 4, 1], 15)
    assert [run.state for run in runs][3:] == [RunState.RUNNING] * 2


def test_what_is_hidden_is_not_read(home: StoreHome) -> None:
    for number in (5, 6, 7):
        home.run(run_id(number)).result.chmod(0o600)
        home.run(run_id(number)).result.write_bytes(b'{"torn')
    assert numbers(listed(home, limit=3)) == [20, 19, 18, 4, 1], "nobody looked at what they hold"
    whole = {snapshot.run_id: snapshot for snapshot in listed(home).snapshots}
    assert [whole[run_id(n)].damage[0].kind for n in (5, 6, 7)] == ["torn"] * 3, "and the whole list says so"


def test_runs_are_found_by_a_phase_that_the_launch_a_step_or_a_group_names(home: StoreHome) -> None:
    plan = make_plan(21)
    group = GroupItem(steps=(0,), concurrency=1, phase="of the group")
    steps = (plan.steps[0].model_copy(update={"phase": "of the step"}),)
    create_run(home, plan.model_copy(update={"phase": "all", "steps": steps, "items": (group,)}), make_recovery(21))
    for phase in ("all", "of the step", "of the group"):
        assert listed(home, only=about(home, phase=phase)).ids == [run_id(21)]
    assert listed(home, only=about(home, phase="another")).ids == []


def test_runs_are_found_by_their_lane_and_by_the_workflow_elsewhere_that_they_are_part_of(home: StoreHome) -> None:
    plan = make_plan(22)
    steps = (plan.steps[0].model_copy(update={"lane": "docs"}),)
    said = {"lane": "code", "workflow": "wf-7", "workflow_key": "build.1", "steps": steps}
    create_run(home, plan.model_copy(update=said), make_recovery(22))
    asked = ({"lane": "code"}, {"lane": "docs"}, {"workflow": "wf-7"}, {"workflow": "wf-7", "workflow_key": "build.1"})
    assert all(listed(home, only=about(home, **one)).ids == [run_id(22)] for one in asked)
    assert not listed(home, only=about(home, workflow="wf-7", workflow_key="build.2")).ids
    whole = plan.model_copy(update=said)
    told = Snapshot(run_id=plan.run_id, plan=whole, status=first_status(whole))
    assert launch_notes(told) == "lane code · of workflow wf-7/build.1" and told.steps[0].lane == "docs"


@pytest.mark.parametrize("content", [b"", None], ids=["empty", "missing"])
def test_a_result_that_holds_nothing_is_no_end(home: StoreHome, content: bytes | None) -> None:
    path = home.run(run_id(9)).result
    path.unlink() if content is None else path.write_bytes(content)
    assert 9 in numbers(listed(home, limit=3))
    assert 9 in numbers(listed(home, state="live"))


def test_the_live_ones_and_filters_are_told_as_before(home: StoreHome) -> None:
    assert numbers(listed(home, state="live")) == [4, 1]
    found = listed(home, state="live", limit=1)
    assert (numbers(found), found.hidden) == ([4, 1], 0)
    found = listed(home, state="complete", limit=2)
    assert (numbers(found), found.hidden) == ([20, 19], 15)
    assert numbers(listed(home, name="scout-7")) == [7]
    assert numbers(listed(home, state="lost")) == [2]


def test_listing_leaves_the_collector_as_it_was(home: StoreHome) -> None:
    assert gc.isenabled()
    rows = FileRuns(home).all()
    next(rows)
    assert gc.isenabled()
    listed(home)
    assert gc.isenabled()
    gc.disable()
    try:
        listed(home)
        assert not gc.isenabled()
    finally:
        gc.enable()
