"""Sweeps, scores, tables and retries with real runs."""

from __future__ import annotations

import asyncio
import math
import os
import signal
import subprocess
import sys
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pydantic_evals.evaluators as evals
import pytest
from pydantic import BaseModel
from support import script, until

from subagents_nb import (
    Cases,
    Run,
    attach,
    chain,
    compare,
    diff,
    frame,
    launch,
    parallel,
    retry,
    runs,
    score,
    step,
    sweep,
)
from subagents_nb.domain.runs.states import RunState
from subagents_nb.errors import LaunchRefused, RequestError
from subagents_nb.experiments.rescoring import ScoringFailed
from subagents_nb.experiments.sweeps.scheduler import SweepScheduler
from subagents_nb.experiments.sweeps.sweep import Sweep
from subagents_nb.experiments.sweeps.sweep_outlook import Pace
from subagents_nb.experiments.sweeps.sweep_spec import plan_sweep
from subagents_nb.store import FileRuns, StoreHome
from subagents_nb.store.runs.score_files import read_scores

pytestmark = pytest.mark.timeout(120)


@pytest.fixture(autouse=True)
def _own_store(shared_home: StoreHome, monkeypatch: pytest.MonkeyPatch) -> None:
    """The shared store; each test sweeps a task of its own. Runs are found again, as they are for everybody."""
    monkeypatch.setenv("SUBAGENTS_NB_REUSE", "tracked")


def words(*given: str) -> dict[str, Any]:
    return {"word": list(given)}


class Count(BaseModel):
    words: int

    def twice(self) -> int:
        return 2 * self.words


@dataclass
class Tone:
    tone: str


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


