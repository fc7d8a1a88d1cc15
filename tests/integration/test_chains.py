"""Chains with real processes and real files."""

from __future__ import annotations

import json
import os
import signal
from dataclasses import dataclass
from typing import Any

import pytest
from support import script, until

from subagents_nb import Run, attach, chain, expand, launch, parallel, preflight, step
from subagents_nb.domain.runs.states import RunState, StepState
from subagents_nb.errors import LaunchRefused, RequestError, RunFailed
from subagents_nb.store import StoreHome

pytestmark = pytest.mark.timeout(60)
ECHO = "scripted:echo"


@dataclass
class Files:
    files: list[str]


def running(run: Run, *numbers: int) -> Run:
    def at_work() -> bool:
        status = run.status.status
        states = {s.index: s.state for s in status.steps} if status is not None else {}
        return all(states.get(n) is StepState.RUNNING for n in numbers)

    until(at_work, what=f"steps {numbers} of {run.name}")
    return run


def test_scout_fan_out_and_synthesis_come_back_typed(shared_home: StoreHome) -> None:
    found = script("found", {"value": {"files": ["a.py", "b.py"]}})
    run = launch(
        chain(
            step("scout", "find in {task}", as_="found", schema=Files, model=found),
            expand("found", "/files", step("reviewer", "review {item}"), max_items=4, as_="reviews"),
            step("delegate", "sum up: {previous}", as_="sum"),
            task="the sources",
        ),
        model=ECHO,
        name="review",
    )
    text = run.result(30)
    assert run.outputs["found"] == Files(files=["a.py", "b.py"])
    assert run.steps[0].output == Files(files=["a.py", "b.py"])
    assert [entry["text"] for entry in run.outputs["reviews"]] == ["review a.py", "review b.py"]
    assert text == run.outputs["sum"] == run.steps[1].output
    assert text.startswith('sum up: [{"key":"0"')
    assert [str(one) for one in run.steps] == [
        "<steps[0] scout complete>", "<steps[1] delegate complete>", "<steps[2] 0 complete>", "<steps[3] 1 complete>",
    ]  # fmt: skip
    again = attach(run.id)
    assert again.outputs["found"] == {"files": ["a.py", "b.py"]}
    with pytest.raises(KeyError, match="has no output 'lost' \\(it has: found, reviews, sum\\)"):
        again.outputs["lost"]


def test_the_steps_of_a_fan_out_come_back_typed_too(shared_home: StoreHome) -> None:
    found = script("found", {"value": {"files": ["a.py", "b.py"]}})
    each = step("reviewer", "review {item}", schema=Files, model=found)
    first = step("scout", "find", as_="found", schema=Files, model=found)
    run = launch(chain(first, expand("found", "/files", each, max_items=4)), model=ECHO, wait=True)
    assert [one.output for one in run.steps] == [Files(files=["a.py", "b.py"])] * 3


def test_one_child_is_stopped_by_its_handle(shared_home: StoreHome) -> None:
    group = parallel(step("scout", "a", model="scripted:hang"), step("scout", "b"))
    run = running(launch(chain(group, step("scout", "after")), model=ECHO), 0)
    run.steps[0].stop("enough")
    assert run.wait(20)
    assert [str(one.state) for one in run.steps] == ["stopped", "complete", "complete"]
    assert (run.state, run.steps[0].error) == (
        RunState.PARTIAL, "The step was stopped on request from python: enough.",
    )  # fmt: skip
    with pytest.raises(RunFailed, match=r"steps\[0\] of .* is stopped"):
        _ = run.steps[0].output
    assert not run.steps[2].stop(), "it has ended already"


def test_a_killed_chain_keeps_what_its_steps_came_to(shared_home: StoreHome) -> None:
    run = running(launch(chain(step("scout", "kept"), step("scout", "b", model="scripted:hang")), model=ECHO), 1)
    status = run.status.status
    assert status is not None and status.runner is not None
    assert run.steps[0].output == "kept"
    os.kill(status.runner.pid, signal.SIGKILL)
    assert run.wait(20)
    assert run.state is RunState.LOST
    assert run.steps[0].output == "kept"
    assert [(one.state, one.error) for one in run.steps] == [("complete", None), ("failed", "cut short")]
    with pytest.raises(RunFailed, match=r"steps\[1\] of .* is failed: cut short"):
        _ = run.steps[1].output


def test_a_chain_begins_with_a_run_that_is_still_at_work(shared_home: StoreHome) -> None:
    nap = script("nap", {"sleep": 0.5}, {"text": "slept"})
    first = launch("scout", "x", model=nap, name="first")
    run = launch(chain(first, step("scout", "after {previous}")), model=ECHO)
    assert run.result(20) == "after slept"
    assert first.state is RunState.COMPLETE


