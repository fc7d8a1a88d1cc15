from __future__ import annotations

import json
import os
import shutil
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from support import make_plan, make_recovery, run_id

from subagents_nb.errors import RequestError, StoreError
from subagents_nb.store import RunPaths, StoreHome, create_run
from subagents_nb.store.files.disk import Disk
from subagents_nb.store.files.lock import hold_now
from subagents_nb.store.waiting.admissions import (
    DEFAULT_LIMIT,
    RUN_FANOUT_LIMIT,
    BudgetExceeded,
    admit,
    budget_used,
    open_budget,
)

Fork = Callable[[Callable[[], int]], int]


@pytest.fixture
def root(home: StoreHome) -> RunPaths:
    return create_run(home, make_plan(), make_recovery()).paths


def slots(root: RunPaths) -> list[str]:
    return sorted(name for name in os.listdir(root.root / "budget") if name[0].isdigit() and name.endswith(".json"))


def test_a_tree_of_runs_has_sixty_four_admissions(root: RunPaths) -> None:
    assert budget_used(root) is None
    assert admit(root, 60, path="root", step=2) == tuple(range(60))
    assert admit(root, 4, path="root/3") == (60, 61, 62, 63)
    assert budget_used(root) == (64, DEFAULT_LIMIT)
    claim = json.loads((root.root / "budget" / "000007.json").read_text())
    assert (claim["run_id"], claim["path"], claim["step"]) == (run_id(), "root", 2)
    assert claim["at"].endswith("Z")


def test_all_are_admitted_or_none(root: RunPaths) -> None:
    open_budget(root, limit=5)
    admit(root, 3, path="root")
    with pytest.raises(BudgetExceeded) as refused:
        admit(root, 3, path="root/steps/1")
    error = refused.value
    assert isinstance(error, RequestError)
    assert (error.code, error.path, error.requested) == (RUN_FANOUT_LIMIT, "root/steps/1", 3)
    assert (error.used, error.limit, error.remaining) == (3, 5, 2)
    assert "2 of 5 are left" in str(error) and "none was started" in str(error)
    assert len(slots(root)) == 3
    assert admit(root, 2, path="root") == (3, 4)


def test_nothing_may_be_asked_for_but_not_less(root: RunPaths) -> None:
    assert admit(root, 0, path="root") == ()
    with pytest.raises(ValueError, match="no number"):
        admit(root, -1, path="root")


def test_the_limit_that_was_written_first_stands(root: RunPaths) -> None:
    assert open_budget(root, limit=3) == 3
    assert open_budget(root, limit=99) == 3


def test_what_the_run_before_had_started_is_not_given_back_to_the_one_that_goes_on(root: RunPaths) -> None:
    assert open_budget(root, limit=64, carried=64) == 64
    with pytest.raises(BudgetExceeded, match="0 of 64 are left for the whole tree"):
        admit(root, 1, path="the 65th")
    assert budget_used(root) == (64, 64) and not slots(root)


def test_the_admissions_of_a_run_that_goes_on_are_counted_from_those_before(root: RunPaths) -> None:
    open_budget(root, limit=5, carried=3)
    assert admit(root, 1, path="root") == (3,)
    with pytest.raises(BudgetExceeded, match="1 of 5 are left"):
        admit(root, 2, path="root")
    assert admit(root, 1, path="root") == (4,)
    assert budget_used(root) == (5, 5)


def test_slots_that_are_damaged_or_removed_are_used(root: RunPaths) -> None:
    open_budget(root, limit=6)
    admit(root, 3, path="root")
    budget = root.root / "budget"
    (budget / "000000.json").write_bytes(b"\0\0")
    (budget / "000001.json").unlink()
    (budget / "000003.json").symlink_to("/etc/passwd")
    (budget / "notes.json").write_text("no slot")
    assert budget_used(root) == (4, 6)
    assert admit(root, 2, path="root") == (4, 5)
    with pytest.raises(BudgetExceeded):
        admit(root, 1, path="root")


