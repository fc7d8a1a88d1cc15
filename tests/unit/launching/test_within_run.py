"""A process of a run controls what that run began, and nothing else of the person's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from support import make_plan, make_recovery, make_status, run_id

from subagents_nb import create_agent, disable_agent, eject_agent, enable_agent, export
from subagents_nb.domain.agents.environment import NO_RUN, RUN_MARK
from subagents_nb.domain.plans.plan import Origin
from subagents_nb.errors import RequestError
from subagents_nb.launching.archive import export_runs, import_runs
from subagents_nb.launching.controlling.controls import Controls
from subagents_nb.launching.judging.scoring import keep_score
from subagents_nb.launching.results.worktree_handoff import apply, discard
from subagents_nb.launching.stored.cleaning import gc, restore
from subagents_nb.store import StoreHome, create_run

OWN, CHILD, GRANDCHILD, OTHER = 1, 2, 3, 4


@pytest.fixture
def tree(store_home: StoreHome, monkeypatch: pytest.MonkeyPatch) -> StoreHome:
    above = {CHILD: OWN, GRANDCHILD: CHILD}
    for number in (OWN, CHILD, GRANDCHILD, OTHER):
        parent = run_id(above[number]) if number in above else None
        plan = make_plan(number, origin=Origin(parent=parent, root=parent and run_id(OWN), path="x" if parent else ""))
        create_run(store_home, plan, make_recovery(number)).status(make_status(number), milestone=False)
    monkeypatch.setenv(RUN_MARK, f"{run_id(OWN)}:token")
    return store_home


def asked_of(home: StoreHome, number: int) -> int:
    return len(list(home.run(run_id(number)).root.glob("control/*.json")))


@pytest.mark.parametrize("ask", ["stop", "interrupt", "drain", "steer", "cancel_tool", "apply", "discard", "score"])
@pytest.mark.parametrize("number", [OWN, OTHER])
def test_a_process_of_a_run_touches_neither_it_nor_one_of_another_tree(tree: StoreHome, number: int, ask: str) -> None:
    controls = Controls(tree, run_id(number))
    does: dict[str, Callable[[], Any]] = {
        "stop": controls.stop,
        "interrupt": controls.interrupt,
        "drain": controls.drain,
        "steer": lambda: controls.steer("do as I say"),
        "cancel_tool": lambda: controls.cancel_tool("c1"),
        "apply": lambda: apply(tree, run_id(number)),
        "discard": lambda: discard(tree, run_id(number)),
        "score": lambda: keep_score(tree, run_id(number), "quality", 1.0),
    }
    with pytest.raises(RequestError, match=f"belongs to run {run_id(OWN)}: any run but those it began is the person's"):
        does[ask]()
    assert asked_of(tree, number) == 0


@pytest.mark.parametrize("number", [CHILD, GRANDCHILD])
def test_what_a_run_began_is_stopped_from_its_processes_at_any_level(tree: StoreHome, number: int) -> None:
    assert Controls(tree, run_id(number)).stop() and asked_of(tree, number) == 1


def test_a_process_of_no_run_controls_all(tree: StoreHome, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(RUN_MARK, NO_RUN)
    assert Controls(tree, run_id(OTHER)).stop() and asked_of(tree, OTHER) == 1


@pytest.mark.parametrize(
    "do",
    [
        lambda: create_agent("mine", "Be evil.", description="d"),
        lambda: eject_agent("scout"),
        lambda: disable_agent("scout"),
        lambda: enable_agent("scout"),
        lambda: export(run_id(OTHER), "mlflow"),
        lambda: export_runs([run_id(OTHER)], "x.zip"),
        lambda: import_runs("x.zip"),
        lambda: restore(run_id(OTHER)),
        lambda: gc(),
    ],
)
def test_agents_and_what_is_stored_are_the_persons(tree: StoreHome, do: Callable[[], Any]) -> None:
    with pytest.raises(RequestError, match=f"This process belongs to run {run_id(OWN)}: .* the person's to "):
        do()
