"""Somebody turns the files of a run into links, pipes and other files while it is written and read.

What lies outside is neither changed nor read nor made, and nothing hangs. The attacker is a process of the same user:
the directories are private. He may also put a link in place of a run's whole directory, or of one below it.
"""

from __future__ import annotations

import contextlib
import os
import random
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from crash.counting import times
from crash.lives import a_plan, exit_code, fork, made
from support import alive, make_answer, make_request, make_result, make_status, until

from subagents_nb import Run, launch, runs
from subagents_nb.domain.agents.environment import runner_environ
from subagents_nb.domain.runs.records import RunResult
from subagents_nb.domain.runs.states import RunState
from subagents_nb.errors import SubagentsError
from subagents_nb.launching.controlling.asking import open_questions
from subagents_nb.store import FileRuns, RunPaths, RunWriter, StoreHome
from subagents_nb.store.files.lock import hold, hold_now, probe
from subagents_nb.store.runs.disk_usage import disk_use
from subagents_nb.store.runs.reader import read_tail
from subagents_nb.supervisor.ends.termination import stop_request_of
from subagents_nb.supervisor.start import start_runner

Case = Callable[..., None]
FLIPS = times(400, 10_000)
SECRET = "canary-4f7d1c"
SEED = 20260324
NAMES = [
    "plan.json", "status.json", "result.json", "process.json", "verdict.json", "events.jsonl", "lock", "runner.err",
    "session.lease", ".reserve", "steps/0/output.txt", "control/answers/a-1.json", "questions/q1.json",
]  # fmt: skip


def attack(root: Path, outside: Path, stop_at: int) -> int:
    """Turn each file into something else and back, `stop_at` times in all."""
    rng = random.Random(SEED)
    pace = threading.Event()
    for number in range(stop_at):
        pace.wait(0.001)
        name = NAMES[number % len(NAMES)]
        place, temp = root / name, root / ".turned"
        with contextlib.suppress(OSError):
            match rng.choice(["canary", "canary", "nothing", "pipe", "device", "gone", "directory"]):
                case "canary":
                    temp.symlink_to(outside / Path(name).name)
                case "nothing":
                    temp.symlink_to(outside / "made-by-mistake")
                case "device":
                    temp.symlink_to("/dev/zero")
                case "pipe":
                    os.mkfifo(temp)
                case "gone":
                    place.unlink()
                    continue
                case "directory":
                    temp.symlink_to(outside)
            os.replace(temp, place)
    return 0


def victim(acts: list[Callable[[], object]], until_gone: int) -> int:
    """Do all acts again and again while the attacker lives; 3 if one takes a second, 4 if one tells the secret."""
    while os.path.exists(f"/proc/{until_gone}"):
        for act in acts:
            began = time.monotonic()
            told = ""
            with contextlib.suppress(OSError, SubagentsError):
                told = repr(act())
            if time.monotonic() - began > 1.0:
                return 3
            if SECRET in told:
                return 4
    return 0


def writing(paths: RunPaths, result: RunResult) -> list[Callable[[], object]]:
    run_id = paths.root.name

    def letting_go(take: Callable[[], int]) -> Callable[[], object]:
        return lambda: os.close(take())

    def event() -> None:
        writer = RunWriter(paths)
        try:
            writer.events.append({"seq": 1, "type": "text", "text": "x"}, keep=True)
        finally:
            if writer.events._handle is not None:
                os.close(writer.events._handle)

    return [
        lambda: RunWriter(paths).status(make_status().model_copy(update={"run_id": run_id}), milestone=False),
        lambda: RunWriter(paths).mail.answer(make_answer().model_copy(update={"run_id": run_id})),
        event,
        lambda: RunWriter(paths).reserve(),
        lambda: RunWriter(paths).result(result),
        letting_go(lambda: hold(paths.lock)),
        letting_go(lambda: hold_now(paths.root / "session.lease", owner=run_id)),
    ]


def reading(home: StoreHome, run_id: str) -> list[Callable[[], object]]:
    paths, run = home.run(run_id), Run(home, run_id)
    return [
        lambda: FileRuns(home).snapshot(run_id, whole=True),
        lambda: list(run.events()),
        lambda: Run(home, run_id).text,
        lambda: read_tail(paths.err),
        lambda: open_questions(home, run_id),
        lambda: probe(paths.lock),
        lambda: disk_use(paths),
    ]


@pytest.mark.row(24, cases=FLIPS)
@pytest.mark.timeout(150)
def test_files_that_are_turned_into_something_else(store_home: StoreHome, tmp_path: Path, case: Case) -> None:
    print("seed", SEED)
    plan = a_plan(1)
    paths = made(store_home, plan).paths
    outside = tmp_path / "outside"
    outside.mkdir()
    for name in NAMES:
        (outside / Path(name).name).write_text(f'{{"run_id": "{plan.run_id}", "text": "{SECRET}"}}\n')
    before = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in outside.iterdir()}
    step = make_result().steps[0].model_copy(update={"text_file": "steps/0/output.txt"})
    result = make_result().model_copy(update={"run_id": plan.run_id, "steps": (step,)})
    attacker = fork(lambda: attack(paths.root, outside, FLIPS))
    victims = [
        fork(lambda: victim(writing(paths, result), attacker)),
        fork(lambda: victim(reading(store_home, plan.run_id), attacker)),
    ]
    assert exit_code(attacker) == 0
    assert [exit_code(pid) for pid in victims] == [0, 0], "3: something hung; 4: the secret was told"
    assert {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in outside.iterdir()} == before
    case(FLIPS)


