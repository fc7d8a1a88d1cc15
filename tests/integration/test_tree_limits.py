"""What bounds a tree of runs: one budget of usage, one count of runs, the places of the user."""

from __future__ import annotations

import sys

import pytest
from crash.counting import times
from trees import agent, rows, spending, to

from subagents_nb import launch
from subagents_nb.domain.runs.states import RunState

pytestmark = [pytest.mark.timeout(120), pytest.mark.skipif(sys.platform != "linux", reason="a supervisor's sockets")]
PARENTS = times(4, 16)


@pytest.mark.usefixtures("shared_home")
def test_ten_runs_that_ask_at_once_pass_their_budget_by_the_requests_in_flight_at_most() -> None:
    agent("lead", to("leaf", *"abcdefghij"), agents="leaf")
    agent("leaf", model="told:m", tools="bash")
    each, hard = 1000, 40_000
    with spending(each) as model:
        run = launch("lead", "go", usage_budget=hard, max_live=16)
        assert run.wait(90)
        used = model.answered * each
    head = run.status.head
    assert head is not None and head.budget == "hard-reached"
    assert set(rows(run).values()) == {RunState.FAILED} and len(rows(run)) == 10
    assert all("The usage budget is used up" in (row.error or "") for row in run.status.tree)
    assert hard <= used < hard + 10 * each, "each has one request in flight at most"
    assert sum(row.usage.input_tokens + row.usage.output_tokens for row in run.status.tree) == used, "all is counted"


@pytest.mark.usefixtures("shared_home")
def test_as_many_parents_as_places_that_all_wait_come_to_an_end() -> None:
    agent("lead", to("leaf", "a"), {"text": "!"}, agents="leaf")
    agent("leaf", {"text": "leaf"})
    parents = [launch("lead", f"go {number}", max_live=PARENTS) for number in range(PARENTS)]
    assert [run.result(100) for run in parents] == ["leaf!"] * PARENTS
