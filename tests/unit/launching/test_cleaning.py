from __future__ import annotations

import math
import os
import time
from pathlib import Path

import pytest
from support import make_plan, make_recovery, make_result, make_status

from subagents_nb.domain.kept.retention import DAY_S, Keep
from subagents_nb.domain.values.ids import make_run_id
from subagents_nb.errors import RequestError, StoreError
from subagents_nb.launching.stored.cleaning import gc, keep_days, restore
from subagents_nb.store import StoreHome, create_run
from subagents_nb.store.kept.trash import exclusive_trash


def old_run(home: StoreHome, *, days: float) -> str:
    run_id = make_run_id(int((time.time() - days * DAY_S) * 1000), 1)
    writer = create_run(home, make_plan(run_id=run_id), make_recovery())
    writer.status(make_status(run_id=run_id, updated_at="2020-01-01T00:00:00Z"), milestone=False)
    writer.result(make_result(run_id=run_id, ended_at="2020-01-01T00:00:00Z"))
    for path in writer.paths.root.iterdir():
        os.utime(path, (time.time() - days * DAY_S,) * 2)
    return run_id


def user_settings(text: str) -> None:
    folder = Path.home() / ".subagents"
    folder.mkdir(exist_ok=True)
    (folder / "settings.toml").write_text(text)


def test_runs_are_kept_for_as_long_as_the_user_says(store_home: StoreHome) -> None:
    run_id = old_run(store_home, days=40)
    user_settings("keep_days = 50")
    assert gc().kept == {Keep.YOUNG: 1}
    user_settings("keep_days = 35")
    assert [run.run_id for run in gc().deleted] == [run_id]


def test_without_a_word_of_the_user_runs_are_kept_for_thirty_days(store_home: StoreHome) -> None:
    assert keep_days() == 30
    old_run(store_home, days=29)
    assert gc(dry_run=True).kept == {Keep.YOUNG: 1}
    assert len(gc(days=28, dry_run=True).deleted) == 1


def test_a_project_does_not_decide_about_the_runs_of_its_user(store_home: StoreHome) -> None:
    Path(".subagents").mkdir()
    Path(".subagents/settings.toml").write_text("keep_days = 1")
    old_run(store_home, days=20)
    assert gc().kept == {Keep.YOUNG: 1}


def test_settings_that_are_none_delete_nothing(store_home: StoreHome) -> None:
    user_settings('keep_days = "soon"')
    old_run(store_home, days=400)
    with pytest.raises(RequestError, match="keep_days"):
        gc()
    assert len(os.listdir(store_home.runs)) == 1


@pytest.mark.parametrize("days", [-1.0, math.nan, math.inf])
def test_a_number_of_days_must_be_one(store_home: StoreHome, days: float) -> None:
    with pytest.raises(RequestError, match="no number of days"):
        gc(days=days)


def test_a_store_that_is_not_there_has_nothing_to_delete(
    store_home: StoreHome, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SUBAGENTS_NB_HOME", str(tmp_path / "nowhere"))
    assert str(gc()) == "0 runs deleted."
    assert not (tmp_path / "nowhere").exists()


def test_a_deleted_run_comes_back_as_a_handle(store_home: StoreHome) -> None:
    run_id = old_run(store_home, days=40)
    gc()
    run = restore(run_id)
    assert (run.id, run.text) == (run_id, "three rows")
    with exclusive_trash(store_home), pytest.raises(StoreError, match="Another process"):
        restore(run_id)
