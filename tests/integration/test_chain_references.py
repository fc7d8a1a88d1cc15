"""Chains that refer to other runs: a step of one, its named outputs, a stored conversation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support import script, until

from subagents_nb import chain, expand, launch, parallel, preflight, step
from subagents_nb.errors import LaunchRefused
from subagents_nb.launching.archive import export_runs, import_runs
from subagents_nb.notebook.bodies.chain_cell import parse
from subagents_nb.store import StoreHome

pytestmark = pytest.mark.timeout(90)
ECHO = "scripted:echo"
FILES = {"type": "object", "properties": {"files": {"type": "array"}}, "required": ["files"]}


@pytest.fixture(autouse=True)
def warm(shared_home: StoreHome, monkeypatch: pytest.MonkeyPatch) -> StoreHome:
    monkeypatch.delenv("SUBAGENTS_NB_SPAWN")
    return shared_home


def found() -> Any:
    model = script("find", {"value": {"files": ["x", "y"]}})
    return step("scout", "find", as_="found", schema=FILES, model=model)


def test_a_chain_goes_on_from_one_step_of_another_and_from_its_named_outputs() -> None:
    base = launch(chain(found(), step("scout", "middle", as_="mid"), step("scout", "end")), model=ECHO, wait=True)
    of_step = launch(chain(base.steps[1], step("scout", "after {previous}")), model=ECHO)
    each = step("scout", "see {item}")
    named = chain(base, step("scout", "{outputs.mid} and {previous}"), expand("found", "/files", each, max_items=3))
    run = launch(named, model=ECHO)
    assert of_step.result(30) == "after middle"
    assert run.wait(30) and run.state == "complete", run.error
    assert [one.text for one in run.steps] == ["middle and end", "see x", "see y"]
    assert run.plan.items[0].outputs == ("found", "mid")  # type: ignore[union-attr]
    with pytest.raises(LaunchRefused, match=r"names no earlier output; did you mean 'mid'"):
        launch(chain(base, step("scout", "{outputs.midd}")), model=ECHO)
    with pytest.raises(
        LaunchRefused,
        match=r"has no steps\[7\]; it has steps\[0\] \(scout\), steps\[1\] \(scout\), steps\[2\] \(scout\)",
    ):
        launch(parse(f"attach: {{run: {base.id}, step: 7}}\nsteps:\n- scout: x\n", {}).chain, model=ECHO)


def test_a_structured_chain_is_the_source_of_a_fan_out_and_a_live_step_is_waited_for() -> None:
    waits = script("waits", {"text": "a"}, {"await_steer": True})
    base = launch(chain(step("scout", "first"), found()), model=ECHO, wait=True)
    source = "{output: all, path: /files}"
    text = f"attach: {{run: {base.id}, as: all}}\nsteps:\n- expand: {{from: {source}, max_items: 3}}\n"
    run = launch(parse(text + '  each: {scout: "see {item}"}\n', {}).chain, model=ECHO)
    assert run.wait(30) and [one.text for one in run.steps] == ["see x", "see y"], run.error
    live = launch(parallel(step("scout", "quick"), step("scout", "slow", model=waits)), model=ECHO)
    until(lambda: live.steps[0].state == "complete", 20)
    early = launch(chain(live.steps[0], step("scout", "after {previous}")), model=ECHO)
    assert early.result(30) == "after quick"
    live.stop()
    assert live.wait(20)
    with pytest.raises(LaunchRefused, match=r"steps\[1\] of .* is stopped"):
        launch(chain(live.steps[1], step("scout", "x")), model=ECHO)


def test_a_step_goes_on_from_a_copy_of_a_stored_conversation(warm: StoreHome) -> None:
    first = launch("scout", "remember this", model=ECHO, wait=True)
    flow = chain(step("scout", "a"), step("scout", "and now", session=first))
    run = launch(flow, model=ECHO)
    assert run.wait(30)
    assert [one.text for one in run.steps] == ["a", "[2 earlier] and now"]
    bound = preflight(flow, model=ECHO).digest
    assert bound == run.plan.digest != preflight(chain(step("scout", "a"), step("scout", "and now")), model=ECHO).digest
    second = launch("scout", "remember that", model=ECHO, wait=True)
    assert bound != preflight(chain(step("scout", "a"), step("scout", "and now", session=second)), model=ECHO).digest
    alone = launch(step("scout", "more", session=f"{run.id}/step 1"), model=ECHO)
    assert alone.result(30) == "[4 earlier] more"
    (warm.run(first.id).step(0) / "session.json").unlink()
    assert run.launch_again().result(30) == "[2 earlier] and now"  # from the copy in the run
    with pytest.raises(LaunchRefused, match="left no session to go on from"):
        launch(flow, model=ECHO)
    with pytest.raises(
        LaunchRefused, match=r"has several steps: write .*/step N: steps\[0\] \(scout\), steps\[1\] \(scout\)"
    ):
        launch(chain(step("scout", "x", session=run)), model=ECHO)


def test_another_agent_gets_a_copy_of_a_conversation_to_refer_to(
    warm: StoreHome, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    findings = launch("scout", "remember this", model=ECHO, name="findings", wait=True)
    run = launch("worker", "sum it up", model=ECHO, fork=findings)
    said = run.result(30)
    assert said.startswith("[2 earlier] Everything before this message is a copy") and said.endswith("\n\nsum it up")
    assert "It refers to a copy of the conversation of findings (steps[0])." in run.status.notes
    again = launch("worker", "sum it up", model=ECHO, fork="findings:0", reuse="tracked")
    assert again.reused and again.id == run.id, again.reuse_note
    bare, cell = preflight("worker", "sum it up", model=ECHO), "- scout: a\n- worker: b\n  fork: found\n"
    assert preflight("worker", "sum it up", model=ECHO, fork="findings").digest == run.plan.digest != bare.digest
    flow = chain(step("scout", "a"), step("worker", "b", fork=findings.steps[0]))
    assert preflight(parse(cell, {"found": findings}).chain, model=ECHO).digest == preflight(flow, model=ECHO).digest
    assert launch(flow, model=ECHO).result(30).startswith("[2 earlier] Everything")
    assert findings.resume("and now").result(30) == "[2 earlier] and now"  # no lease was taken, and it is as it was
    export_runs([findings.id], tmp_path / "a.zip")
    monkeypatch.setenv("SUBAGENTS_NB_HOME", str(tmp_path / "elsewhere"))
    import_runs(tmp_path / "a.zip")
    taken_in = preflight("worker", "sum it up", model=ECHO, fork="findings")
    assert taken_in.ok and taken_in.digest == run.plan.digest


def test_what_is_appended_may_refer_to_a_conversation_too(warm: StoreHome) -> None:
    findings = launch("scout", "remember this", model=ECHO, wait=True)
    waits = script("waits", {"text": "a"}, {"await_steer": True})
    live = launch(chain(step("scout", "x", model=waits), step("scout", "y")), model=ECHO)
    until(lambda: live.state == "running", 20)
    assert live.append(step("worker", "z", fork=findings)) is not None
    (warm.run(findings.id).step(0) / "session.json").unlink()
    live.steer("go on", step=0)
    assert live.wait(30) and live.state == "complete", live.error
    assert live.steps[2].text.startswith("[2 earlier] Everything")


def test_what_can_not_be_forked_says_why() -> None:
    busy = launch("scout", "x", model=script("waits", {"text": "a"}, {"await_steer": True}), name="busy")
    until(lambda: busy.state == "running", 20)
    with pytest.raises(LaunchRefused, match="fork: busy is still at work, and has no session to fork from yet"):
        launch("worker", "x", model=ECHO, fork="busy")
    busy.stop()
    assert busy.wait(20)
    left = launch("scout", "y", model=ECHO, name="left", wait=True)
    (left.home.run(left.id).step(0) / "session.json").unlink()
    with pytest.raises(LaunchRefused, match="fork: left left no session to fork from"):
        launch("worker", "x", model=ECHO, fork=left, fresh=True)
    with pytest.raises(LaunchRefused, match="session goes on with a conversation, fork only refers to one"):
        launch(chain(step("scout", "x", session=busy, fork=busy)), model=ECHO)
    with pytest.raises(LaunchRefused, match="fork belongs to one step: in a chain, give it to the step it is for"):
        launch(chain(step("scout", "x")), model=ECHO, fork=left)
