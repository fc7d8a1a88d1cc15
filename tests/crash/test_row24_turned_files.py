"""Somebody turns the files of a run into links, pipes and other files while it is written and read.

What lies outside is neither changed nor read nor made, and nothing hangs. The attacker is a process of the same user:
the directories are private. Links in place of a whole run directory are not part of this; README.md says so.
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
from crash.lives import a_plan, exit_code, fork, made
from support import make_answer, make_result, make_status

from subagents_nb import Run
from subagents_nb.domain.environment import runner_environ
from subagents_nb.domain.records import RunResult
from subagents_nb.errors import SubagentsError
from subagents_nb.launching.asking import open_questions
from subagents_nb.store import FileRuns, RunPaths, RunWriter, StoreHome
from subagents_nb.store.lock import hold, hold_now, probe
from subagents_nb.store.reader import read_tail
from subagents_nb.store.usage import disk_use
from subagents_nb.supervisor.start import start_runner

Case = Callable[..., None]
FLIPS = int(os.environ.get("CRASH_FLIPS", "2000"))
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
            writer.event({"seq": 1, "type": "text", "text": "x"}, keep=True)
        finally:
            if writer._events is not None:
                os.close(writer._events)

    return [
        lambda: RunWriter(paths).status(make_status().model_copy(update={"run_id": run_id}), milestone=False),
        lambda: RunWriter(paths).answer(make_answer().model_copy(update={"run_id": run_id})),
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
