"""The warm supervisor as a process: rude peers, rivals, idleness, a long path, and its own death."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from support import CHILDREN, alive, ask_host, until

import subagents_nb
from subagents_nb import Run, launch, runs
from subagents_nb.domain.runs.control import ControlRequest
from subagents_nb.domain.runs.exit_report import ProcessRecord
from subagents_nb.domain.runs.states import RunState
from subagents_nb.errors import LaunchError, LaunchRefused
from subagents_nb.store import FileRuns, RunWriter, StoreHome, open_home
from subagents_nb.store.clock import utc_now
from subagents_nb.store.files.lock import probe
from subagents_nb.store.waiting.line import standing
from subagents_nb.supervisor.processes.identity import is_zombie
from subagents_nb.supervisor.protocol import wire
from subagents_nb.supervisor.protocol.reaching import connect_queue, host_key

pytestmark = pytest.mark.timeout(60)
KEY = "test-cold"  # a cold one imports no model stack and is up at once


def start_host(home: StoreHome, key: str = KEY, **variables: str) -> Path:
    command = [sys.executable, "-P", "-m", "subagents_nb.supervisor.host", str(home.root), key, "cold"]
    log = (home.supervisor / "test.log").open("ab")
    with log:
        subprocess.run(command, env={**os.environ, **variables}, stdout=log, stderr=log, timeout=30, check=True)
    return home.supervisor / f"{key}.sock"


@pytest.fixture
def host(store_home: StoreHome) -> Iterator[Path]:
    path = start_host(store_home)
    until(lambda: ask_host(path, {"op": "ping"}), 20, what="the supervisor")
    yield path
    ask_host(path, {"op": "leave"})


def pid_of(path: Path) -> int:
    answer = ask_host(path, {"op": "ping"})
    assert answer is not None
    return int(str(answer["pid"]))


def raw(path: Path) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(20)
    with wire.SocketName(path) as address:
        connection.connect(address)
    return connection


GARBAGE = [
    b"\n", b"{\n", b"[]\n", b"null\n", b"\xff\xfe\n", b'{"op": "dance"}\n', b'{"op": 1}\n', b'{"op": ["launch"]}\n',
    b'{"op": "launch"}\n', b'{"op": "launch", "run_id": "../x", "token": "t", "cwd": "/", "environ": {}}\n',
    b'{"op": "launch", "run_id": "r-1kge3h9010000000001", "token": "t", "cwd": "/", "environ": {}}\n',
    b'{"op": "launch", "run_id": "r-1kge3h9010000000001", "token": "t", "cwd": "/", "environ": 3}\n',
    b'{"op": "queue"}\n', b'{"a":' * 50_000 + b"\n",
]  # fmt: skip


def test_garbage_is_answered_with_an_error_and_the_supervisor_lives_on(host: Path, store_home: StoreHome) -> None:
    before = pid_of(host)
    for line in GARBAGE:
        with raw(host) as connection:
            connection.sendall(line)
            with connection.makefile("rb") as lines:
                answer = json.loads(lines.readline())
        assert answer["ok"] is False and answer["error"], line[:60]
    for rude in (b"", b'{"op": "pi', b"x" * (wire.MAX_MESSAGE + 10)):
        with raw(host) as connection, pytest.MonkeyPatch.context():
            try:
                connection.sendall(rude)
            except (BrokenPipeError, ConnectionResetError):
                continue
    assert pid_of(host) == before
    assert list(store_home.runs.iterdir()) == []
    until(lambda: not zombies_of(before), 10, what="the reaping of what was begun in vain")


def zombies_of(pid: int) -> list[str]:
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                fields = Path(f"/proc/{name}/stat").read_bytes().rpartition(b")")[2].split()
            except OSError:
                continue
            if fields[0] == b"Z" and int(fields[1]) == pid:
                found.append(name)
    return found


def test_a_peer_that_says_nothing_is_dropped_and_keeps_nobody_waiting(host: Path) -> None:
    with raw(host) as slow:
        slow.sendall(b'{"op": "pi')
        assert pid_of(host)
        assert slow.recv(1) == b"", "it was not let go"


def test_a_second_supervisor_of_the_same_kind_leaves_at_once(host: Path, store_home: StoreHome) -> None:
    first = pid_of(host)
    start_host(store_home)
    until(lambda: len(hosts_of(store_home)) == 1, 15, what="the second's leave")
    assert pid_of(host) == first


def hosts_of(home: StoreHome) -> list[int]:
    wanted, found = str(home.root).encode(), []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().split(b"\0")
        except OSError:
            continue
        if b"subagents_nb.supervisor.host" in words and wanted in words and alive(int(path.parent.name)):
            found.append(int(path.parent.name))
    return found


def test_an_idle_supervisor_leaves_and_takes_its_socket_along(store_home: StoreHome) -> None:
    path = start_host(store_home, SUBAGENTS_NB_SUPERVISOR_IDLE_S="0.2")
    until(lambda: probe(store_home.supervisor / f"{KEY}.lock") == "held", 20)
    until(lambda: not hosts_of(store_home), 15, what="its leave")
    assert not path.exists()
    until(lambda: probe(store_home.supervisor / f"{KEY}.lock") == "free", 5)


def test_a_supervisor_makes_room_when_other_code_is_installed(store_home: StoreHome, tmp_path: Path) -> None:
    package = tmp_path / "subagents_nb"
    shutil.copytree(Path(subagents_nb.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    path = start_host(store_home, PYTHONPATH=str(tmp_path))
    until(lambda: ask_host(path, {"op": "ping"}), 20, what="the supervisor")
    (package / "catalog").rename(package / "catalogue")
    until(lambda: ask_host(path, {"op": "ping"}) is None, 20, what="its leave")
    until(lambda: not hosts_of(store_home), 10)
    assert not path.exists() and not (store_home.supervisor / "test.log").read_bytes()


def test_a_supervisor_can_live_at_the_end_of_a_long_path(
    store_home: StoreHome, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deep = open_home(tmp_path / ("d" * 90) / ("e" * 90))
    monkeypatch.setenv("SUBAGENTS_NB_HOME", str(deep.root))
    path = start_host(deep)
    until(lambda: ask_host(path, {"op": "ping"}), 20)
    pid = pid_of(path)
    ask_host(path, {"op": "leave"})
    until(lambda: not alive(pid), 10)


def test_a_supervisor_killed_at_work_harms_no_run_and_is_followed_by_another(
    store_home: StoreHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SUBAGENTS_NB_SPAWN", "warm")
    script = Path(".subagents/scripts/wait.json")
    script.parent.mkdir(parents=True)
    script.write_text(json.dumps([{"text": "a"}, {"sleep": 1.0}, {"text": "b"}]))
    dies = launch("scout", "x", model="scripted:slow")
    until(lambda: FileRuns(store_home).snapshot(dies.id).tail, 15)
    lives = launch("scout", "x", model="scripted:wait")  # last: it is at work for a second only
    until(lambda: FileRuns(store_home).snapshot(lives.id).tail, 15)
    process = FileRuns(store_home).snapshot(lives.id, whole=True).process
    assert process is not None and process.observer_pid is not None
    os.kill(process.observer_pid, signal.SIGKILL)
    until(lambda: not alive(process.observer_pid), 5)
    status = FileRuns(store_home).snapshot(dies.id).status
    assert status is not None and status.runner is not None
    os.kill(status.runner.pid, signal.SIGKILL)
    assert lives.wait(15) and lives.output == "ab"
    assert dies.wait(15) and dies.state is RunState.LOST
    again = launch("scout", "again", model="scripted:echo")
    assert again.result(60) == "again"
    after = FileRuns(store_home).snapshot(again.id, whole=True).process
    assert after is not None and after.spawn == "warm" and after.observer_pid != process.observer_pid
    for run, why in ((lives, "observer-unavailable"), (dies, "stale-repair")):
        proof = until(lambda run=run: proof_of(run), 15, what="the word of the next supervisor")
        assert (proof.state, proof.reason) == ("unknown", why)
    assert {run.id: str(run.state) for run in runs()} == {
        lives.id: "complete",
        dies.id: "lost",
        again.id: "complete",
    }
    assert isinstance(lives, Run)


def proof_of(run: Run) -> ProcessRecord | None:
    process = FileRuns(run.home).snapshot(run.id, whole=True).process
    return process if process is not None and process.state != "pending" else None


def test_a_watcher_without_descriptors_records_the_end_when_it_has_some_again(spawn: str) -> None:
    run = launch("scout", "x", model="scripted:slow")
    until(lambda: FileRuns(run.home).snapshot(run.id).tail, 20, what="the first words")
    process = FileRuns(run.home).snapshot(run.id, whole=True).process
    assert process is not None and process.observer_pid is not None and process.pid is not None
    few, limit = 3, resource.prlimit(process.observer_pid, resource.RLIMIT_NOFILE)
    resource.prlimit(process.observer_pid, resource.RLIMIT_NOFILE, (few, limit[1]))
    try:
        os.kill(process.pid, signal.SIGKILL)
        until(lambda: is_zombie(process.pid or 0), 10, what="the end of the runner")
        tried = time.monotonic() + 1.5
        until(lambda: time.monotonic() > tried or not is_zombie(process.pid or 0), 5)
        assert is_zombie(process.pid), "it was reaped before its end was on disk"
    finally:
        resource.prlimit(process.observer_pid, resource.RLIMIT_NOFILE, limit)
    proof = until(lambda: proof_of(run), 20, what="the proof")
    assert (proof.state, proof.signal, proof.group_empty) == ("observed", 9, True)
    assert run.wait(10) and run.state is RunState.LOST


def test_one_supervisor_comes_up_for_launches_at_the_same_moment(
    store_home: StoreHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SUBAGENTS_NB_SPAWN", "warm")
    code = "import subagents_nb; print(subagents_nb.launch('scout', 'x', model='scripted:echo').result(50))"
    command = [sys.executable, "-c", code]
    started = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    assert [process.communicate(timeout=55)[0].strip() for process in started] == ["x"] * 3
    until(lambda: len(hosts_of(store_home)) == 1, 10, what="the leave of those that came too late")


def test_a_supervisor_that_goes_away_before_it_answers_costs_nothing_but_a_cold_start(
    store_home: StoreHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SUBAGENTS_NB_SPAWN", "auto")
    path = store_home.supervisor / f"{host_key('warm')}.sock"
    with socket.socket(socket.AF_UNIX) as listener:
        with wire.SocketName(path) as address:
            listener.bind(address)
        listener.listen()

        def hang_up() -> None:
            listener.accept()[0].close()
            path.unlink()

        rude = threading.Thread(target=hang_up)
        rude.start()
        run = launch(task="still here", model="scripted:echo")
        rude.join(10)
    assert run.result(20) == "still here"
    assert FileRuns(store_home).snapshot(run.id, whole=True).process.spawn == "cold"  # type: ignore[union-attr]


def test_a_run_that_can_be_interrupted_is_gone_on_from_under_a_lease(spawn: str) -> None:
    first = launch(task="tick", model="scripted:slow")
    until(lambda: first.status.tail, 20, what="the first words")
    first.interrupt("lunch")
    assert first.wait(10)
    assert first.state is RunState.PAUSED
    second = first.resume("go on")
    until(lambda: second.status.tail, 20, what="words of the run that goes on")
    with pytest.raises(LaunchError, match="another run"):
        first.resume("me too")
    second.stop()
    assert second.wait(10)
    with pytest.raises(LaunchRefused, match="was stopped"):
        second.resume("once more")
    third = first.resume("now it is free")  # the lease went with the process that held it
    assert third.plan.resumes is not None
    assert third.plan.resumes.run_id == first.id
    third.stop()
    assert third.wait(10)


def test_a_resume_that_has_no_process_leaves_nothing_and_one_in_a_copied_store_is_at_home(
    store_home: StoreHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = launch(task="said", model="scripted:echo")
    assert first.wait(20)
    with monkeypatch.context() as wrong:
        wrong.setenv("SUBAGENTS_NB_SPAWN", "nonsense")
        with pytest.raises(LaunchError, match="nonsense"):
            first.resume("go on")
    assert [run.id for run in runs()] == [first.id], "nobody would ever judge it"
    shutil.rmtree(store_home.supervisor)  # it was no run, and so was not copied
    assert first.resume("go on").wait(20)
    assert store_home.supervisor.is_dir()


def test_a_resume_returns_at_once_though_its_runner_is_deaf(
    store_home: StoreHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = launch(task="tick", model="scripted:slow")
    until(lambda: first.status.tail, 20, what="the first words")
    first.interrupt("lunch")
    assert first.wait(10)
    monkeypatch.setenv("PYTHONPATH", str(CHILDREN / "standin"))
    monkeypatch.setenv("BAD_RUNNER", "silent")
    began = time.monotonic()
    second = first.resume("go on")
    assert time.monotonic() - began < 4, "the kernel waited for it"
    assert second.state is RunState.QUEUED, "it is listed, and judged when more is known"
    second.stop()
    assert second.wait(20)


def test_a_run_beyond_the_limit_waits_and_begins_with_no_kernel_alive(shared_home: StoreHome, spawn: str) -> None:
    settings = Path.home() / ".subagents"
    settings.mkdir()
    (settings / "settings.toml").write_text("max_live_runs = 1\n")
    first = launch(task="tick", model="scripted:slow")
    script = "import subagents_nb; print(subagents_nb.launch(task='my turn', model='scripted:echo').id)"
    waiting = Run(shared_home, subprocess.check_output([sys.executable, "-c", script], text=True).strip())
    dropped = launch(task="not me", model="scripted:echo")
    assert waiting.state is RunState.QUEUED
    with pytest.raises(LaunchRefused, match="max_live_runs"):
        launch(task="impatient", model="scripted:echo", queue=False)
    dropped.stop("changed my mind")
    assert dropped.wait(10)
    assert (dropped.state, dropped.error) == (RunState.STOPPED, "Stopped before it began: changed my mind.")
    first.stop()
    assert waiting.result(20) == "my turn"


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGSTOP], ids=["killed", "asked", "frozen"])
def test_the_line_outlives_the_supervisor_that_keeps_it(store_home: StoreHome, how: int) -> None:
    settings = Path.home() / ".subagents"
    settings.mkdir()
    (settings / "settings.toml").write_text("max_live_runs = 1\n")
    first = launch(task="tick", model="scripted:slow")
    waiting = [launch(task=f"turn {number}", model="scripted:echo") for number in range(3)]
    keeper = pid_of(store_home.supervisor / f"{host_key('cold')}.sock")
    os.kill(keeper, how)
    if how != signal.SIGSTOP:
        until(lambda: not alive(keeper), 10)
    assert all(run.state is RunState.QUEUED for run in waiting)
    first.stop()
    try:
        assert [run.result(60) for run in waiting] == ["turn 0", "turn 1", "turn 2"]
        ends = [run.status.result.ended_at for run in waiting if run.status.result is not None]
        assert ends == sorted(ends), "in order"
        until(lambda: not standing(store_home), 10)
    finally:
        if how == signal.SIGSTOP:
            os.kill(keeper, signal.SIGCONT)


def test_a_runner_that_ends_hands_the_line_on_though_nobody_looks(store_home: StoreHome) -> None:
    settings = Path.home() / ".subagents"
    settings.mkdir()
    (settings / "settings.toml").write_text("max_live_runs = 1\n")
    first = launch(task="tick", model="scripted:slow")
    waiting = launch(task="my turn", model="scripted:echo")
    os.kill(pid_of(store_home.supervisor / f"{host_key('cold')}.sock"), signal.SIGKILL)
    RunWriter(store_home.run(first.id)).mail.request(
        ControlRequest(run_id=first.id, request_id="a", verb="stop", asked_at=utc_now())
    )
    until(store_home.run(waiting.id).result.exists, 60, what="the turn of the run that nobody looks at")


def test_a_launch_beside_a_frozen_supervisor_is_a_cold_one(
    store_home: StoreHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SUBAGENTS_NB_SPAWN", "warm")
    assert launch(task="one", model="scripted:echo").result(60) == "one"
    keeper = pid_of(store_home.supervisor / f"{host_key('warm')}.sock")
    os.kill(keeper, signal.SIGSTOP)
    try:
        with pytest.raises(LaunchError, match=f"kill -CONT {keeper}"):
            launch(task="only warm", model="scripted:echo")
        monkeypatch.setenv("SUBAGENTS_NB_SPAWN", "auto")
        began = time.monotonic()
        assert launch(task="two", model="scripted:echo").result(60) == "two"
        assert time.monotonic() - began < 10, "it waited for who can't answer"
    finally:
        os.kill(keeper, signal.SIGCONT)


WARMING = """
import os, sys, threading
from pathlib import Path
from support import ask_host, make_plan
from subagents_nb.store import open_home
from subagents_nb.supervisor.host import Host
from subagents_nb.supervisor.protocol.wire import queue_path

