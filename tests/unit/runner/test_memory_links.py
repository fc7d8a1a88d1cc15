"""Memory through no link: what an agent swaps in at any moment leads neither reading nor writing out of it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from subagents_nb.domain.agents.memory import MAIN_FILE, MemoryPlan
from subagents_nb.domain.runs.events import StepFailed
from subagents_nb.runner.engines.memory_notes import add_note
from subagents_nb.runner.engines.memory_store import NoteStore
from subagents_nb.runner.steps.remembering import Remembered
from subagents_nb.runner.tracking import ReadRecorder
from subagents_nb.store.files.memory_files import journal_folder, memory_texts
from subagents_nb.store.files.note_receipts import NoteChanged, Notes

NOTE = f"mine/{MAIN_FILE}"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home/mine").mkdir(parents=True)
    (tmp_path / "home/mine/SECRET.md").write_text("a secret\n")
    (tmp_path / "project/.subagents/memory/mine").mkdir(parents=True)
    return (tmp_path / "project").resolve()


def memory_of(project: Path) -> Remembered:
    plan = MemoryPlan(scope="project", path="mine", folder=str(project / ".subagents/memory"), writes=True)
    return Remembered(plan, ReadRecorder())


def swapped(project: Path, name: str, to: Path) -> None:
    """Do what a background process of an agent does while the runner is at it."""
    (project / name).rename(project / "away")
    (project / name).symlink_to(to)


@pytest.mark.parametrize("name", [".subagents", ".subagents/memory", ".subagents/memory/mine"])
def test_a_folder_that_becomes_a_link_while_its_lock_is_held_leads_no_note_out(project: Path, name: str) -> None:
    home = project.parent / "home"
    target = {".subagents": home / "all", ".subagents/memory": home, ".subagents/memory/mine": home / "mine"}[name]
    (home / "all/memory/mine").mkdir(parents=True)

    async def write() -> None:
        memory = memory_of(project)
        async with memory.writing():
            store = NoteStore(memory.folder)
            swapped(project, name, target)
            assert await store.read("mine/SECRET.md", max_chars=100) is None
            with pytest.raises(OSError, match="link"):
                await store.write(NOTE, "evil", expected_version=None)

    before = sorted(home.rglob("*.md"))
    asyncio.run(write())
    assert sorted(home.rglob("*.md")) == before
    with pytest.raises(StepFailed, match="link"):
        asyncio.run(add_note(memory_of(project), "evil", call="1"))
    assert not list(home.rglob(".gitignore")) and sorted(home.rglob("*.md")) == before


def test_nothing_is_read_through_a_link_in_place_of_the_memory_folder(project: Path) -> None:
    swapped(project, ".subagents/memory", project.parent / "home")
    folder = project / ".subagents/memory"
    assert memory_texts(folder, "mine") == {}
    found = asyncio.run(NoteStore(folder).read("mine/SECRET.md", max_chars=100))
    assert found is None and asyncio.run(NoteStore(folder).list_paths("mine/", limit=9)) == []


def _not_text(project: Path) -> None:
    (project / ".subagents/memory" / NOTE).write_bytes(b"\xff\xfe\x00bad")


def _folder(project: Path) -> None:
    (project / ".subagents/memory" / NOTE).mkdir()


def _file(project: Path) -> None:
    (project / ".subagents/memory/mine").rmdir()
    (project / ".subagents/memory").rmdir()
    (project / ".subagents/memory").write_text("x")


@pytest.mark.parametrize(
    ("brings", "why"),
    [(_not_text, "is not text in UTF-8"), (_folder, "is no plain file"), (_file, "something that is no folder")],
)
def test_what_a_repository_brings_as_memory_and_is_none_fails_the_step_with_its_reason(
    project: Path, brings: object, why: str
) -> None:
    brings(project)  # type: ignore[operator]
    with pytest.raises(StepFailed, match=why):
        asyncio.run(add_note(memory_of(project), "a note", call="1"))


def test_a_note_that_is_asked_for_again_counts_once_also_when_its_writer_was_killed(project: Path) -> None:
    memory = memory_of(project)
    file = memory.folder / NOTE
    asyncio.run(add_note(memory, "one", call="1"))
    asyncio.run(add_note(memory, "two", call="2"))
    asyncio.run(add_note(memory, "two", call="2"))
    assert file.read_text() == "one\ntwo\n"
    file.write_text("one\n")  # as a kill between its receipt and its file leaves it
    asyncio.run(add_note(memory, "two", call="2"))
    file.write_text("one\ntwo\nby hand\n")
    asyncio.run(add_note(memory, "two", call="2"))
    assert file.read_text() == "one\ntwo\nby hand\n"
    with pytest.raises(NoteChanged):
        Notes(memory.folder).receipt("2", "other")
    with pytest.raises(NoteChanged):
        Notes(memory.folder).change(NOTE, "x", before=None)
    assert sorted(os.listdir(journal_folder(memory.folder))) == ["lock", "receipts.json"]
    assert [path.name for path in file.parent.iterdir()] == [MAIN_FILE]
