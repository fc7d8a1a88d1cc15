"""The inputs of a run and its kernel as the tools of a model reach them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from subagents_nb.domain.plans.inputs import InputRecord
from subagents_nb.domain.runs.events import ToolEnded
from subagents_nb.runner.engines.engine import InputFiles, PythonEnd
from subagents_nb.runner.engines.native.native import NativeEngine
from subagents_nb.runner.engines.scripted.scripted import ScriptedEngine
from subagents_nb.runner.engines.step_limits import cell_seconds, limit_of

ALL = ("read", "list", "find", "grep", "write", "edit", "bash", "python")


class Kernel:
    """A kernel that says what it was asked."""

    def __init__(self, ok: bool = True) -> None:
        self.asked: list[tuple[str, float | None]] = []
        self._ok = ok

    async def run(self, code: str, *, seconds: float | None = None) -> PythonEnd:
        self.asked.append((code, seconds))
        return PythonEnd(text="what it showed", ok=self._ok)

    async def close(self) -> None:
        return None


@pytest.fixture
def calls(workshop: Any, plan: Any, plays: Any, tmp_path: Path) -> Any:
    """Let a model make calls beside inputs, and return how each ended."""
    (tmp_path / "inputs").mkdir()
    (tmp_path / "inputs/notes.txt").write_text("a note\n")
    (tmp_path / "secret.txt").write_text("secret\n")
    record = InputRecord(name="notes", kind="text", type="str", file="inputs/notes.txt", media_type="text/plain",
                         bytes=7, sha256="0")  # fmt: skip

    def play(*wanted: tuple[str, dict[str, Any]], folder: str = "inputs") -> list[ToolEnded]:
        workshop.more["inputs"] = InputFiles(tmp_path / "inputs", folder, (record,))
        workshop.run(NativeEngine(plays(*([call] for call in wanted), ["Done."])), plan(tools=ALL))
        return list(workshop.told(ToolEnded))

    return play


def test_the_file_tools_find_the_inputs_beside_the_workspace(calls: Any) -> None:
    ended = calls(
        ("read", {"path": "inputs/notes.txt"}),
        ("list", {"path": "./inputs"}),
        ("find", {"path": "inputs", "pattern": "*.txt"}),
        ("grep", {"path": "inputs", "pattern": "note"}),
    )
    assert [end.ok for end in ended] == [True] * 4
    assert "a note" in ended[0].preview
    assert all("notes.txt" in end.preview for end in ended[1:])


def test_a_workspace_with_such_a_folder_keeps_its_own(calls: Any, workshop: Any) -> None:
    (workshop.cwd / "inputs").mkdir()
    (workshop.cwd / "inputs/own.txt").write_text("mine\n")
    own, given = calls(
        ("read", {"path": "inputs/own.txt"}), ("read", {"path": "run-inputs/notes.txt"}), folder="run-inputs"
    )
    assert "mine" in own.preview and "a note" in given.preview


def test_nobody_writes_there_or_gets_out_of_there(calls: Any, workshop: Any, tmp_path: Path) -> None:
    ended = calls(
        ("write", {"path": "inputs/new.txt", "content": "x"}),
        ("edit", {"path": "inputs/notes.txt", "old_text": "a", "new_text": "b"}),
        ("read", {"path": "inputs/../../secret.txt"}),
        ("read", {"path": "inputs/link"}),
    )
    assert [end.ok for end in ended] == [False] * 4
    assert all("can't be written to" in (end.refused or "") for end in ended[:2])
    assert not (workshop.cwd / "inputs").exists()
    assert (tmp_path / "inputs/notes.txt").read_text() == "a note\n"


def test_a_cell_goes_to_the_kernel_with_its_limit(calls: Any, workshop: Any) -> None:
    kernel = workshop.more["python"] = Kernel()
    [first, second] = calls(("python", {"code": "1 + 1"}), ("python", {"code": "2", "timeout_seconds": 5}))
    assert kernel.asked == [("1 + 1", 120.0), ("2", 5.0)]
    assert first.ok and first.preview == "what it showed" and second.ok


def test_a_cell_that_failed_is_shown_as_failed(calls: Any, workshop: Any) -> None:
    workshop.more["python"] = Kernel(ok=False)
    [end] = calls(("python", {"code": "1/0"}))
    assert (end.ok, end.refused, end.preview) == (False, None, "what it showed")


def test_the_limit_for_all_tools_is_the_longest_that_a_cell_may_take() -> None:
    assert limit_of("python", 5.0) is None
    assert [cell_seconds(None, None), cell_seconds(600, None), cell_seconds(9999, None)] == [120.0, 600, 3600.0]
    assert [cell_seconds(None, 30.0), cell_seconds(600, 30.0), cell_seconds(5, 30.0)] == [30.0, 30.0, 5]


@pytest.mark.parametrize(("ok", "text"), [(True, "what it showed"), (False, "what it showed")])
def test_a_script_runs_python_really_and_may_say_what_came_of_it(workshop: Any, plan: Any, ok: bool, text: str) -> None:
    (workshop.cwd / "s.json").write_text('[{"python": "1 + 1", "say": true}]')
    kernel = workshop.more["python"] = Kernel(ok)
    outcome = workshop.run(ScriptedEngine(), plan("scripted:s.json", tools=ALL))
    assert (outcome.text, kernel.asked) == (text, [("1 + 1", 120.0)])
    assert [end.ok for end in workshop.told(ToolEnded)] == [ok]
