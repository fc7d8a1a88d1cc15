"""The command of the settings is told of every end without a result, whoever finds it, and told once."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

import pytest
from support import until

from subagents_nb import Run, launch
from subagents_nb.domain.runs.states import RunState
from subagents_nb.store import FileRuns, StoreHome
from subagents_nb.supervisor.ends.proof import is_proved

pytestmark = pytest.mark.timeout(60)


@pytest.fixture
def told(shared_home: StoreHome, tmp_path: Path) -> Path:
    """The file to which the command of this test's settings adds a line for each thing that it is told."""
    file = tmp_path / "told"
    settings = Path.home() / ".subagents"
    settings.mkdir()
    command = [sys.executable, "-c", f"import sys; open({str(file)!r}, 'a').write(sys.stdin.read() + '\\n')"]
    (settings / "settings.toml").write_text(f"notify_command = {json.dumps(command)}\n")
    return file


def words(told: Path, run: Run) -> list[str]:
    lines = told.read_text().splitlines() if told.exists() else []
    return [said["text"] for said in map(json.loads, lines) if said["run_id"] == run.id]


def runner_of(run: Run) -> int:
    process = FileRuns(run.home).snapshot(run.id, whole=True).process
    assert process is not None and process.pid is not None
    return process.pid


def test_whoever_finds_a_run_dead_tells_of_it(told: Path, spawn: str) -> None:
    run = launch(task="x", model="scripted:hang")
    until(lambda: run.state == "running", 20, what="its work")
    os.kill(runner_of(run), signal.SIGKILL)
    assert run.wait(20)
    assert run.state is RunState.LOST
    until(lambda: words(told, run), 20, what="the word to the person")
    assert run.error is not None and words(told, run) == [f"ended without a result: {run.error}"]


def test_a_run_that_is_ended_by_force_tells_of_it(told: Path, spawn: str) -> None:
    run = launch(task="x", model="scripted:stubborn", timeout=1)
    assert run.wait(20)
    until(lambda: words(told, run), 20, what="the word to the person")
    assert words(told, run) == ["ended without a result"]


def test_a_success_is_not_told_of(told: Path) -> None:
    first, second = launch(task="x", model="scripted:echo"), launch(task="x", model="scripted:fail")
    assert first.wait(20) and second.wait(20)
    until(lambda: words(told, second), 20, what="the word of the other")
    assert words(told, first) == []


def test_the_end_of_one_run_does_not_end_the_notice_of_another(shared_home: StoreHome, tmp_path: Path) -> None:
    """The word of a run may be on its way for long, by a process of its own; both fall to whoever watches all runs."""
    told, go = tmp_path / "told", tmp_path / "go"
    settings = Path.home() / ".subagents"
    settings.mkdir()
    script = tmp_path / "tell.sh"
    wait = f"{{ while [ ! -e '{go}' ]; do sleep 0.02; done; echo \"$word\" >> '{told}'; }}"
    script.write_text(f"word=$(cat)\necho began >> '{told}'\n{wait} &\n")
    (settings / "settings.toml").write_text(f"notify_command = {json.dumps(['sh', str(script)])}\n")
    first = launch(task="x", model="scripted:fail")
    until(told.exists, 20, what="the word on its way")
    assert first.wait(20)
    second = launch(task="x", model="scripted:echo")
    assert second.wait(20)
    until(lambda: is_proved(second.home.run(second.id)), 20, what="the end of all that was of the second")
    go.touch()
    until(lambda: first.id in told.read_text(), 20, what="the word of the first")