def test_a_budget_that_can_not_be_read_admits_nobody(root: RunPaths) -> None:
    open_budget(root)
    manifest = root.root / "budget" / "manifest.json"
    whole = manifest.read_bytes()
    for damage in (b"", b"\0" * 20, whole[:30], whole.replace(run_id().encode(), run_id(2).encode())):
        manifest.write_bytes(damage)
        with pytest.raises(StoreError, match="nothing more is started"):
            admit(root, 1, path="root")
    assert slots(root) == []


def test_files_are_private(root: RunPaths) -> None:
    before = os.umask(0)
    try:
        admit(root, 1, path="root")
    finally:
        os.umask(before)
    folder = root.root / "budget"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}


def test_a_budget_that_is_a_link_is_refused(root: RunPaths, tmp_path: Path) -> None:
    open_budget(root)
    (root.root / "budget").rename(tmp_path / "elsewhere")
    (root.root / "budget").symlink_to(tmp_path / "elsewhere", target_is_directory=True)
    with pytest.raises(StoreError, match="no directory of yours"):
        admit(root, 1, path="root")
    assert not list(tmp_path.joinpath("elsewhere").glob("0*"))


def test_only_a_run_of_a_store_has_a_budget(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "runs" / "x", tmp_path / run_id()):
        folder.mkdir(parents=True, exist_ok=True)
        with pytest.raises(StoreError, match="no budget"):
            admit(RunPaths(folder), 1, path="root")


def test_a_run_whose_directory_is_gone_admits_nobody(root: RunPaths) -> None:
    shutil.rmtree(root.root)
    with pytest.raises(StoreError):
        admit(root, 1, path="root")


def test_eight_processes_at_once_never_pass_the_limit(
    root: RunPaths, forked: Fork, ended: Callable[[int], int]
) -> None:
    open_budget(root, limit=64)
    reading, writing = os.pipe()

    def work() -> int:
        os.close(writing)
        os.read(reading, 1)  # until all are there
        admitted = 0
        for count in (1, 3, 2) * 100:
            try:
                admitted += len(admit(root, count, path=str(os.getpid())))
            except BudgetExceeded:
                break
        return admitted

    pids = [forked(work) for _ in range(8)]
    os.close(writing)
    os.close(reading)
    admitted = sum(ended(pid) for pid in pids)
    assert 62 <= admitted <= 64
    assert slots(root) == [f"{number:06d}.json" for number in range(admitted)]


def test_a_process_that_dies_while_it_claims_gives_nothing_back_and_blocks_nobody(
    root: RunPaths, faulty: type[Disk], forked: Fork, ended: Callable[[int], int]
) -> None:
    open_budget(root, limit=1000)
    made_before, at = 0, 0
    while True:
        at += 1
        disk = faulty(at, lambda: os._exit(7))  # type: ignore[call-arg]
        code = ended(forked(lambda disk=disk: len(admit(root, 3, path="root", disk=disk))))  # type: ignore[misc]
        used = budget_used(root)
        assert used is not None and made_before <= used[0] <= made_before + 3
        made_before = used[0]
        assert admit(root, 1, path="after") == (made_before,)
        made_before += 1
        if code == 3:
            break
        assert code == 7
    assert at > 5


def test_a_disk_that_fails_admits_nobody_and_claims_nothing(root: RunPaths, faulty: type[Disk]) -> None:
    open_budget(root)

    def full() -> None:
        raise OSError(28, "No space left on device")

    disk = faulty(6, full)  # type: ignore[call-arg]
    with pytest.raises(StoreError, match="No space left"):
        admit(root, 5, path="root", disk=disk)
    assert slots(root) == []


def test_whoever_holds_the_budget_for_too_long_is_reported(root: RunPaths) -> None:
    open_budget(root)
    handle = hold_now(root.root / "budget" / "lock", owner="test")
    try:
        with pytest.raises(StoreError, match="holds the budget"):
            admit(root, 1, path="root", patience_s=0.02)
    finally:
        os.close(handle)
