"""A run from launch to its end, with real processes and real files; both ways of starting it where that matters."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import json
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from crash.counting import times
from support import CHILDREN, alive, delete, make_recovery, processes_of, script, until

from subagents_nb import Run, attach, launch
from subagents_nb.domain.agents.environment import runner_environ
from subagents_nb.domain.plans.plan import LaunchPlan
from subagents_nb.domain.runs.exit_report import ProcessRecord
from subagents_nb.domain.runs.snapshot import Snapshot
from subagents_nb.domain.runs.states import RunState
from subagents_nb.domain.values.ids import make_run_id
from subagents_nb.errors import (
    LaunchError,
    RunFailed,
    RunLost,
    RunStopped,
    RunTimedOut,
    WaitTimedOut,
)
from subagents_nb.launching.following.waiting import WaitInterrupted
from subagents_nb.store import FileRuns, StoreHome, create_run
from subagents_nb.store.files.lock import probe
from subagents_nb.store.runs.writer import discard_run
from subagents_nb.supervisor.start import start_runner

pytestmark = pytest.mark.timeout(40)


def begin(model: str = "scripted:echo", task: str = "say this back", **options: Any) -> Run:
    return launch("scout", task, model=model, **options)


def look(run: Run) -> Snapshot:
    return FileRuns(run.home).snapshot(run.id, whole=True)


def ended_record(run: Run) -> ProcessRecord:
    """Return the proof of the process's end, once it is written."""

    def proof() -> ProcessRecord | None:
        record = look(run).process
        return record if record is not None and record.state != "pending" else None

    found = until(proof, 10, what="the process-terminal proof")
    assert found is not None
    return found


def runner_of(run: Run) -> int:
    status = look(run).status
    assert status is not None and status.runner is not None
    return status.runner.pid


def working(run: Run) -> None:
    until(lambda: look(run).state is RunState.RUNNING, 15, what="the run's beginning")


def busy(run: Run) -> None:
    until(lambda: look(run).tail, 15, what="the run's first words")


# -- a good end


def test_a_run_that_goes_well_leaves_documents_that_agree(spawn: str) -> None:
    run = begin()
    assert run.wait(20)
    proof, snapshot = ended_record(run), look(run)
    assert (snapshot.state, snapshot.damage, snapshot.verdict) == (RunState.COMPLETE, (), None)
    assert run.output == run.text == "say this back"
    assert snapshot.status is not None and snapshot.result is not None and snapshot.plan is not None
    assert snapshot.status.state is RunState.COMPLETE
    assert {d.digest for d in (snapshot.status, snapshot.result, snapshot.plan)} == {snapshot.plan.digest}
    assert {d.name for d in (snapshot.status, snapshot.result, snapshot.plan)} == {run.name}
    assert snapshot.status.runner is not None
    assert (proof.state, proof.spawn, proof.exit_code, proof.signal) == ("observed", spawn, 0, None)
    assert (proof.pid, proof.start_ticks) == (snapshot.status.runner.pid, snapshot.status.runner.start_ticks)
    assert proof.token == snapshot.plan.token == snapshot.status.runner.token
    assert (proof.ended_with_it, proof.group_empty) == ((), True)
    assert snapshot.result.usage == snapshot.status.usage and snapshot.result.usage.requests == 1
    events = list(run.events())
    assert [e["seq"] for e in events] == list(range(1, len(events) + 1))
    assert (events[0]["type"], events[-1]["type"]) == ("run-started", "run-ended")
    assert "".join(e["text"] for e in events if e["type"] == "text") == "say this back"
    assert probe(run.home.run(run.id).lock) == "free"
    assert run.home.run(run.id).err.read_text() == "" == run.home.run(run.id).out.read_text()


@pytest.mark.row(23, cases=1)
def test_every_file_of_a_run_is_private_whatever_the_umask(spawn: str) -> None:
    before = os.umask(0)
    try:
        run = begin()
        assert run.wait(20)
    finally:
        os.umask(before)
    ended_record(run)
    for path in run.home.run(run.id).root.rglob("*"):
        mode = path.stat().st_mode & 0o777
        assert mode == (0o700 if path.is_dir() else 0o600), f"{path}: {mode:o}"
    assert not [p for p in run.home.run(run.id).root.rglob("*") if p.name.endswith(".tmp")]


@dataclasses.dataclass
class Finding:
    column: str
    rows: int


