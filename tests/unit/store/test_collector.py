from __future__ import annotations

import hashlib
import os
import shutil
import stat
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from support import make_plan, make_recovery, make_result, make_status, make_verdict

from subagents_nb.domain.kept.retention import DAY_S, Collection, Keep
from subagents_nb.domain.plans.plan import AttachedItem, StepItem
from subagents_nb.domain.plans.request import Origin
from subagents_nb.domain.plans.resumed import Resumes
from subagents_nb.domain.runs.questions import Question
from subagents_nb.domain.runs.states import RunState
from subagents_nb.domain.values.ids import make_run_id
from subagents_nb.errors import AmbiguousRun, StoreError, SubagentsError, UnknownRun
from subagents_nb.store import FileRuns, RunWriter, StoreHome, create_run
from subagents_nb.store.clock import read_clocks
from subagents_nb.store.files.codec import encode
from subagents_nb.store.files.lock import hold_now
from subagents_nb.store.kept.collector import SESSION_LEASE, collect, collect_daily
from subagents_nb.store.kept.trash import CollectorBusy, Trash, exclusive_trash
from subagents_nb.store.runs.disk_usage import disk_use

KEEP_S = 30 * DAY_S


def moment(days: float) -> str:
    return datetime.fromtimestamp(time.time() - days * DAY_S, UTC).isoformat(timespec="milliseconds")


def settle(root: Path, days: float) -> None:
    """Let everything in a directory be so many days old."""
    when = time.time() - days * DAY_S
    for path in sorted(root.rglob("*"), reverse=True):
        os.utime(path, (when, when), follow_symlinks=False)


def keep(home: StoreHome, number: int = 1, *, days: float = 40.0, state: str | None = "complete", **plan: Any) -> str:
    """Store a run that ended so many days ago; without a state one that never did."""
    run_id = make_run_id(int((time.time() - days * DAY_S) * 1000), number)
    recovery = make_recovery().model_copy(update={"run_id": run_id})
    writer = create_run(home, make_plan(number, run_id=run_id, name=f"scout-{number}", **plan), recovery)
    common = {"run_id": run_id, "name": f"scout-{number}"}
    writer.status(make_status(number, **common, updated_at=moment(days)), milestone=False)
    if state is not None:
        writer.result(make_result(number, **common, state=state, ended_at=moment(days)))
    (writer.paths.step(0) / "session.json").write_text("[]")
    settle(writer.paths.root, days)
    return run_id


def gc(home: StoreHome, **options: Any) -> Collection:
    return collect(home, **{"keep_s": KEEP_S, **options})


def fingerprint(root: Path) -> str:
    """Return what a run's directory holds, apart from the lease that whoever deletes it takes."""
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*")):
        if path.name not in (SESSION_LEASE, "restored") and not path.name.endswith(".tmp"):
            digest.update(f"{path.relative_to(root)}\n".encode())
            digest.update(path.read_bytes() if path.is_file() else b"")
    return digest.hexdigest()


def tree(root: Path) -> dict[str, tuple[int, int]]:
    return {str(p.relative_to(root)): (p.lstat().st_ino, p.lstat().st_mtime_ns) for p in sorted(root.rglob("*"))}


def whole(home: StoreHome, run_id: str) -> Path:
    """Return where a run is; fail unless it is in exactly one place."""
    trash = [path for path in home.root.joinpath("trash").glob(f"{run_id}.*") if path.is_dir()]
    places = [*(path for path in [home.runs / run_id] if path.exists()), *trash]
    assert len(places) == 1, places
    return places[0]


def let_a_day_pass(home: StoreHome) -> None:
    """Make everything in the trash a day older than it is."""
    trash = Trash(home)
    for tomb in trash.tombs():
        mark = trash.mark_of(tomb)
        assert mark is not None
        path = trash.root / f"{tomb}.json"
        path.write_bytes(encode(mark.model_copy(update={"deleted_at": moment(1.1)})))
        os.utime(path, (time.time() - 1.1 * DAY_S,) * 2)


