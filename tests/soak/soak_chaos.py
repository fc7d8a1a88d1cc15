"""Hours of chaos over one store: whatever is killed, paused or filled up, every run has one honest end.

Not collected by default; `make soak` runs it. SOAK_SECONDS says how long, SOAK_SEED repeats one.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from crash.lives import settings
from support import CHILDREN, alive, processes_of, script, until

from subagents_nb import Run, launch, runs
from subagents_nb.domain.runs.snapshot import Snapshot
from subagents_nb.domain.runs.states import RunState
from subagents_nb.errors import SubagentsError
from subagents_nb.store import FileRuns, StoreHome, open_home
from subagents_nb.supervisor.protocol.dismissal import dismiss
from subagents_nb.supervisor.warm.reconcile import reconcile

SECONDS = float(os.environ.get("SOAK_SECONDS", "600"))
SEED = int(os.environ.get("SOAK_SEED", str(time.time_ns() % 10**8)))
LIVE, CAP, EVERY_S = 8, 6, 2.0
ROOM_MB = 64


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    """A small file system if one can be made, else a folder that is never filled up."""
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={ROOM_MB}m,mode=700", "tmpfs", str(folder)]
    mounted = os.geteuid() == 0 and subprocess.run(command, capture_output=True, check=False).returncode == 0
    yield folder
    if mounted:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


class Chaos:
    """What is done to the runs, and what was seen of them."""

    def __init__(self, home: StoreHome, place: Path, rng: random.Random) -> None:
        self.home, self.place, self.rng = home, place, rng
        self.models = [
            script("short", {"text": "short "}, {"sleep": 1.0}, {"text": "end"}),
            script(
                "long", *([{"text": "long "}, {"sleep": 0.5}, {"tool": "read", "result": "x"}] * 12), {"text": "end"}
            ),
        ]
        self.launched: dict[str, str] = {}
        self.lines: dict[str, int] = {}
        self.done: Counter[str] = Counter()
        self.kernels: list[subprocess.Popen[str]] = []
        self.paused: list[tuple[float, int]] = []
        self.filled_until = 0.0

    def keep_busy(self) -> None:
        """Launch until eight runs are at work, some in a process that is killed later."""
        for _ in range(LIVE - sum(not self.look(run_id).ended for run_id in self.launched)):
            model = self.rng.choice(self.models)
            with contextlib.suppress(SubagentsError, OSError):  # refused while the disk is full
                self.launched[launch(task="x", model=model).id] = model

    def look(self, run_id: str) -> Snapshot:
        return FileRuns(self.home).snapshot(run_id)

    def remember(self) -> None:
        """Note how many lines each run has written: none of them may vanish."""
        for run_id in self.launched:
            now = sum(1 for _ in Run(self.home, run_id).events())
            assert now >= self.lines.get(run_id, 0), f"{run_id} forgot what it had written"
            self.lines[run_id] = now

    def strike(self) -> None:
        name = self.rng.choice(["runner", "runner", "supervisor", "pause", "stop", "full", "kernel", "sweep", "list"])
        getattr(self, f"_{name}")()
        self.done[name] += 1

    def recover(self) -> None:
        """Undo what has lasted long enough."""
        now = time.monotonic()
        for moment, pid in [one for one in self.paused if one[0] < now]:
            self.paused.remove((moment, pid))
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
        if now > self.filled_until:
            (self.place / "ballast").unlink(missing_ok=True)

    def _live_pid(self) -> int | None:
        live = [run_id for run_id in self.launched if not self.look(run_id).ended]
        status = self.look(self.rng.choice(live)).status if live else None
        runner = status.runner if status is not None else None
        return runner.pid if runner is not None and alive(runner.pid, runner.start_ticks) else None

    def _runner(self) -> None:
        self._signal(self._live_pid(), signal.SIGKILL)

    def _pause(self) -> None:
        pid = self._live_pid()
        self._signal(pid, signal.SIGSTOP)
        if pid is not None:
            self.paused.append((time.monotonic() + self.rng.uniform(0.5, 4.0), pid))

    def _supervisor(self) -> None:
        for run_id in list(self.launched)[-LIVE:]:
            process = FileRuns(self.home).snapshot(run_id, whole=True).process
            if process is not None and process.state == "pending" and alive(process.observer_pid):
                self._signal(process.observer_pid, signal.SIGKILL)
                return

    def _stop(self) -> None:
        live = [run_id for run_id in self.launched if not self.look(run_id).ended]
        with contextlib.suppress(SubagentsError, OSError):
            if live:
                Run(self.home, self.rng.choice(live)).stop("chaos")

    def _full(self) -> None:
        if os.path.ismount(self.place):
            with (self.place / "ballast").open("wb", buffering=0) as file, contextlib.suppress(OSError):
                while True:
                    file.write(b"x" * 65536)
            self.filled_until = time.monotonic() + self.rng.uniform(0.5, 4.0)

    def _kernel(self) -> None:
        """Let another process launch, and kill one that did so before."""
        if self.kernels:
            old = self.kernels.pop()
            old.kill()
            ids = old.communicate()[0].split()
            self.launched |= {run_id: "echo" for run_id in ids if run_id in FileRuns(self.home).ids()}
        point = self.rng.choice(["proceed", "random"])
        command = [sys.executable, str(CHILDREN / "launcher.py"), point, "scripted:echo", "5"]
        self.kernels.append(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True))

    def _sweep(self) -> None:
        reconcile(self.home, self.launched)

    def _list(self) -> None:
        assert set(self.launched) <= {run.id for run in runs()}

    @staticmethod
    def _signal(pid: int | None, number: int) -> None:
        if pid is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    def end(self) -> None:
        self.filled_until = 0.0
        self.paused = [(0.0, pid) for _, pid in self.paused]
        self.recover()
        while self.kernels:
            self._kernel()
            self.kernels.pop().communicate()


@pytest.mark.row(32, at_least=int(SECONDS / 4))
@pytest.mark.timeout(SECONDS + 300)
def test_chaos(store_home: StoreHome, place: Path, monkeypatch: pytest.MonkeyPatch, case: Callable[..., None]) -> None:
    print("seed", SEED)
    home = open_home(place / "store")
    monkeypatch.setenv("SUBAGENTS_NB_HOME", str(home.root))
    monkeypatch.setenv("SUBAGENTS_NB_SPAWN", "auto")
    settings(live=CAP)
    chaos = Chaos(home, place, random.Random(SEED))
    ends, strikes = time.monotonic() + SECONDS, 0.0
    try:
        while time.monotonic() < ends:
            chaos.keep_busy()
            chaos.recover()
            if time.monotonic() > strikes:
                strikes = time.monotonic() + chaos.rng.uniform(0, EVERY_S)
                chaos.strike()
                case()
                chaos.remember()
            threading.Event().wait(0.1)
    finally:
        chaos.end()
        settle(home, chaos)
    check(home, chaos)


def settle(home: StoreHome, chaos: Chaos) -> None:
    def over() -> bool:
        reconcile(home, chaos.launched)
        return all(chaos.look(run_id).ended for run_id in chaos.launched)

    until(over, 120, what="the end of all runs", pause=0.2)
    until(lambda: not processes_of(home), 20, what="the end of the last process", pause=0.2)
    assert dismiss(home), "a supervisor would not leave"


def check(home: StoreHome, chaos: Chaos) -> None:
    ends: Counter[str] = Counter()
    for run_id, model in chaos.launched.items():
        snapshot = FileRuns(home).snapshot(run_id, whole=True)
        ends[str(snapshot.state)] += 1
        if snapshot.plan is None and model == "echo":
            assert snapshot.damage, run_id
            continue  # its launcher was killed while it made the directory: a row that says so
        assert [one for one in snapshot.damage if one.kind != "missing"] == [], run_id
        assert (snapshot.result is None) != (snapshot.verdict is None), f"{run_id}: no last word, or two"
        assert snapshot.state in (RunState.COMPLETE, RunState.LOST, RunState.FAILED, RunState.STOPPED), run_id
        if snapshot.state is RunState.COMPLETE and model != "echo":
            assert snapshot.text.endswith("end") and snapshot.text.startswith(("short ", "long ")), run_id
        numbers = [line["seq"] for line in Run(home, run_id).events()]
        assert numbers == sorted(set(numbers)), f"{run_id}: out of order"
        assert len(numbers) >= chaos.lines.get(run_id, 0), f"{run_id} lost what it had written"
    print(f"{len(chaos.launched)} runs: {dict(ends)}; struck {dict(chaos.done)}")
    assert ends["complete"] and ends["lost"]
