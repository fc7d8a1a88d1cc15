"""A sweep on a page: what it is sent, what it may ask, and that a plain table stands behind it."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from support import until

from subagents_nb.domain.runs.states import RunState
from subagents_nb.experiments.sweeps.sweep_cells import Reading, SweepCell
from subagents_nb.experiments.sweeps.sweep_picture import MOST_RUNS, runs_of
from subagents_nb.notebook.comparing.sweep_show import SweepView
from subagents_nb.notebook.comparing.sweep_view import live_picture
from subagents_nb.notebook.comparing.sweep_widget import HERE_S, SweepRequests
from subagents_nb.notebook.views.notices import Notices

EVIL = "<img src=x onerror=alert(1)>"


def place(number: int, state: RunState = RunState.COMPLETE, **more: Any) -> SweepCell:
    return SweepCell({"model": "m", "case": number}, number % 2, Reading(state, "name", run_id=f"r-{number}", **more))


def sweep(**more: Any) -> Any:
    known = {
        "name": EVIL, "params": ("model", "case"), "found": 0, "launched": 1, "launching": False, "note": "",
        "launched_anew": [EVIL], "budget": None, "ids": ["r-1"], "home": Path("/nowhere"),
    }  # fmt: skip
    return SimpleNamespace(**{**known, **more})


def test_the_runs_of_a_cell_begin_with_those_that_ask_or_failed_and_are_bounded() -> None:
    places = [place(n) for n in range(MOST_RUNS)]
    places += [
        place(97, RunState.RUNNING),
        place(98, RunState.FAILED, error=EVIL),
        place(99, RunState.RUNNING, asks=True),
    ]

    found = runs_of(places, ("model", "case"), 0)

    assert [(one["run"], one["state"]) for one in found["runs"][:3]] == [
        ("r-99", "asks you"),
        ("r-98", "failed"),
        ("r-97", "running"),
    ]
    assert (len(found["runs"]), found["more"]) == (MOST_RUNS, 3)
    assert found["runs"][1]["about"] == "case 98, repeat 1" and found["runs"][1]["error"] == EVIL
    assert runs_of(places, ("model", "case"), 5) == {"runs": [], "more": 0}  # no cell begins there


def test_a_page_is_sent_json_with_why_runs_were_launched_anew() -> None:
    picture = live_picture(sweep(), [place(1)])

    assert json.loads(json.dumps(picture, allow_nan=False)) == picture
    assert len(picture["notes"]) == 1 and EVIL in picture["notes"][0]


def test_a_page_may_ask_for_runs_of_this_sweep_alone_and_says_that_it_stands() -> None:
    now, said = [0.0], []
    requests = SweepRequests(sweep(), lambda: [place(1)], lambda: {"text/html": "x"}, lambda: now[0])
    assert not requests.stands
    for content in (
        None,
        {"kind": "full", "run": "r-9"},
        {"kind": "full", "run": ["r-1"]},
        {"kind": "runs", "n": True},
        {},
    ):
        requests.hear(content, said.append)
    assert said == []

    requests.hear({"kind": "here"}, said.append)
    assert requests.stands
    now[0] = HERE_S
    assert not requests.stands
    requests.hear({"kind": "card"}, said.append)
    requests.hear({"kind": "runs", "n": 0}, said.append)
    until(lambda: len(said) == 2, 10, what="the runs")
    assert said[0] == {"kind": "card", "data": {"text/html": "x"}}
    assert said[1]["n"] == 0 and [one["run"] for one in said[1]["runs"]] == ["r-1"]


class Swept:
    """A sweep of one run, as a view knows it."""

    def __init__(self, **more: Any) -> None:
        self.__dict__.update(sweep(**more).__dict__)
        self.launching = True
        self.scores: dict[str, float] = {}

    def read(self, run_id: str) -> Reading:
        return Reading(RunState.COMPLETE, run_id, run_id=run_id)

    def places(self, heard: Any = None) -> list[SweepCell]:
        return [SweepCell({"model": "m", "case": 1}, 0, self.read("r-1"), dict(self.scores))]

    def observe(self, listener: Any) -> Any:
        self.tell = listener
        return lambda: None


def test_behind_a_live_view_the_plain_table_is_published_anew_at_the_end_and_when_runs_were_judged() -> None:
    swept, drawn, now = Swept(), [], [0.0]
    sheet: Any = SimpleNamespace(stands=True, draw=drawn.append)
    pages: list[dict[str, str]] = []
    view = SweepView(swept, pages.append, sheet=sheet, clock=lambda: now[0])  # type: ignore[arg-type]
    view.start(pages.append)
    assert (len(pages), len(drawn)) == (1, 1)

    swept.tell()
    now[0] += 10
    view.tick()
    assert (len(pages), len(drawn)) == (1, 2)  # the page shows it; the plain table waits
    swept.launching = False
    swept.tell()
    assert (len(pages), len(drawn)) == (2, 3) and "as of" not in pages[-1]["text/html"]

    view.judge_anew()
    assert len(pages) == 2
    swept.scores = {"right": 1.0}
    view.judge_anew()
    assert len(pages) == 3 and "right" in pages[-1]["text/html"]
    view.judge_anew()
    assert len(pages) == 3


def test_what_ended_before_its_table_came_is_told_by_the_table_alone() -> None:
    ended: Any = SimpleNamespace(run_id="r-1", ended=True, state="complete", questions=(), attention=None)
    notices = Notices(follow=lambda *_: lambda: None, clock=iter((0.0, 9.0)).__next__)
    notices.expect(SimpleNamespace(id="r-1", home=None))  # type: ignore[arg-type]
    notices.on_snapshot(ended)
    swept, pages = Swept(launching=False), list[dict[str, str]]()

    SweepView(swept, pages.append, notices=notices).start(pages.append)  # type: ignore[arg-type]

    assert not notices.take() and notices.suppressed == {"r-1": "shown-live"}