# -- deciding


def test_the_runs_of_a_tree_stay_with_their_root_and_go_with_it_in_one_pass(home: StoreHome) -> None:
    root = keep(home, 1, tags=("keep",))
    below = Origin(root=root, parent=root, path="mid")
    leaf = Origin(root=root, parent=root, path="mid/leaf")
    under = [keep(home, 2, days=39.5, origin=below), keep(home, 3, days=39.4, origin=leaf)]
    loner = keep(home, 4, days=39, origin=Origin(root=make_run_id(1, 1), parent=make_run_id(1, 1), path="mid"))
    first = gc(home)
    assert [run.run_id for run in first.deleted] == [loner], "its root is gone"
    assert first.kept == {Keep.TAGGED: 1, Keep.OF_TREE: 2}
    (home.runs / root / "plan.json").write_bytes(encode(make_plan(1, run_id=root, name="scout-1")))
    settle(home.runs / root, 40)
    assert gc(home, dry_run=True).kept == {}
    assert [run.run_id for run in gc(home, limit=2).deleted] == [root, under[1]]
    assert [run.run_id for run in gc(home).deleted] == [under[0]], "a pass that was cut is gone on with"


def test_an_old_run_goes_to_the_trash_with_a_note_and_for_good_a_day_later(home: StoreHome) -> None:
    old, young = keep(home, 1), keep(home, 2, days=2)
    before = fingerprint(home.runs / old)
    first = gc(home)
    assert [run.run_id for run in first.deleted] == [old]
    assert first.deleted[0].reason == "complete, 40 days old"
    assert (first.kept, first.in_grace, first.removed) == ({Keep.YOUNG: 1}, 1, ())
    assert FileRuns(home).ids() == [young]
    tomb = whole(home, old)
    mark = Trash(home).mark_of(tomb.name)
    assert fingerprint(tomb) == before
    assert mark is not None and (mark.run_id, mark.name, mark.reason) == (old, "scout-1", "complete, 40 days old")
    assert stat.S_IMODE(tomb.parent.stat().st_mode) == 0o700
    assert gc(home).removed == ()
    let_a_day_pass(home)
    assert gc(home).removed == (old,)
    assert os.listdir(home.root / "trash") == []


def test_without_grace_a_run_is_gone_at_once(home: StoreHome) -> None:
    old = keep(home)
    assert gc(home, grace_s=0.0).removed == (old,)
    assert os.listdir(home.root / "trash") == os.listdir(home.runs) == []


def test_a_rehearsal_lists_and_changes_nothing(home: StoreHome) -> None:
    old, dead = keep(home, 1), keep(home, 2, state=None)
    before = tree(home.root)
    asked: list[list[str]] = []
    done = gc(home, dry_run=True, judge=asked.append)
    assert [run.run_id for run in done.deleted] == [old]
    assert (done.dry_run, done.kept, asked) == (True, {Keep.LIVE: 1}, [])
    assert tree(home.root) == before
    assert (home.runs / dead).is_dir()


def test_a_dead_run_is_judged_before_anything_else_and_kept_from_then_on(home: StoreHome) -> None:
    dead = keep(home, state=None)

    def judge(ids: list[str]) -> None:
        for run_id in ids:
            RunWriter(home.run(run_id)).verdict(make_verdict(run_id=run_id, judged_at=moment(0)))

    assert gc(home, judge=judge).kept == {Keep.YOUNG: 1}
    assert FileRuns(home).snapshot(dead).state == "lost"


@pytest.mark.parametrize(("state", "reason"), [(None, Keep.LIVE), ("paused", Keep.PAUSED), ("partial", Keep.PARTIAL)])
def test_what_is_not_over_stays(home: StoreHome, state: str | None, reason: Keep) -> None:
    keep(home, state=state)
    assert gc(home).kept == {reason: 1}