def attack_folders(root: Path, outside: Path, stop_at: int) -> int:
    """Put a link to `outside` in place of the run's directory, or of one in it, and take it away, again and again."""
    rng = random.Random(SEED)
    pace = threading.Event()
    away = root.parent / "away"
    for _ in range(stop_at):
        place = root / rng.choice(["", "", "control", "control/answers", "questions", "steps", "steps/0"])
        with contextlib.suppress(OSError):
            os.rename(place, away)
            place.symlink_to(outside)
            pace.wait(0.001)
            place.unlink()
        pace.wait(0.0005)
        with contextlib.suppress(OSError):
            os.rename(away, place)
    return 0


def looks(folder: Path) -> dict[str, tuple[int, int]]:
    return {str(path): (path.stat().st_size, path.stat().st_mtime_ns) for path in [folder, *folder.rglob("*")]}


@pytest.mark.row(24, cases=FLIPS)
@pytest.mark.timeout(150)
def test_directories_of_a_run_that_are_turned_into_links(store_home: StoreHome, tmp_path: Path, case: Case) -> None:
    print("seed", SEED)
    plan = a_plan(1)
    paths = made(store_home, plan).paths
    step = make_result().steps[0].model_copy(update={"text_file": "steps/0/output.txt"})
    result = make_result().model_copy(update={"run_id": plan.run_id, "steps": (step,)})
    # Outside lies a whole other run of the same id, which would pass for this one, and tells the secret.
    outside = tmp_path / "outside"
    theirs = RunWriter(RunPaths(outside))
    for name in ("control/answers", "questions", "steps/0", "answers", "0"):
        (outside / name).mkdir(parents=True)
    told = make_status().model_copy(update={"run_id": plan.run_id, "notes": (SECRET,)})
    theirs.status(told, milestone=False)
    for name in (*NAMES, "q1.json", "a-1.json", "stop-a-1.json"):
        if name != "status.json":
            (outside / name).write_text(f'{{"run_id": "{plan.run_id}", "text": "{SECRET}"}}\n')
    before = looks(outside)
    attacker = fork(lambda: attack_folders(paths.root, outside, FLIPS))
    victims = [
        fork(lambda: victim(writing(paths, result), attacker)),
        fork(lambda: victim([*reading(store_home, plan.run_id), lambda: stop_request_of(paths)], attacker)),
    ]
    assert exit_code(attacker) == 0
    assert [exit_code(pid) for pid in victims] == [0, 0], "3: something hung; 4: the secret was told"
    assert looks(outside) == before
    case(FLIPS)


@pytest.mark.row(24, cases=1)
def test_a_run_whose_directory_is_a_link_is_a_row_that_says_so_and_nobody_begins_it(
    store_home: StoreHome, tmp_path: Path, case: Case
) -> None:
    plan = a_plan(1)
    paths = made(store_home, plan).paths
    outside = tmp_path / "outside"
    os.rename(paths.root, outside)
    paths.root.symlink_to(outside)
    before = looks(outside)
    snapshot = FileRuns(store_home).snapshot(plan.run_id, whole=True)
    assert snapshot.state is None and snapshot.ended
    assert {damage.kind for damage in snapshot.damage} == {"foreign"}
    assert [run.id for run in runs()] == [plan.run_id]
    with pytest.raises(SubagentsError):
        start_runner(store_home, run_id=plan.run_id, token=plan.token, cwd=plan.cwd, environ=runner_environ(os.environ))
    with pytest.raises(OSError):
        RunWriter(paths).mail.request(make_request().model_copy(update={"run_id": plan.run_id}))
    assert looks(outside) == before
    case()


@pytest.mark.row(24, cases=1)
def test_a_live_run_whose_directory_becomes_a_link_ends_and_writes_nothing_there(
    store_home: StoreHome, tmp_path: Path, case: Case
) -> None:
    run = launch(task="x", model="scripted:slow")
    until(lambda: run.state is RunState.RUNNING, what="its beginning")
    pid = run.status.status.runner.pid
    root, outside = store_home.run(run.id).root, tmp_path / "outside"
    os.rename(root, root.with_name("away"))
    outside.mkdir()
    root.symlink_to(outside)
    (outside / "lock").touch()
    before = looks(outside)
    until(lambda: not alive(pid), 20, what="the end of the runner")
    assert looks(outside) == before
    assert run.state is None
    case()


@pytest.mark.row(24, cases=1)
@pytest.mark.parametrize("name", ["runner.err", "runner.out", "lock", "events.jsonl"])
def test_a_runner_does_not_write_through_a_link_that_waits_for_it(
    spawn: str, shared_home: StoreHome, tmp_path: Path, name: str, case: Case
) -> None:
    plan = a_plan(1)
    paths = made(shared_home, plan).paths
    target = tmp_path / "made-by-mistake"
    (paths.root / name).symlink_to(target)
    with contextlib.suppress(SubagentsError):
        started = start_runner(
            shared_home, run_id=plan.run_id, token=plan.token, cwd=plan.cwd, environ=runner_environ(os.environ)
        )
        started.abandon()
    assert not target.exists()
    case()
