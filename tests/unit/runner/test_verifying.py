"""Verify commands, really run: how each ends, what is kept of it, when it need not be run again."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support import alive, until

from subagents_nb.domain.plans.acceptance import Verify, VerifyRun
from subagents_nb.domain.runs.events import EngineEvent, ToolEnded, ToolStarted
from subagents_nb.runner.engines.engine import StepContext
from subagents_nb.runner.steps.verifying import OUTPUT_CHARS, Verifier
from subagents_nb.runner.workspace.gitstate import GitState

pytestmark = pytest.mark.timeout(60)
PATH = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "GIT_CONFIG_NOSYSTEM": "1"}


@pytest.fixture
def desk(tmp_path: Path) -> StepContext:
    (tmp_path / "work").mkdir()
    return seat(tmp_path)


def seat(root: Path, *, environ: dict[str, str] | None = None, told: list[EngineEvent] | None = None) -> StepContext:
    events: list[EngineEvent] = told if told is not None else []
    return StepContext(report=events.append, cwd=root / "work", step_dir=root, store_home=root, environ=environ or {},
                tool_environ=PATH)  # fmt: skip


def verify(desk: StepContext, command: str, **fields: Any) -> VerifyRun:
    asked = Verify(id="t", command=command, **fields)
    (run,) = asyncio.run(Verifier(desk, desk.step_dir).run_all((asked,)))
    return run


def git(desk: StepContext, *args: str) -> None:
    who = ("-c", "user.name=t", "-c", "user.email=t@example.org")
    subprocess.run(["git", *who, *args], cwd=desk.cwd, env=PATH, check=True, capture_output=True)


def repository(desk: StepContext) -> None:
    git(desk, "init", "-q")
    (desk.cwd / "a.txt").write_text("one\n")
    git(desk, "add", ".")
    git(desk, "commit", "-qm", "first")


def test_a_command_that_succeeds_passes_with_its_output(desk: StepContext) -> None:
    run = verify(desk, "echo fine; echo oops >&2")
    assert (run.passed, run.exit_code, run.output) == (True, 0, "fine\noops\n")


def test_a_command_that_fails_says_its_exit_code(desk: StepContext) -> None:
    run = verify(desk, "exit 3", allow_failure=True)
    assert (run.passed, run.exit_code, run.allow_failure) == (False, 3, True)


def test_a_command_past_its_time_is_ended_with_all_it_started(desk: StepContext) -> None:
    run = verify(desk, "sleep 300 & echo $! > child; trap '' TERM; sleep 300", timeout_s=0.5)
    assert (run.passed, run.exit_code) == (False, None)
    assert "[ended after 0.5 s, its time limit]" in run.output
    child = int((desk.cwd / "child").read_text())
    until(lambda: not alive(child), 5, what="the end of what the command started")


def test_a_command_that_is_cancelled_leaves_nobody_behind(desk: StepContext) -> None:
    async def stopped() -> None:
        asked = Verify(id="t", command="sleep 300 & echo $! > child; wait")
        work = asyncio.ensure_future(Verifier(desk, desk.step_dir).run_all((asked,)))
        while not (desk.cwd / "child").is_file() or not (desk.cwd / "child").read_text():
            await asyncio.sleep(0.01)
        work.cancel()
        await asyncio.wait({work})

    asyncio.run(stopped())
    child = int((desk.cwd / "child").read_text())
    until(lambda: not alive(child), 5, what="the end of what the command started")


def test_a_flood_is_kept_by_its_head_and_tail(desk: StepContext) -> None:
    run = verify(desk, "echo first; yes filler | head -c 5000000; echo last")
    assert len(run.output) <= OUTPUT_CHARS
    assert run.output.startswith("first\n") and run.output.endswith("last\n") and "left out" in run.output


def test_secrets_are_taken_out_of_output_and_command(tmp_path: Path, desk: StepContext) -> None:
    desk = seat(tmp_path, environ={"MY_API_KEY": "sk-very-secret-1"})
    run = verify(desk, "echo sk-very-secret-1 $OTHER_TOKEN sk-very-secret-1", env={"OTHER_TOKEN": "hush-hush-hush"})
    assert run.output == "[redacted] [redacted] [redacted]\n"
    assert "secret-1" not in run.command
    long = verify(desk, f"head -c {OUTPUT_CHARS // 2 - 40} /dev/zero | tr '\\0' x; echo sk-very-secret-1; seq 9000")
    assert "sk-v" not in long.output


def test_a_command_sees_its_own_variables_and_no_key(tmp_path: Path, desk: StepContext) -> None:
    desk = seat(tmp_path, environ={"OPENAI_API_KEY": "k" * 20})
    assert verify(desk, "echo ${OPENAI_API_KEY:-none} $MODE", env={"MODE": "fast"}).output == "none fast\n"


def test_a_command_works_below_the_workspace_and_nowhere_else(desk: StepContext) -> None:
    (desk.cwd / "sub").mkdir()
    (desk.cwd / "out").symlink_to("/tmp")
    assert verify(desk, "basename $PWD", cwd="sub").output == "sub\n"
    assert verify(desk, "true", cwd="out").output == "not run: its directory lies outside the workspace"
    gone = verify(desk, "true", cwd="gone")
    assert not gone.passed and gone.output.startswith("not run: it could not be started")


def test_a_person_sees_it_like_a_tool(tmp_path: Path, desk: StepContext) -> None:
    told: list[EngineEvent] = []
    verify(seat(tmp_path, told=told), "true")
    assert isinstance(told[0], ToolStarted) and (told[0].name, told[0].args) == ("verify", "true")
    assert isinstance(told[1], ToolEnded) and told[1].ok


def touch_tracked(desk: StepContext) -> None:
    (desk.cwd / "a.txt").write_text("two\n")


def touch_untracked(desk: StepContext) -> None:
    (desk.cwd / "new.txt").write_text("new")


def commit(desk: StepContext) -> None:
    git(desk, "commit", "-q", "--allow-empty", "-m", "second")


COUNTED = "echo run >> ../count; test -f a.txt"


def runs(desk: StepContext) -> int:
    return len((desk.cwd.parent / "count").read_text().splitlines())


def test_in_git_a_command_is_not_run_again_while_nothing_changed(desk: StepContext) -> None:
    repository(desk)
    assert not verify(desk, COUNTED).memoised
    again = verify(desk, COUNTED)
    assert (again.memoised, again.passed, runs(desk)) == (True, True, 1)


@pytest.mark.parametrize("change", [touch_tracked, touch_untracked, commit])
def test_after_a_change_it_is_run_again(desk: StepContext, change: Callable[[StepContext], None]) -> None:
    repository(desk)
    verify(desk, COUNTED)
    change(desk)
    assert not verify(desk, COUNTED).memoised and runs(desk) == 2


@pytest.mark.parametrize("fields", [{"env": {"A": "1"}}, {"timeout_s": 5.0}, {"allow_failure": True}])
def test_asked_for_otherwise_it_is_run_again(desk: StepContext, fields: dict[str, Any]) -> None:
    repository(desk)
    verify(desk, COUNTED)
    assert not verify(desk, COUNTED, **fields).memoised


def test_outside_git_nothing_is_remembered(desk: StepContext) -> None:
    verify(desk, COUNTED)
    assert not verify(desk, COUNTED).memoised
    assert not (desk.step_dir / "verified").exists()


def test_a_memo_that_can_not_be_read_is_no_memo(desk: StepContext) -> None:
    repository(desk)
    verify(desk, COUNTED)
    for memo in (desk.step_dir / "verified").iterdir():
        memo.write_text("{")
    assert not verify(desk, COUNTED).memoised


def test_untracked_files_that_are_too_much_or_no_files_are_not_vouched_for(desk: StepContext) -> None:
    repository(desk)
    with (desk.cwd / "big").open("wb") as big:
        big.truncate(32 * 1024 * 1024)
    assert asyncio.run(GitState(desk.cwd).fingerprint()) is None
    (desk.cwd / "big").unlink()
    (desk.cwd / "link").symlink_to("/dev/zero")
    assert asyncio.run(GitState(desk.cwd).fingerprint()) is not None


def test_a_tree_with_submodules_is_not_vouched_for(desk: StepContext) -> None:
    repository(desk)
    (desk.cwd / "inner").mkdir()
    for args in (
        ["init", "-q"],
        ["-c", "user.name=n", "-c", "user.email=e", "commit", "-q", "--allow-empty", "-m", "m"],
    ):
        git(desk, "-C", "inner", *args)
    git(desk, "add", "inner")
    assert asyncio.run(GitState(desk.cwd).fingerprint()) is None


def test_git_is_asked_without_starting_what_the_workspace_configures(desk: StepContext) -> None:
    repository(desk)
    for key in ("core.fsmonitor", "diff.external"):
        git(desk, "config", key, "touch ../started; false")
    touch_tracked(desk)

    async def ask() -> None:
        state = GitState(desk.cwd)
        assert await state.fingerprint() is not None
        assert "two" in (await state.diff(10_000) or "")
        assert await state.staged() == {}

    asyncio.run(ask())
    assert not (desk.cwd.parent / "started").exists()
