"""Worktrees of steps, with real git and real files: nothing is lost, nothing is left that nobody knows of."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import re
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from repositories import begin_repository, commit_all, git, hook_of, nothing_left
from support import make_plan, make_recovery, make_result, make_step, make_verdict

from subagents_nb.domain.plans.worktree import Change, WorktreePlan, WorktreeRecord
from subagents_nb.domain.runs.events import StepFailed
from subagents_nb.errors import RequestError, StoreError
from subagents_nb.launching.results import worktree_handoff as handoff
from subagents_nb.runner.workspace.worktrees import Worktrees
from subagents_nb.store import RunWriter, StoreHome, create_run
from subagents_nb.store.files.disk import Disk
from subagents_nb.store.runs.handoff import HandoffFile, read_handoff

pytestmark = pytest.mark.timeout(60)


@pytest.fixture
def repo(store_home: StoreHome) -> Path:
    """A repository with a few files; it is the current directory."""
    del store_home
    return begin_repository()


class Bench:
    """A run with steps in worktrees, without a process of its own."""

    def __init__(
        self, home: StoreHome, repo: Path, *, count: int = 1, number: int = 1, resumes: Any = None, **options: Any
    ) -> None:
        self.home, self.repo = home, repo
        base = git("rev-parse", "HEAD", cwd=repo)
        plan = WorktreePlan(repo_root=str(repo), base_commit=base, **options)
        self.steps = tuple(make_step(index=n, worktree=plan) for n in range(count))
        self.plan = make_plan(number, cwd=str(repo), steps=self.steps, resumes=resumes)
        self.run_id = self.plan.run_id
        self.writer: RunWriter = create_run(home, self.plan, make_recovery(number))
        self.root = home.run(self.run_id).root
        self.trees = Worktrees(home.run(self.run_id))

    def work(self, do: Callable[[Path], None], index: int = 0) -> WorktreeRecord:
        """Let a step do something in a tree of its own, and return what came of that."""

        async def whole() -> WorktreeRecord | None:
            cwd = await self.trees.prepare(self.steps[index], label="mine")
            do(cwd)
            return await self.trees.capture(self.steps[index])

        record = asyncio.run(whole())
        assert record is not None
        return record

    def prepare(self, index: int = 0) -> Path:
        return asyncio.run(self.trees.prepare(self.steps[index], label=""))

    def recorded(self, index: int = 0) -> WorktreeRecord:
        record = read_handoff(self.home.run(self.run_id)).of(index)
        assert record is not None
        return record

    def end(self) -> None:
        self.writer.result(make_result(int(self.plan.name.rpartition("-")[2])))

    def lose(self) -> None:
        self.writer.verdict(make_verdict(int(self.plan.name.rpartition("-")[2])))

    def diff(self, index: int | None = None) -> str:
        return handoff.diff(self.home, self.run_id, index)

    def apply(self, index: int | None = None, *, check: bool = False) -> tuple[str, ...]:
        return handoff.apply(self.home, self.run_id, index, check=check)


@pytest.fixture
def bench(store_home: StoreHome, repo: Path) -> Bench:
    return Bench(store_home, repo)


def test_what_a_step_changed_is_a_patch_that_applies_and_its_tree_is_gone(bench: Bench, repo: Path) -> None:
    def do(cwd: Path) -> None:
        assert cwd.parent == repo.with_name(f"{repo.name}-worktrees") and (cwd / "a.txt").is_file()
        (cwd / "a.txt").write_text("one\n2\nthree\n")
        (cwd / "new.txt").write_text("new\n")

    record = bench.work(do)
    assert (record.state, record.applies, record.label) == ("removed", True, "mine")
    assert record.changes == (Change(path="a.txt", added=1, removed=1), Change(path="new.txt", added=1, removed=0))
    assert record.branch == f"subagents/{bench.run_id[-4:]}/s0"
    assert nothing_left(repo) and git("status", "--porcelain", cwd=repo) == ""
    bench.end()
    assert "+2\n" in bench.diff() and bench.diff(0) == bench.diff()
    assert bench.apply(check=True) == ("a.txt", "new.txt") and git("status", "--porcelain", cwd=repo) == ""
    assert bench.apply() == ("a.txt", "new.txt")
    assert (repo / "a.txt").read_text() == "one\n2\nthree\n" and (repo / "new.txt").read_text() == "new\n"


def test_a_step_that_changed_nothing_leaves_no_patch_and_no_tree(bench: Bench, repo: Path) -> None:
    record = bench.work(lambda cwd: None)
    assert (record.state, record.patch, record.changes) == ("removed", None, ())
    assert nothing_left(repo) and not list(bench.root.glob("steps/0/*"))
    bench.end()
    assert bench.diff() == ""
    with pytest.raises(RequestError, match="no changes"):
        bench.apply()


def strange(cwd: Path) -> None:
    (cwd / "data.bin").write_bytes(bytes(reversed(range(256))) * 3)
    (cwd / "new.bin").write_bytes(b"\0\xff" * 500)
    (cwd / "with space and\nnewline ü.txt").write_text("x\n")
    (cwd / "latin.txt").write_bytes("für\r\n".encode("latin-1"))
    (cwd / "no newline").write_text("end")
    (cwd / "empty").touch()
    (cwd / "gone.txt").unlink()
    (cwd / "tool.sh").chmod(0o755)
    (cwd / "link").symlink_to("a.txt")
    (cwd / "dangling").symlink_to("/nowhere/at/all")
    (cwd / "old name.txt").rename(cwd / "new name.txt")
    (cwd / "sub" / "inner.txt").unlink()
    (cwd / "sub").rmdir()
    (cwd / "sub").write_text("a file now\n")
    (cwd / "deep" / "er").mkdir(parents=True)
    (cwd / "deep" / "er" / "f").write_text("1\n")


def look_at(root: Path) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for path in sorted(root.rglob("*")):
        name = str(path.relative_to(root))
        if name.split("/")[0] in (".git", "node_modules"):
            continue
        if path.is_symlink():
            found[name] = os.readlink(path)
        elif path.is_file():
            found[name] = (path.read_bytes(), path.stat().st_mode & 0o100)
    return found


def test_every_kind_of_change_comes_back_as_it_was(bench: Bench, repo: Path) -> None:
    seen: dict[str, Any] = {}

    def do(cwd: Path) -> None:
        strange(cwd)
        seen.update(look_at(cwd))

    record = bench.work(do)
    assert record.state == "removed", record.reason
    assert Change(path="new name.txt", added=0, removed=0, source="old name.txt") in record.changes
    assert Change(path="new.bin") in record.changes
    bench.end()
    bench.apply()
    assert look_at(repo) == seen


HOSTILE = """
[core]
    autocrlf = true
    safecrlf = true
    eol = crlf
    fsmonitor = /bin/false
    hooksPath = {hooks}
    excludesFile = {everything}
    attributesFile = {attributes}
    quotePath = true
    pager = /bin/false
    ignoreStat = true
    untrackedCache = true
    fileMode = false
