"""Chains as they are carried out: order, groups, fan-outs, what becomes of failures, what may be asked meanwhile."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from unit.runner.flows import Carried, overlap, plan_flow, run_flow, texts, write_script

from subagents_nb import chain, expand, parallel, step
from subagents_nb.domain.agents.settings import Settings
from subagents_nb.domain.plans.flow import Attached
from subagents_nb.domain.runs.control import Appendix, Retune
from subagents_nb.domain.runs.records import StepRecord
from subagents_nb.domain.runs.states import RunState, StepState
from subagents_nb.store import StoreHome, open_home
from subagents_nb.store.runs.reader import read_document
from subagents_nb.store.waiting.admissions import budget_used

FILES = {
    "type": "object",
    "properties": {"files": {"type": "array", "items": {"type": "object"}}},
    "required": ["files"],
}


@pytest.fixture
def home(tmp_path: Path) -> StoreHome:
    return open_home(tmp_path / "store")


@pytest.fixture
def work(tmp_path: Path) -> Path:
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


@pytest.fixture
def find(work: Path) -> Any:
    """Return a maker of the step that finds files with these names."""

    def make(*names: str, as_: str = "found") -> Any:
        model = write_script(work, f"find{len(names)}", {"value": {"files": [{"name": name} for name in names]}})
        return step("scout", "find", as_=as_, schema=FILES, model=model)

    return make


def states(result: Any) -> list[str]:
    return [str(one.state) for one in result.steps]


# --- order and what steps read of one another ---


def test_each_step_reads_the_one_before_and_those_that_have_names(home: StoreHome, work: Path) -> None:
    _, result = run_flow(
        home,
        work,
        step("scout", "look at {task}", as_="first"),
        step("scout", "then: {previous}", as_="second"),
        step("scout", "{outputs.first} / {outputs.second} / {chain_dir} / {other} {{x}}"),
        task="the data {previous}",
    )
    assert texts(result) == [
        "look at the data {previous}",
        "then: look at the data {previous}",
        f"look at the data {{previous}} / then: look at the data {{previous}} / {work} / {{other}} {{{{x}}}}",
    ]
    assert (result.state, result.answer.step if result.answer else None) == (RunState.COMPLETE, 2)
    assert {name: output.step for name, output in result.outputs.items()} == {"first": 0, "second": 1}


def test_a_step_without_a_task_gets_the_chains_task_or_what_came_before(home: StoreHome, work: Path) -> None:
    _, result = run_flow(home, work, step("scout"), step("scout"), task="go")
    assert texts(result) == ["go", "go"]


def test_a_group_gives_all_answers_under_headings_and_its_steps_their_names(home: StoreHome, work: Path) -> None:
    _, result = run_flow(
        home,
        work,
        parallel(step("scout", "a", as_="one"), step("worker", "b", label="second"), as_="both"),
        step("scout", "{previous}|{outputs.one}|{outputs.both}"),
    )
    together = "=== Parallel task 1 (scout) ===\na\n\n=== Parallel task 2 (worker, second) ===\nb"
    assert result.steps[2].text == f"{together}|a|{together}"


def test_a_fan_out_starts_one_step_for_each_item_and_collects_them_in_order(
    home: StoreHome, work: Path, find: Any
) -> None:
    carried, result = run_flow(
        home,
        work,
        find("b.py", "a.py"),
        expand("found", "/files", step("worker", "read {item.name}"), max_items=5, key="/name", as_="reviews"),
        step("scout", "{outputs.reviews}"),
    )
    collected = result.outputs["reviews"].value
    assert [(e["key"], e["index"], e["text"], e["state"], e["step"]) for e in collected] == [
        ("b.py", 0, "read b.py", "complete", 2),
        ("a.py", 1, "read a.py", "complete", 3),
    ]
    assert collected[0]["item"] == {"name": "b.py"}
    assert [stage.steps for stage in result.stages] == [(0,), (2, 3), (1,)]
    assert [one.label for one in result.steps] == ["", "", "b.py", "a.py"]
    assert result.steps[1].text.startswith('[{"key":"b.py"')
    assert budget_used(carried.writer.paths) == (4, 64)


def test_nothing_to_fan_out_over_is_an_empty_array_or_a_failure_as_asked(
    home: StoreHome, work: Path, find: Any
) -> None:
    each = step("worker", "read {item}")
    _, skipped = run_flow(home, work, find(), expand("found", "/files", each, max_items=5, as_="all"))
    assert (skipped.state, skipped.outputs["all"].value) == (RunState.COMPLETE, [])
    assert skipped.stages[1].state is StepState.COMPLETE
    _, failed = run_flow(home, work, find(), expand("found", "/files", each, max_items=5, on_empty="fail"))
    assert (failed.state, failed.reason) == (RunState.FAILED, "fan-out")
    assert "there are no items" in (failed.error or "")


@pytest.mark.parametrize(
    ("names", "fields", "text"),
    [
        (("a", "b", "c"), {"max_items": 2}, "there are 3 items, more than max_items (2); none was started"),
        (("a", "a"), {"key": "/name"}, "items 0 and 1 have the same key ('a')"),
        (("",), {"key": "/name"}, "the key of item 0 is empty"),
        (("x" * 201,), {"key": "/name"}, "the key of item 0 has 201 characters, more than 200"),
        (("a\nb",), {"key": "/name"}, "the key of item 0 holds control characters"),
        (("a",), {"key": "/size"}, "item 0 has no key"),
    ],
)  # fmt: skip
def test_a_fan_out_that_can_not_be_told_apart_starts_nothing(
    home: StoreHome, work: Path, find: Any, names: tuple[str, ...], fields: dict[str, Any], text: str
) -> None:
    options = {"max_items": 8, **fields}
    _, result = run_flow(home, work, find(*names), expand("found", "/files", step("worker", "{item.name}"), **options))
    assert (result.state, result.reason, len(result.steps)) == (RunState.FAILED, "fan-out", 1)
    assert text in (result.error or "") and text in (result.stages[1].error or "")


def test_an_item_that_lacks_a_field_fails_its_own_step_only(home: StoreHome, work: Path, find: Any) -> None:
    each = step("worker", "{item.name} {item.size}")
    _, result = run_flow(
        home, work, find("a"), expand("found", "/files", each, max_items=8, on_failure="continue", as_="all")
    )
    assert result.state is RunState.PARTIAL
    assert result.steps[1].error == "{item.size} names a field that {item} does not have: it is an object with name."


# --- how many at a time ---


@pytest.mark.parametrize(("concurrency", "parallel_steps", "most"), [(3, 20, 3), (6, 2, 2), (1, 20, 1)])
def test_no_more_are_at_work_than_the_group_and_the_run_allow(
    home: StoreHome, work: Path, concurrency: int, parallel_steps: int, most: int
) -> None:
    model = write_script(work, "nap", {"sleep": 0.03}, {"text": "ok"})
    group = parallel(*[step("scout", str(n), model=model) for n in range(7)], concurrency=concurrency)
    _, result = run_flow(home, work, group, settings=Settings(max_parallel=parallel_steps))
    assert states(result) == ["complete"] * 7
    assert overlap(list(result.steps)) == most
    began = [one.started_s or 0 for one in result.steps]
    assert began == sorted(began)


def test_copies_are_steps_of_their_own(home: StoreHome, work: Path) -> None:
    _, result = run_flow(home, work, parallel(step("scout", "again", count=3)))
    assert (result.mode, texts(result)) == ("parallel", ["again"] * 3)


# --- what becomes of failures ---


def test_a_failed_step_ends_the_chain_and_those_behind_it_are_skipped(home: StoreHome, work: Path) -> None:
    _, result = run_flow(
        home, work, step("scout", "a", as_="kept"), step("scout", "b", model="scripted:fail"), step("scout", "c")
    )
    assert states(result) == ["complete", "failed", "skipped"]
    assert (result.state, result.reason) == (RunState.FAILED, "model")
    assert result.error == "steps[1] (scout): The scripted model failed, as its script says."
    assert list(result.outputs) == ["kept"]


def test_a_failed_child_lets_its_siblings_go_on_and_ends_the_chain_after_them(home: StoreHome, work: Path) -> None:
    group = parallel(step("scout", "a"), step("scout", "b", model="scripted:fail"), step("scout", "c"), concurrency=1)
    _, result = run_flow(home, work, group, step("scout", "d"))
    assert states(result) == ["complete", "failed", "complete", "skipped"]
    assert (result.state, result.reason) == (RunState.FAILED, "child")
    assert (result.error or "").startswith("1 of 3 steps of the parallel group failed; steps[1]: The scripted model")


def test_a_group_may_go_on_without_those_that_failed(home: StoreHome, work: Path) -> None:
    group = parallel(step("scout", "a"), step("scout", "b", model="scripted:fail"), on_failure="continue")
    _, result = run_flow(home, work, group, step("scout", "{previous}"))
    assert (result.state, states(result)) == (RunState.PARTIAL, ["complete", "failed", "complete"])
    assert "=== Parallel task 2 (scout) FAILED ===\nThe scripted model failed" in result.steps[2].text
    assert result.error == "1 of 3 steps did not complete: steps[1] failed."


def test_failing_fast_starts_nothing_more_and_ends_nobody(home: StoreHome, work: Path) -> None:
    slow = write_script(work, "nap", {"sleep": 0.2}, {"text": "ok"})
    group = parallel(
        step("scout", "a", model=slow), step("scout", "b", model="scripted:fail"), step("scout", "c"),
        concurrency=2, fail_fast=True,
    )  # fmt: skip
    _, result = run_flow(home, work, group)
    assert states(result) == ["complete", "failed", "skipped"]
    assert (result.steps[2].reason, result.steps[2].error) == (
        "fail-fast", "Not started, since a step beside it failed.",
    )  # fmt: skip


def test_a_childs_own_deadline_ends_it_alone(home: StoreHome, work: Path) -> None:
    group = parallel(step("scout", "a", model="scripted:hang", timeout=0.2), step("scout", "b"), on_failure="continue")
    _, result = run_flow(home, work, group)
    assert (result.state, states(result)) == (RunState.PARTIAL, ["failed", "complete"])
    assert result.steps[0].reason == "timeout"
    assert (result.steps[0].error or "").startswith("The step passed its deadline of 0.2 s")


def test_collected_values_are_checked_against_their_schema(home: StoreHome, work: Path, find: Any) -> None:
    schema = {"type": "array", "items": {"required": ["value"]}}
    fan_out = expand("found", "/files", step("worker", "{item.name}"), max_items=8, schema=schema)
    _, result = run_flow(home, work, find("a"), fan_out)
    assert (result.state, result.reason) == (RunState.FAILED, "schema")
    assert "does not fit its schema: 0: " in (result.error or "")


def test_the_budget_of_the_tree_starts_all_of_a_batch_or_none(home: StoreHome, work: Path, find: Any) -> None:
    fan_out = expand("found", "/files", step("worker", "{item.name}"), max_items=8)
    _, result = run_flow(home, work, find("a", "b", "c"), fan_out, max_children=3)
    assert (result.state, result.reason, len(result.steps)) == (RunState.FAILED, "fan-out", 1)
    assert "asked for 3 more runs, and 2 of 3 are left" in (result.error or "")


def test_an_answer_too_long_to_be_given_on_whole_says_so_wherever_it_goes(home: StoreHome, work: Path) -> None:
    long = write_script(work, "long", {"text": "x" * 250_000})
    _, result = run_flow(
        home,
        work,
        step("scout", "a", model=long, as_="a"),
        step("scout", "{previous}"),
        parallel(step("scout", "{outputs.a}"), step("scout", "b", model=long)),
        step("scout", "{previous}"),
    )
    mark = "[Cut: only the first 204,800 characters of this answer are given]\nxxx"
    assert [mark in text for text in texts(result)] == [False, True, True, False, True]
    assert [note for note in result.notes if "steps[0]" in note] == [
        "steps[0] (scout): Its answer has 250,000 characters; later steps are given the first 204,800."
    ]


# --- the usage budget ---


def test_a_used_up_budget_starts_no_later_step(home: StoreHome, work: Path) -> None:
    costly = write_script(work, "costly", {"usage": {"input_tokens": 500, "requests": 1}}, {"text": "done"})
    _, result = run_flow(
        home, work, step("scout", "a", model=costly), step("scout", "b"), usage_budget={"tokens": {"hard": 100}}
    )
    assert states(result) == ["complete", "skipped"]
    assert (result.state, result.reason, result.actor) == (RunState.FAILED, "budget", "budget")


def test_a_soft_amount_is_shown_and_stops_nothing(home: StoreHome, work: Path) -> None:
    costly = write_script(work, "costly", {"usage": {"input_tokens": 50, "requests": 1}}, {"text": "x"}, {"sleep": 0.3})
    budget = {"tokens": {"hard": 1000, "soft": 10}}
    carried, result = run_flow(home, work, step("scout", "a", model=costly), step("scout", "b"), usage_budget=budget)
    assert states(result) == ["complete", "complete"]
    assert [e["state"] for e in carried.events() if e["type"] == "budget"] == ["soft-reached"]
    assert result.budget == "soft-reached" and result.usage_budget is not None
    assert [note for note in result.notes if "budget" in note] == [
        f"The soft limit of its usage budget was reached: {result.usage_budget.words(result.usage)}."
    ]


# --- what may be asked of a live chain ---


def started(*numbers: int) -> Any:
    """Wait until these steps are at work."""

    def look(carried: Carried) -> bool:
        status = carried.look().status
        running = {s.index for s in status.steps if s.state is StepState.RUNNING} if status is not None else set()
        return running >= set(numbers)

    return look


WAITS = {"await_steer": True}, {"text": "ok"}


def go_on(number: int) -> Any:
    """Let a step that waits go on."""
    return lambda carried: bool(carried.ask("steer", step=number, text="it ", mode="steer"))


def heard(verb: str, **fields: Any) -> Any:
    """Ask for something, and wait until the run has heard it."""
    asked: list[str] = []
    return (
        lambda carried: bool(asked.append(carried.ask(verb, **fields)) or True),
        lambda carried: carried.answer(asked[0]) is not None,
    )


def test_one_child_is_stopped_and_the_rest_goes_on(home: StoreHome, work: Path) -> None:
    nap = write_script(work, "nap", {"sleep": 0.5}, {"text": "ok"})
    group = parallel(step("scout", "a", model="scripted:hang"), step("scout", "b", model=nap), fail_fast=True)
    carried = Carried(home, plan_flow(work, chain(group, step("scout", "{previous}"))))
    result = carried.carry_out(started(0, 1), lambda c: bool(c.ask("stop", step=0)))
    assert states(result) == ["stopped", "complete", "complete"]
    assert (result.state, result.steps[0].error) == (RunState.PARTIAL, "The step was stopped on request.")
    assert "(scout) STOPPED ===" in result.steps[2].text


def test_a_child_that_waits_is_stopped_before_it_begins(home: StoreHome, work: Path) -> None:
    nap = write_script(work, "nap", *WAITS)
    group = parallel(step("scout", "a", model=nap), step("scout", "b"), concurrency=1)
    carried = Carried(home, plan_flow(work, chain(group)))
    result = carried.carry_out(started(0), *heard("stop", step=1), go_on(0))
    assert states(result) == ["complete", "stopped"]
    assert result.steps[1].usage.requests == 0


def test_stopping_the_run_stops_what_works_and_skips_the_rest(home: StoreHome, work: Path) -> None:
    group = parallel(step("scout", "a", model="scripted:hang"), step("scout", "b", model="scripted:hang"))
    carried = Carried(home, plan_flow(work, chain(step("scout", "x"), group, step("scout", "c"))))
    result = carried.carry_out(started(1, 2), lambda c: bool(c.ask("stop")))
    assert (result.state, result.actor) == (RunState.STOPPED, "person")
    assert states(result) == ["complete", "stopped", "stopped", "skipped"]


def test_an_interrupted_chain_is_paused_and_what_did_not_begin_still_waits(home: StoreHome, work: Path) -> None:
    carried = Carried(home, plan_flow(work, chain(step("scout", "a", model="scripted:hang"), step("scout", "b"))))
    refused: list[str] = []
    result = carried.carry_out(
        started(0),
        lambda c: bool(refused.append(c.ask("interrupt", step=0)) or True),
        lambda c: c.answer(refused[0]) is not None,
        lambda c: bool(c.ask("interrupt")),
    )
    assert (result.state, states(result)) == (RunState.PAUSED, ["paused", "pending"])
    answer = carried.answer(refused[0])
    assert answer is not None and answer["text"].startswith("one step can't be paused by itself")


def test_a_drained_chain_finishes_what_works_and_starts_nothing(home: StoreHome, work: Path) -> None:
    nap = write_script(work, "nap", *WAITS)
    group = parallel(step("scout", "a", model=nap), step("scout", "b"), concurrency=1)
    carried = Carried(home, plan_flow(work, chain(group, step("scout", "c"))))
    result = carried.carry_out(started(0), *heard("drain"), go_on(0))
    assert states(result) == ["complete", "skipped", "skipped"]
    assert (result.state, result.reason, result.actor) == (RunState.PARTIAL, "drained", "person")


def test_a_steered_step_is_named_where_several_are_at_work(home: StoreHome, work: Path) -> None:
    group = parallel(*[step("scout", "a", model="scripted:steerable") for _ in range(2)])
    carried = Carried(home, plan_flow(work, chain(group)))
    asked: list[str] = []

    def ask(**fields: Any) -> Any:
        return lambda c: bool(asked.append(c.ask("steer", mode="steer", text="finish", **fields)) or True)

    result = carried.carry_out(started(0, 1), ask(), ask(step=1), ask(step=0))
    assert states(result) == ["complete", "complete"]
    answer = carried.answer(asked[0])
    assert answer is not None and answer["text"] == "steps[0], steps[1] are at work; say which one is meant"


def test_more_steps_may_be_at_work_once_the_run_is_retuned(home: StoreHome, work: Path) -> None:
    nap = write_script(work, "nap", *WAITS)
    group = parallel(*[step("scout", "a", model=nap) for _ in range(4)], concurrency=1)
    carried = Carried(home, plan_flow(work, chain(group)))
    four = range(4)
    result = carried.carry_out(
        started(0), *heard("retune", retune=Retune(concurrency=4)), started(*four), *map(go_on, four)
    )
    assert overlap(list(result.steps)) == 4
    assert result.retunes[0].changes == {"concurrency": 4}


def appendix(work: Path, *items: Any) -> Appendix:
    plan = plan_flow(work, chain(step("scout", "x", as_="first"), *items))
    moved = [one.model_copy(update={"index": one.index - 1}) for one in plan.steps[1:]]
    kept = []
    for item in plan.items[1:]:
        update = {"step": item.step - 1} if item.kind == "step" else {}
        if item.kind == "parallel":
            update = {"steps": tuple(n - 1 for n in item.steps)}
        kept.append(item.model_copy(update=update))
    return Appendix(items=tuple(kept), steps=tuple(moved))


def test_appended_steps_follow_the_last_one_and_know_its_outputs(home: StoreHome, work: Path) -> None:
    nap = write_script(work, "nap", {"await_steer": True}, {"text": "slept"})
    carried = Carried(home, plan_flow(work, chain(step("scout", "a", model=nap, as_="first"))))
    more = appendix(work, step("scout", "after {outputs.first}: {previous}", as_="last"), parallel(step("scout", "z")))
    asked: list[str] = []
    again = appendix(work, step("scout", "b", as_="last"))
    result = carried.carry_out(
        started(0),
        lambda c: bool(asked.append(c.ask("append", append=more)) or True),
        lambda c: c.answer(asked[0]) is not None,
        lambda c: bool(asked.append(c.ask("append", append=again)) or True),
        lambda c: c.answer(asked[1]) is not None,
        go_on(0),
    )
    assert texts(result) == ["it slept", "after it slept: it slept", "z"]
    assert [stage.kind for stage in result.stages] == ["step", "step", "parallel"]
    taken = carried.answer(asked[1])
    assert taken is not None and (taken["outcome"], taken["text"]) == ("refused", "there is an output 'last' already")


# --- beginning with another run ---


def test_a_chain_goes_on_from_a_run_that_has_ended(home: StoreHome, work: Path) -> None:
    earlier, _ = run_flow(home, work, step("scout", "found it"))
    _, result = run_flow(home, work, Attached(run=earlier.plan.run_id, as_="base"), step("scout", "{outputs.base}!"))
    assert (texts(result), result.stages[0].state) == (["found it!"], StepState.COMPLETE)
    assert result.outputs["base"].attached_run == earlier.plan.run_id


def test_a_run_that_went_wrong_is_nothing_to_go_on_from(home: StoreHome, work: Path) -> None:
    earlier, _ = run_flow(home, work, step("scout", "x", model="scripted:fail"))
    _, result = run_flow(home, work, Attached(run=earlier.plan.run_id), step("scout", "more"))
    assert (result.state, result.reason, states(result)) == (RunState.FAILED, "attached", ["skipped"])
    assert f"The attached run {earlier.plan.name} ended as failed" in (result.error or "")


# --- what is on disk ---


def test_what_a_step_came_to_is_on_disk_before_the_chain_ends(home: StoreHome, work: Path) -> None:
    carried = Carried(home, plan_flow(work, chain(step("scout", "a"), step("scout", "b", model="scripted:hang"))))
    found: list[str] = []

    def read(c: Carried) -> bool:
        path = c.writer.paths.step(0) / "result.json"
        found.append(read_document(path, StepRecord, c.plan.run_id).result.text)
        return bool(c.ask("stop"))

    carried.carry_out(started(1), read)
    assert found == ["a"]


def test_long_answers_stand_whole_in_their_own_records(home: StoreHome, work: Path) -> None:
    carried, result = run_flow(home, work, step("scout", "x" * 50_000), step("scout", "{previous}y"))
    assert [(len(one.text), one.cut) for one in result.steps] == [(16384, True), (16384, True)]
    record = read_document(carried.writer.paths.step(1) / "result.json", StepRecord, carried.plan.run_id)
    assert len(record.result.text) == 50_001


def test_a_step_that_left_a_session_says_so_and_one_that_never_began_does_not(home: StoreHome, work: Path) -> None:
    _, result = run_flow(home, work, step("scout", "a", model="scripted:fail"), step("scout", "b"))
    assert [one.session for one in result.steps] == [True, False]


def test_a_run_of_one_step_keeps_its_braces(home: StoreHome, work: Path) -> None:
    plan = plan_flow(work, chain(step("scout", "a")))
    only = plan.steps[0].model_copy(update={"task": "{previous} {x}"})
    single = plan.model_copy(update={"items": (), "mode": "single", "steps": (only,)})
    result = Carried(home, single).carry_out()
    assert (texts(result), result.answer, result.stages) == (["{previous} {x}"], None, ())
