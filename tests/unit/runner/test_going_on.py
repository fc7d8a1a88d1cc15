"""A chain that was paused, or that failed, goes on as a chain: what is done stands, the rest is carried out."""

from __future__ import annotations

import itertools
import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support import alive
from unit.runner.flows import BUILTIN, Carried, plan_flow, run_flow, write_script
from unit.runner.test_flow_properties import flows

from subagents_nb import chain, expand, parallel, step
from subagents_nb.domain.agents.models import parse_model
from subagents_nb.domain.plans.flow import Chain
from subagents_nb.domain.plans.plan import Draft, FanOutItem, LaunchPlan, StepPlan
from subagents_nb.domain.plans.request import Revival
from subagents_nb.domain.runs.control import AppendedItems, Appendix
from subagents_nb.domain.runs.records import RunResult, StepRecord
from subagents_nb.domain.runs.states import RunState, StepState
from subagents_nb.domain.values.ids import make_run_id
from subagents_nb.errors import LaunchRefused, Unreadable
from subagents_nb.planning import LaunchEnvironment
from subagents_nb.planning.resuming.chain_revival import appended_to, draft_whole
from subagents_nb.store import FileRuns, StoreHome, open_home
from subagents_nb.store.runs.reader import read_document
from subagents_nb.store.tree.followers import spent_by
from subagents_nb.store.waiting.admissions import budget_used

NAMES = ("session.json", "before.json")
FILES = {"type": "object", "properties": {"files": {"type": "array"}}, "required": ["files"]}
_NUMBERS = itertools.count(900_000)


@pytest.fixture
def home(tmp_path: Path) -> StoreHome:
    return open_home(tmp_path / "store")


@pytest.fixture
def work(tmp_path: Path) -> Path:
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


def went_on(before: Carried, text: str = "go on", **limits: Any) -> Carried:
    """Plan what goes on from a run as a launch would, and return it ready to be carried out."""
    paths = before.writer.paths
    snapshot = FileRuns(before.home).snapshot(before.plan.run_id, whole=True)
    try:
        record = read_document(paths.appended, AppendedItems, before.plan.run_id)
    except Unreadable:
        record = None
    outcomes = {}
    for one in (snapshot.result or snapshot.status).steps:
        outcomes[one.index] = one
        path = paths.step(one.index) / "result.json"
        if path.exists():
            outcomes[one.index] = read_document(path, StepRecord, before.plan.run_id).result
    sessions = {index for index in outcomes if any((paths.step(index) / name).exists() for name in NAMES)}
    work = Path(before.plan.cwd)
    scripts = BUILTIN | {path.stem for path in (work / ".subagents/scripts").glob("*.json")}
    draft: Draft = draft_whole(
        Revival(text=text, **limits),
        before.plan,
        appended_to(before.plan, record, snapshot.stages),
        snapshot,
        outcomes,
        environment=LaunchEnvironment(cwd=str(work), scripts=scripts),
        sessions=sessions,
        spent=spent_by(before.home, before.plan.run_id),
    )
    run_id = make_run_id(next(_NUMBERS), 7)
    return Carried(before.home, draft.to_plan(run_id=run_id, token="t" * 32, created_at="2026-01-01T00:00:00Z"))


def paused(home: StoreHome, work: Path, *items: Any, at: tuple[int, ...], **more: Any) -> Carried:
    """Carry a chain out until these steps are at work, and interrupt it then."""
    carried = Carried(home, plan_flow(work, chain(*items), **more))
    carried.carry_out(interrupting(at))
    return carried


def interrupting(at: tuple[int, ...]) -> Any:
    def act(one: Carried) -> bool:
        status = one.look().status
        running = {s.index for s in status.steps if s.state is StepState.RUNNING and s.tail} if status else set()
        return running.issuperset(at) and bool(one.ask("interrupt"))

    return act


def states(result: RunResult) -> list[str]:
    return [str(one.state) for one in result.steps]


