"""Runs that delegate to runs: a tree, with a real supervisor."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from support import until
from trees import agent, rows, to

from subagents_nb import Run, attach, chain, launch, step
from subagents_nb.domain.runs.states import RunState
from subagents_nb.errors import RequestError
from subagents_nb.launching.archive import export_runs, import_runs
from subagents_nb.launching.stored.cleaning import gc, restore
from subagents_nb.store import FileRuns, StoreHome

pytestmark = [pytest.mark.timeout(120), pytest.mark.skipif(sys.platform != "linux", reason="a supervisor's sockets")]


def test_a_tree_of_seven_runs_ends_with_one_place_and_its_answers_come_up(shared_home: StoreHome) -> None:
    agent("lead", to("mid", "x", "y", "z"), agents="mid")
    agent("mid", to("leaf", "a"), {"text": "!"}, agents="leaf")
    agent("leaf", {"text": "leaf"})
    run = launch("lead", "go", max_live=1)
    assert run.result(100) == "leaf!\nleaf!\nleaf!"
    tree = rows(run)
    assert list(tree) == ["mid", "mid/leaf", "mid-2", "mid-2/leaf", "mid-3", "mid-3/leaf"]
    assert set(tree.values()) == {RunState.COMPLETE}
    head = run.status.head
    assert head is not None
    leaf = Run(shared_home, next(row.run_id for row in head.tree if row.path == "mid/leaf"))
    plan = FileRuns(shared_home).snapshot(leaf.id, whole=True).plan
    assert leaf.output == "leaf" and plan is not None
    assert (plan.origin.root, plan.origin.level, plan.steps[0].task) == (run.id, 2, "a")
    again = launch("lead", "go", reuse="tracked")
    assert again.reused, again.reuse_note


def test_what_a_child_refuses_or_fails_at_is_told_to_its_parent(shared_home: StoreHome) -> None:
    agent("lead", to("broken", "x"), to("deploy", "x"), {"text": "went on"}, agents="broken")
    agent("broken", {"fail": {"reason": "model", "message": "It broke."}})
    run = launch("lead", "go")
    refused = "'deploy' is not among the agents that lead may delegate to (broken)"
    assert run.result(60) == f"broken ended as failed: It broke.{refused}went on"
    step = run.status.steps[0]
    assert [row.state for row in step.tools] == ["failed", "refused"]
    assert rows(run) == {"broken": RunState.FAILED}
    child = next(iter(FileRuns(shared_home).snapshot(run.id).head.tree))  # type: ignore[union-attr]
    assert child.error == "It broke."


def test_a_tree_has_one_budget_of_usage_and_one_of_runs(shared_home: StoreHome) -> None:
    agent("lead", to("leaf", "a", "b"), to("leaf", "c"), agents="leaf")
    agent("leaf", {"usage": {"input_tokens": 100}}, {"text": "+"})
    spent = launch("lead", "go", usage_budget={"tokens": 150})
    assert spent.wait(60)
    assert spent.text == "+\n+the usage budget of the whole tree is used up: 200 of 150 tokens"
    assert spent.status.head is not None and spent.status.head.budget == "hard-reached"
    few = launch("lead", "go", max_children=2)
    assert few.wait(60)
    assert (
        f"{few.name}/leaf-3 asked for 1 more runs, and 0 of 2 are left for the whole tree (RUN_FANOUT_LIMIT)"
        in few.text
    )
    assert rows(few) == {"leaf": RunState.COMPLETE, "leaf-2": RunState.COMPLETE}


def test_a_launch_in_a_process_of_a_run_is_that_runs_child(spawn: str, shared_home: StoreHome) -> None:
    cell = "from subagents_nb import launch; run = launch('leaf', 'inner', wait=True); print(run.id, run.output)"
    agent("digger", {"python": cell, "say": True}, agents="leaf", tools="python")
    agent("leaf", {"text": "found"})
    outer = launch("digger", "x", max_live=1)
    child, said = outer.result(100).split()
    assert said == "found"
    head = outer.status.head
    assert head is not None
    (row,) = head.tree
    assert (row.run_id, row.agent, row.state) == (child, "leaf", RunState.COMPLETE)
    assert row.path.startswith("leaf-")


def test_a_run_that_may_not_delegate_launches_nothing_by_its_processes(shared_home: StoreHome) -> None:
    tried = "import subagents_nb\ntry:\n    subagents_nb.launch({})\nexcept Exception as error:\n    print(error)"
    agent("loner", {"python": tried.format("'leaf', 'x'"), "say": True}, tools="python")
    agent(
        "lead",
        {"python": tried.format("'leaf', 'x', model='scripted:echo'"), "say": True},
        agents="leaf",
        tools="python",
    )
    agent("leaf", {"text": "never"})
    alone, lead = launch("loner", "x", name="py-1"), launch("lead", "x", name="lead-1")
    said = "this process belongs to run py-1, which may not delegate; name agents in its file"
    assert said in alone.result(60)
    assert "from within run lead-1 a launch has an agent and a task; leave out model" in lead.result(60)


def test_questions_of_all_levels_are_answered_at_the_root(shared_home: StoreHome) -> None:
    agent("lead", {"delegate": [{"agent": "mid", "task": "x"}], "say": True}, {"ask": "Root?"}, agents="mid")
    agent("mid", to("leaf", "a", "b"), agents="leaf")
    agent("leaf", {"ask": "Leaf?", "choices": ["yes", "no"]})
    run = launch("lead", "go")
    until(lambda: len(run.questions) == 2, 60, what="the questions of both leaves")
    until(lambda: len(run.status.questions) == 2, 20, what="the root to show them")
    assert {one.question_id for one in run.questions} == {"mid/leaf/q1", "mid/leaf-2/q1"}
    assert {one.question_id for one in run.status.questions} == {"mid/leaf/q1", "mid/leaf-2/q1"}
    with pytest.raises(RequestError, match="Several questions are open"):
        run.answer("yes")
    run.answer("no", question="mid/leaf-2/q1")
    with pytest.raises(RequestError, match=r"no open question|is complete already"):
        run.answer("yes", question="mid/leaf-2/q1")
    waited = until(lambda: run.status.status and run.status.status.waits, 20, what="the clock to stand still")
    assert waited
    assert run.answer("yes").question_id == "mid/leaf/q1"
    until(lambda: [one.question_id for one in run.questions] == ["q1"], 30, what="the root's own question")
    run.answer("end")
    assert run.result(30) == "yes\nno" + "end"


def test_a_tree_is_carried_deleted_and_brought_back_as_one(
    shared_home: StoreHome, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    agent("lead", to("mid", "x"), agents="mid")
    agent("mid", to("leaf", "a"), agents="leaf")
    agent("leaf", {"text": "found"})
    run = launch("lead", "go")
    assert run.wait(60)
    tree = [run.id, *(row.run_id for row in run.status.tree)]
    assert export_runs([run.id], "tree.zip") == tree and len(tree) == 3
    until(lambda: gc(days=0) and not FileRuns(shared_home).ids(), 10, what="the end of the whole tree")
    assert restore(run.id).output == "found"
    assert [Run(shared_home, one).output for one in tree] == ["found"] * 3
    monkeypatch.setenv("SUBAGENTS_NB_HOME", str(tmp_path / "other"))
    assert import_runs("tree.zip") == (tree, [])
    there = attach(run.id)
    assert [attach(row.run_id).output for row in there.status.tree] == ["found"] * 2


@pytest.mark.usefixtures("shared_home")
def test_a_step_that_is_appended_may_delegate_where_nobody_did_and_counts_for_the_budget() -> None:
    agent("first", {"ask": "Go on?"}, {"usage": {"input_tokens": 100}})
    agent("lead", to("leaf", "a"), to("leaf", "b"), agents="leaf")
    agent("leaf", {"usage": {"input_tokens": 100}}, {"text": "leaf"})
    run = launch(chain(step("first", "x")), usage_budget={"tokens": 190})
    until(lambda: run.questions, 60, what="the chain at work")
    run.append(step("lead", "go"))
    run.answer("yes")
    assert run.wait(60)
    spent = "the usage budget of the whole tree is used up: "
    assert rows(run) == {"leaf": RunState.COMPLETE}
    assert run.steps[1].text.startswith(f"leaf{spent}"), run.steps[1].text


def test_what_a_child_did_whose_call_was_ended_counts_as_done_by_its_parent(shared_home: StoreHome) -> None:
    agent("lead", to("leaf", "a"), {"text": "went on"}, agents="leaf")
    agent("leaf", {"call": "write", "args": {"path": "made.txt", "content": "x"}}, {"sleep": 600}, tools="write")
    run = launch("lead", "go")
    until(Path("made.txt").exists, 60, what="the leaf's file")
    (call,) = until(lambda: run.status.open_tools, 10, what="the call that waits for it")
    run.cancel_tool(call.call_id)
    assert run.wait(30) and run.text.endswith("went on")
    result = FileRuns(shared_home).snapshot(run.id, whole=True).result
    assert result is not None and result.reads is not None and result.reads.changed == ("made.txt",)


def answers(child: str, **said: Any) -> dict[str, Any]:
    return {"call": "reply", "args": {"child": child, **said}, "say": True}


def test_a_child_asks_its_parent_first_which_answers_or_passes_it_on(shared_home: StoreHome) -> None:
    agent("lead", to("leaf", "a"), answers("leaf", text="blue"), answers("leaf", to_person=True), agents="leaf")
    agent("leaf", {"ask": "Which colour?"}, {"ask": "Which size?"}, asks="parent", tools="ask")
    run = launch("lead", "go", max_live=1)
    until(lambda: [one.question_id for one in run.questions] == ["leaf/q3"], 60, what="what was passed on")
    (row,) = run.status.tree
    child = Run(shared_home, row.run_id).status.status
    assert child is not None and [one.by for one in child.answers] == ["its parent"] * 2
    run.answer("large")
    said = run.result(60)
    assert said.startswith("leaf asks you, and waits for your answer:\nWhich colour?")
    assert "leaf asks you, and waits for your answer:\nWhich size?" in said and said.endswith("bluelarge")
    assert [(one.name, one.state) for one in run.status.steps[0].tools] == [
        ("delegate", "complete"),
        *[("reply", "complete")] * 2,
    ]


@pytest.mark.usefixtures("shared_home")
def test_two_that_ask_their_parent_in_one_turn_are_heard_with_one_place() -> None:
    agent("lead", to("kid", "a", "b"), answers("kid", text="one"), answers("kid-2", text="two"), agents="kid")
    agent("kid", {"ask": "Which?"}, asks="parent", tools="ask")
    run = launch("lead", "go", max_live=1)
    said = run.result(60)
    assert said.count("asks you, and waits for your answer:\nWhich?") == 2 and said.endswith("onetwo")
    assert rows(run) == {"kid": RunState.COMPLETE, "kid-2": RunState.COMPLETE}


def test_a_question_that_its_parent_leaves_open_is_the_persons(shared_home: StoreHome) -> None:
    agent("lead", to("leaf", "a"), to("leaf", "b"), answers("leaf"), {"await_steer": True}, answers("leaf", text="no"),
          agents="leaf")  # fmt: skip
    agent("leaf", {"ask": "Which?"}, asks="{parent: 3s}", tools="ask")
    run = launch("lead", "go")
    until(lambda: [one.question_id for one in run.questions] == ["leaf/q2"], 60, what="the question to the person")
    run.answer("that one")
    until(lambda: run.status.tree[0].state.ended, 30, what="the end of the child")
    run.steer("now")
    said = run.result(30)
    assert "first reply to leaf, which waits for your answer" in said and "the answer is empty" in said
    assert said.endswith("nowthat one")


def test_a_child_whose_parent_ends_without_an_answer_is_stopped(shared_home: StoreHome) -> None:
    agent("lead", to("leaf", "a"), agents="leaf")
    agent("leaf", {"ask": "Which?"}, asks="parent", tools="ask")
    run = launch("lead", "go")
    assert run.result(60).endswith("If you end without either, it is stopped.")
    assert rows(run) == {"leaf": RunState.STOPPED}
    agent("asker", {"ask": "Which?"}, asks="parent", tools="ask")
    alone = launch("asker", "go")
    until(lambda: [one.question_id for one in alone.questions] == ["q1"], 30, what="a root has no parent to ask")
    alone.answer("this")
    assert alone.result(30) == "this"