def spoil(name: str) -> Callable[[StoreHome, str], None]:
    return lambda home, run_id: (home.runs / run_id / name).write_bytes(b"\0" * 40)


def turn_into_link(home: StoreHome, run_id: str) -> None:
    elsewhere = home.root.parent / "elsewhere"
    (home.runs / run_id).rename(elsewhere)
    (home.runs / run_id).symlink_to(elsewhere, target_is_directory=True)


def ask(home: StoreHome, run_id: str) -> None:
    question = Question(run_id=run_id, question_id="q1", text="which one?", asked_at=moment(40))
    (home.run(run_id).questions / "q1.json").write_bytes(encode(question))


def take_over(home: StoreHome, run_id: str) -> None:
    source = home.runs / run_id
    other = home.runs / keep(home, 9)
    shutil.rmtree(source)
    other.rename(source)
    settle(source, 40)


@pytest.mark.parametrize(
    ("harm", "reason"),
    [
        (spoil("result.json"), Keep.UNREADABLE),
        (spoil("plan.json"), Keep.UNREADABLE),
        (spoil("status.json"), Keep.UNREADABLE),
        (lambda home, run_id: (home.runs / run_id / "plan.json").unlink(), Keep.UNREADABLE),
        (turn_into_link, Keep.LINKED),
        (lambda home, run_id: (home.runs / run_id / "artifacts").symlink_to("/etc"), Keep.LINKED),
        (lambda home, run_id: (home.runs / run_id / "worktree").mkdir(), Keep.UNRESOLVED),
        (lambda home, run_id: (home.runs / run_id / "events.jsonl").touch(), Keep.YOUNG),
        (take_over, Keep.UNREADABLE),
    ],
)
def test_a_run_in_doubt_stays_where_it_is(
    home: StoreHome, harm: Callable[[StoreHome, str], None], reason: Keep
) -> None:
    run_id = keep(home)
    harm(home, run_id)
    if reason is not Keep.YOUNG:
        settle(home.runs / run_id, 40)
    assert gc(home).kept == {reason: 1}
    assert (home.runs / run_id).exists()


def test_a_question_that_nobody_can_answer_any_more_keeps_nothing(home: StoreHome) -> None:
    run_id = keep(home)
    ask(home, run_id)
    settle(home.runs / run_id, 40)
    assert len(gc(home).deleted) == 1


def test_a_time_that_is_none_makes_the_age_unknown(home: StoreHome) -> None:
    run_id = keep(home, state=None)
    result = make_result(run_id=run_id, name="scout-1", ended_at="yesterday")
    home.run(run_id).result.write_bytes(encode(result))
    settle(home.runs / run_id, 40)
    assert gc(home).kept == {Keep.UNKNOWN_AGE: 1}


def test_a_tag_keeps_a_run_for_good(home: StoreHome) -> None:
    keep(home, tags=("keep",))
    assert gc(home).kept == {Keep.TAGGED: 1}


def test_a_run_whose_lock_or_lease_is_held_stays(home: StoreHome) -> None:
    locked, leased = keep(home, 1), keep(home, 2)
    handles = [hold_now(home.run(locked).lock, owner="1"), hold_now(home.runs / leased / SESSION_LEASE, owner="2")]
    settle(home.runs, 40)
    assert gc(home).kept == {Keep.LIVE: 1, Keep.LEASED: 1}
    for handle in handles:
        os.close(handle)
    assert len(gc(home).deleted) == 2


def test_a_source_stays_as_long_as_the_run_that_goes_on_from_it(home: StoreHome) -> None:
    source = keep(home, 1)
    paused = keep(home, 2, state="paused", resumes=Resumes(run_id=source, digest="0" * 64))
    assert gc(home).kept == {Keep.PAUSED: 1, Keep.REFERENCED: 1}
    shutil.rmtree(home.runs / paused)
    stopped = keep(home, 3, state="stopped", days=35, resumes=Resumes(run_id=source, digest="0" * 64))
    assert {run.run_id for run in gc(home).deleted} == {source, stopped}


