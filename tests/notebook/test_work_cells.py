"""Work in worktrees from cells: asked for with a flag, shown on the card, looked at and taken over by magics."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from kernels import Kernel
from support import CHILDREN, until

from subagents_nb.launching.results.worktree_handoff import remaining_worktrees


@pytest.fixture
def repo(kernel: Kernel) -> Path:
    root = kernel.work / "repo"
    if not root.exists():
        root.mkdir()
        (root / "a.txt").write_text("one\n")
        who = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org", "-c", "commit.gpgsign=false")
        for args in (("init", "-q"), ("add", "-A"), (*who, "commit", "-q", "-m", "begin")):
            subprocess.run(["git", *args], cwd=root, check=True, capture_output=True)
    subprocess.run(["git", "checkout", "-q", "--", "."], cwd=root, check=True)
    return root


@pytest.fixture
def told(kernel: Kernel) -> Iterator[str]:
    """A model that calls bash with what the task says behind `RUN: `."""
    command = [sys.executable, str(CHILDREN / "chat.py")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as peer:
        assert peer.stdin is not None and peer.stdout is not None
        settings = kernel.user_home / ".subagents" / "settings.toml"
        settings.parent.mkdir(exist_ok=True)
        url = f"http://127.0.0.1:{int(peer.stdout.readline())}/v1"
        settings.write_text(f'[endpoints.told]\nbase_url = "{url}"\n')
        yield "told:m"
        settings.unlink()
        peer.stdin.close()


def test_work_in_a_worktree_is_shown_tried_and_taken_over(kernel: Kernel, repo: Path, told: str) -> None:
    cell = kernel.ok(
        f"%%subagent worker --model {told} --cwd repo --worktree --gate 'grep -q two a.txt' --wait -o mended "
        "--name mend\nRUN: echo two >> a.txt"
    )
    html = str(cell.stands[-1]["text/html"])
    assert "mended.apply()" in html
    assert "+two" in html
    assert "verified: the commands succeeded" in html
    assert (repo / "a.txt").read_text() == "one\n"
    shown = kernel.ok("%subagent_diff mended")
    assert f"%subagent_apply {kernel.run_id('mend')}<" in shown.shown[0]["text/html"]
    assert "+two" in shown.plain
    assert kernel.ok("%subagent_apply mend --check").plain == "mend: fits: a.txt"
    assert (repo / "a.txt").read_text() == "one\n"
    assert kernel.ok("%subagent_apply mended").plain == "mend: applied: a.txt"
    assert (repo / "a.txt").read_text() == "one\ntwo\n"
    assert "nothing was changed" in kernel.fails("%subagent_apply mended")
    assert "no worktree of run mend any more" in kernel.fails("%subagent_discard mended")


def test_a_gate_that_fails_is_shown_with_what_it_said(new_kernel: Callable[..., Kernel]) -> None:
    cell = new_kernel().run(
        "%%subagent --model scripted:echo --gate 'echo 2 tests failed; exit 3' --wait --name gated\nx"
    )
    html = str(cell.stands[-1]["text/html"])
    assert "not accepted" in html
    assert "2 tests failed" in html


def test_an_answer_is_kept_in_a_file_and_the_variable_is_another_flag(kernel: Kernel) -> None:
    kernel.ok("%%subagent worker --model scripted:echo --output kept.md --bind kept --wait -q\nthe answer")
    assert kernel.value("kept.state") == "complete"
    assert "the answer" in (kernel.work / "kept.md").read_text()


def test_a_step_is_named_by_a_number(kernel: Kernel) -> None:
    kernel.ok("%%subagent --model scripted:echo --wait -q -o run\nx")
    assert "--step" in kernel.fails("%subagent_diff run --step one")
    for magic in ("diff", "apply", "discard"):
        assert "RUN [FLAGS]" in kernel.ok(f"%subagent_{magic} -h").stdout


def test_the_card_of_a_killed_run_says_where_its_work_is(kernel: Kernel, repo: Path) -> None:
    kernel.ok("%%subagent --model scripted:hang --cwd repo --worktree -q -o work --name killed\nx")
    until(
        lambda: any(one.state == "ready" for one in remaining_worktrees(kernel.home, kernel.run_id("killed"))),
        what="the tree",
    )
    kernel.ok("import os, signal\nos.kill(work.status.status.runner.pid, signal.SIGKILL)")
    kernel.run("%subagent_wait killed")
    html = str(kernel.ok("%subagent_attach killed").shown[0]["text/html"])
    assert "still there, with what was done" in html
    assert "work.diff()" in html
    assert kernel.value("work.diff()") == ""
