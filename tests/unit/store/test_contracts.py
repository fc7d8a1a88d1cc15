"""The index of runs by contract: found by key, made again when it is gone, locked for one launcher at a time."""

from __future__ import annotations

import shutil
import stat
import threading
from pathlib import Path

import pytest
from support import make_plan, make_recovery, make_step, run_id

from subagents_nb.domain.agents.models import ModelOrigin, parse_model
from subagents_nb.domain.agents.settings import Endpoint
from subagents_nb.domain.plans.experiments import Cell, ExperimentPart
from subagents_nb.domain.plans.plan import LaunchPlan
from subagents_nb.domain.plans.resumed import Resumes
from subagents_nb.domain.runs.reuse import contract_key
from subagents_nb.errors import StoreError
from subagents_nb.store import StoreHome, create_run, open_home
from subagents_nb.store.runs.contracts import (
    index_run,
    lock_sweep,
    locked,
    mark_sweep,
    models_of,
    runs_of,
    sweep_mark,
)


@pytest.fixture
def home(tmp_path: Path) -> StoreHome:
    return open_home(tmp_path / "store")


def put(home: StoreHome, number: int, **more: object) -> LaunchPlan:
    plan = make_plan(number, **more)
    index_run(home, plan)
    create_run(home, plan, make_recovery(number))
    return plan


def key_of(plan: LaunchPlan) -> str:
    key = contract_key(plan)
    assert key is not None
    return key


def test_runs_of_one_contract_are_found_newest_first(home: StoreHome) -> None:
    plan = put(home, 1)
    put(home, 2)
    put(home, 3, digest="1" * 64)
    assert runs_of(home, key_of(plan)) == [run_id(2), run_id(1)]


def test_a_directory_and_a_repetition_have_contracts_of_their_own() -> None:
    again = ExperimentPart(cell=Cell(sweep="s", place=0, repeat=1, of=2))
    first = ExperimentPart(cell=Cell(sweep="s", place=0, repeat=0, of=2))
    keys = [key_of(make_plan(1, cwd=cwd, experiment=part)) for cwd in ("/a", "/b") for part in (again, first)]
    assert len(set(keys)) == 4
    assert key_of(make_plan(1, cwd="/a", experiment=first)) == key_of(make_plan(1, cwd="/a"))


def test_what_goes_on_from_a_session_has_none(home: StoreHome) -> None:
    plan = put(home, 2, resumes=Resumes(run_id=run_id(1), digest="0" * 64))
    assert contract_key(plan) is None
    assert not (home.root / "contracts").exists()


def test_a_deleted_index_is_made_again_from_the_plans(home: StoreHome) -> None:
    plan = put(home, 1)
    create_run(home, make_plan(2), make_recovery(2))  # by a version that had no index
    shutil.rmtree(home.root / "contracts")
    assert runs_of(home, key_of(plan)) == [run_id(2), run_id(1)]


def test_a_plan_that_can_not_be_read_is_left_out(home: StoreHome) -> None:
    plan = put(home, 1)
    put(home, 2)
    home.run(run_id(2)).plan.write_text("{")
    shutil.rmtree(home.root / "contracts")
    assert runs_of(home, key_of(plan)) == [run_id(1)]


def test_a_run_that_is_gone_is_forgotten_unless_it_can_come_back_from_the_trash(home: StoreHome) -> None:
    plan = put(home, 1)
    put(home, 2)
    (home.root / "trash").mkdir()
    home.run(run_id(1)).root.rename(home.root / "trash" / f"{run_id(1)}.20260301T120000000Z")
    shutil.rmtree(home.run(run_id(2)).root)
    assert runs_of(home, key_of(plan)) == []
    left = {path.name for path in (home.root / "contracts" / key_of(plan)).iterdir()}
    assert left == {run_id(1)}


@pytest.mark.parametrize("key", ["", "..", "../../etc", "0" * 63, "g" * 64])
def test_only_a_key_becomes_a_path(home: StoreHome, key: str) -> None:
    assert runs_of(home, key) == []


def test_it_is_private(home: StoreHome) -> None:
    put(home, 1)
    for path in (home.root / "contracts").rglob("*"):
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600)


def by(text: str, origin: ModelOrigin, *, endpoints: dict[str, Endpoint] | None = None) -> dict[str, object]:
    return {
        "steps": (
            make_step().model_copy(update={"model": parse_model(text, origin=origin, endpoints=endpoints or {})}),
        )
    }


def test_models_that_not_every_machine_comes_to_by_itself_are_known(home: StoreHome) -> None:
    lab = {"lab": Endpoint(base_url="http://lab/v1")}
    put(home, 1, **by("openai:gpt-5-mini", "environment"))
    put(home, 2, **by("groq:x:high", "settings"))
    put(home, 3, **by("lab:m", "call", endpoints=lab))
    put(home, 4, **by("openai:gpt-5", "call"))
    put(home, 5, **by("local:smollm2", "embedded"))
    put(home, 6, **by("groq:x:high", "settings"))
    wanted = {"openai:gpt-5-mini", "groq:x:high", "lab:m"}
    assert {model.requested for model in models_of(home)} == wanted
    shutil.rmtree(home.root / "contracts")
    assert {model.requested for model in models_of(home)} == wanted


def test_a_model_that_can_not_be_read_is_passed_over(home: StoreHome) -> None:
    put(home, 1, **by("openai:gpt-5-mini", "environment"))
    folder = home.root / "contracts" / "models"
    (folder / ("0" * 64)).write_text('{"kind": "provider"')
    (folder / ("1" * 64)).mkdir()
    (folder / ("2" * 64)).symlink_to("/etc/passwd")
    assert [model.requested for model in models_of(home)] == ["openai:gpt-5-mini"]


def test_an_index_of_an_earlier_version_is_made_again(home: StoreHome) -> None:
    plan = put(home, 1, **by("openai:gpt-5-mini", "environment"))
    shutil.rmtree(home.root / "contracts")
    (home.root / "contracts" / key_of(plan)).mkdir(parents=True)
    (home.root / "contracts" / ".whole").touch()
    assert len(models_of(home)) == 1


def test_an_empty_store_is_not_written_to_by_looking(home: StoreHome) -> None:
    assert (runs_of(home, "0" * 64), models_of(home)) == ([], [])
    assert not (home.root / "contracts").exists()


def test_one_launcher_at_a_time(home: StoreHome) -> None:
    key = key_of(make_plan(1))
    inside, most = 0, 0
    guard = threading.Lock()

    def launcher() -> None:
        nonlocal inside, most
        with locked(home, key):
            with guard:
                inside += 1
                most = max(most, inside)
            with guard:
                inside -= 1

    threads = [threading.Thread(target=launcher) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == 1


def test_who_waits_too_long_is_told(home: StoreHome) -> None:
    key = key_of(make_plan(1))
    with (
        locked(home, key),
        pytest.raises(StoreError, match="has been launching the same work for 0 s"),
        locked(home, key, patience_s=0),
    ):
        pass


def test_the_mark_of_a_sweep_changes_with_each_launch_and_stays_otherwise(home: StoreHome) -> None:
    sweep = "a" * 64
    marks = []
    for _ in range(3):
        with lock_sweep(home, sweep):
            before = sweep_mark(home, sweep)
            marks.append(mark_sweep(home, sweep))
        with lock_sweep(home, sweep):
            assert sweep_mark(home, sweep) == marks[-1] != before
    assert len(set(marks)) == 3
