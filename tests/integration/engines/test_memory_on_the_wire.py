"""Memory on the wire: shown as data, kept by its tools, and read only by who has no tool that writes."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from subagents_nb.domain.agents.memory import MemoryPlan
from subagents_nb.domain.runs.events import StepOutcome, ToolEnded
from subagents_nb.runner.engines.native.native import NativeEngine
from subagents_nb.runner.steps.remembering import Remembered
from subagents_nb.runner.tracking import ReadRecorder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return (tmp_path / "memory").resolve()


def run(workshop: Any, wire: Any, plan: Any, folder: Path, *, writes: bool) -> tuple[StepOutcome, ReadRecorder]:
    reads = ReadRecorder(workshop.cwd)
    memory = Remembered(MemoryPlan(scope="user", path="mine", folder=str(folder), writes=writes), reads)
    step = plan("go on", at=wire.url, tools=("read", "write") if writes else ("read",), memory=memory.plan)
    context = replace(workshop.context(step), memory=memory)
    workshop.context = lambda _step: context
    outcome = workshop.run(NativeEngine(), step)
    del workshop.context
    memory.close()
    return outcome, reads


def call(wire: Any, name: str, **args: str) -> None:
    wire.says(calls=[(f"c{len(wire.turns)}", name, json.dumps(args))], end="tool_calls")


def tools_of(body: dict[str, Any]) -> set[str]:
    return {tool["function"]["name"] for tool in body.get("tools", ())}


def test_who_writes_keeps_a_note_and_the_next_step_is_shown_it_as_data(
    workshop: Any, plan: Any, wire: Any, folder: Path
) -> None:
    call(wire, "write_memory", content="- rows are counted from 1")
    wire.says("noted")
    outcome, reads = run(workshop, wire, plan, folder, writes=True)
    assert outcome.text == "noted" and outcome.usage.tool_calls == 1
    assert (folder / "mine/MEMORY.md").read_text() == "- rows are counted from 1\n"
    assert {"write_memory", "read_memory", "search_memory", "delete_memory"} < tools_of(wire.bodies[0])
    assert [(end.ok, end.refused) for end in workshop.told(ToolEnded)] == [(True, None)]
    log = reads.log()
    assert log is not None and log.memory[0].sha256 is not None and not log.untracked

    before = len(wire.bodies)
    wire.says("read")
    run(workshop, wire, plan, folder, writes=True)
    (shown,) = [one for one in wire.bodies[before]["messages"] if "counted from 1" in json.dumps(one)]
    assert shown["role"] == "user" and "<memory>" in json.dumps(shown["content"])


def test_who_only_reads_has_no_tool_that_writes_and_leaves_no_file_behind(
    workshop: Any, plan: Any, wire: Any, folder: Path
) -> None:
    (folder / "mine").mkdir(parents=True)
    (folder / "mine/MEMORY.md").write_text("- a fact\n")
    (folder / "mine/more.md").write_text("the long story\n")
    (folder / "mine/away.md").symlink_to("/etc/passwd")
    call(wire, "read_memory", file="more.md")
    call(wire, "write_memory", content="x")
    wire.says("done")
    run(workshop, wire, plan, folder, writes=False)
    assert "- a fact" in json.dumps(wire.bodies[0]["messages"]) and "away" not in json.dumps(wire.bodies[0]["messages"])
    assert tools_of(wire.bodies[0]) == {"read", "read_memory", "search_memory"}
    assert "the long story" in json.dumps(wire.bodies[1]["messages"])
    assert [end.ok for end in workshop.told(ToolEnded)] == [True, False]
    assert sorted(path.name for path in folder.rglob("*")) == ["MEMORY.md", "away.md", "mine", "more.md"]


def test_where_there_is_nothing_to_read_and_nothing_may_be_written_nothing_is_said_of_it(
    workshop: Any, plan: Any, wire: Any, folder: Path
) -> None:
    wire.says("done")
    run(workshop, wire, plan, folder, writes=False)
    assert tools_of(wire.bodies[0]) == {"read"} and "emory" not in json.dumps(wire.bodies[0]["messages"])
    assert not folder.exists()


def test_what_others_write_meanwhile_makes_what_was_read_unknown(
    workshop: Any, plan: Any, wire: Any, folder: Path
) -> None:
    (folder / "mine").mkdir(parents=True)
    workshop.on = lambda event: (folder / "mine/other.md").write_text("x") if isinstance(event, ToolEnded) else None
    call(wire, "write_memory", content="- mine")
    wire.says("done")
    _, reads = run(workshop, wire, plan, folder, writes=True)
    log = reads.log()
    assert log is not None and log.untracked == ("its memory was changed by others while it was at work",)


@pytest.mark.parametrize("bad", [b"\xff\xfe\x00bad", None])
def test_memory_that_is_no_text_or_no_file_is_told_to_the_model_and_the_step_goes_on(
    workshop: Any, plan: Any, wire: Any, folder: Path, bad: bytes | None
) -> None:
    (folder / "mine").mkdir(parents=True)
    file = folder / "mine/MEMORY.md"
    file.mkdir() if bad is None else file.write_bytes(bad)
    call(wire, "write_memory", content="x")
    call(wire, "search_memory", query="x")
    wire.says("done")
    outcome, _ = run(workshop, wire, plan, folder, writes=True)
    assert outcome.text == "done" and [end.ok for end in workshop.told(ToolEnded)] == [False, True]
    why = "is no plain file" if bad is None else "is not text in UTF-8"
    assert why in json.dumps(wire.bodies[1]["messages"])
    assert file.is_dir() if bad is None else file.read_bytes() == bad


def test_who_needs_neither_skills_nor_memory_imports_neither() -> None:
    code = (
        "import sys, subagents_nb.runner.main, subagents_nb.runner.engines.native.native, "
        "subagents_nb.runner.engines.scripted.scripted; print(*sys.modules)"
    )
    loaded = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, check=True, timeout=60)
    found = set(loaded.stdout.split())
    native = "subagents_nb.runner.engines.native"
    assert native in found
    assert found.isdisjoint({"pydantic_ai_harness.memory", "sqlite3", f"{native}.notes", f"{native}.skill_loading"})