def test_a_paused_chain_goes_on_where_it_was_and_what_is_done_is_not_paid_again(home: StoreHome, work: Path) -> None:
    waits = write_script(work, "waits", {"text": "so far"}, {"await_steer": True})
    priced = write_script(work, "priced", {"usage": {"requests": 1, "input_tokens": 10}}, {"text": "A"})
    items = (step("scout", "a", as_="a", model=priced), step("scout", "b", model=waits), step("scout", "{outputs.a}!"))
    before = paused(home, work, *items, at=(1,))
    then = went_on(before, "finish now")

    def finish(one: Carried) -> bool:
        status = one.look().status
        running = status is not None and status.steps[1].state is StepState.RUNNING and status.steps[1].tail
        return bool(running) and bool(one.ask("steer", text="finish", mode="steer", step=1))

    result = then.carry_out(finish)
    assert result.state is RunState.COMPLETE, result.error
    assert [one.text for one in result.steps][0::2] == ["A", "A!"]
    first, second, _ = result.steps
    assert (first.carried_from, first.usage.requests) == (before.plan.run_id, 0)
    assert second.carried_from is None
    said = json.loads((then.writer.paths.step(1) / "session.json").read_bytes())
    assert "finish now" in json.dumps(said) and "so far" in json.dumps(said)
    assert (then.writer.paths.step(0) / "session.json").exists()
    status = FileRuns(home).snapshot(then.plan.run_id, whole=True).status
    assert status is not None and status.steps[0].carried_from == before.plan.run_id


def test_items_of_a_fan_out_keep_keys_and_numbers_and_only_those_not_done_are_carried_out(
    home: StoreHome, work: Path
) -> None:
    find = write_script(work, "find", {"value": {"files": [{"n": "x"}, {"n": "y"}, {"n": "z"}]}})
    waits = write_script(work, "waits", {"text": "so far"}, {"await_steer": True})
    each = step("scout", "look at {item.n}", model=waits)
    items = (
        step("scout", "find", as_="found", schema=FILES, model=find),
        expand("found", "/files", each, key="/n", max_items=5, as_="all", concurrency=2),
        step("scout", "sum {outputs.all}", as_="sum"),
    )

    def act(one: Carried) -> bool:
        status = one.look().status
        at = {s.index: s for s in status.steps} if status is not None else {}
        if 2 in at and at[2].state is StepState.RUNNING and at[2].tail and not acted:
            acted.append(one.ask("steer", text="finish", mode="steer", step=2))
        ready = 4 in at and at[2].state is StepState.COMPLETE and at[4].state is StepState.RUNNING and at[4].tail
        return bool(ready) and at[3].state is StepState.RUNNING and bool(one.ask("interrupt"))

    acted: list[str] = []
    before = Carried(home, plan_flow(work, chain(*items)))
    first = before.carry_out(act)
    assert states(first) == ["complete", "pending", "complete", "paused", "paused"]

    steered: set[int] = set()

    def finish(one: Carried) -> bool:
        status = one.look().status
        for s in status.steps if status is not None else ():
            if s.index in (3, 4) and s.state is StepState.RUNNING and s.tail and s.index not in steered:
                steered.add(s.index)
                one.ask("steer", text="finish", mode="steer", step=s.index)
        return steered == {3, 4}

    then = went_on(before)
    result = then.carry_out(finish)
    assert result.state is RunState.COMPLETE, result.error
    assert [one.label for one in result.steps][2:] == ["x", "y", "z"]
    assert [bool(one.carried_from) for one in result.steps] == [True, False, True, False, False]
    value = json.loads(result.steps[1].text.removeprefix("sum "))
    assert [one["key"] for one in value] == ["x", "y", "z"]
    assert budget_used(then.writer.paths)[0] == 5 == budget_used(before.writer.paths)[0] + 1


def test_what_was_appended_goes_on_too_taken_in_or_not(home: StoreHome, work: Path) -> None:
    waits = write_script(work, "waits", {"text": "so far"}, {"await_steer": True})
    more = plan_flow(work, chain(step("scout", "appended", as_="more")))
    last = plan_flow(work, chain(step("scout", "last")))

    def act(one: Carried) -> bool:
        status = one.look().status
        if status is None or status.steps[0].state is not StepState.RUNNING or not status.steps[0].tail:
            return False
        if not asked:
            for plan in (more, last):
                asked.append(one.ask("append", append=Appendix(items=plan.items, steps=plan.steps)))
        return all(one.answer(a) for a in asked) and bool(one.ask("interrupt"))

    asked: list[str] = []
    before = Carried(home, plan_flow(work, chain(step("scout", "a", model=waits))))
    assert before.carry_out(act).state is RunState.PAUSED
    then = went_on(before)

    def finish(one: Carried) -> bool:
        status = one.look().status
        running = status is not None and status.steps[0].state is StepState.RUNNING and status.steps[0].tail
        return bool(running) and bool(one.ask("steer", text="finish", mode="steer", step=0))

    result = then.carry_out(finish)
    assert result.state is RunState.COMPLETE, result.error
    assert [one.text for one in result.steps][1:] == ["appended", "last"]
    assert set(result.outputs) == {"more"}


