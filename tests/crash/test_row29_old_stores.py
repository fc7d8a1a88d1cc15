"""Stores that earlier versions wrote, kept in tests/fixtures: readable for good, and never rewritten by reading."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from subagents_nb import attach, runs
from subagents_nb.domain.values.base import SCHEMA_VERSION
from subagents_nb.store import FileRuns, StoreHome
from subagents_nb.supervisor.warm.reconcile import reconcile

FIXTURES = Path(__file__).parents[1] / "fixtures"
STORES = sorted(path.name for path in FIXTURES.glob("store-v*"))


def test_every_schema_version_has_a_store() -> None:
    assert [f"store-v{version}" for version in range(1, SCHEMA_VERSION + 1)] == STORES


@pytest.mark.row(29, cases=12)
@pytest.mark.parametrize("name", STORES)
def test_an_old_store_is_read_and_left_as_it_is(store_home: StoreHome, name: str, case: Callable[..., None]) -> None:
    expected = json.loads((FIXTURES / name / "expected.json").read_text())
    shutil.copytree(FIXTURES / name / "runs", store_home.runs, dirs_exist_ok=True)
    before = {path: path.read_bytes() for path in store_home.runs.rglob("*") if path.is_file()}
    assert {run.id for run in runs()} == set(expected)
    for run_id, wanted in expected.items():
        assert reconcile(store_home, [run_id]) == []
        snapshot = FileRuns(store_home).snapshot(run_id, whole=True)
        assert snapshot.damage == ()
        run = attach(wanted["name"])
        assert run.id == run_id
        found = {
            "name": run.name,
            "state": str(run.state),
            "reason": run.status.reason,
            "error": run.error,
            "value": run.status.value if run.status.has_value else None,
            "text": run.text[:100],
            "text_length": len(run.text),
            "usage": {**run.usage.model_dump(include=set(wanted["usage"]))},
            "elapsed_s": run.status.elapsed_s,
            "refusals": len(run.refusals),
            "events": len(list(run.events())),
            "process": snapshot.process.state if snapshot.process is not None else None,
        }
        assert found == wanted
        assert snapshot.plan is not None and run.plan.steps[0].task
        case()
    assert {path: path.read_bytes() for path in store_home.runs.rglob("*") if path.is_file()} == before