def test_a_schema_gives_back_its_own_type(shared_home: StoreHome) -> None:
    model = script("found", {"text": "looking"}, {"value": {"column": "price", "rows": 3}})
    run = begin(model, schema=Finding)
    assert run.result(20) == Finding(column="price", rows=3)
    assert attach(run.id).output == {"column": "price", "rows": 3}
    assert attach(run.id, schema=Finding).output == Finding("price", 3)


def test_a_value_that_does_not_fit_its_schema_is_a_failure_with_the_reason(shared_home: StoreHome) -> None:
    run = begin(script("wrong", {"value": {"column": 1}}), schema=Finding)
    with pytest.raises(RunFailed, match="does not fit the schema"):
        run.result(20)
    assert run.status.reason == "schema"


def test_a_failure_of_the_model_is_the_runs_own_word(shared_home: StoreHome) -> None:
    run = begin("scripted:fail")
    with pytest.raises(RunFailed, match="as its script says") as caught:
        run.result(20)
    assert (caught.value.run_id, caught.value.state, caught.value.reason) == (run.id, "failed", "model")
    assert ended_record(run).exit_code == 0
    assert look(run).verdict is None


def test_text_in_any_language_is_whole_in_the_events_too(shared_home: StoreHome) -> None:
    text = "漢字" * 4000
    run = begin(script("odd", {"text": text}))
    assert run.wait(20)
    assert run.text == text
    told = "".join(e.get("text", "") for e in run.events() if e["type"] == "text")
    assert told == text, "the events lost text"


def test_a_long_answer_is_whole_though_the_result_is_cut(shared_home: StoreHome) -> None:
    answer = "0123456789" * 40_000
    run = begin(script("long", {"text": answer}))
    assert run.result(20) == answer
    assert look(run).result is not None and len(look(run).text) < len(answer)


def test_a_long_answer_without_room_for_its_file_still_ends_well(shared_home: StoreHome) -> None:
    run = begin(script("long", {"text": "x"}, {"sleep": 1}, {"text": "0123456789" * 40_000}))
    busy(run)
    delete(run.home.run(run.id).root / "steps")
    assert run.wait(20)
    assert run.state is RunState.COMPLETE, run.error
    assert run.text.startswith("x0123456789")


# -- nothing before proceed


