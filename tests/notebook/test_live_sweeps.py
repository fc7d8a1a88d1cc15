"""A sweep that is shown: its table follows the runs, stops for good, and is right wherever it is saved."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from kernels import Kernel, display_id_of
from support import until

from subagents_nb import Run, sweep
from subagents_nb.domain.agents.scripts import SCRIPT_FOLDER
from subagents_nb.domain.runs.states import RunState
from subagents_nb.notebook.comparing.sweep_show import EVERY_S, SweepView, bundle_of
from subagents_nb.store import FileRuns, StoreHome
from subagents_nb.supervisor.ends.proof import is_proved

pytestmark = pytest.mark.timeout(180)
VIEWS = "__import__('subagents_nb.notebook.comparing.sweep_show', fromlist=['_live'])._live"
EVIL = "<img onerror>"
SOON_S = 60.0


def script(folder: Path, name: str, *items: dict[str, Any]) -> str:
    path = folder / SCRIPT_FOLDER / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(items)
    if not path.exists() or path.read_text() != text:  # a run that has just begun may be reading it
        path.write_text(text)
    return f"scripted:{name}"


def waits(kernel: Kernel, name: str, flags: str = "") -> str:
    """Return the cell of a sweep of this name whose runs wait to be steered."""
    script(kernel.work, "waits", {"await_steer": True})
    head = f"%%subagent -o swept --model scripted:waits --sweep 'word=a,{EVIL}' --name {name} {flags}"
    return f"{head}\nSay {{{{word}}}} to {name}"


def at_work(kernel: Kernel, number: int) -> None:
    code = "[str(place.reading.state) for place in swept.places()]"
    kernel.until(lambda: kernel.value(code).count("running") == number, SOON_S, what=f"{number} runs at work")


def texts(kernel: Kernel, display_id: str) -> list[str]:
    return [data["text/plain"] for data in kernel.updates_of(display_id)]


def test_a_shown_sweep_follows_its_runs_and_stops_for_good(kernel: Kernel) -> None:
    cell = kernel.ok(waits(kernel, "two"))
    place = display_id_of(cell)
    assert cell.plain == "<Sweep two: 0 of 2 done, 2 live>"
    assert set(cell.shown[0]) == {"text/html", "text/plain"} and "<img" not in cell.shown[0]["text/html"]
    at_work(kernel, 2)

    kernel.ok("swept.runs[0].steer('go')")
    kernel.until(lambda: "<Sweep two: 1 of 2 done, 1 live>" in texts(kernel, place), what="the first end")
    kernel.ok("swept.runs[1].stop('enough')")
    kernel.until(lambda: "<Sweep two: 1 of 2 done, 1 stopped>" in texts(kernel, place), what="the second end")

    last = kernel.updates_of(place)[-1]
    assert "stopped" in last["text/html"] and "&lt;img onerror&gt;" in last["text/html"]
    assert kernel.value(f"len({VIEWS})") == 0
    number = len(texts(kernel, place))
    again = kernel.ok("swept.retry()")
    assert again.plain.endswith("<Sweep two: 1 of 2 done, 1 live>") and len(texts(kernel, place)) == number
    assert "Meanwhile" not in again.plain  # the table on the page told it
    kernel.ok("swept.runs[1].steer('go')\nassert swept.wait(60)")
    kernel.until(lambda: "2 of 2 done" in texts(kernel, display_id_of(again))[-1], what="the end")


def test_a_cell_that_is_run_again_shows_one_live_table(kernel: Kernel) -> None:
    first = display_id_of(kernel.ok(waits(kernel, "anew"), cell_id="sweeps"))
    ids = kernel.value("swept.ids")
    cell = kernel.ok(waits(kernel, "anew", "--reuse tracked"), cell_id="sweeps")
    again = display_id_of(cell)
    assert "<Sweep anew: 0 of 2 done, 2 live; 2 found, 0 launched>" in cell.plain
    assert kernel.value("repr(swept)") == "<Sweep anew: 0 of 2 done, 2 live>"
    other = display_id_of(kernel.ok("swept", cell_id="another"))
    assert kernel.value("swept.ids") == ids and kernel.value(f"len({VIEWS})") == 2
    at_work(kernel, 2)
    kernel.drain(0.1)
    before = len(texts(kernel, first))

    kernel.ok("for run in swept.runs:\n    run.steer('go')\nassert swept.wait(60)")
    for place in (again, other):
        kernel.until(lambda place=place: "2 of 2 done" in (texts(kernel, place) or [""])[-1], what="the end")
    assert len(texts(kernel, first)) == before


def test_a_cell_that_waits_shows_the_sweep_meanwhile_and_its_end_in_the_same_place(kernel: Kernel) -> None:
    request = kernel.send(waits(kernel, "awaited", "--wait"))
    kernel.until(lambda: any(m["msg_type"] == "display_data" for m in kernel.log), what="the table")
    assert not kernel.is_idle(request)
    (shown,) = (m["content"] for m in kernel.log if m["msg_type"] == "display_data")
    assert "2 live" in shown["data"]["text/plain"]
    for number in (1, 2):
        kernel.until(lambda number=number: steered(kernel, f"awaited-{number}"), SOON_S, what="the steering")

    cell = kernel.finish(request)
    place = shown["transient"]["display_id"]
    assert texts(kernel, place)[-1] == "<Sweep awaited: 2 of 2 done>"
    assert (cell.plain.count("<Sweep"), cell.updated.count("<Sweep")) == (1, len(texts(kernel, place)))


def test_a_sweep_that_launches_run_after_run_is_followed_to_its_end(kernel: Kernel) -> None:
    cell = kernel.ok(waits(kernel, "slowly", "--sweep-budget 1M --max-parallel 1"))
    place = display_id_of(cell)
    texts_so_far = [cell.plain]
    for number in (1, 2):
        name = f"slowly-{number}"
        kernel.until(lambda name=name: has(kernel, name) and steered(kernel, name), SOON_S, what=f"the turn of {name}")
    kernel.until(lambda: "<Sweep slowly: 2 of 2 done>" in texts(kernel, place), what="the end")

    texts_so_far += texts(kernel, place)
    assert any("to come" in text for text in texts_so_far)
    assert kernel.value(f"len({VIEWS})") == 0 and "missing" not in kernel.updates_of(place)[-1]["text/html"]


def has(kernel: Kernel, name: str) -> bool:
    return any(one.name == name for one in FileRuns(kernel.home).all())


def steered(kernel: Kernel, name: str) -> bool:
    """Steer a run from outside once it is at work."""
    if kernel.state(name) == "running":
        Run(kernel.home, kernel.run_id(name)).steer("go")
        return True
    return False


def test_a_program_that_executes_a_notebook_gets_the_end_that_came_between_two_cells(kernel: Kernel) -> None:
    place = display_id_of(kernel.ok(waits(kernel, "between"), cell_id=None))
    at_work(kernel, 2)
    for run_id in kernel.value("swept.ids"):
        Run(kernel.home, run_id).steer("go")
    kernel.until(lambda: "2 of 2 done" in (texts(kernel, place) or [""])[-1], what="the end")

    assert "<Sweep between: 2 of 2 done>" in kernel.ok("pass", cell_id=None).updated
    assert "<Sweep" not in kernel.ok("pass", cell_id=None).updated


def test_unloading_keeps_the_last_table_and_shows_nothing_afterwards(kernel: Kernel) -> None:
    place = display_id_of(kernel.ok(waits(kernel, "left")))
    at_work(kernel, 2)
    kernel.ok("%unload_ext subagents_nb")
    kernel.drain(0.1)
    left = texts(kernel, place)

    kernel.ok("for run in swept.runs:\n    run.steer('go')\nassert swept.wait(60)")
    assert texts(kernel, place) == left and kernel.value(f"len({VIEWS})") == 0
    kernel.ok("%load_ext subagents_nb")


def test_a_saved_sweep_is_typed_by_the_class_that_its_cell_names(kernel: Kernel) -> None:
    script(kernel.work, "count", {"value": {"words": 3}})
    kernel.ok(
        "from pydantic import BaseModel\nclass Count(BaseModel):\n    words: int\ndef n(run): return run.output.words"
    )
    head = "%%subagent -o swept --model scripted:count --sweep word=a,b --score n --wait"
    kernel.ok(f"{head} --schema Count\ncount {{{{word}}}}")
    assert kernel.value("[type(run.output) is Count for run in swept.runs]") == [True, True]
    assert kernel.value("[dict(run.scores) for run in swept.runs]") == [{"n": 3.0}] * 2
    kernel.ok(f"{head} --sweep schema=Count\ncount {{{{word}}}}")
    assert kernel.value("[type(run.output) is Count for run in swept.done]") == [True, True]


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_view_shows_a_change_a_second_later_reads_no_ended_run_again_and_ends_once(shared_home: StoreHome) -> None:
    model = script(Path.cwd(), "waits", {"await_steer": True})
    swept = sweep("scout", "view {{word}}", grid={"word": ["a", "b", "c"]}, model=model)
    runs = list(swept.runs)
    until(lambda: all(run.state is not RunState.QUEUED for run in runs), SOON_S, what="the begin of all runs")
    assert [run.error for run in runs] == [None] * 3
    pages: list[dict[str, str]] = []
    clock = Clock()
    view = SweepView(swept, pages.append, clock=clock)
    view.start(pages.append)
    assert [page["text/plain"] for page in pages] == ["<Sweep sweep: 0 of 3 done, 3 live>"]

    runs[0].steer("go")
    until(lambda: "1 of 3" in view.bundle()["text/plain"], 30, what="the word of the first end")
    view.tick()
    assert len(pages) == 1  # not yet
    clock.now += EVERY_S
    until(lambda: len(pages) == 2, 30, what="the table with the first end")
    until(lambda: is_proved(shared_home.run(runs[0].id)), 30, what="the last word on the first")
    shutil.rmtree(shared_home.run(runs[0].id).root)
    clock.now += EVERY_S
    view.tick()
    assert len(pages) == 2  # nothing changed
    runs[1].steer("go")
    until(lambda: "2 of 3" in view.bundle()["text/plain"], 30)

    runs[2].stop("enough")
    until(lambda: pages[-1]["text/plain"] == "<Sweep sweep: 2 of 3 done, 1 stopped>", 30, what="the last table at once")
    number = len(pages)
    clock.now += EVERY_S
    view.tick()
    view.grow()
    view.leave()
    assert len(pages) == number and pages[-1] == bundle_of(swept, swept.places(view._heard))
