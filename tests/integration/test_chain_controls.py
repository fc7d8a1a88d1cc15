"""What is asked of a live chain from Python and from the terminal: append, stop and steer one step, change limits."""

from __future__ import annotations

from pathlib import Path

import pytest
from support import script, until

from subagents_nb import Run, attach, chain, expand, launch, parallel, step
from subagents_nb.cli import main
from subagents_nb.errors import RequestError
from subagents_nb.launching.composing.appending import AppendRefused

pytestmark = [pytest.mark.timeout(90), pytest.mark.usefixtures("shared_home")]

Said = pytest.CaptureFixture[str]
FILES = {"type": "object", "properties": {"files": {"type": "array"}}, "required": ["files"]}


def begin(*items: object, name: str = "probe", **options: object) -> Run:
    """Launch a chain whose first step waits to be steered."""
    script("waits", {"text": "a"}, {"await_steer": True})
    first = step("scout", "do it", as_="first", label="first")
    run = launch(chain(first, *items), model="scripted:waits", name=name, **options)  # type: ignore[arg-type]
    until(lambda: [s.state for s in run.steps][:1] == ["running"], 20, what="the first step at work")
    return run


def test_a_fan_out_can_be_appended_over_an_output_that_was_named_before() -> None:
    script("finds", {"value": {"files": ["x", "y"]}})
    run = begin(step("scout", "find", as_="found", schema=FILES, model="scripted:finds"))
    each = step("reviewer", "look at {item}", model="scripted:echo")
    last = step("delegate", "sum up {outputs.reviews} of {task}", model="scripted:echo", as_="sum")
    answer = run.append(expand("found", "/files", each, max_items=5, as_="reviews"), last)
    assert answer is not None
    assert answer.outcome == "accepted"
    run.steer("finish", step=0)
    assert run.wait(30)
    assert run.state == "complete", run.error
    assert [one.agent for one in run.steps] == ["scout", "scout", "delegate", "reviewer", "reviewer"]
    assert run.outputs["sum"].startswith("sum up [")
    assert run.outputs["sum"].endswith("of do it")


def test_what_does_not_fit_a_chain_is_refused_with_every_reason_and_nothing_is_asked() -> None:
    run = begin(max_children=2)
    with pytest.raises(AppendRefused) as caught:
        run.append(step("scout", "see {outputs.later}"), step("nobody", "x"), step("scout", "y", as_="first"))
    text = str(caught.value)
    assert text.startswith("Not appended, for ")
    for part in ("{outputs.later} names no earlier output", "stage 2 (nobody)", "there is an output 'first' already"):
        assert part in text
    with pytest.raises(AppendRefused, match="more than the 1 a run may start"):
        run.append(step("scout", "a"), step("scout", "b"))
    assert run.append(step("scout", "a", model="scripted:echo")) is not None
    with pytest.raises(AppendRefused, match="more than the 0 a run may start"):  # the one before still waits
        run.append(step("scout", "b", model="scripted:echo"))
    run.stop()
    assert run.wait(20)
    with pytest.raises(RequestError, match="stopped already; there is nothing to append to"):
        run.append(step("scout", "a"))


def test_a_second_append_knows_the_outputs_of_the_first() -> None:
    run = begin()
    assert run.append(step("scout", "b", as_="second", model="scripted:echo")) is not None
    with pytest.raises(RequestError, match="there is an output 'second' already"):
        run.append(step("scout", "c", as_="second", model="scripted:echo"))
    run.steer("finish", step=0)
    assert run.wait(30)
    assert sorted(run.outputs) == ["first", "second"]


def test_the_terminal_launches_appends_and_shows_a_chain(
    capsys: Said, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script("waits", {"text": "a"}, {"await_steer": True})
    file = tmp_path / "flow.yaml"
    file.write_text("- scout: look\n  label: looking\n- nobody: x\n")
    assert main(["chain", str(file), "--model", "scripted:waits"]) == 1
    assert "line 3: stage 2 (nobody)" in capsys.readouterr().err
    both = "- parallel:\n  - scout: a\n  - reviewer: b\n  on_failure: continue\n"
    file.write_text(both)
    assert main(["chain", str(file), "--model", "scripted:waits", "--name", "typed"]) == 0
    run = attach("typed")
    until(lambda: [s.state for s in run.steps] == ["running", "running"], 20)
    with monkeypatch.context() as usual:
        usual.setenv("SUBAGENTS_NB_REUSE", "tracked")
        assert main(["chain", str(file), "--model", "scripted:waits", "--name", "other"]) == 0
    assert "typed reused: it was at work already" in capsys.readouterr().out
    file.write_text("- delegate: 'after {previous}'\n  model: scripted:echo\n  label: the end\n")
    assert main(["append", "typed", str(file)]) == 0
    assert "1 appended" in capsys.readouterr().out
    assert main(["append", "typed", str(tmp_path / "none.yaml")]) == 1
    assert main(["stop", "typed", "--step", "1"]) == 0
    assert main(["retune", "typed", "--concurrency", "2", "--max-requests", "9", "--tokens", "50k"]) == 0
    assert main(["steer", "typed", "finish", "--step", "0"]) == 0
    assert run.wait(30)
    capsys.readouterr()
    main(["status", "typed"])
    said = capsys.readouterr().out
    assert "typed (parallel) partial" in said
    assert "   2  complete  the end" in said and " of 50,000 tokens." in said
    assert "     1  stopped   reviewer" in said


def test_one_step_of_a_group_is_stopped_and_the_chain_goes_on() -> None:
    script("waits", {"text": "a"}, {"await_steer": True})
    group = parallel(step("scout", "a"), step("reviewer", "b"), on_failure="continue")
    run = launch(group, model="scripted:waits")
    until(lambda: [s.state for s in run.steps] == ["running", "running"], 20)
    run.steps[0].stop()
    until(lambda: run.steps[0].state == "stopped", 10)
    run.steps[1].steer("finish")
    assert run.wait(20)
    assert run.state == "partial"
