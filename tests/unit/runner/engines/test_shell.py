"""The shell tool: what it returns, and that nothing it started stays."""

from __future__ import annotations

import asyncio
import contextlib
import time
from pathlib import Path

import pytest

from subagents_nb.runner.engines.tools.shell import CommandEnd, HeadAndTail, run_command
from subagents_nb.runner.processes.process_group import Group
from subagents_nb.signals import is_unreaped

ENVIRON = {"PATH": "/usr/bin:/bin", "MARK": "seen"}


def run(command: str, cwd: Path, *, seconds: float = 20, limit: int = 2000) -> CommandEnd:
    return asyncio.run(run_command(command, cwd=cwd, environ=ENVIRON, seconds=seconds, limit=limit))


def is_running(pid_file: Path) -> bool:
    """A zombie has ended; only its parent has not looked."""
    try:
        stat = Path(f"/proc/{pid_file.read_text().strip()}/stat").read_text()
    except FileNotFoundError:
        return False
    return stat.rpartition(")")[2].split()[0] not in "ZX"


def at_work_in(folder: Path) -> list[Path]:
    """Return the processes of this folder: one that was ended as it began may have left no number in a file."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it is another's, or has ended
            if (process / "cwd").readlink() == folder:
                found.append(process)
    return found


def test_a_command_runs_in_the_workspace_with_the_given_variables_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")

    end = run("pwd; echo $MARK ${OPENAI_API_KEY:-none}; echo oops >&2; exit 3", tmp_path)

    assert end == CommandEnd(output=f"{tmp_path}\nseen none\noops\n", code=3)


def test_a_command_that_takes_too_long_is_ended_with_what_it_said(tmp_path: Path) -> None:
    end = run("echo begun; echo $$ > pid; sleep 300", tmp_path, seconds=0.3)

    assert end == CommandEnd(output="begun\n", code=None)
    assert not is_running(tmp_path / "pid")


def test_a_background_child_does_not_outlive_its_command(tmp_path: Path) -> None:
    started = time.monotonic()

    end = run("sleep 300 & echo $! > pid; echo done", tmp_path)

    assert end == CommandEnd(output="done\n", code=0)
    assert not is_running(tmp_path / "pid")
    assert time.monotonic() - started < 10


def test_a_command_that_ignores_the_polite_signal_is_ended_all_the_same(tmp_path: Path) -> None:
    end = run("trap '' TERM; echo $$ > pid; while :; do sleep 0.1; done", tmp_path, seconds=0.3)

    assert end.code is None and not is_running(tmp_path / "pid")


def test_a_flood_of_output_is_kept_at_both_ends_only(tmp_path: Path) -> None:
    end = run("echo first; head -c 3000000 /dev/zero | tr '\\0' x; echo; echo last", tmp_path, limit=1000)

    assert end.output.startswith("first") and end.output.endswith("last\n")
    assert "bytes left out" in end.output and len(end.output) < 1200


def test_a_cancelled_command_takes_its_children_with_it(tmp_path: Path) -> None:
    async def main() -> None:
        command = "sleep 300 & echo $! > pid; mv pid ready; wait"
        task = asyncio.ensure_future(run_command(command, cwd=tmp_path, environ=ENVIRON, seconds=60, limit=100))
        async with asyncio.timeout(20):
            while not (tmp_path / "ready").exists():
                await asyncio.sleep(0.01)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    asyncio.run(main())
    assert not is_running(tmp_path / "ready")


def test_a_command_cancelled_while_it_starts_leaves_nothing(tmp_path: Path) -> None:
    async def main() -> None:
        task = asyncio.ensure_future(run_command("sleep 300", cwd=tmp_path, environ=ENVIRON, seconds=60, limit=100))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert at_work_in(tmp_path) == []


def test_a_keeper_keeps_everything_that_fits() -> None:
    keeper = HeadAndTail(10)
    for piece in (b"abc", b"defg", b"hij"):
        keeper.add(piece)

    assert keeper.text() == "abcdefghij"


def test_a_shell_keeps_its_number_until_its_group_has_ended(tmp_path: Path) -> None:
    """Its output is held by one who left: its number must not be another's when the group is ended by it."""

    async def main() -> None:
        kept = bytearray()
        group = await Group.start(["true"], cwd=tmp_path, environ=ENVIRON, keep=kept.extend)
        await asyncio.wait_for(group.exited.wait(), 20)
        assert is_unreaped(group.pid), "reaped before its group was ended"
        await group.end()
        assert not is_unreaped(group.pid) and group.code == 0

    asyncio.run(main())