def stored(home: StoreHome, model: str = "scripted:echo") -> LaunchPlan:
    from support import make_plan, make_step

    run_id = make_run_id(time.time_ns() // 1_000_000, int.from_bytes(os.urandom(6)))
    plan = make_plan(steps=(make_step(model=model),), cwd=os.getcwd()).model_copy(update={"run_id": run_id})
    create_run(home, plan, make_recovery().model_copy(update={"run_id": run_id}))
    return plan


def start(home: StoreHome, plan: LaunchPlan) -> Any:
    environ = runner_environ(os.environ)
    return start_runner(home, run_id=plan.run_id, token=plan.token, cwd=plan.cwd, environ=environ)


def test_a_runner_that_is_let_go_ends_without_having_begun(spawn: str, shared_home: StoreHome) -> None:
    plan = stored(shared_home)
    started = start(shared_home, plan)
    paths = shared_home.run(plan.run_id)
    until(lambda: probe(paths.lock) == "held", 10, what="the runner's lock")
    assert alive(started.pid, started.start_ticks)
    started.abandon()
    until(lambda: not processes_of(shared_home), 10, what="the runner's end")
    run = Run(shared_home, plan.run_id)
    proof = ended_record(run)
    assert (proof.state, proof.exit_code) == ("not-started", 75)
    assert not paths.result.exists() and not paths.events.exists()
    assert (run.state, run.status.reason) == (RunState.FAILED, "startup")
    assert "before it began to work" in str(run.error)


def test_a_runner_that_hears_another_runs_word_does_not_begin(spawn: str, shared_home: StoreHome) -> None:
    plan = stored(shared_home)
    start(shared_home, plan).proceed("0" * 32)
    run = Run(shared_home, plan.run_id)
    assert ended_record(run).state == "not-started"
    assert not shared_home.run(plan.run_id).result.exists()


def test_a_runner_that_died_at_its_barrier_leaves_no_directory_of_a_launch_rolled_back(
    spawn: str, shared_home: StoreHome
) -> None:
    for _ in range(8 if spawn == "warm" else 3):
        plan = stored(shared_home)
        started = start(shared_home, plan)
        started.abandon()
        discard_run(shared_home.run(plan.run_id))
        until(lambda: not processes_of(shared_home) and not alive(started.pid, started.start_ticks), 10)  # noqa: B023
        root = shared_home.run(plan.run_id).root
        assert not root.exists(), f"left behind: {list(root.iterdir())}"


def test_proceed_to_a_dead_runner_is_a_launch_error_and_not_silence(spawn: str, shared_home: StoreHome) -> None:
    plan = stored(shared_home)
    started = start(shared_home, plan)
    os.kill(started.pid, signal.SIGKILL)
    until(lambda: not alive(started.pid, started.start_ticks), 5)
    until(lambda: look(Run(shared_home, plan.run_id)).verdict, 10, what="the verdict")
    with pytest.raises(LaunchError, match="ended before it could be told to begin"):
        started.proceed(plan.token)
    assert ended_record(Run(shared_home, plan.run_id)).signal == 9


# -- stopped, timed out, crashed


def test_a_silent_run_stops_within_a_second(spawn: str) -> None:
    run = begin("scripted:hang")
    working(run)
    asked = time.monotonic()
    run.stop("enough")
    assert run.wait(5)
    assert time.monotonic() - asked < 1.0
    assert (run.state, run.status.reason) == (RunState.STOPPED, "stopped")
    with pytest.raises(RunStopped, match="Stopped on request from python: enough"):
        _ = run.output
    assert run.stop() is False  # it has ended, so there is nothing to stop
    answers = list(run.home.run(run.id).answers.glob("*.json"))
    assert [json.loads(a.read_text())["outcome"] for a in answers] == ["accepted"]


def test_a_stubborn_run_ends_within_its_grace_and_two_seconds(spawn: str) -> None:
    run = begin("scripted:stubborn")
    busy(run)
    asked = time.monotonic()
    run.stop()
    until(lambda: look(run).status.stopping, 2, what="the word that a stop is under way")  # type: ignore[union-attr]
    assert run.wait(10)
    assert time.monotonic() - asked < 3.0 + 2.0
    assert run.state is RunState.STOPPED
    assert "tick" in run.status.tail
    assert ended_record(run).state == "observed"


def test_a_run_past_its_deadline_ends_as_timed_out(spawn: str) -> None:
    run = begin("scripted:hang", timeout=0.5)
    with pytest.raises(RunTimedOut, match=r"deadline of 0\.5 s"):
        run.result(10)
    assert (run.state, run.status.reason) == (RunState.FAILED, "timeout")
    assert run.status.elapsed_s < 2


def test_a_runner_that_dies_is_lost_within_two_seconds_with_its_last_words(spawn: str) -> None:
    run = begin("scripted:crash")
    pid = runner_of(run)
    until(lambda: not alive(pid), 15, what="the crash")
    died = time.monotonic()
    assert run.wait(5)
    assert time.monotonic() - died < 2
    with pytest.raises(RunLost, match="SIGKILL") as caught:
        _ = run.output
    assert caught.value.reason == "signal"
    assert run.status.tail == "The process dies now.\n"
    assert (ended_record(run).signal, ended_record(run).state) == (9, "observed")
    assert run.events and not run.home.run(run.id).result.exists()


def test_a_run_whose_launcher_is_gone_is_judged_without_it(spawn: str, shared_home: StoreHome) -> None:
    command = [sys.executable, str(CHILDREN / "launcher.py"), "proceed", "scripted:slow"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=90, check=True)
    run = Run(shared_home, done.stdout.split()[0])
    busy(run)
    os.kill(runner_of(run), signal.SIGKILL)
    until(lambda: look(run).verdict, 2, what="the verdict of whoever watches it")
    verdict = look(run).verdict
    assert verdict is not None
    assert verdict.judged_by == ("supervisor" if spawn == "warm" else "shim")
    assert "tick 1" in verdict.tail
    assert run.state is RunState.LOST


@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGINT], ids=lambda sent: sent.name)
def test_a_signal_from_outside_is_told_as_such(spawn: str, sent: signal.Signals) -> None:
    run = begin("scripted:slow")
    busy(run)
    os.kill(runner_of(run), sent)
    assert run.wait(6)
    assert (run.state, run.status.reason) == (RunState.STOPPED, "signal")
    assert look(run).result is not None and look(run).result.actor == "outside"  # type: ignore[union-attr]
    assert f"from outside ({sent.name})" in str(run.error)


