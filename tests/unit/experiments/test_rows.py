"""Rows and tables of runs that were stored, whatever their documents hold."""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import make_plan, make_recovery, make_result, make_verdict, run_id

from subagents_nb.domain.plans.experiments import Cell, ExperimentPart, Lineage, Score, latest, split_number
from subagents_nb.domain.runs.states import RunState
from subagents_nb.errors import RequestError
from subagents_nb.experiments.frames import Frame, frame, run_record
from subagents_nb.experiments.plan_parts import PARTS, PlanParts
from subagents_nb.experiments.rows import read_row
from subagents_nb.launching import runs
from subagents_nb.store import StoreHome, create_run, open_home
from subagents_nb.store.files.codec import encode
from subagents_nb.store.runs.score_files import read_scores, write_score

EVIL = "<img src=x onerror=alert(1)>"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StoreHome:
    monkeypatch.setenv("SUBAGENTS_NB_HOME", str(tmp_path / "store"))
    return open_home()


def stored(home: StoreHome, number: int = 1, *, result: dict[str, Any] | None = None, **plan: Any) -> Path:
    create_run(home, make_plan(number, **plan), make_recovery(number))
    root = home.run(run_id(number)).root
    if result is not None:
        (root / "result.json").write_bytes(encode(make_result(number, **result)))
    return root


def judge(home: StoreHome, number: int, name: str, value: float, *, at: str = "1", case: str | None = None) -> None:
    kept, word = split_number(value)
    fields = {
        "score_id": f"{at}-{name[:3].strip('<')}-{case}",
        "name": name,
        "value": kept,
        "nonfinite": word,
        "at": at,
    }
    write_score(home.run(run_id(number)), Score(run_id=run_id(number), case=case, **fields))


def test_a_row_has_what_the_person_named_above_what_the_plan_came_to(home: StoreHome) -> None:
    part = ExperimentPart(
        name="x",
        params={"model": "mine", EVIL: 1.5},
        cell=Cell(sweep="s" * 64, place=3, repeat=1),
        lineage=Lineage(git_commit="c" * 40, git_dirty=True, packages={"pandas": "3"}),
    )
    stored(home, experiment=part, tags=("a=b", EVIL), result={})
    record = run_record(read_row(home, run_id()))

    assert record["params.model"] == "mine" and record["params.agent"] == "scout" and record[f"params.{EVIL}"] == 1.5
    assert record["experiment"] == "x" and (record["place"], record["repeat"]) == (3, 1)
    assert record["tags.a"] == "b" and record["lineage.git_dirty"] is True and record["lineage.packages.pandas"] == "3"
    assert record["status"] == "complete" and record["start_time"] == datetime(2026, 3, 1, 12, tzinfo=UTC)


def test_a_row_has_the_model_as_it_was_written_and_as_it_answered(home: StoreHome) -> None:
    step = (
        make_result()
        .steps[0]
        .model_copy(
            update={"model": "gpt-5-2026-01-01", "requested": "gpt-5", "selected": "openai:gpt-5", "context_tokens": 12}
        )
    )
    stored(home, 1, result={"steps": (step, step)})
    stored(home, 2, result={})
    found = run_record(read_row(home, run_id(1)))
    assert (found["model_requested"], found["model_answered"]) == ("gpt-5", "gpt-5-2026-01-01")
    first, *_ = frame([run_id(1)], level="steps")
    assert (first["model_requested"], first["model_selected"], first["model"]) == (
        "gpt-5", "openai:gpt-5", "gpt-5-2026-01-01",
    )  # fmt: skip
    assert first["context_tokens"] == 12 and "context_window" not in first
    assert "model_requested" not in run_record(read_row(home, run_id(2)))


def test_the_latest_score_of_a_name_and_case_counts_and_nan_stays_nan(home: StoreHome) -> None:
    stored(home, result={})
    for value, at in ((1.0, "1"), (math.nan, "3"), (2.0, "2")):
        judge(home, 1, "acc", value, at=at)
    judge(home, 1, EVIL, -math.inf, case="one")
    judge(home, 1, EVIL, 1.0, case="two")

    row = read_row(home, run_id())

    assert math.isnan(row.scores[("acc", None)]) and row.metrics()[EVIL] == -math.inf
    assert math.isnan(latest(read_scores(home, run_id()))[("acc", None)].number)