[diff]
    external = /bin/false
    noprefix = true
    mnemonicPrefix = true
    renames = false
    context = 0
    algorithm = patience
    orderFile = /nowhere
    ignoreSubmodules = all
    relative = true
    submodule = log
[apply]
    whitespace = error-all
    ignoreWhitespace = change
[color]
    ui = always
    diff = always
[commit]
    gpgSign = true
[submodule]
    recurse = true
[status]
    showUntrackedFiles = no
    short = true
[branch]
    autoSetupMerge = always
    autoSetupRebase = always
[checkout]
    guess = true
[worktree]
    guessRemote = true
[add]
    ignoreErrors = true
[gc]
    auto = 1
"""


def test_an_odd_configuration_of_the_user_does_no_harm(bench: Bench, repo: Path, tmp_path: Path) -> None:
    hooks = tmp_path / "hooks"
    hooks.mkdir()
    for name in ("post-checkout", "pre-commit", "reference-transaction", "post-index-change"):
        (hooks / name).write_text(f"#!/bin/sh\ntouch {tmp_path}/hook-ran\nexit 1\n")
        (hooks / name).chmod(0o755)
    (tmp_path / "everything").write_text("*\n")
    (tmp_path / "attributes").write_text("* binary -diff filter=none\n")
    names = {"hooks": hooks, "everything": tmp_path / "everything", "attributes": tmp_path / "attributes"}
    (Path.home() / ".gitconfig").write_text(HOSTILE.format(**names))
    seen: dict[str, Any] = {}

    def do(cwd: Path) -> None:
        assert (cwd / "a.txt").read_bytes() == b"one\ntwo\nthree\n"
        strange(cwd)
        (cwd / "a.txt").write_text("one  \ntwo\nthree\n")
        seen.update(look_at(cwd))

    record = bench.work(do)
    assert (record.state, record.applies) == ("removed", True), record.reason
    bench.end()
    patch = bench.diff()
    assert "diff --git a/a.txt b/a.txt" in patch and "\x1b" not in patch and " three\n" in patch
    (Path.home() / ".gitconfig").unlink()
    bench.apply()
    assert look_at(repo) == seen and not (tmp_path / "hook-ran").exists()


def test_variables_that_lead_git_elsewhere_are_not_followed(
    bench: Bench, repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "nowhere"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "index"))
    monkeypatch.setenv("GIT_EXTERNAL_DIFF", "/bin/false")
    record = bench.work(lambda cwd: (cwd / "n").write_text("n\n") and None)
    assert (record.state, record.applies) == ("removed", True), record.reason
    assert not (tmp_path / "index").exists()


def test_commits_of_the_agent_are_part_of_the_patch(bench: Bench, repo: Path) -> None:
    def do(cwd: Path) -> None:
        (cwd / "committed.txt").write_text("c\n")
        commit_all(cwd, "of the agent")
        (cwd / "loose.txt").write_text("l\n")

    record = bench.work(do)
    assert record.state == "removed" and [c.path for c in record.changes] == ["committed.txt", "loose.txt"]
    assert nothing_left(repo)


def test_commits_that_the_files_are_not_based_on_keep_the_tree(bench: Bench, repo: Path) -> None:
    def do(cwd: Path) -> None:
        (cwd / "committed.txt").write_text("c\n")
        commit_all(cwd)
        git("checkout", "-q", "--detach", "HEAD~1", cwd=cwd)

    record = bench.work(do)
    assert record.state == "preserved" and "holds commits" in record.reason and record.branch in record.reason
    assert Path(record.path).is_dir() and git("branch", "--list", record.branch, cwd=repo)


def test_what_the_agent_does_to_its_index_hides_nothing(bench: Bench) -> None:
    def do(cwd: Path) -> None:
        git("update-index", "--assume-unchanged", "a.txt", cwd=cwd)
        git("update-index", "--skip-worktree", "gone.txt", cwd=cwd)
        (cwd / "a.txt").write_text("changed\n")
        (cwd / "gone.txt").unlink()
        Path(git("rev-parse", "--path-format=absolute", "--git-path", "index.lock", cwd=cwd)).touch()

    record = bench.work(do)
    assert [change.path for change in record.changes] == ["a.txt", "gone.txt"]
    assert record.applies


@pytest.mark.parametrize("commit", [True, False])
def test_a_repository_inside_the_tree_keeps_it(bench: Bench, commit: bool) -> None:
    def do(cwd: Path) -> None:
        (cwd / "nested").mkdir()
        git("init", "-q", cwd=cwd / "nested")
        (cwd / "nested" / "f").write_text("work\n")
        if commit:
            commit_all(cwd / "nested")

    record = bench.work(do)
    assert record.state == "preserved" and record.path in record.reason
    assert (Path(record.path) / "nested" / "f").read_text() == "work\n"


def test_a_tree_whose_git_file_was_replaced_loses_nothing(bench: Bench) -> None:
    def do(cwd: Path) -> None:
        (cwd / ".git").unlink()
        git("init", "-q", cwd=cwd)
        (cwd / "a.txt").write_text("mine\n")

    record = bench.work(do)
    assert record.state == "preserved" and record.captured
    assert (Path(record.path) / "a.txt").read_text() == "mine\n"
    bench.end()
    assert "+mine" in bench.diff() and handoff.discard(bench.home, bench.run_id) == (record.path,)
    assert nothing_left(bench.repo)


def test_ignored_files_are_told_and_read_only_folders_do_not_stay(bench: Bench, repo: Path) -> None:
    def do(cwd: Path) -> None:
        (cwd / "noise.log").write_text("noise\n")
        (cwd / "shut").mkdir()
        (cwd / "shut" / "f").write_text("f\n")
        (cwd / "shut").chmod(0o555)

    record = bench.work(do)
    assert record.state == "removed", record.reason
    assert record.note == "ignored, so not kept: noise.log" and nothing_left(repo)


def test_installed_modules_are_lent_and_no_part_of_the_work(bench: Bench, repo: Path) -> None:
    (repo / "node_modules").mkdir()
    (repo / "node_modules" / "m.js").write_text("m\n")

    def do(cwd: Path) -> None:
        assert (cwd / "node_modules" / "m.js").read_text() == "m\n"
        (cwd / "n.txt").write_text("n\n")

    record = bench.work(do)
    assert record.state == "removed", record.reason
    assert record.synthetic == ("node_modules",) and [c.path for c in record.changes] == ["n.txt"]
    assert nothing_left(repo) and (repo / "node_modules" / "m.js").is_file()


def test_the_agent_works_where_the_run_would_have_worked(store_home: StoreHome, repo: Path) -> None:
    bench = Bench(store_home, repo, subdir="sub")
    record = bench.work(lambda cwd: (cwd / "inner.txt").write_text("changed\n") and None)
    assert [change.path for change in record.changes] == ["sub/inner.txt"]


def test_a_directory_that_git_does_not_know_is_made(store_home: StoreHome, repo: Path) -> None:
    bench = Bench(store_home, repo, subdir="scratch/deep")
    record = bench.work(lambda cwd: (cwd / "n").write_text("n\n") and None)
    assert [change.path for change in record.changes] == ["scratch/deep/n"]
    bench = Bench(store_home, repo, subdir="a.txt/x", number=2)
    with pytest.raises(StepFailed, match="could not be made"):
        bench.prepare()
    assert nothing_left(repo)


# --- the setup hook ---


def test_a_setup_hook_is_told_where_it_is_and_what_it_makes_is_no_work(store_home: StoreHome, repo: Path) -> None:
    body = """
        facts = json.load(sys.stdin)
        os.mkdir("venv")
        open("venv/facts.json", "w").write(json.dumps(facts))
        assert not any(name.startswith("GIT_") for name in os.environ)
        print(json.dumps({"synthetic_paths": ["venv"]}))
    """
    bench = Bench(store_home, repo, setup_hook=hook_of(repo, body), subdir="sub")
    facts: dict[str, Any] = {}

    def do(cwd: Path) -> None:
        facts.update(json.loads((cwd.parent / "venv" / "facts.json").read_text()))
        (cwd / "n.txt").write_text("n\n")

    record = bench.work(do)
    assert record.synthetic == ("venv",) and [c.path for c in record.changes] == ["sub/n.txt"]
    assert facts == {
        "version": 1,
        "repo_root": str(repo),
        "worktree_path": record.path,
        "agent_cwd": f"{record.path}/sub",
        "branch": record.branch,
        "index": 0,
        "run_id": bench.run_id,
        "base_commit": record.base_commit,
        "agent": "scout",
    }


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("sys.stderr.write('no\\x1b[31m network\\n'); sys.exit(3)", r"exit code 3\): no network"),
        ("print('fine')", "did not print one JSON object"),
        ("print('[1]')", "did not print one JSON object"),
        ("pass", "did not print one JSON object"),
        ('print(\'{"synthetic_paths": ["../x"]}\')', "no plain path inside the worktree"),
        ('print(\'{"synthetic_paths": ["a.txt"]}\')', "tracked or lie outside"),
        ("os.symlink('/tmp', 'out'); print('{\"synthetic_paths\": [\"out/x\"]}')", "tracked or lie outside"),
        ("sys.stdout.write('x' * 10_000_000)", "more than 128 KiB"),
        ("time.sleep(600)", "took longer than 0.5 s"),
        ("os.close(1); os.close(2); time.sleep(600)", "took longer than 0.5 s"),
    ],
)
def test_a_hook_that_fails_leaves_no_tree_and_no_branch(
    store_home: StoreHome, repo: Path, body: str, said: str
) -> None:
    bench = Bench(store_home, repo, setup_hook=hook_of(repo, body), hook_timeout_s=0.5 if "sleep" in body else 30)
    with pytest.raises(StepFailed, match=said) as caught:
        bench.prepare()
    assert caught.value.reason == "worktree" and nothing_left(repo)
    assert bench.recorded().state == "failed"
    assert asyncio.run(bench.trees.capture(bench.steps[0])) == bench.recorded()
    assert not list(bench.root.glob("unresolved*"))


def test_a_hook_that_is_another_than_when_the_run_was_planned_is_not_started(store_home: StoreHome, repo: Path) -> None:
    hook = hook_of(repo, "open('begun', 'w'); print('{}')")
    bench = Bench(store_home, repo, setup_hook=hook, hook_sha256="0" * 64)
    with pytest.raises(StepFailed, match="is another than when the run was planned; launch anew"):
        bench.prepare()
    assert nothing_left(repo) and not list(repo.parent.rglob("begun"))


def test_a_hook_that_fails_for_one_step_fails_its_group_before_any_work(store_home: StoreHome, repo: Path) -> None:
    body = "print('{}'); sys.exit(json.load(sys.stdin)['index'] == 2)"
    bench = Bench(store_home, repo, setup_hook=hook_of(repo, body), count=4)

    async def group() -> list[str]:
        said = []
        async with bench.trees.group(bench.steps):
            for one in bench.steps:
                try:
                    await bench.trees.prepare(one, label="")
                except StepFailed as error:
                    said.append(error.message)
        return said

    said = asyncio.run(group())
    assert len(said) == 4 and all("No step of the group began" in text for text in said)
    assert nothing_left(repo)


def test_trees_of_a_group_whose_steps_never_began_are_removed(store_home: StoreHome, repo: Path) -> None:
    bench = Bench(store_home, repo, count=3)

    async def group() -> None:
        async with bench.trees.group(bench.steps):
            cwd = await bench.trees.prepare(bench.steps[1], label="")
            assert len(list(cwd.parent.iterdir())) == 3
            (cwd / "n").write_text("n\n")
            await bench.trees.capture(bench.steps[1])

    asyncio.run(group())
    assert nothing_left(repo) and [bench.recorded(n).patch is not None for n in range(3)] == [False, True, False]


# --- ends, crashes, faults ---


def test_a_step_that_is_ended_while_its_hook_works_leaves_nothing(store_home: StoreHome, repo: Path) -> None:
    bench = Bench(store_home, repo, setup_hook=hook_of(repo, "open('began', 'w'); time.sleep(600)"))

    async def whole() -> WorktreeRecord | None:
        task = asyncio.ensure_future(bench.trees.prepare(bench.steps[0], label=""))
        while not list(repo.parent.glob("*-worktrees/*/began")):
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return await bench.trees.capture(bench.steps[0], at_rest=False)

    record = asyncio.run(whole())
    assert record is not None and record.state == "failed" and nothing_left(repo)


def test_a_capture_that_is_cancelled_goes_on_to_its_end(bench: Bench, repo: Path) -> None:
    async def whole() -> None:
        cwd = await bench.trees.prepare(bench.steps[0], label="")
        (cwd / "n").write_text("n\n")
        task = asyncio.ensure_future(bench.trees.capture(bench.steps[0]))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(whole())
    assert bench.recorded().state == "removed" and bench.recorded().captured and nothing_left(repo)


def test_the_tree_of_a_step_that_did_not_let_go_stays(bench: Bench) -> None:
    async def whole() -> WorktreeRecord | None:
        cwd = await bench.trees.prepare(bench.steps[0], label="")
        (cwd / "n").write_text("n\n")
        return await bench.trees.capture(bench.steps[0], at_rest=False)

    record = asyncio.run(whole())
    assert record is not None and record.state == "preserved" and record.captured and Path(record.path).is_dir()
    assert list(bench.root.glob("unresolved*")), "or the run would be deleted one day"
    bench.end()
    assert "+n\n" in bench.diff()
    assert handoff.remaining_worktrees(bench.home, bench.run_id)[0].path == record.path
    assert handoff.discard(bench.home, bench.run_id) == (record.path,)
    assert nothing_left(bench.repo) and not handoff.remaining_worktrees(bench.home, bench.run_id)
    assert "+n\n" in bench.diff() and not list(bench.root.glob("unresolved*"))
    with pytest.raises(RequestError, match="no worktree"):
        handoff.discard(bench.home, bench.run_id)


class Full(Disk):
    """A disk without room for files of one name."""

    def __init__(self, name: str) -> None:
        self.name = name

    def write(self, handle: int, data: bytes) -> None:
        if self.name in os.readlink(f"/proc/self/fd/{handle}"):
            raise OSError(errno.ENOSPC, "No space left on device")
        super().write(handle, data)


def test_a_disk_without_room_for_the_patch_keeps_the_tree(bench: Bench, repo: Path) -> None:
    disk = Full("changes.patch")
    bench.trees = Worktrees(bench.home.run(bench.run_id), disk=disk)
    record = bench.work(lambda cwd: (cwd / "n").write_text("n\n") and None)
    assert record.state == "preserved" and "No space left" in record.reason
    assert (Path(record.path) / "n").read_text() == "n\n"
    bench.end()
    assert "+n\n" in bench.diff(), "captured late, since there is room now"
    assert nothing_left(repo)


def test_without_room_for_the_hand_off_nothing_is_made_or_removed(bench: Bench, repo: Path) -> None:
    disk = Full("nothing yet")
    bench.trees = Worktrees(bench.home.run(bench.run_id), disk=disk)
    cwd = bench.prepare()
    (cwd / "n").write_text("n\n")
    disk.name = "handoff.json"
    record = asyncio.run(bench.trees.capture(bench.steps[0]))
    assert record is not None and record.state == "preserved" and (cwd / "n").is_file()
    other = Bench(bench.home, repo, number=2)
    other.trees = Worktrees(bench.home.run(other.run_id), disk=disk)
    with pytest.raises(StepFailed, match="could not be planned"):
        other.prepare()
    assert git("worktree", "list", cwd=repo).count("\n") == 1


class Spoiling(Disk):
    """A disk that gives the patch back with another content."""

    def replace(self, path: Path, data: bytes, *, durable: bool) -> None:
        super().replace(path, data.replace(b"+good", b"+evil"), durable=durable)


def test_a_patch_that_gives_other_files_keeps_the_tree(bench: Bench) -> None:
    bench.trees = Worktrees(bench.home.run(bench.run_id), disk=Spoiling())
    record = bench.work(lambda cwd: (cwd / "n").write_text("good\n") and None)
    assert record.state == "preserved" and record.applies is False and "does not give the same" in record.reason
    assert (Path(record.path) / "n").read_text() == "good\n"


class Restless(Disk):
    """A disk during whose writing of the patch somebody else goes on to work."""

    def replace(self, path: Path, data: bytes, *, durable: bool) -> None:
        super().replace(path, data, durable=durable)
        if path.name == "changes.patch":
            for tree in Path.cwd().parent.glob("*-worktrees/*"):
                (tree / "late").write_text("late\n")


def test_a_tree_that_still_changes_while_it_is_captured_stays(bench: Bench) -> None:
    bench.trees = Worktrees(bench.home.run(bench.run_id), disk=Restless())
    record = bench.work(lambda cwd: (cwd / "n").write_text("n\n") and None)
    assert record.state == "preserved" and "still changing" in record.reason
    assert (Path(record.path) / "late").is_file()


@pytest.mark.parametrize(
    "attributes",
    ["* text=auto eol=crlf", "* -text -diff", "*.txt ident", "*.txt working-tree-encoding=UTF-16", "* binary"],
)
def test_attributes_that_the_agent_sets_lose_nothing(bench: Bench, repo: Path, attributes: str) -> None:
    def do(cwd: Path) -> None:
        (cwd / ".gitattributes").write_text(attributes + "\n")
        (cwd / "a.txt").write_bytes(b"one\r\n$Id: x$\r\n")

    record = bench.work(do)
    if record.state == "removed":
        bench.end()
        bench.apply()
        assert b"one" in (repo / "a.txt").read_bytes() and (repo / ".gitattributes").is_file()
    else:
        assert (Path(record.path) / "a.txt").read_bytes() == b"one\r\n$Id: x$\r\n"


def test_a_tree_that_became_a_link_is_not_followed(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "secret").write_text("s\n")

    def do(cwd: Path) -> None:
        cwd.rename(cwd.with_name("moved"))
        cwd.symlink_to(tmp_path / "elsewhere")

    record = bench.work(do)
    assert record.state == "preserved" and record.patch is None
    bench.end()
    with pytest.raises(RequestError, match="could not be captured"):
        bench.diff()
    with pytest.raises(RequestError, match="could not be removed"):
        handoff.discard(bench.home, bench.run_id)
    assert (tmp_path / "elsewhere" / "secret").is_file()


def test_a_changed_patch_is_not_applied(bench: Bench) -> None:
    record = bench.work(lambda cwd: (cwd / "n").write_text("good\n") and None)
    bench.end()
    path = bench.root / str(record.patch)
    path.write_bytes(path.read_bytes().replace(b"+good", b"+evil"))
    with pytest.raises(StoreError, match="not what was recorded"):
        bench.apply()


class Killed(BaseException):
    """The process ends here, as if by SIGKILL: no handler runs any more."""


class Dying(Disk):
    """A disk that ends the process when a record of this state is written, before or after."""

    def __init__(self, state: str, *, after: bool) -> None:
        self.state, self.after = f'"state": "{state}"'.encode(), after

    def replace(self, path: Path, data: bytes, *, durable: bool) -> None:
        doomed = path.name == "handoff.json" and self.state in data
        if doomed and not self.after:
            os._exit(9)
        super().replace(path, data, durable=durable)
        if doomed:
            os._exit(9)


def in_child(work: Callable[[], Any]) -> int:
    pid = os.fork()
    if pid == 0:
        try:
            work()
        finally:
            os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("state", ["planned", "ready", "captured", "removed"])
def test_a_runner_that_is_killed_leaves_no_tree_that_nobody_knows_of(
    bench: Bench, repo: Path, state: str, after: bool
) -> None:
    bench.trees = Worktrees(bench.home.run(bench.run_id), disk=Dying(state, after=after))
    assert in_child(lambda: bench.work(lambda cwd: (cwd / "n").write_text("work\n") and None)) == 9
    trees = [Path(line[9:]) for line in git("worktree", "list", "--porcelain", cwd=repo).splitlines()
             if line.startswith("worktree ")][1:]  # fmt: skip
    known = [Path(one.path) for one in handoff.remaining_worktrees(bench.home, bench.run_id)]
    assert trees == known
    if known:
        assert list(bench.root.glob("unresolved*"))
    bench.lose()
    worked = (state, after) not in {("planned", False), ("planned", True), ("ready", False), ("ready", True)}
    assert ("+work" in bench.diff()) == worked
    assert nothing_left(repo) and not list(bench.root.glob("unresolved*"))
    if worked:
        assert bench.apply() == ("n",) and (repo / "n").read_text() == "work\n"


def test_a_runner_that_is_killed_at_work_loses_no_work(bench: Bench, repo: Path) -> None:
    def work() -> None:
        (bench.prepare() / "n").write_text("work\n")
        os._exit(9)

    assert in_child(work) == 9
    with pytest.raises(RequestError, match="still at work"):
        handoff.discard(bench.home, bench.run_id)
    assert bench.diff() == ""
    with pytest.raises(RequestError, match="still at work"):
        bench.diff(0)
    bench.lose()
    assert "+work" in bench.diff(0) and nothing_left(repo)
    assert bench.apply() == ("n",)


def test_a_runner_that_is_killed_between_branch_and_tree_leaves_no_branch(bench: Bench, repo: Path) -> None:
    base = git("rev-parse", "HEAD", cwd=repo)
    path = repo.with_name(f"{repo.name}-worktrees") / "x"
    record = WorktreeRecord(step=0, path=str(path), branch="subagents/x/s0", base_commit=base, repo_root=str(repo),
                            state="planned")  # fmt: skip
    HandoffFile(bench.home.run(bench.run_id)).note(record)
    git("branch", record.branch, base, cwd=repo)
    bench.lose()
    assert bench.diff() == "" and nothing_left(repo) and bench.recorded().state == "failed"


def test_a_half_removed_tree_is_removed_and_one_that_was_changed_since_is_not(bench: Bench, repo: Path) -> None:
    bench.trees = Worktrees(bench.home.run(bench.run_id), disk=Dying("captured", after=True))
    assert in_child(lambda: bench.work(lambda cwd: (cwd / "n").write_text("work\n") and None)) == 9
    tree = Path(bench.recorded().path)
    (tree / "a.txt").unlink()
    (tree / "late").write_text("late\n")
    bench.lose()
    assert "+work" in bench.diff()
    assert bench.recorded().state == "preserved" and (tree / "late").is_file()
    (tree / "late").unlink()
    HandoffFile(bench.home.run(bench.run_id)).note(bench.recorded().model_copy(update={"state": "captured"}))
    assert "+work" in bench.diff() and nothing_left(repo)


# --- many at a time ---


def test_four_trees_are_made_and_captured_at_a_time(store_home: StoreHome, repo: Path) -> None:
    bench = Bench(store_home, repo, count=4)

    async def one(index: int) -> WorktreeRecord | None:
        cwd = await bench.trees.prepare(bench.steps[index], label="")
        (cwd / f"n{index}").write_text("n\n")
        return await bench.trees.capture(bench.steps[index])

    async def whole() -> list[WorktreeRecord | None]:
        return list(await asyncio.gather(*(one(n) for n in range(4))))

    records = asyncio.run(whole())
    assert [one.state for one in records if one] == ["removed"] * 4 and nothing_left(repo)
    bench.end()
    assert bench.apply() == ("n0", "n1", "n2", "n3")


def test_a_lock_that_somebody_holds_for_a_moment_is_waited_for(bench: Bench, repo: Path) -> None:
    lock = repo / ".git" / "refs" / "heads" / "subagents" / bench.run_id[-4:] / "s0.lock"
    lock.parent.mkdir(parents=True)
    lock.touch()
    timer = threading.Timer(0.2, lock.unlink)
    timer.start()
    record = bench.work(lambda cwd: None)
    timer.join()
    assert record.state == "removed", record.reason


def test_two_runs_in_one_repository_do_not_meet(store_home: StoreHome, repo: Path) -> None:
    def work(number: int) -> None:
        bench = Bench(store_home, repo, number=number)
        record = bench.work(lambda cwd: (cwd / f"n{number}").write_text("n\n") and None)
        os._exit(0 if record.state == "removed" else 1)

    pids = []
    for number in (1, 2):
        pid = os.fork()
        if pid == 0:
            try:
                work(number)
            finally:
                os._exit(2)
        pids.append(pid)
    assert [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids] == [0, 0]
    assert nothing_left(repo)


def test_a_run_whose_short_name_is_taken_gets_a_longer_one(bench: Bench, repo: Path) -> None:
    git("branch", f"subagents/{bench.run_id[-4:]}/s0", cwd=repo)
    path = bench.prepare()
    assert path.name == f"{bench.run_id}-s0"
    asyncio.run(bench.trees.capture(bench.steps[0]))


# --- taking over ---


def test_what_does_not_apply_changes_nothing(bench: Bench, repo: Path) -> None:
    def do(cwd: Path) -> None:
        (cwd / "a.txt").write_text("one\nTWO\nthree\n")
        (cwd / "n").write_text("n\n")

    bench.work(do)
    bench.end()
    (repo / "a.txt").write_text("one\nzwei\nthree\n")
    for check in (True, False):
        with pytest.raises(RequestError, match=r"do not apply cleanly.*nothing was changed.*a\.txt"):
            bench.apply(check=check)
    assert not (repo / "n").exists() and (repo / "a.txt").read_text() == "one\nzwei\nthree\n"
    git("checkout", "-q", "a.txt", cwd=repo)
    bench.apply()
    with pytest.raises(RequestError, match="already"):
        bench.apply()
    with pytest.raises(RequestError, match="those that have are 0"):
        bench.diff(7)


def test_two_steps_that_changed_the_same_lines_are_applied_one_by_one(store_home: StoreHome, repo: Path) -> None:
    bench = Bench(store_home, repo, count=2)
    for index in (0, 1):
        bench.work(lambda cwd, n=index: (cwd / "a.txt").write_text(f"one\n{n}\nthree\n") and None, index)  # type: ignore[misc]
    bench.end()
    with pytest.raises(RequestError, match="one by one"):
        bench.apply()
    assert bench.apply(1) == ("a.txt",) and (repo / "a.txt").read_text() == "one\n1\nthree\n"
    assert bench.diff(0) in bench.diff() and bench.diff(1) in bench.diff()


@pytest.mark.parametrize(
    ("one", "two", "told"),
    [
        ({"new": "one\n"}, {"new": "two\n"}, "steps[0] and steps[1] both add, with different contents, new"),
        ({"new": "one\n"}, {"new/in": "two\n"}, "steps[0] and steps[1] make a file and a folder of new"),
        ({"a.txt": None}, {"a.txt": "one\n"}, "steps[0] and steps[1] change and remove a.txt"),
    ],
)
def test_what_two_steps_leave_in_one_place_is_not_taken_for_one(
    store_home: StoreHome, repo: Path, one: dict[str, str | None], two: dict[str, str | None], told: str
) -> None:
    bench = Bench(store_home, repo, count=2)
    for index, files in enumerate((one, two)):

        def do(cwd: Path, files: dict[str, str | None] = files) -> None:
            for name, text in files.items():
                if text is None:
                    (cwd / name).unlink()
                else:
                    (cwd / name).parent.mkdir(exist_ok=True)
                    (cwd / name).write_text(text)

        bench.work(do, index)
    bench.end()
    for check in (True, False):
        with pytest.raises(RequestError, match=re.escape(told)):
            bench.apply(check=check)
    assert git("status", "--porcelain", cwd=repo) == ""
    assert bench.apply(0)


def test_two_steps_that_add_the_very_same_file_are_applied_together(store_home: StoreHome, repo: Path) -> None:
    bench = Bench(store_home, repo, count=2)
    for index in (0, 1):
        bench.work(lambda cwd: (cwd / "new").write_text("new\n") and None, index)  # type: ignore[misc]
    bench.end()
    assert bench.apply() == ("new",) and (repo / "new").read_text() == "new\n"


def test_a_run_that_goes_on_has_what_the_run_before_changed(store_home: StoreHome, repo: Path) -> None:
    first = Bench(store_home, repo)
    first.work(strange)
    commit_all(repo, "the repository went on")
    second = Bench(store_home, repo, number=2, resumes={"run_id": first.run_id, "digest": "d"})

    def do(cwd: Path) -> None:
        assert (cwd / "link").is_symlink() and not (cwd / "gone.txt").exists()
        (cwd / "more").write_text("more\n")

    record = second.work(do)
    assert record.state == "removed", record.reason
    assert {"more", "link", "gone.txt"} <= {change.path for change in record.changes}


def test_a_run_does_not_go_on_without_what_lies_in_a_tree(store_home: StoreHome, repo: Path) -> None:
    first = Bench(store_home, repo)
    tree = first.prepare()
    second = Bench(store_home, repo, number=2, resumes={"run_id": first.run_id, "digest": "d"})
    with pytest.raises(StepFailed, match="not captured yet") as caught:
        second.prepare()
    assert str(tree) in caught.value.message and git("worktree", "list", cwd=repo).count("\n") == 1


def test_a_linked_worktree_and_a_detached_head_can_be_begun_from(store_home: StoreHome, repo: Path) -> None:
    linked = repo.with_name("linked")
    git("worktree", "add", "-q", "--detach", str(linked), cwd=repo)
    (linked / "a.txt").write_text("only here\n")
    commit_all(linked)
    bench = Bench(store_home, linked)
    record = bench.work(lambda cwd: (cwd / "a.txt").write_text("changed\n") and None)
    assert record.state == "removed" and record.path.startswith(f"{linked}-worktrees/")
    bench.end()
    assert bench.apply() == ("a.txt",)
    assert (linked / "a.txt").read_text() == "changed\n" and (repo / "a.txt").read_text() == "one\ntwo\nthree\n"


def test_a_sparse_checkout_does_not_look_like_deletions(store_home: StoreHome, repo: Path) -> None:
    git("sparse-checkout", "set", "sub", cwd=repo)
    bench = Bench(store_home, repo)
    record = bench.work(lambda cwd: (cwd / "sub" / "inner.txt").write_text("changed\n") and None)
    assert [change.path for change in record.changes] == ["sub/inner.txt"], record.reason


def with_a_submodule(repo: Path, beside: Path) -> Path:
    """Add a submodule `lib` to a repository; return the repository that it is of."""
    other = beside / "other"
    other.mkdir()
    git("init", "-q", cwd=other)
    (other / "o").write_text("o\n")
    commit_all(other)
    git("-c", "protocol.file.allow=always", "submodule", "add", "-q", str(other), "lib", cwd=repo)
    commit_all(repo)
    return other


def test_a_submodule_is_left_alone_and_one_that_was_filled_keeps_the_tree(
    store_home: StoreHome, repo: Path, tmp_path: Path
) -> None:
    with_a_submodule(repo, tmp_path)
    bench = Bench(store_home, repo, count=2)
    record = bench.work(lambda cwd: (cwd / "n").write_text("n\n") and None)
    assert record.state == "removed" and [change.path for change in record.changes] == ["n"], record.reason
    record = bench.work(lambda cwd: (cwd / "lib" / "mine").write_text("mine\n") and None, 1)
    assert record.state == "preserved" and "submodule lib" in record.reason


def test_a_repository_that_was_put_into_a_submodule_starts_nothing(
    store_home: StoreHome, repo: Path, tmp_path: Path
) -> None:
    """Git would start another git in there, with what was configured in it: a filter is a program."""
    other, mark = with_a_submodule(repo, tmp_path), tmp_path / "started"

    def work(cwd: Path) -> None:
        lib = cwd / "lib"
        git("clone", "-q", str(other), str(lib), cwd=cwd)
        git("config", "filter.x.clean", f"sh -c 'touch {mark}; cat'", cwd=lib)
        (lib / ".gitattributes").write_text("* filter=x\n")
        (lib / "o").write_text("x\n")  # of the same size: git has to look into it

    record = Bench(store_home, repo).work(work)
    assert not mark.exists()
    assert record.state == "preserved" and "submodule lib" in record.reason
