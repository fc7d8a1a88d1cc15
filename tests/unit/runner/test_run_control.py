"""What the control thread hears and keeps: requests that are not what they seem, deadlines of runs and of steps."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support import WHEN
from unit.runner.flows import Carried, plan_flow, write_script

from subagents_nb import chain, parallel, step
from subagents_nb.catalog import discover
from subagents_nb.domain.agents.attention import AttentionSettings
from subagents_nb.domain.agents.settings import Settings
from subagents_nb.domain.plans.plan import LaunchPlan, LaunchRequest
from subagents_nb.domain.runs.control import ControlRequest, Retune
from subagents_nb.domain.runs.states import RunState
from subagents_nb.domain.values.ids import make_run_id
from subagents_nb.planning import LaunchEnvironment, draft
from subagents_nb.runner.chains.step_registry import StepRegistry
from subagents_nb.runner.main import Runner
from subagents_nb.runner.steps.causes import interrupted_by
from subagents_nb.store import StoreHome, open_home
from subagents_nb.store.files.codec import encode
from subagents_nb.store.files.disk import DISK, Disk
from subagents_nb.store.runs.requests import is_heard

ASKED_FOR_IT = [{"text": "half "}, {"await_steer": True}, {"text": "findings"}]


@pytest.fixture
def home(tmp_path: Path) -> StoreHome:
    return open_home(tmp_path / "store")


@pytest.fixture
def work(tmp_path: Path) -> Path:
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


def running(*indices: int) -> Callable[[Carried], bool]:
    def are(run: Carried) -> bool:
        status = run.look().status
        states = {one.index: one.state for one in status.steps} if status is not None else {}
        return all(states.get(index) == "running" for index in indices)

    return are


def once(act: Callable[[Carried], Any]) -> Callable[[Carried], bool]:
    return lambda run: (act(run), True)[1]


def answered(request_id: str) -> Callable[[Carried], bool]:
    return lambda run: run.answer(request_id) is not None


# --- requests ---


def test_a_steer_in_the_file_of_a_stop_is_refused_and_steers_nobody(home: StoreHome, work: Path) -> None:
    model = write_script(work, "waits", *ASKED_FOR_IT)
    carried = Carried(home, plan_flow(work, chain(step("scout", "x", model=model))))
    known = {"run_id": carried.plan.run_id, "asked_at": WHEN, "verb": "steer", "mode": "steer"}
    foreign = ControlRequest.model_validate({**known, "request_id": "other", "text": "finish"})

    def put(run: Carried) -> None:
        (run.writer.paths.control / "stop-zzz.json").write_bytes(encode(foreign))

    result = carried.carry_out(
        running(0), once(put), answered("zzz"), once(lambda run: run.ask("stop")), lambda run: run.look().ended
    )
    assert (result.state, result.steps[0].text) == (RunState.STOPPED, "")
    answer = carried.answer("zzz")
    assert answer is not None
    assert answer["outcome"] == "refused"
    assert carried.answer("other") is None


class Mute(Disk):
    """Has no room for answers."""

    def replace(self, path: Path, data: bytes, *, durable: bool) -> None:
        if path.parent.name == "answers":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        super().replace(path, data, durable=durable)


def test_a_stop_that_a_full_disk_lets_nobody_answer_is_marked_as_heard(home: StoreHome, work: Path) -> None:
    model = write_script(work, "waits", *ASKED_FOR_IT)
    carried = Carried(home, plan_flow(work, chain(step("scout", "x", model=model))), disk=Mute())
    asked: list[str] = []
    result = carried.carry_out(running(0), once(lambda run: asked.append(run.ask("stop"))))
    assert result.state is RunState.STOPPED
    request = ControlRequest(run_id=carried.plan.run_id, request_id=asked[0], verb="stop", asked_at=WHEN)
    assert carried.answer(asked[0]) is None
    assert is_heard(carried.writer.paths, request)


class Late(Disk):
    """Takes its time over answers: as long as the run would need to be gone."""

    def replace(self, path: Path, data: bytes, *, durable: bool) -> None:
        if path.parent.name == "answers":
            threading.Event().wait(0.3)
        super().replace(path, data, durable=durable)


@pytest.mark.parametrize("verb", ["stop", "interrupt"])
def test_who_ends_a_run_has_an_answer_when_it_has_ended(home: StoreHome, work: Path, verb: str) -> None:
    model = write_script(work, "waits", *ASKED_FOR_IT)
    carried = Carried(home, plan_flow(work, chain(step("scout", "x", model=model))), disk=Late())
    asked: list[str] = []
    carried.carry_out(running(0), once(lambda run: asked.append(run.ask(verb))))
    answer = carried.answer(asked[0])
    assert answer is not None and answer["outcome"] == "accepted"


def test_a_run_that_is_paused_before_it_said_a_word_has_its_task_for_a_session(home: StoreHome, work: Path) -> None:
    model = write_script(work, "waits", *ASKED_FOR_IT)
    carried = Carried(home, plan_flow(work, chain(step("scout", "count the rows", model=model))))
    carried.ask("interrupt")
    result = carried.carry_out()
    assert (result.state, result.steps[0].session) == (RunState.PAUSED, True)
    session = json.loads((carried.writer.paths.step(0) / "session.json").read_bytes())
    assert [part["content"] for message in session for part in message["parts"]] == ["count the rows"]


def test_a_run_of_one_step_that_is_paused_before_its_loop_turns_has_its_task_for_a_session(
    home: StoreHome, work: Path
) -> None:
    facts = LaunchEnvironment(cwd=str(work), scripts=frozenset({"echo"}))
    request = LaunchRequest(agent="scout", task="count the rows", model="scripted:echo")
    made = draft(request, catalog=discover(work, registered=()), settings=Settings(), environment=facts)
    plan = made.to_plan(run_id=make_run_id(77, 7), token="t" * 32, created_at=WHEN)
    carried = Carried(home, plan)
    asked = ControlRequest(run_id=plan.run_id, request_id="q", verb="interrupt", asked_at=WHEN)

    async def importing() -> None:
        runner = Runner(plan, carried.writer.paths, asyncio.get_running_loop(), DISK)
        StepRegistry(runner._services).end_all(interrupted_by(asked))

    asyncio.run(importing())
    session = json.loads((carried.writer.paths.step(0) / "session.json").read_bytes())
    assert [part["content"] for message in session for part in message["parts"]] == ["count the rows"]


# --- time ---


def timed(work: Path, *, checkpoint: float, timeout: float, run: float | None = None) -> LaunchPlan:
    model = write_script(work, "asked", *ASKED_FOR_IT)
    children = [step("scout", name, model=model, timeout=timeout) for name in ("one", "two")]
    return plan_flow(work, chain(parallel(*children)), settings=Settings(checkpoint_s=checkpoint), timeout=run)


def test_each_child_is_asked_for_what_it_has_before_its_own_deadline(home: StoreHome, work: Path) -> None:
    result = Carried(home, timed(work, checkpoint=1.5, timeout=3)).carry_out()
    assert (result.state, result.error) == (RunState.COMPLETE, None)
    assert all("The deadline is 1 s away" in one.text and one.text.endswith("findings") for one in result.steps)


def test_a_step_and_a_launch_may_say_by_themselves_when_they_are_asked(home: StoreHome, work: Path) -> None:
    model = write_script(work, "asked", *ASKED_FOR_IT)
    own = step("scout", "one", model=model, timeout=3, checkpoint=1.5)
    result = Carried(home, plan_flow(work, chain(own))).carry_out()
    assert (result.state, result.error) == (RunState.COMPLETE, None)
    assert "The deadline is 1 s away" in result.steps[0].text
    plan = plan_flow(work, chain(step("scout", "one", model=model, timeout=3)), checkpoint="1.5s")
    assert Carried(home, plan).carry_out().state is RunState.COMPLETE


def test_the_settings_say_when_a_live_run_points_at_itself(home: StoreHome, work: Path) -> None:
    model = write_script(work, "silent", {"text": "so far"}, {"await_steer": True})
    patient = Settings(patience=AttentionSettings(idle_s=0.3))
    carried = Carried(home, plan_flow(work, chain(step("scout", "one", model=model)), settings=patient))

    def pointed(run: Carried) -> bool:
        found = run.look().attention
        return found is not None and found.kind == "idle" and bool(run.ask("steer", text="go", mode="steer", step=0))

    assert carried.carry_out(pointed).state is RunState.COMPLETE


def test_children_are_asked_before_the_deadline_of_their_run_too(home: StoreHome, work: Path) -> None:
    result = Carried(home, timed(work, checkpoint=1.5, timeout=60, run=3)).carry_out()
    assert (result.state, result.error) == (RunState.COMPLETE, None)


def test_nobody_is_asked_in_the_first_half_of_his_time(home: StoreHome, work: Path) -> None:
    result = Carried(home, timed(work, checkpoint=600, timeout=3)).carry_out()
    assert result.state is RunState.COMPLETE
    assert all(one.ended_s is not None and one.ended_s - (one.started_s or 0) >= 1.5 for one in result.steps)


def test_more_time_for_the_live_run_is_more_time_for_its_children(home: StoreHome, work: Path) -> None:
    model = write_script(work, "long", {"text": "a "}, {"sleep": 2.6}, {"text": "end"})
    carried = Carried(home, plan_flow(work, chain(step("scout", "x", model=model, timeout=2))))
    result = carried.carry_out(running(0), once(lambda run: run.ask("retune", retune=Retune(timeout_s=3600))))
    assert (result.state, result.error) == (RunState.COMPLETE, None)


def test_less_time_for_the_live_run_leaves_its_children_theirs(home: StoreHome, work: Path) -> None:
    model = write_script(work, "long", {"text": "a "}, {"sleep": 20}, {"text": "end"})
    carried = Carried(home, plan_flow(work, chain(step("scout", "x", model=model, timeout=30))))
    result = carried.carry_out(running(0), once(lambda run: run.ask("retune", retune=Retune(timeout_s=1.5))))
    assert (result.state, result.reason) == (RunState.FAILED, "timeout")
    assert "The run passed its deadline of 1.5 s" in str(result.error)