def test_a_run_that_a_launch_would_not_take_does_not_stand_for_its_cell_either(tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/f.txt").write_text("1")
    Path("out").symlink_to(tmp_path / "outside")
    options: dict[str, Any] = {"grid": words("a", "b"), "wait": True}
    leads_out = script("leads-out", {"python": "open('out/f.txt').read()"}, {"text": "x"})
    first = sweep("delegate", "out {{word}}", model=leads_out, **options)
    again = sweep("delegate", "out {{word}}", model=leads_out, **options)
    assert not set(again.ids) & set(first.ids) and (again.found, again.launched) == (0, 2)
    assert "is not known" in again.launched_anew[0] and len(again.launched_anew) == 2
    assert again.retry().ids == again.ids  # its own stand for it, whatever they read
    any_complete = sweep("delegate", "out {{word}}", model=leads_out, reuse="complete", **options)
    assert any_complete.ids == again.ids and any_complete.found == 2 and any_complete.launched_anew == []

    Path("w.txt").write_text("0")
    writes = script("writes", {"python": "open('w.txt', 'a').write('x')"}, {"text": "x"})
    first = sweep("delegate", "writes {{word}}", model=writes, **options)
    again = sweep("delegate", "writes {{word}}", model=writes, reuse="complete", **options)
    assert not set(again.ids) & set(first.ids) and "changed w.txt" in again.launched_anew[0]
    assert again.retry().ids == again.ids and "Launched anew: " in again._repr_html_()


def test_whoever_says_never_gets_a_run_for_each_cell_and_keeps_it(monkeypatch: pytest.MonkeyPatch) -> None:
    options: dict[str, Any] = {"grid": words("a", "b"), "model": script("never", {"text": "x"}), "wait": True}
    first = sweep("scout", "never {{word}}", **options)
    asked = sweep("scout", "never {{word}}", reuse="never", **options)
    monkeypatch.setenv("SUBAGENTS_NB_REUSE", "never")
    by_setting = sweep("scout", "never {{word}}", **options)

    assert len({*first.ids, *asked.ids, *by_setting.ids}) == 6
    assert by_setting.retry().ids == by_setting.ids and (by_setting.found, by_setting.launched) == (0, 2)
    assert sweep("scout", "never {{word}}", reuse="tracked", **options).ids == by_setting.ids
    with pytest.raises(LaunchRefused, match="there is no reuse 'perhaps'"):
        sweep("scout", "never {{word}}", reuse="perhaps", **options)


def test_two_that_say_never_at_once_share_what_the_other_launched_meanwhile(shared_home: StoreHome) -> None:
    options: dict[str, Any] = {"grid": words("a", "b"), "model": "scripted:echo", "reuse": "never"}
    one, other = (Sweep(shared_home, plan_sweep("scout", "at once {{word}}", **options)) for _ in range(2))
    one.foresee()
    other.foresee()
    one.go_on()
    other.go_on()

    assert one.ids == other.ids and (one.launched, other.launched) == (2, 0) and other.wait(60)


def test_what_a_sweep_would_find_is_foreseen(shared_home: StoreHome) -> None:
    options: dict[str, Any] = {"model": "scripted:echo", "experiment": "foreseen"}
    first = sweep("scout", "foresee {{word}}", grid=words("a"), wait=True, **options)
    order = plan_sweep("scout", "foresee {{word}}", grid=words("a", "b"), **options)

    assert Sweep(shared_home, order).foresee() == 1 and Sweep(shared_home, order, fresh=True).foresee() == 0
    assert SweepScheduler(shared_home, order).costs() == [Pace([0.0], waiting=1)]
    assert order.preflight(order.cells[0]).reuses == first.ids[0]
    assert order.preflight(order.cells[0], fresh=True).reuses is None and order.preflight(order.cells[1]).reuses is None


def test_inputs_are_made_into_files_once_for_a_whole_sweep() -> None:
    made: list[int] = []

    class Watched(dict[str, int]):
        def items(self) -> Any:
            made.append(1)
            return super().items()

    options: dict[str, Any] = {"grid": words("a", "b", "c"), "model": "scripted:echo", "inputs": Watched(n=1)}
    swept = sweep("delegate", "inputs {{word}}", **options, wait=True)
    assert len(made) == 1 and [run.plan.inputs[0].name for run in swept.runs] == ["n"] * 3
    kinds = {"grid": {"inputs": {"one": {"n": 1}, "two": {"n": 2}}}, "model": "scripted:echo"}
    apart = sweep("delegate", "of {{inputs}}", **kinds, wait=True)
    assert len({run.plan.inputs[0].sha256 for run in apart.runs}) == 2
    with pytest.raises(LaunchRefused, match="input open: the name would hide the builtin"):
        sweep("delegate", "bad {{word}}", grid=words("a"), inputs={"open": 1})


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

    async def end() -> Any:
        return await swept

    assert asyncio.run(end()) is swept  # also the cells that wait for what others will have used

    assert len(swept.ids) == 2 and [cell["n"] for cell in swept.missing] == [3, 4]
    assert swept.note == "its usage budget is used up, so that 2 of 4 runs were not launched"


def test_a_budget_is_held_by_all_runs_at_work_and_what_failed_ones_cost_is_not_forgotten() -> None:
    model = script("paid", {"usage": {"input_tokens": 50, "requests": 1}}, {"text": "ok"})
    flow = chain(*(step("scout", f"part {part} of {{{{n}}}}", model=model) for part in range(4)))
    asked = {"grid": {"n": [1, 2, 3, 4]}, "max_parallel": 2}

    def spent(swept: Sweep) -> int:
        return sum(run.usage.input_tokens for run in runs(sweep=swept.digest))

    swept = sweep(flow, **asked, usage_budget=150)  # type: ignore[arg-type]
    assert swept.wait(90)
    assert 150 <= spent(swept) <= 215, "one may have been asking while the other came to the limit"
    assert swept.failed and len(swept.ids) <= 2 and "launched" in swept.note

    again = sweep(flow, **asked, usage_budget=150)  # type: ignore[arg-type]
    assert again.wait(60) and again.launched == 0, "what was paid is paid"

    more = sweep(flow, **asked, usage_budget=300)  # type: ignore[arg-type]
    assert more.wait(90) and more.launched
    assert 300 <= spent(more) <= 365


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
    """Return the runs of a task; a directory in the making has no plan, a fan-out alone no steps."""
    read = [FileRuns(home).snapshot(run_id, whole=True) for run_id in FileRuns(home).ids()]
    plans = [one.plan for one in read if one.plan is not None]
    ours = [plan for plan in plans if plan.steps and plan.steps[0].task.startswith(head)]
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
    found = compare(swept, baseline="word=a")
    assert (
        found.records()[1]["metrics.length.difference.mean"] == 2 and found.best("length") == []
    )  # one run proves none
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert [dict(run.scores) for run in swept.runs] == [{"length": 7.0}, {"length": 9.0}]  # each is called once


def test_a_run_that_failed_is_missing_and_no_zero_in_what_was_judged() -> None:
    swept = sweep("scout", "zero", grid={"model": ["scripted:echo", "scripted:fail"]}, score=lambda run: 0.5, wait=True)

    assert [dict(run.scores) for run in swept.runs] == [{"<lambda>": 0.5}, {}]
    assert compare(swept).missing(compare(swept)[1], "<lambda>") == 1


def test_a_cheap_scorer_judges_anew_in_each_re_run_and_writes_what_is_the_same_once(shared_home: StoreHome) -> None:
    calls: list[str] = []

    def first() -> Any:
        def judge(run: Run) -> dict[str, float]:
            calls.append("first")
            return {"right": 1, "words": 2}

        return judge

    def mended() -> Any:
        def judge(run: Run) -> dict[str, float]:
            calls.append("mended")
            return {"right": 0, "words": 2}

        return judge

    options: dict[str, Any] = {"grid": words("a"), "model": "scripted:echo"}
    for scorer in (first(), first(), mended(), mended()):
        swept = sweep("scout", "once {{word}}", score=scorer, **options, wait=True)
    assert calls == ["first", "first", "mended", "mended"]
    assert dict(swept.runs[0].scores) == {"right": 0.0, "words": 2.0}
    assert len(read_scores(shared_home, swept.ids[0])) == 4
    assert [one.by.split()[0] for one in swept.runs[0].scores.all] == ["judge", "judge"]
    assert score(swept, mended()) == 2 and calls[4:] == ["mended"]  # asked for by name


def test_a_cell_that_is_run_again_while_its_runs_work_has_each_scorer_called_once() -> None:
    calls: list[int] = []

    def make(number: int) -> Any:
        def judge(run: Run) -> int:
            calls.append(number)
            return len(run.text)

        return judge

    options: dict[str, Any] = {
        "grid": words("a"),
        "model": script("waits", {"await_steer": True}, {"text": "done"}),
    }
    for number in (1, 2):
        swept = sweep("scout", "again {{word}}", score=make(number), **options)
    run = swept.runs[0]
    until(lambda: run.state is RunState.RUNNING, 60, what="a run at work")
    run.steer("go")
    assert swept.wait(60) and calls == [2]


def test_a_scorer_of_a_single_launch_sees_the_type_whoever_asks_for_the_end() -> None:
    run = launch("scout", "typed", model=script("count", {"value": {"words": 4}}), schema=Count)
    run.judge_with([lambda run: run.output.twice()])

    assert Run(run.home, run.id).wait(60) and dict(run.scores) == {"<lambda>": 8.0}


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


def test_outputs_of_a_sweep_are_of_the_type_that_was_asked_for(shared_home: StoreHome) -> None:
    options: dict[str, Any] = {"grid": words("a", "b"), "model": script("count", {"value": {"words": 3}})}
    swept = sweep("scout", "count {{word}}", schema=Count, wait=True, **options)

    assert [run.output for run in swept.runs] == [Count(words=3)] * 2
    assert isinstance(swept.runs[0].output, Count) and isinstance(swept.runs[1:][0].output, Count)
    assert [run.output.twice() for run in swept.done] == [6, 6] and swept.runs[0].steps[0].output == Count(words=3)

    class Again(Count):
        """Another class with the name and the schema of the first, as in a fresh kernel."""

    Again.__name__, Again.__doc__ = "Count", None
    again = sweep("scout", "count {{word}}", schema=Again, **options)
    assert again.ids == swept.ids and {type(run.output) for run in again.runs} == {Again}
    plain = sweep("scout", "count {{word}}", schema=Count.model_json_schema(), **options)
    assert plain.ids == swept.ids and plain.runs[0].output == {"words": 3}


def test_each_schema_of_a_grid_gives_its_own_type_and_a_retry_too() -> None:
    model = script("either", {"value": {"words": 3, "tone": "dry"}})
    kinds = {"count": Count, "tone": Tone}
    swept = sweep("scout", "either {{schema}}", grid={"schema": kinds}, model=model, wait=True)
    assert [run.text != "" for run in swept.runs] == [True, True] and swept.runs[0].plan.task == ""
    assert [type(run.output) for run in swept.done] == [Count, Tone]
    assert [run.plan.steps[0].task for run in swept.runs] == ["either count", "either tone"]

    failing = {"grid": {"schema": {"count": Count}}, "model": script("late", {"fail": {}})}
    late = sweep("scout", "late", **failing, wait=True)
    script("late", {"value": {"words": 1}})
    (fresh,) = retry(late)
    assert late.wait(60) and fresh.output == Count(words=1)


def test_chains_of_a_sweep_give_typed_steps_too() -> None:
    flow = chain(step("scout", "{{word}}", model=script("count", {"value": {"words": 3}}), schema=Count, as_="found"))
    swept = sweep(flow, grid=words("a", "b"), wait=True)

    assert [run.output for run in swept.runs] == [Count(words=3)] * 2
    assert swept.runs[1].outputs["found"] == Count(words=3)


def test_a_scorer_of_a_sweep_sees_the_type_whoever_asks_for_the_end() -> None:
    def twice(run: Run) -> int:
        return int(run.output.twice())

    options: dict[str, Any] = {"schema": Count, "model": script("count", {"value": {"words": 4}})}
    for ask in (
        lambda swept: swept.wait(60),
        lambda swept: [run.result(60) for run in swept.runs],
        lambda swept: [Run(swept.home, run_id).wait(60) for run_id in swept.ids],
        lambda swept: [until(lambda: swept.counts()["done"] == 2, 60), compare(swept)],
        lambda swept: [until(lambda: swept.counts()["done"] == 2, 60), compare(runs(sweep=swept.digest))],
    ):
        swept = sweep("scout", "twice {{word}}", grid=words("a", "b"), score=twice, fresh=True, **options)
        ask(swept)
        assert [dict(run.scores) for run in swept.runs] == [{"twice": 8.0}] * 2
    later = sweep("scout", "twice {{word}}", grid=words("a", "b"), **options)
    assert score(later, lambda run: {"later": run.output.twice()}) == 2


def test_evaluators_judge_the_runs_of_a_sweep(shared_home: StoreHome) -> None:
    @dataclass
    class Several(evals.Evaluator):
        def evaluate(self, ctx: Any) -> Any:
            label = evals.EvaluationReason("a label", "is no score")
            right = evals.EvaluationReason(ctx.output.words == 3, "counted")
            return {"right": right, "words": ctx.output.words, "label": label, "kind": "odd"}

    @dataclass
    class Slow(evals.Evaluator):
        async def evaluate(self, ctx: Any) -> Any:
            await asyncio.sleep(0)
            return evals.EvaluationReason(0.5 if ctx.metadata["word"] == "a" else 0.25, f"{ctx.inputs}")

    @dataclass
    class Label(evals.Evaluator):
        def evaluate(self, ctx: Any) -> str:
            return str(ctx.metrics["requests"])

    judges = [
        evals.Equals(Count(words=3)), evals.IsInstance("Count"), evals.Contains({"words": 3}), evals.Contains("words"),
        evals.Contains({"words": 4}, evaluation_name="four"), evals.EqualsExpected(), evals.MaxDuration(600),
        Several(), Slow(), Label(),
    ]  # fmt: skip
    model = script("count", {"value": {"words": 3}})
    swept = sweep("scout", "judged {{word}}", grid=words("a", "b"), schema=Count, model=model, score=judges, wait=True)

    same = {
        "Equals": 1.0, "IsInstance": 1.0, "Contains": 1.0, "Contains_2": 1.0, "four": 0.0, "MaxDuration": 1.0,
        "right": 1.0, "words": 3.0,
    }  # fmt: skip
    assert [dict(run.scores) for run in swept.runs] == [same | {"Slow": 0.5}, same | {"Slow": 0.25}]
    assert score(swept, evals.Equals(Count(words=9), evaluation_name="nine")) == 2
    (right,) = (one for one in swept.runs[0].scores.all if one.name == "right")
    assert right.comment == "counted"
    assert score(swept.runs[:1], Slow()) == 1 and compare(swept).estimate(compare(swept)[0], "nine").mean == 0


def test_an_async_evaluator_judges_while_a_loop_is_at_work_as_in_a_kernel() -> None:
    @dataclass
    class Slow(evals.Evaluator):
        broken: bool = False

        async def evaluate(self, ctx: Any) -> bool:
            await asyncio.sleep(0)
            if self.broken:
                raise KeyError("lost")
            return bool(ctx.output)

    run = launch("scout", "in a loop", model="scripted:echo")
    assert run.wait(60)

    async def cell() -> int:
        with pytest.raises(ScoringFailed, match=r"Slow could not judge .*KeyError"):
            score(run, Slow(broken=True))
        return score(run, Slow())

    assert asyncio.run(cell()) == 1 and dict(run.scores) == {"Slow": 1.0}


def test_evaluators_of_what_was_done_see_the_requests_and_tool_calls_of_the_run() -> None:
    Path("x.txt").write_text("y")
    reads = {"tool": "read", "args": {"path": "x.txt"}, "result": "y"}
    run = launch("scout", "look", model=script("looks", reads, {**reads, "refused": "no"}, {"text": "done"}))
    assert run.wait(60)

    for judge in (
        evals.ToolCorrectness(["read"]),
        evals.MaxToolCalls(1, evaluation_name="one call"),
        evals.MaxToolCalls(2, evaluation_name="two calls"),
        evals.HasMatchingSpan({"name_equals": "execute_tool read", "has_status": "error"}),
    ):
        assert score(run, judge) == 1
    scores = run.scores
    assert scores["ToolCorrectness"] == 1.0 and (scores["one call"], scores["two calls"]) == (0.0, 1.0)
    assert scores["HasMatchingSpan"] == 1.0


def test_a_sweep_with_a_budget_tells_its_views_of_each_run_and_of_the_end() -> None:
    model = script("told", {"text": "done"})
    swept = sweep("scout", "told {{n}}", grid={"n": [1, 2]}, model=model, usage_budget=10**6, max_parallel=1)
    told: list[tuple[int, bool]] = []
    stop = swept.observe(lambda: told.append((len(swept.ids), swept.launching)))

    def broken() -> None:
        raise OSError("the channel is closed")

    swept.observe(broken)
    assert swept.wait(60) and len(swept.done) == 2

    assert told[-1] == (2, False) and not swept.launching
    stop()
    assert swept.retry() is swept and told[-1] == (2, False)


def test_cases_are_asked_judged_by_their_answers_and_compared(shared_home: StoreHome) -> None:
    def right(run: Run) -> bool:
        return str(run.case.expected) in run.text  # type: ignore[union-attr]

    rows = [{"id": f"c{n}", "say": f"word{n}", "expected": f"word{n}", "document": f"d{n % 2}"} for n in range(4)]
    asked = {"grid": {"tone": ["dry", "warm"]}, "model": "scripted:echo", "score": right, "wait": True}
    swept = sweep("scout", "{{tone}}: {case.say}", cases=Cases(rows, metadata="document"), **asked)

    assert [run.text for run in swept.runs[:2]] == ["dry: word0", "dry: word1"]
    found = compare(swept, baseline="tone=dry")
    assert found.text.splitlines()[0] == "2 settings, each on 4 cases; the case is the unit" and found.by == ("tone",)
    assert compare(swept, cluster="document").estimate(found[0], "right").method == "Wilson over 2 clusters"
    assert attach(swept.ids[0]).case == Cases(rows, metadata="document")["c0"]

    rows[1]["expected"] = "another"  # a right answer that was mended is judged anew, for no tokens
    rows[2]["say"] = rows[2]["expected"] = "mended"  # what is asked otherwise is asked again, and nothing else
    again = sweep("scout", "{{tone}}: {case.say}", cases=Cases(rows, metadata="document"), **asked)
    assert (again.found, again.launched) == (6, 2)
    means = [run.scores["right"] for run in again.runs]
    assert means == [1.0, 0.0, 1.0, 1.0] * 2
    assert compare(again).estimate(compare(again)[0], "right").mean == 0.75
