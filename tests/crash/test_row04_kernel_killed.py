"""A real kernel with many live runs is killed or restarted: as many results, and a new kernel has all at once."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from crash.counting import times
from support import alive, until

sys.path.insert(0, str(Path(__file__).parents[1] / "notebook"))

from kernels import Kernel, end_runs

from subagents_nb.domain.runs.states import RunState
from subagents_nb.store import FileRuns, StoreHome

Case = Callable[..., None]
MANY = times(5, 50)
ROUNDS = times(1, 10)
LASTS_S = 8

COUNT = f"MANY = {MANY}\n"
LAUNCH = """
import subagents_nb
made = [subagents_nb.launch(task="x", model=f"scripted:n{n}", name=f"run-{n}") for n in range(MANY)]
"""
ATTACH = """
import time, subagents_nb
began = time.perf_counter()
again = [subagents_nb.attach(f"run-{n}") for n in range(MANY)]
states = [str(run.state) for run in again]
for run in again:
    run.display()
took = time.perf_counter() - began
"""


@pytest.fixture
def kernels(shared_home: StoreHome, tmp_path: Path) -> Iterator[Callable[[], Kernel]]:
    """Start kernels over one store in which sixty runs may be live; its supervisor is that of other tests too."""
    begun: list[Kernel] = []
    folder = tmp_path / "user/.subagents"
    folder.mkdir(parents=True)
    (folder / "settings.toml").write_text("max_live_runs = 60\n")
    scripts = tmp_path / "user/work/.subagents/scripts"
    scripts.mkdir(parents=True)
    for n in range(MANY):
        steps = [{"text": "begun, "}, {"sleep": LASTS_S}, {"text": f"result {n}"}]
        (scripts / f"n{n}.json").write_text(json.dumps(steps))

    def start() -> Kernel:
        begun.append(Kernel(tmp_path, store=shared_home.root, SUBAGENTS_NB_SPAWN="warm"))
        begun[-1].ok("%load_ext subagents_nb")
        return begun[-1]

    yield start
    for kernel in begun:
        kernel.close()
    end_runs(shared_home)


def pid_of(kernel: Kernel) -> int:
    return int(kernel._manager.provisioner.pid)  # type: ignore[union-attr]


def kill(kernel: Kernel) -> None:
    kernel.kill()


def kill_group(kernel: Kernel) -> None:
    """End the kernel as Jupyter does when it is told to by force."""
    os.killpg(os.getpgid(pid_of(kernel)), signal.SIGKILL)
    until(lambda: not alive(pid_of(kernel)), 5)


def restart(kernel: Kernel) -> None:
    """Interrupt a wait first, then restart by force."""
    request = kernel.send("print('waiting')\n%subagent_wait")
    kernel.until(lambda: any("waiting" in m["content"].get("text", "") for m in kernel.log), what="the wait")
    kernel.interrupt()
    assert "Interrupt" in kernel.finish(request, deadline=10).error
    kernel._manager.restart_kernel(now=True)
    kernel._client.wait_for_ready(timeout=60)
    kernel.log.clear()


@pytest.mark.row(4, cases=MANY)
@pytest.mark.timeout(120)
@pytest.mark.parametrize("end", [kill, kill_group, restart], ids=lambda end: end.__name__)
@pytest.mark.parametrize("round_", range(ROUNDS))
def test_many_live_runs_outlive_their_kernel(
    kernels: Callable[[], Kernel], end: Callable[[Kernel], None], round_: int, case: Case
) -> None:
    first = kernels()
    first.ok("import subagents_nb; subagents_nb.launch(task='up', model='scripted:echo').result(60)", deadline=90)
    first.ok(COUNT + LAUNCH, deadline=60)
    ids = first.value("[run.id for run in made]")
    reader = FileRuns(first.home)
    live = [run_id for run_id in ids if not reader.snapshot(run_id).ended]
    end(first)
    second = first if end is restart else kernels()
    if end is restart:
        second.ok("%load_ext subagents_nb")
    times = []
    while len(times) < 3 and min(times, default=9.0) > 3:  # a machine that is busy with other things gets another try
        second.ok(COUNT + ATTACH, deadline=60)
        times.append(second.value("took"))
    print(f"{len(live)} live at the end of the kernel; {MANY} attached to and shown in {times} s")
    assert len(live) == MANY
    assert min(times) < 3
    assert set(second.value("states")) <= {"queued", "running", "complete"}
    outputs = second.run(f"outputs = [run.result(60) for run in again]\nassert len(outputs) == {MANY}", deadline=90)
    assert outputs.ok, outputs.error
    assert second.value("outputs") == [f"begun, result {n}" for n in range(MANY)]
    states = [reader.snapshot(run_id).state for run_id in ids]
    assert states == [RunState.COMPLETE] * MANY
    assert not [run_id for run_id in ids if reader.snapshot(run_id, whole=True).verdict]
    listed = set(second.value("[run.id for run in subagents_nb.runs()]"))
    assert set(ids) <= listed
    case(MANY)