def test_a_run_stays_as_long_as_a_chain_that_is_attached_to_it_has_not_ended(home: StoreHome) -> None:
    read, other = keep(home, 1), keep(home, 2)
    items = (AttachedItem(attached_run=read), AttachedItem(attached_run=other), StepItem(step=0))
    waiting = keep(home, 3, state=None, items=items)
    queued = make_status(3, run_id=waiting, state=RunState.QUEUED, updated_at=moment(40))
    RunWriter(home.run(waiting)).status(queued, milestone=False)
    assert gc(home).kept == {Keep.QUEUED: 1, Keep.REFERENCED: 2}
    ended = make_result(3, run_id=waiting, state="failed", ended_at=moment(40))
    RunWriter(home.run(waiting)).result(ended)
    settle(home.runs, 40)
    assert {run.run_id for run in gc(home).deleted} == {read, other, waiting}


def test_a_plan_of_a_newer_version_still_protects_its_source(home: StoreHome) -> None:
    source = keep(home, 1)
    newer = keep(home, 2, days=1, resumes=Resumes(run_id=source, digest="0" * 64))
    plan = home.run(newer).plan
    plan.write_bytes(plan.read_bytes().replace(b'"schema_version": 1', b'"schema_version": 99'))
    assert gc(home).kept == {Keep.YOUNG: 1, Keep.REFERENCED: 1}


def test_one_run_that_can_not_be_moved_is_named_and_stops_nothing(home: StoreHome) -> None:
    stuck, other = keep(home, 1), keep(home, 2)
    (home.runs / stuck / SESSION_LEASE).mkdir()  # no lease can be taken on it
    settle(home.runs / stuck, 40)
    done = gc(home)
    assert [run.run_id for run in done.deleted] == [other]
    assert [what for what, _ in done.failed] == [stuck]


def test_a_pass_is_cut_at_its_limit_and_says_so(home: StoreHome) -> None:
    for number in range(5):
        keep(home, number)
    assert [(len(done.deleted), done.more) for done in (gc(home, limit=2) for _ in range(3))] == [
        (2, True),
        (2, True),
        (1, False),
    ]


def test_a_second_pass_at_the_same_time_is_refused(home: StoreHome) -> None:
    keep(home)
    with exclusive_trash(home), pytest.raises(CollectorBusy, match="Another process is deleting"):
        gc(home)
    assert len(gc(home).deleted) == 1


def test_a_trash_that_is_a_link_is_refused(home: StoreHome, tmp_path: Path) -> None:
    keep(home)
    (tmp_path / "other").mkdir()
    (home.root / "trash").symlink_to(tmp_path / "other", target_is_directory=True)
    with pytest.raises(StoreError, match="nothing was deleted"):
        gc(home)
    assert os.listdir(tmp_path / "other") == []


def test_removing_follows_no_link_and_opens_closed_folders(home: StoreHome, tmp_path: Path) -> None:
    canary = tmp_path / "canary"
    canary.mkdir()
    (canary / "file").write_text("here")
    canary.chmod(0o755)
    step = home.run(keep(home)).step(0)
    (step / "link").symlink_to(canary, target_is_directory=True)
    (step / "closed").mkdir()
    (step / "closed" / "file").write_text("x")
    (step / "closed").chmod(0o500)
    assert len(gc(home, grace_s=0.0).removed) == 1
    assert (canary / "file").read_text() == "here"
    assert stat.S_IMODE(canary.stat().st_mode) == 0o755
    assert os.listdir(home.root / "trash") == []


# -- once a day


def test_the_daily_pass_happens_once_a_day_and_goes_on_sooner_when_there_is_more(home: StoreHome) -> None:
    keep(home)
    asked: list[float] = []

    def days() -> float:
        asked.append(1)
        return 30.0

    done = collect_daily(home, keep_days=days, judge=list)
    assert done is not None and len(done.deleted) == 1
    assert collect_daily(home, keep_days=days, judge=list) is None
    assert len(asked) == 1
    yesterday = time.time() - 1.01 * DAY_S
    os.utime(home.root / "retention.last", (yesterday, yesterday))
    assert collect_daily(home, keep_days=days, judge=list) is not None


