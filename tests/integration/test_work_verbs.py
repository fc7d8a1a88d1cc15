"""The verbs of the terminal about work in worktrees, on a run whose agent changed a file in one."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support import CHILDREN, until

from subagents_nb import Run, launch, parallel, step
from subagents_nb.cli import main
from subagents_nb.domain.runs.states import RunState
from subagents_nb.errors import RequestError
from subagents_nb.launching.results import worktree_handoff as handoff
from subagents_nb.store import StoreHome

pytestmark = [pytest.mark.timeout(90), pytest.mark.usefixtures("shared_home")]

Said = pytest.CaptureFixture[str]


@pytest.fixture
def repo(shared_home: StoreHome) -> Path:
    root = Path.cwd()
    (root / "a.txt").write_text("one\n")
    who = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org", "-c", "commit.gpgsign=false")
    for args in (("init", "-q"), ("add", "-A"), (*who, "commit", "-q", "-m", "begin")):
        subprocess.run(["git", *args], cwd=root, check=True, capture_output=True)
    return root


@pytest.fixture
def told(shared_home: StoreHome) -> Iterator[str]:
    """A model that calls bash with what the task says behind `RUN: `."""
    command = [sys.executable, str(CHILDREN / "chat.py")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as peer:
        assert peer.stdin is not None and peer.stdout is not None
        own = Path.home() / ".subagents"
        own.mkdir(exist_ok=True)
        url = f"http://127.0.0.1:{int(peer.stdout.readline())}/v1"
        (own / "settings.toml").write_text(f'[endpoints.told]\nbase_url = "{url}"\n')
        yield "told:m"
        peer.stdin.close()


def done(run: Run) -> Run:
    assert run.wait(60)
    assert run.state is RunState.COMPLETE, run.error
    return run


def test_the_changes_are_printed_as_a_patch_tried_and_taken_over(repo: Path, told: str, capsys: Said) -> None:
    run = done(launch("worker", "RUN: echo two >> a.txt", model=told, worktree=True, name="mend"))
    assert main(["diff", "mend"]) == 0
    assert capsys.readouterr().out == run.diff()
    assert main(["apply", "mend", "--check"]) == 0
    assert capsys.readouterr().out == "mend: 1 file can be changed:\n  a.txt\n"
    assert (repo / "a.txt").read_text() == "one\n"
    assert main(["apply", run.id]) == 0
    assert capsys.readouterr().out == "mend: 1 file was changed:\n  a.txt\n"
    assert (repo / "a.txt").read_text() == "one\ntwo\n"
    assert main(["apply", "mend"]) == 1
    assert "already; nothing was changed" in capsys.readouterr().err
    assert main(["status", "mend"]) == 0
    assert "1 file changed, +1 −0, in a git worktree of its own\n  a.txt +1 -0\n" in capsys.readouterr().out


def test_one_step_of_a_chain_is_looked_at_and_taken_over_alone(repo: Path, told: str, capsys: Said) -> None:
    steps = [step("worker", f"RUN: echo {n} > made-{n}", model=told) for n in range(2)]
    done(launch(parallel(*steps, worktree=True), name="both"))
    assert main(["diff", "both", "--step", "1"]) == 0
    assert "made-1" in (said := capsys.readouterr().out)
    assert "made-0" not in said
    assert main(["apply", "both", "--step", "1"]) == 0
    assert [path.name for path in sorted(repo.glob("made-*"))] == ["made-1"]


def test_a_run_without_changes_says_so_and_without_a_tree_has_none_to_discard(
    repo: Path, shared_home: StoreHome, capsys: Said
) -> None:
    done(launch("scout", "look", model="scripted:echo", worktree=True, name="look"))
    assert main(["diff", "look"]) == 0
    assert capsys.readouterr().err == "No changes.\n"
    assert main(["discard", "look"]) == 1
    assert "no worktree of run look any more" in capsys.readouterr().err


def test_a_tree_that_was_kept_is_discarded(repo: Path, shared_home: StoreHome, told: str, capsys: Said) -> None:
    commit = "git -C inner -c user.name=a -c user.email=b commit -q --allow-empty -m x"
    task = f"RUN: git init -q inner && {commit}"
    run = launch("worker", task, model=told, worktree=True, name="odd")
    assert run.wait(60)
    (left,) = until(lambda: handoff.remaining_worktrees(shared_home, run.id), what="the tree")
    assert main(["discard", "odd"]) == 0
    assert capsys.readouterr().out == f"removed {left.path}\n"
    assert not Path(left.path).exists()


def test_a_run_without_a_worktree_has_no_patch_and_says_how_to_have_one(capsys: Said) -> None:
    run = done(launch("scout", "hello", model="scripted:echo", name="plain"))
    with pytest.raises(RequestError, match="Run plain worked in no worktree"):
        run.diff()
    assert main(["diff", "plain"]) == 1
    assert "Run plain worked in no worktree" in capsys.readouterr().err


def test_who_steers_an_ended_run_is_told_that_it_can_be_resumed() -> None:
    run = done(launch("scout", "hello", model="scripted:echo"))
    with pytest.raises(
        RequestError, match=r"nothing to steer\. To say more to its agent, resume it: run\.resume\(text\)"
    ):
        run.steer("more")