def test_a_run_that_is_paused_from_outside_is_alive_and_goes_on(spawn: str) -> None:
    run = begin("scripted:slow")
    busy(run)
    pid = runner_of(run)
    os.kill(pid, signal.SIGSTOP)
    try:
        assert run.wait(1.5) is False
        assert run.state is RunState.RUNNING
    finally:
        os.kill(pid, signal.SIGCONT)
    run.stop()
    assert run.wait(6)


def test_a_run_whose_directory_is_deleted_ends_and_makes_nothing_anew(spawn: str) -> None:
    run = begin("scripted:slow")
    busy(run)
    pid, root = runner_of(run), run.home.run(run.id).root
    delete(root)
    until(lambda: not alive(pid), 8, what="the end of a run without a directory")
    until(lambda: not processes_of(run.home), 5)
    assert not root.exists()
    assert run.wait(5)
    assert "gone" in str(attach_error(run))


def attach_error(run: Run) -> str | None:
    return Run(run.home, run.id).error


def test_runs_killed_as_they_finish_are_never_lost_beside_a_result(spawn: str) -> None:
    for round_ in range(0, 20, times(4, 1) if spawn == "warm" else times(10, 3)):
        model = script("brief", {"text": "a"}, {"sleep": 0.02}, {"text": "b"})
        run = begin(model)
        pid = runner_of(run)
        until(lambda: look(run).state is not RunState.QUEUED, 10, pause=0.001)  # noqa: B023
        threading.Event().wait(0.02 + round_ * 0.002)
        with contextlib.suppress(ProcessLookupError):
            if alive(pid):
                os.kill(pid, signal.SIGKILL)
        assert run.wait(10)
        ended_record(run)
        snapshot = look(run)
        assert not (snapshot.result is not None and snapshot.verdict is not None), f"round {round_}: a false verdict"
        assert snapshot.state in (RunState.COMPLETE, RunState.LOST)


# -- secrets


