"""Runs that wait for a place, with a real supervisor: their turn comes, in order, whatever the system lacks."""

from __future__ import annotations

import json
import os
import resource
import socket
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from support import ask_host, make_plan, make_recovery, run_id, until

from subagents_nb import Run, chain, launch, step
from subagents_nb.domain.runs.states import RunState
from subagents_nb.errors import LaunchRefused, RequestError
from subagents_nb.store import FileRuns, StoreHome, create_run
from subagents_nb.store.runs.writer import discard_run
from subagents_nb.store.waiting import line
from subagents_nb.store.waiting.capacity import slots_taken
from subagents_nb.supervisor.protocol import wire
from subagents_nb.supervisor.protocol.reaching import connect_queue, host_key

pytestmark = [pytest.mark.timeout(300), pytest.mark.skipif(sys.platform != "linux", reason="limits of another process")]


def live_runs(limit: int) -> None:
    settings = Path.home() / ".subagents"
    settings.mkdir()
    (settings / "settings.toml").write_text(f"max_live_runs = {limit}\n")


def keeper_of(home: StoreHome, mode: str) -> psutil.Process:
    answer = ask_host(wire.queue_path(home.supervisor, host_key(mode)), {"op": "ping"})  # type: ignore[arg-type]
    assert answer is not None
    return psutil.Process(int(str(answer["pid"])))


def answers(run: Run) -> dict[str, str]:
    folder = FileRuns(run.home).home.run(run.id).answers
    found = [json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))]
    return {answer["request_id"]: answer["outcome"] for answer in found}


def without_descriptors(keeper: psutil.Process, spare: int) -> tuple[int, int]:
    """Leave a process so many free descriptors, and return the limits that it had."""
    taken = {int(name) for name in os.listdir(f"/proc/{keeper.pid}/fd")}
    free = [number for number in range(max(taken) + spare + 2) if number not in taken]
    before = resource.prlimit(keeper.pid, resource.RLIMIT_NOFILE)
    resource.prlimit(keeper.pid, resource.RLIMIT_NOFILE, (free[spare], before[1]))
    return before


