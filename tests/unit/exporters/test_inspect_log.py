"""The form of a log; `tests/integration/test_exporters.py` has Inspect AI read it."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from subagents_nb import Run, export
from subagents_nb.domain.runs.records import StepResult
from subagents_nb.domain.runs.states import RunState, StepState
from subagents_nb.errors import ExportError

Record = Callable[..., Run]


def log_of(run: Run, out: Path) -> dict[str, Any]:
    (sent,) = export(run, to="inspect", folder=str(out))
    return dict(json.loads((out / sent.link.remote_id).read_text()))


def test_a_run_is_an_eval_and_a_step_a_sample_with_its_messages(record: Record, out: Path) -> None:
    log = log_of(record(), out)
    (sample,) = log["samples"]
    assert (log["status"], log["eval"]["task"], log["eval"]["model"]) == ("success", "scout-1", "scripted:echo")
    assert [message["role"] for message in sample["messages"]] == ["system", "user", "assistant", "tool", "assistant"]
    said = sample["messages"][2]
    assert said["content"] == [{"type": "reasoning", "reasoning": "hm"}]
    assert said["tool_calls"] == [{"id": "c1", "function": "read", "arguments": {"path": "a"}, "type": "function"}]
    assert sample["output"]["completion"] == "three rows"


def test_scores_of_cases_stand_beside_their_mean(record: Record, out: Path) -> None:
    run = record()
    run.score("accuracy", 1, case="a")
    run.score("accuracy", 0, case="b", comment="b is missing")
    run.score("loss", math.nan)
    log = log_of(run, out)
    assert log["samples"][0]["scores"]["accuracy"] == {
        "value": 0.5,
        "explanation": "b is missing",
        "metadata": {"cases": {"a": 1.0, "b": 0.0}},
    }
    assert {s["name"]: s["metrics"]["mean"]["value"] for s in log["results"]["scores"]} == {
        "accuracy": 0.5,
        "loss": "nan",
    }


def test_a_new_score_replaces_the_file_and_a_lost_file_is_written_again(record: Record, out: Path) -> None:
    run = record()
    log_of(run, out)
    run.score("accuracy", 0.5)
    log_of(run, out)
    assert len(list(out.iterdir())) == 1
    next(out.iterdir()).unlink()
    assert log_of(run, out)["samples"][0]["scores"]["accuracy"]["value"] == 0.5


def test_a_failed_run_says_its_error(record: Record, out: Path) -> None:
    failed = StepResult(agent="scout", model="m", state=StepState.FAILED, reason="timeout", error="too late")
    log = log_of(record(state=RunState.FAILED, error="too late", steps=(failed,)), out)
    assert (log["status"], log["error"]["message"], log["samples"][0]["error"]["message"]) == (
        "error",
        "too late",
        "too late",
    )


def test_a_step_without_a_session_has_task_and_answer(record: Record, out: Path) -> None:
    run = record()
    (run.home.run(run.id).step(0) / "session.json").unlink()
    messages = log_of(run, out)["samples"][0]["messages"]
    said = [{"type": "text", "text": "three rows"}]
    assert [(m["role"], m["content"]) for m in messages] == [("user", "count the rows"), ("assistant", said)]


def test_a_folder_that_can_not_be_written_is_said_so(record: Record, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ExportError, match="can't be written"):
        export(record(), to="inspect", folder=str(tmp_path / "file"))
