"""Each tool of an agent tells what it read of the workspace and what it changed."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from subagents_nb.domain.runs.events import ChangedMeanwhile, FileChanged
from subagents_nb.domain.runs.reads import ReadLog
from subagents_nb.runner.engines.native.native import NativeEngine
from subagents_nb.runner.tracking import ReadRecorder

ALL = ("read", "list", "find", "grep", "write", "edit", "bash")


@pytest.fixture
def after(workshop: Any, plan: Any, plays: Any) -> Any:
    """Let a model make one call after the other, and return the account."""
    (workshop.cwd / "src").mkdir()
    (workshop.cwd / "src" / "a.py").write_text("one\n")
    (workshop.cwd / "src" / "b.md").write_text("two\n")

    def play(*calls: tuple[str, dict[str, Any]]) -> ReadLog:
        recorder = ReadRecorder(workshop.cwd)
        workshop.more["reads"] = recorder
        turns = [[call] for call in calls]
        workshop.run(NativeEngine(plays(*turns, ["Done."])), plan(tools=ALL))
        log = recorder.log()
        assert log is not None
        return log

    return play


def paths(log: ReadLog) -> list[str]:
    return [one.path for one in log.files]


def test_a_read_is_of_its_file(after: Any) -> None:
    assert paths(after(("read", {"path": "src/a.py", "limit": 1}))) == ["src/a.py"]


def test_a_read_of_nothing_is_one_too(after: Any) -> None:
    log = after(("read", {"path": "src/none.py"}))
    assert [(one.path, one.sha256) for one in log.files] == [("src/none.py", None)]


def test_a_list_and_a_find_are_of_names(after: Any) -> None:
    log = after(("list", {"path": "src"}), ("find", {"pattern": "**/*.py"}))
    assert [(one.path, one.pattern) for one in log.names] == [(".", "**/*.py"), ("src", "*")]
    assert paths(log) == []


def test_a_grep_is_of_every_file_below_and_of_their_names(after: Any) -> None:
    log = after(("grep", {"pattern": "no match", "include": "*.py"}))
    assert paths(log) == ["src/a.py"]
    assert [(one.path, one.include) for one in log.names] == [(".", "*.py")]


def test_a_grep_in_one_file_is_of_that_file(after: Any) -> None:
    assert paths(after(("grep", {"pattern": "two", "path": "src/b.md"}))) == ["src/b.md"]


def test_an_edit_reads_what_it_could_not_change(after: Any) -> None:
    assert paths(after(("edit", {"path": "src/a.py", "old_text": "three", "new_text": "x"}))) == ["src/a.py"]


@pytest.mark.skipif(sys.platform != "linux", reason="inotify is Linux's")
def test_a_command_is_watched(after: Any, workshop: Any) -> None:
    log = after(("bash", {"command": "cat src/a.py; cp src/b.md new.md"}))
    assert paths(log) == ["src/a.py", "src/b.md"]
    assert (log.changed, log.meanwhile) == ((), ("new.md",)), "nobody says that it was the command"
    assert workshop.told(ChangedMeanwhile) == [ChangedMeanwhile("new.md")]
    assert log.tracked


def test_the_runs_own_folder_is_written_by_its_step_read_by_all_and_no_change_of_the_workspace(
    after: Any, workshop: Any
) -> None:
    own, step = workshop.step_dir.parent / "files", workshop.step_dir.name
    (own / "7").mkdir(parents=True)
    (own / "7" / "of-another.md").write_text("theirs\n")
    workshop.more["files"] = own
    log = after(
        ("write", {"path": f"{own}/{step}/a/out.md", "content": "mine\n"}),
        ("edit", {"path": f"{own}/{step}/a/out.md", "old_text": "mine", "new_text": "mine too"}),
        ("write", {"path": f"{own}/progress.md", "content": "p\n"}),
        ("read", {"path": f"{own}/7/of-another.md"}),
        ("write", {"path": f"{own}/7/of-another.md", "content": "x"}),
        ("write", {"path": f"{own}/../outside.md", "content": "x"}),
    )
    assert (own / step / "a/out.md").read_text() == "mine too\n" and (own / "progress.md").read_text() == "p\n"
    assert (own / "7/of-another.md").read_text() == "theirs\n" and not (own.parent / "outside.md").exists()
    assert workshop.told(FileChanged) == [] and (log.files, log.changed) == ((), ())
