"""An output file of a workspace belongs to one live run at a time."""

from __future__ import annotations

from pathlib import Path

import pytest

from subagents_nb.domain.runs.records import RunStatus
from subagents_nb.domain.runs.snapshot import Snapshot
from subagents_nb.domain.runs.states import RunState
from subagents_nb.domain.values.ids import make_run_id
from subagents_nb.errors import LaunchRefused
from subagents_nb.store import StoreHome
from subagents_nb.store.waiting.output_claims import output_claims


@pytest.fixture
def home(tmp_path: Path) -> StoreHome:
    (tmp_path / "runs").mkdir()
    return StoreHome(tmp_path)


def run(home: StoreHome, number: int) -> str:
    run_id = make_run_id(number, 1)
    Path(home.run_folder(run_id)).mkdir()
    return run_id


def read(run_id: str, state: RunState) -> Snapshot:
    now = "2026-01-01T00:00:00Z"
    return Snapshot(
        run_id=run_id, status=RunStatus(run_id=run_id, name="first", state=state, started_at=now, updated_at=now)
    )


def claim(home: StoreHome, run_id: str, *paths: str, state: RunState = RunState.RUNNING, own: str = "") -> None:
    with output_claims(home, "/w", paths, lambda holder: read(holder, state), own=own) as take:
        take(run_id)


def test_what_live_runs_hold_is_refused_all_at_once(home: StoreHome) -> None:
    first, second = run(home, 1), run(home, 2)
    claim(home, first, "a.md", "b/c.md")
    with pytest.raises(LaunchRefused) as refused:
        claim(home, second, "./a.md", "b/c.md", "d.md")
    assert [reason.split(": ")[0] for reason in refused.value.reasons] == [
        "./a.md is the output of first, which is running",
        "b/c.md is the output of first, which is running",
    ]
    claim(home, second, "d.md")


def test_a_run_holds_no_longer_than_it_lives_or_is_there_and_never_against_itself(home: StoreHome) -> None:
    first, second, third = run(home, 1), run(home, 2), run(home, 3)
    claim(home, first, "a.md")
    claim(home, first, "a.md", own=first)
    claim(home, second, "a.md", state=RunState.COMPLETE)
    Path(home.run_folder(second)).rmdir()
    claim(home, third, "a.md")
