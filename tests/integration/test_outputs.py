"""Output files, reads, progress files and tool budgets of real runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support import script, until

from subagents_nb import Run, chain, expand, launch, parallel, preflight, step, sweep
from subagents_nb.domain.runs.records import StepResult
from subagents_nb.domain.runs.states import RunState
from subagents_nb.errors import LaunchRefused, RunFailed
from subagents_nb.store import StoreHome

pytestmark = pytest.mark.timeout(60)


@pytest.fixture
def work(shared_home: StoreHome) -> Path:
    """The workspace: the current directory, with two agents that have files of their own."""
    agents = Path(".subagents/agents")
    agents.mkdir(parents=True)
    head = "---\nname: {}\ndescription: Writes.\ntools: read, write\n{}---\n\nWrite.\n"
    (agents / "writer.md").write_text(head.format("writer", "output: notes.md\ndefaultProgress: true\n"))
    (agents / "quiet.md").write_text(head.format("quiet", "output: quiet.md\noutputMode: file-only\n"))
    return Path.cwd()


def says(text: str) -> str:
    return script("says-" + text.split()[0], {"text": text})


def only(run: Run) -> StepResult:
    assert run.wait(30)
    result = run.status.result
    assert result is not None
    return result.steps[0]


def test_the_answer_is_kept_as_a_file_and_comes_back_with_a_reference(work: Path) -> None:
    run = launch("scout", "count", model=says("three rows"), output="reports/rows.md")

    assert run.result(30) == "three rows\n\n[Saved to reports/rows.md: 11 bytes, 1 line]"

    assert (work / "reports/rows.md").read_text() == "three rows\n"
    saved = only(run).saved
    assert saved is not None and (saved.path, saved.written_by, saved.error) == ("reports/rows.md", "runner", None)


def test_an_output_file_belongs_to_one_run_at_a_time_and_a_save_of_a_person_is_no_answer(work: Path) -> None:
    waits = script("waits", {"text": "begun "}, {"await_steer": True}, {"text": "I said it."})
    run = launch("writer", "write", model=waits, output="own.md")
    until(lambda: run.status.tail, 20, what="the step's first words")
    told = rf"own\.md is the output of {run.name}, which is running: .* Name another output, or wait for its end"
    with pytest.raises(LaunchRefused, match=told):
        launch("writer", "write too", model=says("mine"), output="./own.md")
    assert not preflight("writer", "write too", model=says("mine"), output="own.md").ok
    others = [step("writer", "b", output="own.md"), step("writer", "c", output="c.md", timeout="-1")]
    for asked, task in (("writer", ""), (parallel(*others), None)):  # told with the rest, also where nothing is planned
        with pytest.raises(LaunchRefused, match=told) as caught:
            launch(asked, task, model="scripted:echo", output=None if task is None else "own.md")
        assert len(caught.value.reasons) == 2
    (work / "own.md").write_text("a person's\n")
    run.steps[0].steer("go on")

    assert str(run.result(30)).endswith("I said it.") and (work / "own.md").read_text() == "a person's\n"
    saved = only(run).saved
    assert saved is not None and "by the step or by others" in (saved.error or "")
    later = only(launch("writer", "write too", model=says("mine"), output="own.md")).saved
    assert later is not None and (work / "own.md").read_text() == "mine\n", "it is free again"


def test_a_run_that_goes_on_keeps_its_answer_where_it_was_asked_for_and_one_that_was_done_does_not(work: Path) -> None:
    model = script("halts", {"text": "half"}, {"sleep": 60})
    runs = [
        launch("scout", "count", model=model, output="rows.md", experiment="rows"),
        launch("writer", "x", model=model),
    ]
    for run in runs:
        until(lambda run=run: [one.state for one in run.steps] == ["running"], 20)  # type: ignore[misc]
        run.interrupt()
        assert run.wait(20) and run.state == "paused"
    # What it had written of a file of its own lies with the run that goes on, too.
    earlier = runs[1].home.run(runs[1].id).root / "files/0/notes.md"
    earlier.parent.mkdir(parents=True, exist_ok=True)
    earlier.write_text("the notes")
    script("halts", {"text": "whole"})
    first, second = (run.resume("go on") for run in runs)
    assert first.result(30).startswith("whole") and (work / "rows.md").read_text() == "whole\n"
    assert first.plan.experiment.name == "rows"
    assert second.result(30).startswith("the notes") and only(second).saved is not None
    (work / "rows.md").write_text("mine")
    assert first.resume("and why?").result(30) == "whole" and (work / "rows.md").read_text() == "mine"


def test_runs_of_an_agent_with_an_output_of_its_own_do_not_meet(work: Path) -> None:
    runs = [launch("writer", f"write {word}", model=says(word)) for word in ("AAA", "BBB")]
    for run, word in zip(runs, ("AAA", "BBB"), strict=True):
        assert run.result(30) == f"{word}\n\n[Saved to files/0/notes.md of the run: 4 bytes, 1 line]"
        assert (run.home.run(run.id).root / "files/0/notes.md").read_text() == f"{word}\n"


def test_a_sweep_that_would_write_one_file_is_refused(work: Path) -> None:
    with pytest.raises(LaunchRefused, match=r"3 runs would write 'out\.md'"):
        sweep("scout", "{{n}}", grid={"n": [1, 2, 3]}, output="out.md", model="scripted:echo")


def test_what_comes_later_reads_the_reference_where_the_answer_is_by_file_only(work: Path) -> None:
    flow = chain(step("quiet", "write"), step("scout", "after {previous}"))
    run = launch(flow, model="scripted:echo")

    assert run.wait(30) and run.state is RunState.COMPLETE
    place = run.home.run(run.id).root / "files/0/quiet.md"
    kept = place.read_text()
    assert kept.startswith("write") and f"exactly this file: {place}" in kept
    assert run.text == f"after [Saved to {place}: {len(kept):,} bytes, {len(kept.splitlines())} lines]"


def test_a_structured_answer_stays_what_it_is_and_is_written_for_reading(work: Path) -> None:
    schema = {"type": "object", "properties": {"rows": {"type": "integer"}}, "required": ["rows"]}
    model = script("value", {"value": {"rows": 3}})
    run = launch("scout", "count", model=model, schema=schema, output="rows.json")

    assert run.result(30) == {"rows": 3}
    assert (work / "rows.json").read_text() == '{\n  "rows": 3\n}\n'


def test_the_agents_own_files_of_a_group_do_not_meet(work: Path) -> None:
    said = says("mine")
    flow = parallel(
        step("writer", "a", model=said), step("writer", "b", model=said), step("writer", "c", output="c.md", model=said)
    )
    run = launch(flow)

    assert run.wait(30) and run.state is RunState.COMPLETE
    found = sorted(str(path.relative_to(work)) for path in work.rglob("*.md") if ".subagents" not in path.parts)
    assert found == ["c.md"], "the workspace gets what was asked for by name"
    own = run.home.run(run.id).root / "files"
    assert sorted(str(path.relative_to(own)) for path in own.rglob("*.md")) == [
        "0/parallel-1/1-writer/notes.md",
        "1/parallel-1/2-writer/notes.md",
        "progress.md",
    ]


def test_each_item_of_a_fan_out_has_a_file_of_its_own(work: Path) -> None:
    schema = {"type": "object", "properties": {"files": {"type": "array"}}, "required": ["files"]}
    find = script("find", {"value": {"files": [{"n": "A b"}, {"n": "c"}]}})
    flow = chain(
        step("scout", "find", as_="found", schema=schema, model=find),
        expand("found", "/files", step("scout", "look", output="out.md"), key="/n", max_items=5),
    )
    run = launch(flow, model=says("looked"))

    assert run.wait(30) and run.state is RunState.COMPLETE, run.error
    found = sorted(str(path.relative_to(work)) for path in work.rglob("out.md"))
    assert found == ["dynamic-2/0-a-b/out.md", "dynamic-2/1-c/out.md"]


def test_two_of_a_group_that_would_write_one_file_are_refused(work: Path) -> None:
    with pytest.raises(LaunchRefused, match=r"stage 1\.1 .* and stage 1\.2 .* would both write 'a.md'"):
        launch(parallel(step("scout", "a", output="a.md"), step("scout", "b", output="./a.md")), model="scripted:echo")


def test_a_failed_step_leaves_no_file(work: Path) -> None:
    run = launch("scout", "count", model="scripted:fail", output="out.md")
    with pytest.raises(RunFailed):
        run.result(30)
    assert not (work / "out.md").exists() and only(run).saved is None


def test_a_place_that_is_taken_costs_the_file_and_not_the_answer(work: Path) -> None:
    (work / "out.md").symlink_to(work.parent / "elsewhere.md")
    run = launch("scout", "count", model=says("three rows"), output="out.md", output_mode="file-only")

    assert run.result(30) == "three rows"
    saved = only(run).saved
    assert saved is not None and "symlink" in (saved.error or "")
    assert not (work.parent / "elsewhere.md").exists()


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"output": "../out.md"}, "lies outside the run's directory"),
        ({"output": ".subagents/agents/scout.md"}, "no agent may write"),
        ({"output_mode": "file-only"}, "there is no output file"),
        ({"reads": ["../secret"]}, "lies outside the run's directory"),
        ({"reads": [".env"]}, "no agent may read"),
        ({"progress": True}, "has no tool to write it with"),
    ],
)
def test_files_that_can_not_be_are_refused_before_the_start(work: Path, options: dict[str, Any], told: str) -> None:
    with pytest.raises(LaunchRefused, match=told):
        launch("scout", "count", model="scripted:echo", **options)


def test_the_task_says_what_to_read(work: Path) -> None:
    (work / "a.md").write_text("a")
    run = launch("scout", "count", model="scripted:echo", reads=["a.md", "gone.md"])
    assert str(run.result(30)).startswith("count\n\n[Read from: a.md]\n")


def test_calls_past_a_tool_budget_are_refused_and_the_run_still_answers(work: Path) -> None:
    look = {"tool": "read", "args": {"path": "a.md"}}
    run = launch("scout", "count", model=script("looks", look, look, look, {"text": "done"}), tool_budget=1)

    assert run.result(30) == "done"
    assert [(refusal.tool, "1 tool call" in refusal.why) for refusal in run.refusals] == [("read", True)] * 2
    notices = [event for event in run.events() if event.get("code") == "tool-budget"]
    assert len(notices) == 1
