"""In a pid namespace of its own, of which this is the init process: launches under random kills, and a stranger on each
pid that becomes free.

storm.py STORE COUNT LIVE SEED. The last line that it prints is what was found, as JSON.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from crash.lives import event_lines, settings

from subagents_nb.errors import Unreadable
from subagents_nb.store import FileRuns, StoreHome, open_home
from subagents_nb.store.waiting import line
from subagents_nb.supervisor.protocol.dismissal import dismiss
from subagents_nb.supervisor.warm.reconcile import reconcile

LAST_PID = Path("/proc/sys/kernel/ns_last_pid")
CHILDREN = Path(__file__).parent
EACH = 10  # launches of one launcher
LAUNCH = """
import sys, subagents_nb
for number in range(int(sys.argv[1])):
    task = f"RUN: sleep 0.{number} & setsid sleep 0.3 & echo {number}"
    subagents_nb.launch("worker", task, model=["told:m", "scripted:brief"][number % 2], reuse="never")
"""


class Strangers:
    """Processes of nobody's, each on a pid that was a process of ours a moment ago."""

    def __init__(self) -> None:
        self.alive: set[int] = set()
        self.signalled: list[int] = []
        self._before: set[int] = set()

    def take_the_freed(self, apart: set[int]) -> None:
        now = {int(name) for name in os.listdir("/proc") if name.isdigit()}
        for pid in sorted(self._before - now - apart)[:8]:
            self._take(pid)
        self._before = now - self.alive - apart - {1}

    def _take(self, pid: int) -> None:
        for _ in range(3):
            LAST_PID.write_text(str(pid - 1))
            made = os.fork()
            if made == 0:
                os.setsid()
                os.closerange(0, 256)  # neither a lock nor a pipe of the storm is its own
                os.execv("/bin/sleep", ["sleep", "3600"])
            if made == pid:
                self.alive.add(made)
                return
            os.kill(made, signal.SIGKILL)
            os.waitpid(made, 0)

    def look(self, mine: dict[int, subprocess.Popen[bytes]]) -> None:
        """Reap whoever ended: as the init process we are everybody's last parent."""
        while True:
            with contextlib.suppress(ChildProcessError):
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid:
                    if pid in self.alive:
                        self.alive.discard(pid)
                        self.signalled.append(os.waitstatus_to_exitcode(status))
                    mine.pop(pid, None)
                    continue
            return

    def end(self) -> None:
        for pid in self.alive:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


class Storm:
    def __init__(self, home: StoreHome, count: int, rng: random.Random) -> None:
        self.home, self.count, self.rng = home, count, rng
        self.strangers = Strangers()
        self.launchers: dict[int, subprocess.Popen[bytes]] = {}
        self.struck: Counter[str] = Counter()
        self.files = FileRuns(home)

    def ids(self) -> list[str]:
        return [run_id for run_id in self.files.ids() if self.home.run(run_id).plan.exists()]

    def run(self) -> None:
        strike = math.inf
        while len(self.ids()) < self.count:
            while len(self.launchers) < 4:
                process = subprocess.Popen([sys.executable, "-c", LAUNCH, str(EACH)], stderr=subprocess.DEVNULL)
                self.launchers[process.pid] = process
            self.breathe()
            if math.isinf(strike) and self.ids():  # from the first run on
                strike = time.monotonic()
            if time.monotonic() > strike:
                strike = time.monotonic() + self.rng.uniform(0.1, 0.8)
                self.strike()
        for pid in list(self.launchers):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def breathe(self) -> None:
        self.strangers.look(self.launchers)
        self.strangers.take_the_freed(set(self.launchers))
        time.sleep(0.005)

    def strike(self) -> None:
        words: dict[str, list[int]] = {"supervisor": [], "runner": [], "launcher": list(self.launchers)}
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            with contextlib.suppress(OSError):
                said = path.read_bytes()
                if b"subagents_nb.runner" in said or (path.parent / "comm").read_bytes() == b"subagents-run\n":
                    words["runner"].append(int(path.parent.name))
                elif b"subagents_nb.supervisor.host" in said:
                    words["supervisor"].append(int(path.parent.name))
        what = self.rng.choice(["supervisor", "runner", "runner", "launcher"])
        if words[what]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.rng.choice(words[what]), signal.SIGKILL)
                self.struck[what] += 1

    def settle(self, within_s: float) -> list[str]:
        """Wait for all ends; return who has none."""
        deadline, looked = time.monotonic() + within_s, 0.0
        left = self.ids()
        while left and time.monotonic() < deadline:
            self.breathe()
            if time.monotonic() - looked > 0.5:
                looked = time.monotonic()
                reconcile(self.home, left)
                left = [run_id for run_id in left if not self.files.snapshot(run_id).ended]
        return left

    def found(self, unended: list[str]) -> dict[str, Any]:
        ends: Counter[str] = Counter()
        bad = []
        for run_id in self.ids():
            try:
                snapshot = self.files.snapshot(run_id, whole=True)
            except Unreadable:
                bad.append(run_id)
                continue
            ends[f"{snapshot.state} {snapshot.reason or ''}".strip()] += 1
            begun = sum(one["type"] == "run-started" for one in event_lines(self.home, run_id))
            if (snapshot.result is None) == (snapshot.verdict is None) or begun > 1:
                bad.append(f"{run_id}: {snapshot.state}, begun {begun} times, {snapshot.error}")
        deadline = time.monotonic() + 20
        dismissed = False
        while time.monotonic() < deadline:
            dismissed = dismissed or dismiss(self.home, within_s=0.2)
            self.breathe()
            others = {int(name) for name in os.listdir("/proc") if name.isdigit()} - self.strangers.alive - {1}
            others -= {PEER.pid}
            if not others:
                break
        self.strangers.look(self.launchers)
        return {
            "runs": len(self.ids()),
            "ends": dict(ends),
            "unended": unended,
            "bad": bad,
            "in_line": [turn.run_id for turn in line.standing(self.home)],
            "left": {pid: Path(f"/proc/{pid}/cmdline").read_bytes().decode()[:200] for pid in others},
            "strangers": len(self.strangers.alive) + len(self.strangers.signalled),
            "signalled": self.strangers.signalled,
            "struck": dict(self.struck),
        }


def main(root: str, count: str, live: str, seed: str) -> None:
    global PEER
    work = Path(root).parent / "work"
    (work / ".subagents/scripts").mkdir(parents=True)
    (work / ".subagents/scripts/brief.json").write_text(json.dumps([{"sleep": 0.5}, {"text": "done"}]))
    os.chdir(work)
    home = open_home(Path(root))
    PEER = subprocess.Popen([sys.executable, str(CHILDREN / "chat.py")], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert PEER.stdout is not None
    port = int(PEER.stdout.readline())
    settings(f'[endpoints.told]\nbase_url = "http://127.0.0.1:{port}/v1"\n', live=int(live))
    storm = Storm(home, int(count), random.Random(int(seed)))
    storm.run()
    unended = storm.settle(150)
    print(json.dumps(storm.found(unended)), flush=True)
    storm.strangers.end()
    PEER.kill()


PEER: subprocess.Popen[bytes]

if __name__ == "__main__":
    main(*sys.argv[1:])