def test_a_step_of_an_ended_chain_is_gone_on_from(shared_home: StoreHome) -> None:
    run = launch(chain(step("scout", "a"), step("scout", "b")), model=ECHO, wait=True)
    with pytest.raises(
        LaunchRefused, match=r"is a chain: say which step to go on from: steps\[0\] \(scout\), steps\[1\] \(scout\)"
    ):
        run.resume("more")
    resumed = run.resume("more", step=0)
    assert resumed.result(20) == "[2 earlier] more"
    assert resumed.plan.resumes is not None and resumed.plan.resumes.run_id == run.id


def test_a_chain_that_was_interrupted_is_resumed_as_a_chain_with_its_items_and_what_was_appended(
    shared_home: StoreHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SUBAGENTS_NB_SPAWN")
    each = step("scout", "see {item}", model=script("waits", {"text": "so far"}, {"await_steer": True}))
    found = step("scout", "find", as_="x", schema=Files, model=script("find", {"value": {"files": ["x", "y"]}}))
    run = launch(chain(found, expand("x", "/files", each, max_items=2, as_="seen")), model=ECHO)
    until(lambda: [s.state for s in run.steps] == ["complete", "running", "running"], 20)
    until(lambda: all(s.text for s in list(run.steps)[1:]), 20)
    run.append(step("scout", "sum up {outputs.seen}", as_="sum"))
    script("waits", {"text": "done"})
    run.interrupt()
    assert run.wait(20) and run.state == "paused"
    with pytest.raises(RequestError, match=r"is paused already; .* append to\. Resume it first: run\.resume\(text\)"):
        run.append(step("scout", "more"))
    with pytest.raises(
        LaunchRefused, match=r"stage 1 \(attached run\): .* is paused: resume it, and attach to the run"
    ):
        launch(chain(run, step("scout", "{previous}")), model=ECHO)
    again = run.resume("and now")
    assert again.wait(30) and again.state == "complete", again.error
    assert isinstance(again.outputs["x"], Files)
    assert [one["text"] for one in again.outputs["seen"]] == ["done", "done"]
    assert again.outputs["sum"].startswith("sum up [")
    assert again.steps[0].usage.requests == 0
    assert again.status.resumed_from == run.id
    one = run.resume("only this", step=2)  # a step that a fan-out made
    assert one.result(20) == "done"
    assert json.loads((shared_home.run(again.id).step(2) / "session.json").read_bytes())


def test_the_same_chain_has_the_same_digest_and_a_changed_one_another() -> None:
    def digest(**fields: Any) -> str | None:
        options = {"concurrency": 2, **fields}
        flow = chain(step("scout", "a", as_="x"), parallel(step("scout", "{outputs.x}"), **options))
        return preflight(flow, model=ECHO).digest

    assert digest() == digest() != digest(concurrency=3)
    assert digest() == digest(label="shown only")


def test_one_step_by_itself_is_a_plain_run(shared_home: StoreHome) -> None:
    alone, plain = preflight(step("scout", "a", model=ECHO)), preflight("scout", "a", model=ECHO)
    assert alone.plan is not None and not alone.plan.items
    assert alone.digest == plain.digest


def scout(task: str | None = None, **fields: Any) -> Any:
    return step("scout", task, **fields)


def fan_out(path: str = "/files", task: str = "{item}", schema: Any = Files, **fields: Any) -> Any:
    options = {"max_items": 1, **fields}
    return chain(scout("a", as_="x", schema=schema), expand("x", path, scout(task), **options))


REFUSED: list[tuple[Any, str]] = [
    (chain(), "the chain has no steps"),
    (chain(scout()), "stage 1 (scout): the first step needs a task"),
    (chain(parallel()), "stage 1 (parallel group): the group is empty"),
    (chain(scout("{previous}")), "stage 1 (scout): {previous} stands for the step before, and there is none"),
    (chain(scout("a", as_="found"), scout("{outputs.fond}")),
     "stage 2 (scout): {outputs.fond} names no earlier output; did you mean 'found'?"),
    (chain(parallel(scout("a", as_="x"), scout("{outputs.x}"))),
     "stage 1.2 (scout): {outputs.x} names no earlier output; none has a name so far"),
    (chain(scout("{outputs}")),
     "stage 1 (scout): {outputs} is no placeholder: there are {task}, {previous}, {chain_dir} and {outputs.NAME}"),
    (chain(scout("a", as_="1x")),
     "stage 1 (scout): '1x' can't name an output: use letters, digits and _, not a digit first"),
    (chain(scout("a", as_="x"), scout("b", as_="x")),
     "stage 2 (scout): there is an output 'x' already; names are unique in a chain"),
    (chain(scout("a", count=2)), "stage 1 (scout): count is 2; only the steps of a parallel group have copies"),
    (chain(parallel(scout("a", count=0))), "stage 1 (parallel group): count is 0; it is a whole number from 1"),
    (chain(parallel(scout("a", count=2, as_="x"))), "stage 1.1 (scout): 2 copies can't all be named 'x'"),
    (chain(parallel(scout("a"), concurrency=0)),
     "stage 1 (parallel group): concurrency is 0; it is a whole number from 1 to 64"),
    (chain(expand("x", "", scout("a"), max_items=1)),
     "stage 1 (fan-out): a chain can't begin with a fan-out: there is no earlier output to expand"),
    (chain(scout("a", as_="x"), expand("y", "", scout("a"), max_items=1)),
     "stage 2 (fan-out): there is no earlier output 'y' to expand; there are x"),
    (fan_out(schema=None),
     "stage 2 (fan-out): the output 'x' is text; give its step a schema, so that there is an array to expand"),
    (fan_out("/file"), "stage 2 (fan-out): '/file' leads nowhere in 'x': its schema has no 'file' (it has files)"),
    (fan_out("files"),
     "stage 2 (fan-out): 'files' is no JSON Pointer: it is empty or begins with a slash, as in '/files'"),
    (fan_out(""), "stage 2 (fan-out): the whole value of 'x' is of type object, and only an array can be expanded"),
    (fan_out(max_items=None),
     "stage 2 (fan-out): max_items is missing: say how many items it may expand to at most"),
    (fan_out(max_items=-1), "stage 2 (fan-out): max_items is -1; it is a whole number from 0"),
    (fan_out(item="task"), "stage 2 (fan-out): the item can't be named 'task', which is a placeholder already"),
    (fan_out(key="name"), "stage 2 (fan-out): key: 'name' is no JSON Pointer: it is empty or begins with a slash, "
     "as in '/files'"),
    (fan_out(task="{thing.x}", item="file"),
     "stage 2 (fan-out): {thing.x} is no placeholder of this fan-out: its item is {file}"),
    (fan_out(schema=Files, as_="x"), "stage 2 (fan-out): there is an output 'x' already; names are unique in a chain"),
    (chain(parallel(*[scout("a") for _ in range(65)])),
     "the chain starts 65 steps, more than the 64 a run may start; allow more, with --max-children or max_children="),
    (chain(parallel(step("worker", "a", output="r.md"), step("worker", "b", output="./r.md"))),
     "stage 1.1 (worker) and stage 1.2 (worker) would both write 'r.md'; give each its own"),
    (chain(step("nobody", "a"), scout("b")), "stage 1 (nobody): No agent is named 'nobody'."),
]  # fmt: skip
FIELDS = [
    ({"gate": "true"}, "gate belongs to one step: in a chain, give it to the step it is for"),
    ({"schema": Files}, "schema belongs to one step: in a chain, give it to the step it is for"),
    ({"usage_budget": {"tokens": {"hard": 1, "soft": 2}}}, "usage_budget.tokens: soft (2) is larger than hard (1)"),
    ({"max_children": 0}, "max_children is 0; a run needs at least 1"),
]


@pytest.mark.parametrize(("flow", "options", "text"), [(flow, {}, text) for flow, text in REFUSED] + [
    (chain(scout("a")), options, text) for options, text in FIELDS
])  # fmt: skip
def test_what_can_be_known_before_the_start_is_refused_in_words(
    shared_home: StoreHome, flow: Any, options: dict[str, Any], text: str
) -> None:
    with pytest.raises(LaunchRefused) as refused:
        launch(flow, model=ECHO, **options)
    assert any(reason.startswith(text) for reason in refused.value.reasons), refused.value.reasons
    assert not list(shared_home.runs.glob("r-*"))


def test_all_faults_of_a_chain_come_in_one_error() -> None:
    flow = chain(step("nobody", "a"), step("scout", "{outputs.x}"), parallel(), step("scout", "b", thinking="much"))
    reasons = preflight(flow, model=ECHO).reasons
    assert [reason.split(":")[0] for reason in reasons] == [
        "stage 1 (nobody)", "stage 2 (scout)", "stage 3 (parallel group)", "stage 4 (scout)",
    ]  # fmt: skip