home = open_home(Path(sys.argv[1]))
host, answers = Host(home, "k-warm"), []
birth = {"run_id": make_plan().run_id, "token": "t", "cwd": "/", "environ": {}}

def talk():
    for message in ({"op": "ping"}, {"op": "queue", **birth, "limit": 1}, {"op": "launch", **birth}, {"op": "dance"}):
        answers.append(ask_host(queue_path(home.supervisor, "k-warm"), message))

def warm_up():
    client = threading.Thread(target=talk)
    client.start()
    while client.is_alive():
        pass

host.prepare(warm_up)
assert [answer["ok"] for answer in answers] == [True, True, False, False], answers
assert (answers[0]["pid"], answers[1]["waiting"]) == (os.getpid(), 1), answers
assert "not ready" in answers[2]["error"] and not host.socket_path.exists()
"""


def test_a_supervisor_takes_runs_into_its_queue_while_it_warms_up(store_home: StoreHome) -> None:
    environ = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    subprocess.run([sys.executable, "-c", WARMING, str(store_home.root)], check=True, env=environ, timeout=60)


FURTHER = """
import sys, threading
from pathlib import Path
from support import ask_host
from subagents_nb.store import open_home
from subagents_nb.supervisor.host import Host

host = Host(open_home(Path(sys.argv[1])), "k-warm")
client = threading.Thread(target=lambda: ask_host(host.socket_path, {"op": "ping"}))
leaver = threading.Thread(target=lambda: ask_host(host.socket_path, {"op": "leave"}))