def test_a_run_without_a_last_word_is_told_by_its_verdict(home: StoreHome) -> None:
    root = stored(home)
    assert read_row(home, run_id()).state == "queued"
    (root / "verdict.json").write_bytes(encode(make_verdict()))

    row = read_row(home, run_id())
    assert (row.state, row.reason, row.error) == ("lost", "vanished", "It went away.")


@pytest.mark.parametrize("name", ["plan.json", "result.json", "scores/x.json"])
@pytest.mark.parametrize(
    "content", [b"", b"\0\0", b"[1]", b'{"run_id": 3', b'{"steps": 7, "params": [], "at": []}', b"\xff"]
)
def test_documents_that_are_none_make_a_row_all_the_same(home: StoreHome, name: str, content: bytes) -> None:
    root = stored(home, result={})
    (root / "scores").mkdir()
    (root / name).write_bytes(content)

    assert read_row(home, run_id()).run_id == run_id()
    assert len(frame().records()) == 1


def test_a_link_in_place_of_a_document_is_not_followed(home: StoreHome, tmp_path: Path) -> None:
    root = stored(home, result={})
    secret = tmp_path / "secret.json"
    secret.write_text(json.dumps({"name": "secret", "state": "complete"}))
    (root / "result.json").unlink()
    (root / "result.json").symlink_to(secret)

    assert read_row(home, run_id()).name == "scout-1" and read_row(home, run_id()).state == "queued"


def test_runs_are_found_by_experiment_tag_and_sweep(home: StoreHome) -> None:
    cell = Cell(sweep="d" * 64, place=0)
    stored(home, 1, experiment=ExperimentPart(name="x"), tags=("t",), result={})
    stored(home, 2, experiment=ExperimentPart(name="x", cell=cell), result={"state": RunState.FAILED})
    stored(home, 3, result={})

    assert runs(experiment="x").ids == [run_id(2), run_id(1)] and runs(tag="t").ids == [run_id(1)]
    assert runs(sweep="d" * 64).ids == [run_id(2)] and runs(experiment="x", state="complete").ids == [run_id(1)]
    assert len(runs(experiment="x", limit=1)) == 1 and len(runs(experiment="y")) == 0


def test_a_table_of_pandas_has_the_columns_in_order_and_misses_what_is_not_there() -> None:
    table = Frame("runs", [{"metrics.b": 1.0, "run_id": "r", "params.a": "x"}, {"run_id": "s", "tags.t": "true"}])

    assert table.columns == ("run_id", "params.a", "metrics.b", "tags.t")
    made = table.to_pandas()
    assert list(made.columns) == list(table.columns) and made["metrics.b"].isna().tolist() == [False, True]
    assert table.records()[1] == {"run_id": "s", "tags.t": "true"}


@pytest.mark.parametrize(
    ("method", "library"), [("to_polars", "polars"), ("to_arrow", "pyarrow"), ("to_parquet", "pyarrow")]
)
def test_a_library_that_is_missing_is_named_with_what_to_install(
    method: str, library: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(__import__("sys").modules, library, None)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    arguments = [tmp_path / "x.parquet"] if method == "to_parquet" else []

    with pytest.raises(RequestError, match=rf'needs {library}; run: pip install "subagents-nb\[frames\]"'):
        getattr(Frame("runs", [{"a": 1}]), method)(*arguments)


@given(st.lists(st.one_of(st.none(), st.integers(), st.floats(), st.text(), st.booleans(), st.lists(st.integers()))))
def test_every_column_can_be_made_one_type(values: list[Any]) -> None:
    from subagents_nb.experiments.frames import _one_type

    made = _one_type(values)
    assert len({type(value) for value in made if value is not None}) <= 1
    assert [value is None for value in made] == [value is None for value in values]


def test_the_parts_of_a_plan_are_its_own_whatever_was_read_before() -> None:
    plans = [
        {"digest": "d", "task": task, "steps": [{"task": task, "tools": tools}], "inputs": inputs}
        for task in ("a", "b")
        for tools in (["read"], ["read", "grep"])
        for inputs in ([], [{"name": "data", "sha256": "5"}])
    ]
    together = PlanParts()
    for plan in plans:
        for one in (plan, plan, plans[0]):
            assert together.of(one) == PlanParts().of(one)
    assert len({tuple(together.of(plan).items()) for plan in plans}) == len(plans)
    assert {name for plan in plans for name in together.of(plan)} <= set(PARTS)