def test_the_daily_pass_never_raises_and_does_not_try_again_at_once(home: StoreHome) -> None:
    def broken() -> float:
        raise SubagentsError("the settings are no settings")

    keep(home)
    assert collect_daily(home, keep_days=broken, judge=list) is None
    assert collect_daily(home, keep_days=lambda: 30.0, judge=list) is None
    assert len(FileRuns(home).ids()) == 1


@pytest.mark.parametrize("set_by_days", [400.0, -400.0])
def test_a_clock_that_was_set_since_the_last_pass_deletes_nothing_and_is_believed_a_day_later(
    home: StoreHome, set_by_days: float
) -> None:
    keep(home)
    marker, yesterday = home.root / "retention.last", time.time() - 1.01 * DAY_S
    now = read_clocks()
    earlier = {"wall_s": now.wall_s - (set_by_days + 1) * DAY_S, "since_boot_s": now.since_boot_s - DAY_S}
    marker.write_text(now.model_copy(update=earlier).model_dump_json())
    os.utime(marker, (yesterday, yesterday))
    assert collect_daily(home, keep_days=lambda: 30.0, judge=list) is None
    assert len(FileRuns(home).ids()) == 1
    os.utime(marker, (yesterday, yesterday))
    done = collect_daily(home, keep_days=lambda: 30.0, judge=list)
    assert done is not None and len(done.deleted) == 1


# -- bringing back


def test_a_run_comes_back_whole_by_id_prefix_or_name_and_is_young_again(home: StoreHome) -> None:
    old = keep(home)
    before = fingerprint(home.runs / old)
    for text in (old, old[:-2], "scout-1"):
        settle(home.runs / old, 40)
        assert len(gc(home).deleted) == 1
        assert Trash(home).restore(text) == old
        assert fingerprint(home.runs / old) == before
        assert gc(home).kept == {Keep.YOUNG: 1}
    assert os.listdir(home.root / "trash") == []


def test_what_is_not_in_the_trash_can_not_come_back(home: StoreHome) -> None:
    with pytest.raises(UnknownRun, match="No run in the trash"):
        Trash(home).restore("scout-1")


def test_of_several_runs_of_one_name_none_is_brought_back(home: StoreHome) -> None:
    first, _ = keep(home, 1), keep(home, 1, days=41)
    gc(home)
    with pytest.raises(AmbiguousRun, match=first):
        Trash(home).restore("scout-1")


def test_a_run_is_never_replaced_by_one_from_the_trash(home: StoreHome) -> None:
    old = keep(home)
    gc(home)
    (home.runs / old).mkdir()
    with pytest.raises(StoreError, match="would be replaced"):
        Trash(home).restore(old)
    assert whole_in_trash(home, old)


def whole_in_trash(home: StoreHome, run_id: str) -> bool:
    return any(tomb.startswith(run_id) for tomb in Trash(home).tombs())


# -- dying in between

_TOUCHES = {"open", "os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.link", "os.utime", "os.truncate", "os.chmod"}


def die_at(operation: int) -> None:
    """End this process right before its next-but-`operation` call that opens or changes a file."""
    left = [operation]

    def hook(event: str, _: tuple[object, ...]) -> None:
        if event in _TOUCHES:
            left[0] -= 1
            if left[0] < 0:
                os._exit(7)

    sys.addaudithook(hook)


Fork = Callable[[Callable[[], int]], int]
CRASHED = 7


