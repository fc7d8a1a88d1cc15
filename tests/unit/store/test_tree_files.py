"""What the runs of one tree leave each other: asks and answers, and the usage of each."""

from __future__ import annotations

from pathlib import Path

from support import WHEN, run_id, until

from subagents_nb.domain.tree.asks import ChildAnswer, ChildAsk
from subagents_nb.domain.values.usage import Usage
from subagents_nb.store.layout import RunPaths
from subagents_nb.store.tree.launches import children_of, put_answer, put_ask, read_answer, read_ask
from subagents_nb.store.tree.tree_usage import TreeUsage, used_by


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
    first, second = TreeUsage(root, run_id(1)), TreeUsage(root, run_id(2))
    assert first.in_tree(Usage(input_tokens=10, requests=1, cost_usd=0.5), True).input_tokens == 10
    both = second.in_tree(Usage(input_tokens=7, requests=1, cost_usd=0.25), True)
    assert (both.input_tokens, both.requests, both.cost_usd) == (17, 2, 0.75)
    assert used_by(root) == both
    (root.root / "budget" / f"usage-{run_id(2)}.json").write_text("{")
    assert used_by(root).input_tokens == 10, "what can't be read counts for nothing"


def test_what_was_used_is_written_ten_times_a_second_at_most_but_before_a_request(tmp_path: Path) -> None:
    root = root_of(tmp_path)
    own = TreeUsage(root, run_id(1))
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
