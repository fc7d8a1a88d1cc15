"""What the runs of one tree leave each other: asks and answers, and the usage of each."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from support import WHEN, make_plan, make_recovery, run_id, until

from subagents_nb.domain.plans.resumed import Resumes
from subagents_nb.domain.tree.asks import ChildAnswer, ChildAsk
from subagents_nb.domain.tree.spent import Spent
from subagents_nb.domain.values.usage import Usage
from subagents_nb.errors import StoreError
from subagents_nb.store import create_run, open_home
from subagents_nb.store.layout import RunPaths, StoreHome
from subagents_nb.store.tree.followers import note_follower, spent_by
from subagents_nb.store.tree.launches import children_of, put_answer, put_ask, read_answer, read_ask
from subagents_nb.store.tree.tree_usage import SharedUsage, forget_used, of_pool, of_tree, used_by, used_in
from subagents_nb.store.waiting.admissions import admit, open_budget


def root_of(tmp_path: Path) -> RunPaths:
    paths = RunPaths(tmp_path / "runs" / run_id())
    paths.root.mkdir(parents=True)
    return paths


def test_an_ask_is_answered_once_and_names_the_child_from_then_on(tmp_path: Path) -> None:
    paths = root_of(tmp_path)
    said = {"run_id": run_id(), "ask_id": "d1"}
    ask = ChildAsk(**said, agent="scout", task="t", path="scout", cwd="/w", asked_at=WHEN)  # type: ignore[arg-type]
    put_ask(paths, ask)
    assert (read_ask(paths, "d1"), read_answer(paths, "d1"), children_of(paths)) == (ask, None, [])
    assert put_answer(paths, ChildAnswer(**said, child=run_id(2), answered_at=WHEN))  # type: ignore[arg-type]
    assert not put_answer(paths, ChildAnswer(**said, refused="late", answered_at=WHEN))  # type: ignore[arg-type]
    assert children_of(paths) == [run_id(2)]


def test_a_run_that_never_delegated_has_no_children(tmp_path: Path) -> None:
    assert children_of(root_of(tmp_path)) == []


def test_each_run_of_a_tree_sees_what_all_of_them_used(tmp_path: Path) -> None:
    root = root_of(tmp_path)
    first, second = SharedUsage(of_tree(root), run_id(1)), SharedUsage(of_tree(root), run_id(2))
    assert first.in_tree(Usage(input_tokens=10, requests=1, cost_usd=0.5), True).input_tokens == 10
    both = second.in_tree(Usage(input_tokens=7, requests=1, cost_usd=0.25), True)
    assert (both.input_tokens, both.requests, both.cost_usd) == (17, 2, 0.75)
    assert used_by(root) == both
    (root.root / "budget" / f"usage-{run_id(2)}.json").write_text("{")
    assert used_by(root).input_tokens == 10, "what can't be read counts for nothing"


def test_what_was_used_is_written_ten_times_a_second_at_most_but_before_a_request(tmp_path: Path) -> None:
    root = root_of(tmp_path)
    own = SharedUsage(of_tree(root), run_id(1))
    own.say(Usage(input_tokens=1))
    own.say(Usage(input_tokens=2))
    assert used_by(root).input_tokens == 1
    until(
        lambda: own.in_tree(Usage(input_tokens=2), False) and used_by(root).input_tokens == 2, what="what was left out"
    )
    own.say(Usage(input_tokens=9), at_once=True)
    assert used_by(root).input_tokens == 9, "a response was paid for: others must not ask for as much again"
    own.in_tree(Usage(input_tokens=10), True)
    assert used_by(root).input_tokens == 10


def tree_of(home: StoreHome, number: int, *, after: int | None = None, carried: int = 0) -> RunPaths:
    """Keep a root whose tree used ten tokens and started one run more than was carried over."""
    resumes = Resumes(run_id=run_id(after), digest="0" * 64, tree=run_id(after), admitted=carried) if after else None
    plan = make_plan(number, resumes=resumes)
    note_follower(home, plan)
    paths = create_run(home, plan, make_recovery(number)).paths
    SharedUsage(of_tree(paths), run_id(number)).say(Usage(input_tokens=10), at_once=True)
    open_budget(paths, limit=64, carried=carried)
    admit(paths, 1, path="x")
    return paths


def test_whoever_went_on_from_a_tree_counts_for_it_as_long_as_it_is_there(home: StoreHome) -> None:
    assert spent_by(home, run_id(1)) == Spent(), "no such run"
    tree_of(home, 1)
    tree_of(home, 2, after=1, carried=1)
    tree_of(home, 3, after=2, carried=2)
    tree_of(home, 4, after=1, carried=3)
    assert spent_by(home, run_id(1)) == Spent(usage=Usage(input_tokens=40), runs=4)
    assert spent_by(home, run_id(2)) == Spent(usage=Usage(input_tokens=20), runs=4), "a budget may be new"
    assert spent_by(home, run_id(4)) == Spent(usage=Usage(input_tokens=10), runs=4)
    shutil.rmtree(home.run(run_id(1)).root)
    assert spent_by(home, run_id(4)).runs == 4, "what it carried over is known to itself"


def test_a_count_of_runs_that_cannot_be_read_is_not_taken_for_none(home: StoreHome) -> None:
    (tree_of(home, 1).root / "budget" / "manifest.json").write_text("{")
    with pytest.raises(StoreError, match="can't be read, so nothing more is started"):
        spent_by(home, run_id(1))


def test_whoever_goes_on_from_a_child_whose_root_was_deleted_counts_for_itself(home: StoreHome) -> None:
    tree_of(home, 2, after=1, carried=3)
    assert not home.run(run_id(1)).root.exists()
    assert spent_by(home, run_id(2)) == Spent(usage=Usage(input_tokens=10), runs=4)


def test_runs_of_a_pool_read_those_that_came_later_and_are_forgotten_when_they_are_gone(tmp_path: Path) -> None:
    home = open_home(tmp_path / "store")
    pool = of_pool(home, "a1")
    for number in (1, 2, 3):
        SharedUsage(pool, run_id(number)).say(Usage(input_tokens=number), at_once=True)

    third = SharedUsage(pool, run_id(3), since=run_id(2))
    assert [one.input_tokens for one in third.of_others()] == [2]

    forget_used(home, [run_id(1), "../x"])
    assert used_in(pool).keys() == {run_id(2), run_id(3)}
    forget_used(home, [run_id(2), run_id(3)])
    assert not pool.exists()
    with pytest.raises(ValueError, match="names no pool"):
        of_pool(home, "../x")
