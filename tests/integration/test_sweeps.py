"""Sweeps, scores, tables and retries with real runs."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest
from support import until

from subagents_nb import Run, chain, compare, diff, frame, launch, parallel, retry, runs, score, step, sweep
from subagents_nb.domain.states import RunState
from subagents_nb.errors import LaunchRefused, RequestError
from subagents_nb.experiments.scoring import ScoringFailed
from subagents_nb.store import FileRuns, StoreHome

pytestmark = pytest.mark.timeout(120)


@pytest.fixture(autouse=True)
def _own_store(shared_home: StoreHome) -> None:
    """The shared store; each test sweeps a task of its own."""


def script(name: str, *items: dict[str, Any]) -> str:
    folder = Path(".subagents/scripts")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.json").write_text(json.dumps(items))
    return f"scripted:{name}"


def words(*given: str) -> dict[str, Any]:
    return {"word": list(given)}


def test_a_sweep_launches_each_cell_in_order_with_its_parameters_and_where_it_came_from(shared_home: StoreHome) -> None:
    swept = sweep(
        "scout", "say {{word}}", grid=words("a", "<img onerror>"), repeat=2, model="scripted:echo", name="two"
    )

    assert swept.wait(60)

    assert [run.text for run in swept.runs] == ["say a", "say a", "say <img onerror>", "say <img onerror>"]
    assert [run.name for run in swept.runs] == ["two-1.1", "two-1.2", "two-2.1", "two-2.2"]
    part = swept.runs[3].plan.experiment
    assert part.name == "two" and part.params == {"word": "<img onerror>"}
    assert part.cell is not None and (part.cell.place, part.cell.repeat, part.cell.of) == (1, 1, 4)
    assert part.lineage is not None and part.lineage.packages["subagents-nb"]
    assert repr(swept) == "<Sweep two: 4 of 4 done>" and swept.missing == [] and len(swept.done) == 4


def test_the_same_sweep_finds_its_runs_and_a_grown_grid_launches_only_what_is_new() -> None:
    first = sweep("scout", "tell {{word}}", grid=words("a", "b"), model="scripted:echo")
    assert first.wait(60)

    again = sweep("scout", "tell {{word}}", grid=words("a", "b"), model="scripted:echo")
    grown = sweep("scout", "tell {{word}}", grid=words("c", "a"), model="scripted:echo")
    anew = sweep("scout", "tell {{word}}", grid=words("a"), model="scripted:echo", fresh=True)

    assert again.ids == first.ids
    assert grown.ids[1] == first.ids[0] and grown.ids[0] not in first.ids
    assert anew.ids[0] not in first.ids
    assert grown.wait(60) and anew.wait(60)


def test_a_run_whose_file_changed_does_not_stand_for_its_cell_any_more() -> None:
    Path("data.txt").write_text("one")
    options: dict[str, Any] = {"grid": words("a", "b"), "model": "scripted:tools"}
    first = sweep("scout", "read it for {{word}}", **options)
    assert first.wait(60)
    assert sweep("scout", "read it for {{word}}", **options).ids == first.ids
    Path("data.txt").write_text("two")
    again = sweep("scout", "read it for {{word}}", **options)
    assert again.wait(60) and not set(again.ids) & set(first.ids)


def test_another_contract_is_not_mistaken_for_the_run_that_is_there() -> None:
    first = sweep("scout", "mind {{word}}", grid=words("a"), model="scripted:echo")
    other = sweep("scout", "mind {{word}}", grid=words("a"), model="scripted:echo", temperature=0)

    assert other.ids != first.ids
    assert first.wait(60) and other.wait(60)


def test_options_vary_as_their_own_type_and_chains_are_swept_too() -> None:
    flow = chain(
        step("scout", "find {{word}}"), parallel(step("scout", "{previous} left"), step("scout", "{{word}} right"))
    )
    swept = sweep(flow, grid={"word": ["x", "y"], "temperature": [0, 0.5]}, model="scripted:echo", wait=True)

    assert [run.plan.steps[0].temperature for run in swept.runs] == [0, 0.5, 0, 0.5]
    assert [run.steps[2].text for run in swept.runs] == ["x right", "x right", "y right", "y right"]


def test_a_grid_with_a_hole_launches_nothing(shared_home: StoreHome) -> None:
    before = FileRuns(shared_home).ids()

    with pytest.raises(LaunchRefused, match=r"model=scripted:nowhere: there is no script"):
        sweep("scout", "hole", grid={"model": ["scripted:echo", "scripted:nowhere"]})
    with pytest.raises(LaunchRefused) as refused:
        sweep(
            "scout", "hole", grid={"stile": ["x"], "model": ["scripted:echo"]}, model="scripted:echo", repeat=0, hue=1
        )

    assert FileRuns(shared_home).ids() == before
    assert [reason.split(";")[0] for reason in refused.value.reasons] == [
        "stile is no option of launch, and {{stile}} does not stand in the task",
        "model is given twice: in the grid and for all runs",
        "there is no option hue",
        "repeat is a number from 1 to 1000, not 0",
    ]


def test_only_what_failed_is_launched_again() -> None:
    bad = script("flaky", {"fail": {"message": "not today"}})
    grid = {"model": ["scripted:echo", bad]}
    swept = sweep("scout", "flaky", grid=grid, wait=True)
    assert [run.state for run in swept.runs] == [RunState.COMPLETE, RunState.FAILED]
    assert swept.missing == [{"model": bad}] and repr(swept) == "<Sweep sweep: 1 of 2 done, 1 failed>"

    script("flaky", {"text": "today"})
    fresh = retry(swept)

    assert len(fresh) == 1 and swept.wait(60)
    assert [run.text for run in swept.runs] == ["flaky", "today"] and swept.missing == []
    assert swept.retry().ids == swept.ids


def test_plain_runs_are_retried_by_their_own_plan_and_only_if_they_failed() -> None:
    bad = launch("scout", "retry me", model=script("bad", {"fail": {}}))
    good = launch("scout", "leave me", model="scripted:echo")
    assert bad.wait(60) and good.wait(60)
    script("bad", {"text": "mended"})

    (fresh,) = retry([bad, good])

    assert fresh.id != bad.id and fresh.result(60) == "mended" and fresh.plan.digest == bad.plan.digest
    with pytest.raises(RequestError, match="did not fail"):
        retry(good)


def test_a_budget_of_the_whole_sweep_keeps_later_cells_from_being_launched() -> None:
    model = script("dear", {"usage": {"input_tokens": 60, "requests": 1}}, {"text": "done"})
    swept = sweep("scout", "dear {{n}}", grid={"n": [1, 2, 3, 4]}, model=model, usage_budget=100, max_parallel=1)

    assert swept.wait(90)

    assert len(swept.ids) == 2 and [cell["n"] for cell in swept.missing] == [3, 4]
    assert swept.note == "its usage budget is used up, so that 2 of 4 runs were not launched"


_SWEEPER = """
import sys
from subagents_nb import sweep
print("ready", flush=True)
sys.stdin.readline()
swept = sweep("scout", sys.argv[1], grid={"n": list(range(int(sys.argv[2])))}, model="scripted:echo")
print(*swept.ids, flush=True)
"""


def sweeper(task: str, number: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", _SWEEPER, task, str(number)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    return process


def go(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("go\n")
    process.stdin.flush()


def of_task(home: StoreHome, head: str) -> list[Run]:
    """Return the runs of a task; a directory that somebody is making just now has no plan yet."""
    read = [FileRuns(home).snapshot(run_id, whole=True) for run_id in FileRuns(home).ids()]
    ours = [one for one in read if one.plan is not None and one.plan.steps[0].task.startswith(head)]
    return [Run(home, one.run_id) for one in ours]


def test_two_kernels_that_sweep_one_grid_run_each_cell_once(shared_home: StoreHome) -> None:
    both = [sweeper("both {{n}}", 6), sweeper("both {{n}}", 6)]
    for process in both:
        go(process)

    told = [process.communicate(timeout=90)[0].split() for process in both]

    assert told[0] == told[1] and len(set(told[0])) == 6
    assert len(of_task(shared_home, "both ")) == 6
    assert sweep("scout", "both {{n}}", grid={"n": list(range(6))}, model="scripted:echo", wait=True).ids == told[0]


def test_a_sweep_whose_kernel_was_killed_goes_on_where_it_was(shared_home: StoreHome) -> None:
    process = sweeper("killed {{n}}", 8)
    go(process)
    until(lambda: len(of_task(shared_home, "killed ")) >= 2, 60, what="two runs of the sweep")
    os.kill(process.pid, signal.SIGKILL)
    process.communicate(timeout=30)

    swept = sweep("scout", "killed {{n}}", grid={"n": list(range(8))}, model="scripted:echo")

    assert swept.wait(90) and [run.text for run in swept.done] == [f"killed {n}" for n in range(8)]
    every = of_task(shared_home, "killed ")
    assert len([run for run in every if run.state is RunState.COMPLETE]) == 8  # a run cut short may stand beside them


def test_scores_are_kept_as_they_are_and_the_latest_counts() -> None:
    run = launch("scout", "score me", model="scripted:echo")
    assert run.wait(60)

    run.score("good", True)
    run.score("loss", 3)
    run.score("loss", 2.5, step=2, comment="later")
    run.score("odd", math.nan)
    run.score("odd", -math.inf, case="x")
    run.score("f1", 0.5, case="x")
    run.score("f1", 1.0, case="y")

    scores = run.scores
    assert scores["good"] == 1.0 and scores["loss"] == 2.5 and math.isnan(scores["odd"]) and scores["f1"] == 0.75
    assert scores.cases("odd") == {"x": -math.inf}
    with pytest.raises(RequestError, match="is a number"):
        run.score("text", "high")
    with pytest.raises(RequestError, match="name"):
        run.score("", 1)


def test_a_scorer_of_the_launch_judges_when_somebody_asks_and_one_that_fails_only_warns() -> None:
    def length(run: Run) -> int:
        return len(run.text)

    def broken(run: Run) -> dict[str, float]:
        raise ValueError("no <b>idea</b>")

    swept = sweep("scout", "judge {{word}}", grid=words("a", "bcd"), model="scripted:echo", score=[length, broken])
    with pytest.warns(UserWarning, match="The scorer broken could not judge run r-"):
        assert swept.wait(60)

    assert [dict(run.scores) for run in swept.runs] == [{"length": 7.0}, {"length": 9.0}]
    assert compare(swept, baseline="word=a").best("length")[0].params == {"word": "bcd"}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert [dict(run.scores) for run in swept.runs] == [{"length": 7.0}, {"length": 9.0}]  # each is called once


def test_stored_runs_are_judged_later_for_no_tokens() -> None:
    swept = sweep("scout", "later {{word}}", grid=words("a", "bb"), model="scripted:echo", wait=True)

    def picky(run: Run) -> dict[str, float] | None:
        if run.text.endswith("bb"):
            raise KeyError("bb")
        return {"x": 1, "y": math.inf}

    with pytest.raises(ScoringFailed, match="picky could not judge") as failed:
        score(swept, picky)

    assert list(failed.value.failed) == [swept.ids[1]]
    assert dict(swept.runs[0].scores) == {"x": 1.0, "y": math.inf} and dict(swept.runs[1].scores) == {}
    assert score(swept.runs, lambda run: None) == 0


def test_tables_at_four_levels() -> None:
    model = script("seen", {"tool": "read", "args": {"path": "x"}, "result": "y"}, {"text": "done"})
    run = launch(
        "scout", "table", model=model,
        tags=["quick", "team=a"], params={"k": 1}, experiment="tables", notes="a note",
    )  # fmt: skip
    assert run.wait(60)
    run.score("acc", math.nan)

    (record,) = frame(run).records()
    assert record["run_id"] == run.id and record["status"] == "complete" and record["experiment"] == "tables"
    assert record["params.k"] == 1 and record["params.model"] == "scripted:seen" and math.isnan(record["metrics.acc"])
    assert record["tags.quick"] == "true" and record["tags.team"] == "a" and record["notes"] == "a note"
    assert record["start_time"] <= record["end_time"]
    (only,) = frame(run, level="steps").records()
    assert (only["step"], only["agent"], only["status"], only["text"]) == (0, "scout", "complete", "done")
    assert "table" in [m["content"] for m in frame(run, level="messages") if m["part"] == "user-prompt"]
    assert frame(run, level="events")[0]["type"] == "run-started"
    table = frame(run).to_pandas()
    assert list(table["metrics.seconds"]) == [record["metrics.seconds"]] and str(table["start_time"].dtype).endswith(
        "UTC]"
    )
    assert len(runs(name=run.name).to_pandas()) == 1
    with pytest.raises(RequestError, match="no level"):
        frame(run, level="tokens")


def test_two_runs_are_told_apart_by_prompt_plan_and_output() -> None:
    one = launch("scout", "first line\nsame", model="scripted:echo")
    other = launch("scout", "second line\nsame", model="scripted:echo", temperature=1)
    assert one.wait(60) and other.wait(60)

    found = diff(one, other)

    assert [part.name for part in found.parts] == ["plan", "task", "output"]
    assert "-first line" in found.text and "+second line" in found.text and "+temperature: 1.0" in found.text
    assert not diff(one, one) and "do not differ" in diff(one, one).text