def every_crash(
    home: StoreHome, forked: Fork, ended: Callable[[int], int], work: Callable[[], object], check: Callable[[], None]
) -> int:
    """Let `work` die before each of its file operations in turn, over the same store; return how many there were."""
    template = home.root.with_name("template")
    shutil.copytree(home.root, template, symlinks=True)
    operation = 0
    while True:

        def child(at: int = operation) -> int:
            die_at(at)
            work()
            return 0

        code = ended(forked(child))
        assert code in (0, CRASHED)
        check()
        shutil.rmtree(home.root)
        shutil.copytree(template, home.root, symlinks=True)
        if code == 0:
            return operation
        operation += 1


def test_a_pass_that_dies_at_any_operation_leaves_whole_runs_and_the_next_one_finishes(
    home: StoreHome, forked: Fork, ended: Callable[[int], int]
) -> None:
    old = [keep(home, 1), keep(home, 2)]
    young = keep(home, 3, days=1)
    prints = {run_id: fingerprint(home.runs / run_id) for run_id in [*old, young]}

    def check() -> None:
        for run_id, expected in prints.items():
            assert fingerprint(whole(home, run_id)) == expected
        gc(home)
        assert FileRuns(home).ids() == [young]
        trash = Trash(home)
        tombs = trash.tombs()
        assert [trash.mark_of(tomb) is not None for tomb in tombs] == [True, True]
        assert sorted(os.listdir(trash.root)) == sorted([*tombs, *(f"{tomb}.json" for tomb in tombs)])

    assert every_crash(home, forked, ended, lambda: gc(home), check) > 30


def test_emptying_the_trash_may_die_at_any_operation_and_never_leaves_half_a_run_to_bring_back(
    home: StoreHome, forked: Fork, ended: Callable[[int], int]
) -> None:
    old = keep(home)
    expected = fingerprint(home.runs / old)
    gc(home)
    let_a_day_pass(home)

    def check() -> None:
        for tomb in Trash(home).tombs():
            assert fingerprint(home.root / "trash" / tomb) == expected
        gc(home, grace_s=0.0)
        assert os.listdir(home.root / "trash") == []

    assert every_crash(home, forked, ended, lambda: gc(home), check) > 20


def test_bringing_back_may_die_at_any_operation(home: StoreHome, forked: Fork, ended: Callable[[int], int]) -> None:
    old = keep(home)
    expected = fingerprint(home.runs / old)
    gc(home)

    def check() -> None:
        assert fingerprint(whole(home, old)) == expected
        if whole_in_trash(home, old):
            Trash(home).restore(old)
        assert gc(home).kept == {Keep.YOUNG: 1}
        assert os.listdir(home.root / "trash") == []

    assert every_crash(home, forked, ended, lambda: Trash(home).restore(old), check) > 3


# -- disk use


def test_the_disk_use_of_a_run_counts_its_files_and_follows_no_link(home: StoreHome, tmp_path: Path) -> None:
    paths = home.run(keep(home))
    before = disk_use(paths)
    (tmp_path / "big").write_bytes(b"x" * 5_000_000)
    (paths.root / "link").symlink_to(tmp_path / "big")
    (paths.step(0) / "loop").symlink_to(paths.root, target_is_directory=True)
    assert disk_use(paths) == before
    (paths.step(0) / "output.txt").write_bytes(b"x" * 1_000_000)
    assert before + 1_000_000 <= disk_use(paths) < before + 1_100_000


def test_a_file_with_holes_takes_what_it_takes(home: StoreHome) -> None:
    paths = home.run(keep(home))
    with (paths.root / "holes").open("wb") as file:
        file.write(b"x")
        file.truncate(10**12)
    assert disk_use(paths) < 10**7


def test_counting_ends_when_enough_was_found_or_nothing_is_there(home: StoreHome, tmp_path: Path) -> None:
    folder = tmp_path / "many"
    folder.mkdir()
    for number in range(20):
        (folder / str(number)).write_bytes(b"x" * 100_000)
    assert 300_000 < disk_use(folder, enough=300_000) < 1_000_000
    assert disk_use(folder) >= 2_000_000
    assert disk_use(tmp_path / "nowhere") == 0