def test_an_output_that_lies_with_the_run_before_is_taken_over_with_its_step(home: StoreHome, work: Path) -> None:
    agent = work / ".subagents/agents/noter.md"
    agent.parent.mkdir(parents=True)
    agent.write_text(
        "---\nname: noter\ndescription: d\ntools: none\noutput: notes.md\noutput_mode: file-only\n---\nNote.\n"
    )
    before = Carried(home, plan_flow(work, chain(step("noter", "kept"), step("scout", "b", model="scripted:fail"))))
    assert before.carry_out().state is RunState.FAILED
    then = went_on(before)
    then.carry_out()
    taken = FileRuns(home).snapshot(then.plan.run_id).result.steps[0]
    assert taken.saved.place == "run"
    assert (then.writer.paths.root / taken.saved.path).read_text().startswith("kept\n")
    assert then.plan.run_id in taken.text and before.plan.run_id not in taken.text


def test_a_run_that_is_paused_again_at_once_loses_nothing(home: StoreHome, work: Path) -> None:
    waits = write_script(work, "waits", {"text": "so far"}, {"await_steer": True})
    group = parallel(step("scout", "b", model=waits), step("scout", "c", model=waits))
    before = paused(home, work, step("scout", "a"), group, at=(1, 2))
    second = went_on(before, "first words", timeout="1h")
    second.ask("interrupt")
    assert second.carry_out().state is RunState.PAUSED
    with pytest.raises(LaunchRefused, match=f"had taken over what was done; resume {before.plan.run_id} once more"):
        went_on(second)
    third = went_on(before, "third")

    def act(one: Carried) -> bool:
        status = one.look().status
        return bool(status) and status.steps[1].state is StepState.RUNNING and bool(one.ask("interrupt"))

    assert third.carry_out(act).state is RunState.PAUSED
    fourth = went_on(third, "fourth")
    assert [one.how for one in fourth.plan.resumes.chain.stages[1]] == ["goes-on", "goes-on"]


def test_a_chain_that_failed_goes_on_from_the_step_that_failed(home: StoreHome, work: Path) -> None:
    group = parallel(step("scout", "ok"), step("scout", "bad", model="scripted:fail"))
    before = Carried(home, plan_flow(work, chain(group, step("scout", "then {previous}"))))
    assert before.carry_out().state is RunState.FAILED
    again = went_on(before)
    assert [one.how for one in again.plan.resumes.chain.stages[0]] == ["stands", "goes-on"]
    assert again.carry_out().state is RunState.FAILED  # it fails in every conversation
    third = went_on(again)
    assert [one.how for one in third.plan.resumes.chain.stages[0]] == ["stands", "goes-on"]
    result = third.carry_out()
    assert result.steps[0].carried_from == before.plan.run_id  # whoever did it, not who handed it on


def test_what_has_nothing_left_is_refused_and_says_which_steps_there_are(home: StoreHome, work: Path) -> None:
    before = Carried(home, plan_flow(work, chain(step("scout", "a"), step("scout", "b", label="last"))))
    before.carry_out()
    with pytest.raises(
        LaunchRefused, match=r"is a chain: say which step to go on from: steps\[0\] \(scout\), steps\[1\] \(last\)"
    ):
        went_on(before)


def test_limits_are_what_is_left_of_each_step_and_of_the_run(home: StoreHome, work: Path) -> None:
    waits = write_script(work, "used", {"usage": {"requests": 7}}, {"text": "so far"}, {"await_steer": True})
    before = paused(home, work, step("scout", "a", model=waits), step("scout", "b"), at=(0,), max_requests=10)
    chain_of = went_on(before).plan.resumes.chain
    assert chain_of.stages[0][0].max_requests == 2
    assert 0 < chain_of.stages[0][0].timeout_s < 1800
    given = went_on(before, max_requests=4, timeout="3h").plan
    assert given.resumes.chain.stages[0][0].max_requests == given.steps[1].max_requests == 4
    assert given.resumes.chain.stages[0][0].timeout_s == given.timeout_s == 3 * 3600


