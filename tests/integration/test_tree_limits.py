"""What bounds a tree of runs: one budget of usage, one count of runs, the places of the user."""

from __future__ import annotations

import sys

import pytest
from crash.counting import times
from trees import agent, below, rows, spending, to

from subagents_nb import Run, launch
from subagents_nb.domain.runs.states import RunState
from subagents_nb.store.tree.followers import spent_by

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
def test_a_tree_that_is_gone_on_from_again_and_again_has_one_budget_and_one_count_of_runs() -> None:
    agent("lead", to("leaf", "a"), agents="leaf")
    agent("leaf", {"usage": {"input_tokens": 100}}, {"text": "+"})
    run = launch("lead", "go", usage_budget=1000, max_children=2)
    assert run.result(60) == "+"
    second = run.resume("again")
    assert second.result(60) == "+" and left_of(second) == 900
    none_left = "asked for 1 more runs, and 0 of 2 are left for the whole tree (RUN_FANOUT_LIMIT)"
    for source in (run, second):
        later = source.resume("once more")
        assert none_left in later.result(60)
        assert 600 < left_of(later) <= 800
    child = below(run)[0].resume("by itself")
    assert child.wait(60) and 600 < left_of(child) <= 800
    spent = spent_by(run.home, run.id)
    assert spent.usage.input_tokens >= 300 and spent.runs == 2, "all that went on from any of it counts"


def left_of(run: Run) -> float:
    budget = run.status.usage_budget
    assert budget is not None and budget.tokens is not None
    return budget.tokens.hard


@pytest.mark.usefixtures("shared_home")
def test_as_many_parents_as_places_that_all_wait_come_to_an_end() -> None:
    agent("lead", to("leaf", "a"), {"text": "!"}, agents="leaf")
    agent("leaf", {"text": "leaf"})
    parents = [launch("lead", f"go {number}", max_live=PARENTS) for number in range(PARENTS)]
    assert [run.result(100) for run in parents] == ["leaf!"] * PARENTS
