"""Memory over runs and processes: nothing is lost by writing at once or by being killed, and reuse stays right."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support import CHILDREN

from subagents_nb import launch, preflight, register_agent
from subagents_nb.catalog import unregister_agent
from subagents_nb.domain.agents.agent import AgentDefinition
from subagents_nb.domain.agents.memory import MemoryChoice

pytestmark = [pytest.mark.timeout(120), pytest.mark.usefixtures("shared_home")]
LONG = bool(os.environ.get("SOAK"))


def fire(how: str, folder: Path, number: int) -> Any:
    command = [sys.executable, str(CHILDREN / "notes.py"), how, str(folder), str(number)]
    return json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True, timeout=110).stdout)


def test_notes_of_eight_at_once_are_all_there_and_in_order(tmp_path: Path) -> None:
    notes = 20 if LONG else 4
    found = fire("many", tmp_path / "memory", notes)
    assert found["codes"] == [0] * 8 and found["lines"] == 8 * notes
    assert found["all"] and found["in order"], found


def test_a_writer_that_is_killed_leaves_whole_notes_all_that_it_knew_of_and_nothing_in_the_way(tmp_path: Path) -> None:
    found = fire("killed", tmp_path / "memory", 20 if LONG else 5)
    assert found["wrong"] == [], found


def test_what_a_run_notes_the_next_one_reads_and_who_sees_the_same_is_not_run_again() -> None:
    (Path(".subagents/scripts")).mkdir(parents=True)
    Path(".subagents/scripts/notes.json").write_text(json.dumps([{"remember": "- a fact"}, {"text": "done"}]))
    Path(".subagents/scripts/reads.json").write_text(json.dumps([{"recall": "MEMORY.md", "say": True}]))
    for name, tools in (("keeper", ("read", "write")), ("reader", ("read",))):
        memory = MemoryChoice(scope="project", path="team")
        register_agent(AgentDefinition(name=name, description="d", tools=tools, memory=memory))
    try:
        first = launch("keeper", "note it", model="scripted:notes", reuse="tracked")
        assert first.wait(30) and first.state == "complete", first.error
        assert Path(".subagents/memory/team/MEMORY.md").read_text() == "- a fact\n"
        ignored = Path(".subagents/memory/.gitignore").read_text()
        assert ".memory-tmp-*" in ignored
        assert sorted(path.name for path in Path(".subagents/memory").iterdir()) == [".gitignore", "team"]

        reader = launch("reader", "read it", model="scripted:reads", reuse="tracked")
        assert reader.wait(30) and reader.text == "- a fact\n", reader.error
        for agent, task, model in (("keeper", "note it", "notes"), ("reader", "read it", "reads")):
            assert preflight(agent, task, model=f"scripted:{model}", reuse="tracked").reuses, task

        Path(".subagents/memory/team/more.md").write_text("- from elsewhere\n")
        for agent, task, model, run in (("keeper", "note it", "notes", first), ("reader", "read it", "reads", reader)):
            found = preflight(agent, task, model=f"scripted:{model}", reuse="tracked")
            assert found.reuse_note == f"the memory team of the project changed since {run.name}."

        refused = launch("reader", "note it", model="scripted:notes")
        assert refused.wait(30) and refused.state == "failed"
        assert refused.error == "The script writes into memory, and its agent has no tool that writes."
    finally:
        for name in ("keeper", "reader"):
            unregister_agent(name)


def test_what_a_project_put_where_a_journal_would_lie_is_never_opened(tmp_path: Path) -> None:
    """SQLite makes its file at the end of a link, and adds its tables to a database that lies there."""
    memory, strange = Path(".subagents/memory"), tmp_path / "strange.db"
    memory.mkdir(parents=True)
    (memory / ".memory-store.sqlite3").symlink_to(strange)
    Path(".subagents/scripts").mkdir()
    Path(".subagents/scripts/notes.json").write_text(json.dumps([{"remember": "- a fact"}, {"text": "done"}]))
    kept = MemoryChoice(scope="project", path="own")
    register_agent(AgentDefinition(name="keeper", description="d", tools=("read", "write"), memory=kept))
    try:
        run = launch("keeper", "note it", model="scripted:notes")
        assert run.wait(30) and run.state == "complete", run.error
        assert (memory / "own/MEMORY.md").read_text() == "- a fact\n" and not strange.exists()
        assert not list(memory.glob(".memory-store.sqlite3-*"))

        (memory / "own/MEMORY.md").unlink()
        (memory / "own/MEMORY.md").symlink_to(strange)
        refused = launch("keeper", "note it", model="scripted:notes")
        assert refused.wait(30) and refused.state == "failed" and not strange.exists()
        assert refused.error is not None and "own/MEMORY.md" in refused.error and "is a link" in refused.error
    finally:
        unregister_agent("keeper")
