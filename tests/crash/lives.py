"""A whole run, from its directory to its end, in a forked child of the test: its disk is the test's to spoil."""

from __future__ import annotations

import json
import os
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from support import make_recovery, make_step

from subagents_nb.domain.plans.plan import LaunchPlan
from subagents_nb.domain.values.ids import make_run_id
from subagents_nb.runner.main import run
from subagents_nb.store import RunWriter, StoreHome, create_run
from subagents_nb.store.files.disk import DISK, Disk
from subagents_nb.store.runs.first_status import first_status
from subagents_nb.supervisor.ends.termination import record_pending
from subagents_nb.supervisor.processes.identity import identify, start_ticks

TOKEN = "f" * 32
LONG_AGO = "2026-01-01T00:00:00.000Z"  # no launcher can be at work on such a plan any more


def fork(work: Callable[[], int]) -> int:
    """Run `work` in a forked child and return its pid; the child never comes back into the test."""
    sys.stdout.flush()
    sys.stderr.flush()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # newer Pythons warn when the test has threads
        pid = os.fork()
    if pid == 0:
        code = 99
        try:
            code = work()
        except BaseException:  # noqa: BLE001 - shown, and told by the exit code
            import traceback

            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(code)
    return pid


def exit_code(pid: int) -> int:
    """Wait for a forked child and return how it ended."""
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def new_id(number: int) -> str:
    return make_run_id(1_770_000_000_000 + number, int.from_bytes(os.urandom(6)))


def a_plan(number: int, *, model: str = "scripted:echo", task: str = "count the rows", **more: Any) -> LaunchPlan:
    """Return a plan of its own id, made long ago."""
    fields: dict[str, Any] = {
        "run_id": new_id(number),
        "name": f"scout-{number}",
        "digest": "0" * 64,
        "created_at": LONG_AGO,
        "token": TOKEN,
        "cwd": os.getcwd(),
        "steps": (make_step(task, model),),
        "timeout_s": 60.0,
    }
    return LaunchPlan.model_validate(fields | more)


def made(home: StoreHome, plan: LaunchPlan, disk: Disk = DISK) -> RunWriter:
    """Make the directory of a run that nobody carries out."""
    return create_run(home, plan, make_recovery().model_copy(update={"run_id": plan.run_id}), disk=disk)


def store(home: StoreHome, plan: LaunchPlan, disk: Disk = DISK) -> RunWriter:
    """Do the launcher's part up to the barrier, for a runner that is this very process."""
    writer = made(home, plan, disk)
    writer.status(first_status(plan, runner=identify(os.getpid(), plan.token)), milestone=True)
    record_pending(writer, spawn="cold", token=plan.token, pid=os.getpid(), ticks=start_ticks(os.getpid()))
    return writer


def live(home: StoreHome, plan: LaunchPlan, launcher: Disk = DISK, runner: Disk | None = None) -> int:
    """Launch and carry out `plan` in this process; return the runner's exit code."""
    store(home, plan, launcher)
    paths = home.run(plan.run_id)
    errors = os.open(paths.err, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600)
    os.dup2(errors, 2)
    sys.stderr = open(2, "w", closefd=False)  # noqa: SIM115 - this process ends with the run
    reading, writing = os.pipe()
    os.write(writing, f"proceed {plan.token}\n".encode())
    return run(paths.root, channel=reading, disk=runner or launcher)


def settings(more: str = "", *, live: int) -> None:
    """Write the user's settings: how many runs may be live at once, and more."""
    folder = Path.home() / ".subagents"
    folder.mkdir(exist_ok=True)
    (folder / "settings.toml").write_text(f"max_live_runs = {live}\n{more}")


def event_lines(home: StoreHome, run_id: str) -> list[dict[str, Any]]:
    """Return the whole lines of a run's events; fail if one before the last is torn."""
    try:
        data = home.run(run_id).events.read_bytes()
    except FileNotFoundError:
        return []
    return [json.loads(line) for line in data.split(b"\n")[:-1]]


def temps(root: Path) -> list[Path]:
    """Return the temporary files below a directory."""
    return [path for path in root.rglob(".*") if ".tmp" in path.name or path.name.startswith(".session")]