def further():
    client.start()
    while client.is_alive():
        yield
    leaver.start()
    raise RuntimeError("the machine was full")

host.prepare(lambda: None, further, quiet_s=0.0)
host.serve()
print("it left when it was asked to")
"""


def test_what_few_runs_need_is_made_ready_between_requests_and_may_fail(store_home: StoreHome) -> None:
    environ = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    command = [sys.executable, "-c", FURTHER, str(store_home.root)]
    done = subprocess.run(command, env=environ, timeout=60, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "it left when it was asked to\n"), done.stderr
    assert "RuntimeError: the machine was full" in done.stderr


def test_the_first_run_that_waits_is_queued_before_the_supervisor_can_start_any(
    store_home: StoreHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SUBAGENTS_NB_SPAWN", "auto")
    settings = Path.home() / ".subagents"
    settings.mkdir()
    (settings / "settings.toml").write_text("max_live_runs = 1\n")
    first = launch(task="tick", model="scripted:slow")
    waiting = launch(task="my turn", model="scripted:echo")
    assert not (store_home.supervisor / f"{host_key('warm')}.sock").exists(), "it waited for the model stack"
    assert waiting.status.waits_for_slot
    first.stop()
    assert waiting.result(60) == "my turn"


def test_a_launcher_starts_one_supervisor_and_no_rival_waits_to_take_over(store_home: StoreHome) -> None:
    connect_queue(store_home).close()
    pid = pid_of(store_home.supervisor / f"{host_key('cold')}.sock")
    up = set()
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            words = path.read_bytes().split(b"\0")
            if b"subagents_nb.supervisor.host" in words and os.fsencode(store_home.root) in words:
                up.add(int(path.parent.name))
    assert up == {pid}