def test_no_secret_reaches_a_file_a_command_line_or_a_tool(spawn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    canaries = {f"CANARY_{n}_API_KEY": f"sk-canary-{n:02d}-{os.urandom(6).hex()}" for n in range(10)}
    canaries |= {"GITHUB_TOKEN": f"ghp_canary_{os.urandom(6).hex()}", "OPENAI_API_KEY": "sk-canary-openai"}
    for name, value in canaries.items():
        monkeypatch.setenv(name, value)
    task = f"CANARYTASK{os.urandom(6).hex()}"
    lines: set[bytes] = set()
    over = threading.Event()

    def sample() -> None:
        while not over.wait(0.02):
            for path in Path("/proc").glob("[0-9]*/cmdline"):
                with contextlib.suppress(OSError):
                    lines.add(path.read_bytes())

    sampler = threading.Thread(target=sample)
    sampler.start()
    try:
        run = begin(script("pause", {"text": "ok"}, {"sleep": 0.5}), task=task)
        if spawn == "warm":
            environ = Path(f"/proc/{runner_of(run)}/environ").read_bytes()
            assert not [v for v in canaries.values() if v.encode() in environ]
        assert run.wait(20)
    finally:
        over.set()
        sampler.join()
    assert any(b"subagents_nb" in line for line in lines)
    assert not [line for line in lines if task.encode() in line or b"canary" in line]
    for path in run.home.root.rglob("*"):
        if path.is_file():
            data = path.read_bytes()
            assert not [v for v in canaries.values() if v.encode() in data], f"a secret stands in {path}"
            allowed = path.name in ("plan.json", "session.json") and run.id in str(path)
            assert allowed or task.encode() not in data, f"the task stands in {path}"


def test_the_kernels_own_variables_do_not_reach_a_run(spawn: str, shared_home: StoreHome) -> None:
    plan = stored(shared_home, "scripted:hang")
    environ = runner_environ({**os.environ, "JPY_PARENT_PID": "1", "MPLBACKEND": "inline", "MINE": "kept"})
    assert "JPY_PARENT_PID" not in environ and "MPLBACKEND" not in environ and environ["MINE"] == "kept"
    started = start(shared_home, plan)
    until(lambda: os.getsid(started.pid) == started.pid, 5, what="its own session")
    until(lambda: probe(shared_home.run(plan.run_id).lock) == "held", 10)
    until(lambda: os.readlink(f"/proc/{started.pid}/fd/0") == "/dev/null", 5)
    descriptors = set()
    for path in Path(f"/proc/{started.pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            descriptors.add(os.readlink(path))
    assert not [d for d in descriptors if d.endswith(".sock") or "supervisor" in d]
    assert Path(f"/proc/{started.pid}/cwd").resolve() == Path(plan.cwd).resolve()
    started.abandon()


# -- waiting


def test_two_runs_are_awaited_at_once_and_the_loop_goes_on(shared_home: StoreHome) -> None:
    model = script("wait", {"text": "a"}, {"sleep": 0.6}, {"text": "b"})

    async def main() -> tuple[list[Any], int]:
        turns, over = 0, asyncio.Event()

        async def turn() -> None:
            nonlocal turns
            while not over.is_set():
                turns += 1
                await asyncio.sleep(0.01)

        turning = asyncio.create_task(turn())
        one, two = begin(model), begin(model)
        turns = 0
        outputs = await asyncio.wait_for(asyncio.gather(one, two), 20)
        over.set()
        await turning
        return outputs, turns

    outputs, turns = asyncio.run(main())
    assert outputs == ["ab", "ab"]
    assert turns > 15, "the loop stood still"


def test_a_wait_that_is_over_says_so_and_the_run_goes_on(shared_home: StoreHome) -> None:
    run = begin("scripted:hang")
    assert run.wait(0.2) is False
    with pytest.raises(WaitTimedOut, match="goes on") as caught:
        run.result(0.1)
    assert caught.value.run_ids == (run.id,)
    assert alive(runner_of(run))
    run.stop()
    assert run.wait(5) is True
    assert run.wait(0) is True, "a run that has ended has ended, however short the wait"


def test_an_interrupted_wait_ends_no_run(shared_home: StoreHome) -> None:
    run = begin("scripted:hang")
    working(run)
    me = os.getpid()
    timer = threading.Timer(0.3, lambda: os.kill(me, signal.SIGINT))
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever runs in the background ignores it
    try:
        timer.start()
        with pytest.raises(WaitInterrupted, match=f"{run.id}.* goes on"):
            run.wait(20)
        timer.join()
    finally:
        signal.signal(signal.SIGINT, before)
    assert alive(runner_of(run))
    assert run.state is RunState.RUNNING
    run.stop()
    assert run.wait(5)


def test_a_cancelled_await_ends_no_run(shared_home: StoreHome) -> None:
    run = begin("scripted:hang")

    async def main() -> None:
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(asyncio.ensure_future(run._settled()), 0.3)

    asyncio.run(main())
    assert alive(runner_of(run))
    run.stop()
    assert run.wait(5)


def test_thirty_launches_at_once_all_complete(shared_home: StoreHome, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUBAGENTS_NB_SPAWN", "warm")
    begin().wait(60)
    threads, descriptors = threading.active_count(), len(os.listdir("/proc/self/fd"))
    with ThreadPoolExecutor(10) as pool:
        launched = list(pool.map(lambda n: begin(task=f"number {n}", name=f"n{n}"), range(30)))
        assert all(pool.map(lambda run: run.wait(40), launched))
    assert len({run.id for run in launched}) == 30
    assert [run.text for run in launched] == [f"number {n}" for n in range(30)]
    for run in launched:
        assert ended_record(run).state == "observed"
    until(lambda: threading.active_count() <= threads + 1, 5, what="the watcher's rest")
    assert len(os.listdir("/proc/self/fd")) <= descriptors + 3


def test_a_store_that_takes_no_verdict_still_lists_its_runs(store_home: StoreHome) -> None:
    run = begin("scripted:slow")
    busy(run)
    shim = look(run).process.observer_pid  # type: ignore[union-attr]
    assert shim is not None
    os.kill(shim, signal.SIGKILL)
    os.kill(runner_of(run), signal.SIGKILL)
    until(lambda: not processes_of(store_home), 5)
    script = (
        "import resource, subagents_nb\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))\n"
        "assert len(subagents_nb.runs()) == 1\n"
        f"subagents_nb.attach({run.id!r}).status\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))\n"
        "assert str(subagents_nb.runs()[0].state) == 'lost', subagents_nb.runs()\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