def test_a_supervisor_out_of_descriptors_for_a_while_drops_no_run_that_waits(
    store_home: StoreHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SUBAGENTS_NB_SPAWN", "warm")
    live_runs(1)
    for spare in (0, 1, 3, 8, 20):
        first = launch(task="tick", model="scripted:slow")
        waiting = launch(task=f"with {spare}", model="scripted:echo")
        assert waiting.status.waits_for_slot
        keeper = keeper_of(store_home, "warm")
        before = without_descriptors(keeper, spare)
        rounds = keeper.num_ctx_switches().voluntary
        if spare % 2:  # its turn comes in the middle of it, too
            first.stop()
            assert first.wait(60)
        until(lambda: keeper.num_ctx_switches().voluntary > rounds + 5, 60, what="rounds of the supervisor")  # noqa: B023
        resource.prlimit(keeper.pid, resource.RLIMIT_NOFILE, before)
        if not first.status.ended:
            first.stop()
        until(lambda: waiting.status.ended, 60, what=f"the turn of the run with {spare} descriptors")  # noqa: B023
        assert waiting.output == f"with {spare}"


def test_a_supervisor_out_of_descriptors_rests_however_many_knock(store_home: StoreHome) -> None:
    with socket.socket(socket.AF_UNIX) as one, socket.socket(socket.AF_UNIX) as two:
        connect_queue(store_home).close()
        keeper = keeper_of(store_home, "cold")
        before = without_descriptors(keeper, 0)
        for knocking in (one, two):
            with wire.SocketName(wire.queue_path(store_home.supervisor, host_key("cold"))) as address:
                knocking.connect(address)
            knocking.sendall(b'{"op": "ping"}\n')
        used, began = sum(keeper.cpu_times()[:2]), time.monotonic()
        until(lambda: time.monotonic() - began > 1.0)
        assert sum(keeper.cpu_times()[:2]) - used < 0.2, "it turns in a circle"
        resource.prlimit(keeper.pid, resource.RLIMIT_NOFILE, before)
        for knocking in (one, two):
            knocking.settimeout(20)
            assert json.loads(knocking.recv(4096))["ok"], "who knocked in vain is heard afterwards"


def test_launches_go_behind_the_runs_that_wait(shared_home: StoreHome, spawn: str) -> None:
    live_runs(1)
    live = launch(task="tick", model="scripted:slow")
    waiting = [launch(task=f"turn {number}", model="scripted:slow") for number in range(3)]
    for following in waiting:
        live.stop()
        until(lambda: slots_taken(shared_home) == 0 or following.state is not RunState.QUEUED, 60)  # noqa: B023
        with pytest.raises(LaunchRefused, match=r"waited for a place|max_live_runs"):
            launch(task="past them", model="scripted:echo", queue=False)
        until(lambda: following.status.status.runner, 60, what="its turn")  # type: ignore[union-attr]  # noqa: B023
        live = following
    live.stop()
    assert all(run.wait(60) for run in waiting)


def test_a_launch_beside_free_places_waits_its_turn_or_is_refused_in_plain_words(
    shared_home: StoreHome, spawn: str
) -> None:
    line.enter(shared_home, run_id(1), 16)  # with some other supervisor a run waits, and could begin
    with pytest.raises(LaunchRefused, match="other runs have waited for a place for longer, and --no-queue forbids"):
        launch(task="me first", model="scripted:echo", queue=False)
    assert launch(task="in turn", model="scripted:echo").result(60) == "in turn"
    until(lambda: not line.standing(shared_home), 20, what="who is gone to leave the line")
    assert launch(task="at once", model="scripted:echo", queue=False).result(60) == "at once"


def test_who_may_not_wait_hears_which_runs_hold_a_place_for_an_answer(shared_home: StoreHome) -> None:
    live_runs(1)
    asking = launch(task="x", model="scripted:ask", name="asks-first")
    until(lambda: asking.questions, 20, what="the question")
    with pytest.raises(LaunchRefused, match="1 run waits for your answer: asks-first; see %subagent_status --asking"):
        launch(task="at once", model="scripted:echo", queue=False)
    asking.stop()


def test_what_is_asked_of_a_run_that_waits_is_answered_and_carried_out_when_it_begins(
    shared_home: StoreHome, spawn: str
) -> None:
    live_runs(1)
    live = launch(task="tick", model="scripted:slow")
    single = launch(task="look at April", model="scripted:echo", name="single")
    flow = launch(chain(step("scout", "x", model="scripted:echo"), step("scout", "y", model="scripted:echo")))
    paused = launch(task="never mind", model="scripted:echo", name="paused")
    drained = launch(task="never mind", model="scripted:echo")
    began = time.monotonic()
    for answer in (
        single.retune(timeout="1h"),
        single.steer("and at May"),
        flow.append(step("scout", "z", model="scripted:echo")),
    ):
        assert answer is not None and answer.outcome == "queued" and "waits for a free place" in answer.text
    with pytest.raises(RequestError, match="no tool call is open, for the run has not begun"):
        single.cancel_tool("c")
    flow.stop(step=1)
    answer = drained.drain()
    assert answer is not None and answer.outcome == "accepted"
    assert drained.status.ended_in_queue and drained.status.reason == "drained"
    paused.interrupt("lunch")
    assert paused.wait(10)
    assert (paused.state, paused.status.reason, paused.status.ended_in_queue) == (RunState.STOPPED, "interrupted", True)
    assert (paused.error or "").startswith("Interrupted before it began: lunch. It has no session to resume.")
    with pytest.raises(LaunchRefused, match="launch anew"):
        paused.resume("go on")
    assert (single.state, flow.state) == (RunState.QUEUED, RunState.QUEUED)
    assert time.monotonic() - began < 40, "nobody waits for the end of a queue"
    live.stop()
    assert single.result(60) == "and at May"
    assert [change.changes for change in single.status.retunes] == [{"timeout_s": 3600.0}]
    assert flow.wait(60)
    assert [str(one.state) for one in flow.status.result.steps] == ["complete", "stopped", "skipped"]  # type: ignore[union-attr]
    assert {*answers(single).values(), *answers(flow).values()} == {"accepted", "delivered", "refused"}


FAILING = """
import sys
from pathlib import Path
from subagents_nb.store import open_home
from subagents_nb.supervisor.host import Host

def warm_up():
    until = Path(sys.argv[2])
    while not until.exists():
        pass
    raise RuntimeError("the machine was too busy")

host = Host(open_home(Path(sys.argv[1])), sys.argv[3])
host.prepare(warm_up)
host.serve()
"""


def test_a_warm_up_that_fails_costs_the_runs_that_wait_nothing(
    store_home: StoreHome, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SUBAGENTS_NB_SPAWN", "auto")
    live_runs(1)
    go = tmp_path / "go"
    command = [sys.executable, "-c", FAILING, str(store_home.root), str(go), host_key("warm")]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as host:
        until(wire.queue_path(store_home.supervisor, host_key("warm")).exists, 30, what="the queue")
        line.enter(store_home, run_id(1), 1)  # so that the others wait behind it
        before = create_run(store_home, make_plan(), make_recovery(), launching=True)
        waiting = launch(task="all the same", model="scripted:echo")
        asked = launch(task="not me", model="scripted:echo")
        discard_run(before.paths)
        asked.stop()
        assert asked.wait(10), "while it warms up it hears what is asked"
        go.touch()
        assert waiting.result(60) == "all the same"
        assert waiting.status.state is RunState.COMPLETE
        assert host.stderr is not None and "the machine was too busy" in host.stderr.read()
        assert host.wait(60) == 0, "it makes room for one that is warm"


def test_a_run_id_that_is_none_never_gets_into_the_queue(store_home: StoreHome) -> None:
    connect_queue(store_home).close()
    path = wire.queue_path(store_home.supervisor, host_key("cold"))
    request = {"op": "queue", "run_id": "../x", "token": "t", "cwd": "/", "environ": {}, "limit": 1}
    answer = ask_host(path, request)
    assert answer is not None and not answer["ok"] and "no run id" in str(answer["error"])
    assert (ask_host(path, {"op": "ping"}) or {})["waiting"] == 0