def pausing(work: Path, plan: LaunchPlan, victim: int) -> LaunchPlan:
    """Return a plan in which one step, or all of one fan-out, plays a script that can be made to wait."""
    left = victim % (len(plan.steps) + sum(isinstance(item, FanOutItem) for item in plan.items))

    def chosen(one: StepPlan) -> StepPlan:
        nonlocal left
        left -= 1
        name = "pausing" if one.output_schema is None else "pausing-array"
        model = parse_model(f"scripted:{name}", origin="call", endpoints={})
        return one if left != -1 else one.model_copy(update={"model": model})

    steps = tuple(map(chosen, plan.steps))
    items = tuple(
        item.model_copy(update={"template": chosen(item.template)}) if isinstance(item, FanOutItem) else item
        for item in plan.items
    )
    return plan.model_copy(update={"steps": steps, "items": items})


@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(flow=flows(), victim=st.integers(0, 50))
def test_any_chain_paused_at_any_step_comes_to_what_it_would_have_come_to(flow: Chain, victim: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder) / "work"
        work.mkdir()
        for size in range(5):
            write_script(work, f"array{size}", {"value": {"a": list(range(size))}})

        def play(**first: Any) -> None:
            write_script(work, "pausing", *([first] if first else []), {"text": "P"})
            write_script(work, "pausing-array", *([first] if first else []), {"value": {"a": [1, 2]}})

        play()
        plan = pausing(work, plan_flow(work, flow, max_children=40), victim)
        whole = Carried(open_home(Path(folder) / "whole"), plan).carry_out()
        play(await_steer=True)
        before = Carried(open_home(Path(folder) / "store"), plan)
        first = before.carry_out(interrupting_at_work)
        if first.state is not RunState.PAUSED:
            return
        play()
        result = went_on(before).carry_out()
        done = {s.index for s in first.steps if s.state is StepState.COMPLETE}
        carried = {s.index for s in result.steps if s.carried_from}
        assert carried <= done
        assert {s.index: s.usage.requests for s in result.steps if s.index in carried} == dict.fromkeys(carried, 0)
        # A step that failed, or was at work beside the one that waits, goes on in its own session, so that it says
        # something else; all others agree.
        waits = {s.index for s in first.steps if s.model.startswith("scripted:pausing")}
        went_on_too = {s.index for s in first.steps if s.state is StepState.PAUSED} - waits
        if not went_on_too and StepState.FAILED not in {s.state for s in first.steps}:
            assert carried == done
            assert [(s.index, s.state, s.text, s.value) for s in result.steps] == [
                (s.index, s.state, s.text, s.value) for s in whole.steps
            ]
            assert (result.state, set(result.outputs)) == (whole.state, set(whole.outputs))


def interrupting_at_work(one: Carried) -> bool:
    status = one.look().status
    slow = [s for s in status.steps if s.model.startswith("scripted:pausing")] if status is not None else []
    return any(s.state is StepState.RUNNING for s in slow) and bool(one.ask("interrupt"))


@pytest.mark.parametrize("behind", [0, 1])
def test_a_group_that_was_not_judged_is_judged_when_its_chain_goes_on_and_its_steps_stand(
    home: StoreHome, work: Path, behind: int
) -> None:
    group = parallel(
        step("scout", "a"), step("scout", "b"), gate="test -f mended || { echo $$ > pid && mv pid began; sleep 60; }"
    )
    before = Carried(home, plan_flow(work, chain(group, *[step("scout", "then")] * behind)))
    result = before.carry_out(lambda one: (work / "began").exists() and bool(one.ask("interrupt")))
    assert (result.state, states(result)[:2]) == (RunState.PAUSED, ["complete", "complete"])
    assert result.stages[0].state is StepState.PAUSED
    assert not alive(int((work / "began").read_text())), "the command ended with it"
    (work / "mended").touch()
    result = went_on(before, "go on").carry_out()
    assert (result.state, result.error) == (RunState.COMPLETE, None)
    assert [one.carried_from for one in result.steps[:2]] == [before.plan.run_id] * 2
    assert result.stages[0].acceptance is not None and result.stages[0].acceptance.status == "verified"


def test_a_group_that_was_rejected_can_be_mended_and_gone_on_with(home: StoreHome, work: Path) -> None:
    before, result = run_flow(home, work, parallel(step("scout", "a"), gate="test -f mended"), step("scout", "then"))
    assert (result.state, states(result)) == (RunState.REJECTED, ["complete", "skipped"])
    (work / "mended").touch()
    result = went_on(before, "go on").carry_out()
    assert (result.state, states(result)) == (RunState.COMPLETE, ["complete", "complete"])
    assert result.steps[0].carried_from == before.plan.run_id
