"""Examine the installation: what is in order, what is not, and the command that helps. No secret's value is shown."""

from __future__ import annotations

import os
import shlex
import shutil
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import subagents_nb.local_model as local_model
from subagents_nb.catalog import SettingsProblem
from subagents_nb.catalog.search_paths import shown_folder
from subagents_nb.catalog.trust import home_folder
from subagents_nb.domain.agents.acting import refusal
from subagents_nb.domain.agents.environment import tool_environ
from subagents_nb.domain.agents.models import PROVIDERS, ModelChoice, choose_model
from subagents_nb.domain.agents.settings import Settings
from subagents_nb.domain.kept.retention import size
from subagents_nb.domain.runs.postmortem import Liveness
from subagents_nb.domain.values.reasons import Reason, advice_of, place_of
from subagents_nb.domain.values.words import one_line, plain
from subagents_nb.errors import LaunchError, SubagentsError
from subagents_nb.launching.front import agents, settings
from subagents_nb.launching.gathering.lookups import look_up_environment
from subagents_nb.launching.gathering.trust_lookup import brought_here
from subagents_nb.planning.steps.step_plan import model_problem
from subagents_nb.store import FileRuns, StoreHome, open_home
from subagents_nb.store.files.lock import probe
from subagents_nb.store.kept.trash import Trash
from subagents_nb.store.layout import HOME_VARIABLE
from subagents_nb.store.runs.reader import read_tail
from subagents_nb.store.trust_file import read_answers
from subagents_nb.store.waiting.capacity import slots_taken
from subagents_nb.supervisor.processes.liveness import liveness_of
from subagents_nb.supervisor.protocol import wire
from subagents_nb.supervisor.protocol.reaching import SPAWN_VARIABLE, host_key, spawn_mode
from subagents_nb.supervisor.protocol.socket_lines import Lines
from subagents_nb.version import __version__

_ASK_S = 2.0
# Takes the lock, says so, and holds it until it is let go.
_HOLD = "import fcntl,sys; f=open(sys.argv[1],'r+'); fcntl.flock(f,2|4); print('held',flush=True); sys.stdin.read()"

_FREE_BYTES = 1_000_000_000
_WATCHES, _INSTANCES = 8192, 128
_INOTIFY = Path("/proc/sys/fs/inotify")
_FEW = 4
_USER_SETTINGS = "~/.subagents/settings.toml"


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at. `advice` is a command to run, when something can be done.

    One that is `ok` and has advice is something that could be had and nobody needs.
    """

    name: str
    ok: bool
    found: str
    advice: str = ""


@dataclass(frozen=True, slots=True)
class Checkup:
    """All checks; it shows itself as text."""

    checks: tuple[Check, ...]

    @property
    def ok(self) -> bool:
        """Whether nothing needs doing."""
        return all(check.ok for check in self.checks)

    def __repr__(self) -> str:
        width = max(len(check.name) for check in self.checks)
        lines = []
        for check in self.checks:
            mark = "bad" if not check.ok else "-  " if check.advice else "ok "
            lines.append(f"{mark}  {check.name:<{width}}  {check.found}")
            if check.advice:
                lines.append(f"     {'':<{width}}  → {check.advice}")
        return plain("\n".join(lines))


def examine() -> Checkup:
    """Look at the store, its locks and runs, the supervisor, settings, agents, models and keys (their names only)."""
    found = [Check("version", True, f"subagents-nb {__version__}, Python {sys.version.split()[0]}")]
    effective, checks = _settings()
    try:
        home = open_home(create=False)
    except SubagentsError as error:
        found.append(Check("store", False, str(error), advice_of(error) or f"export {HOME_VARIABLE}=~/subagents"))
    else:
        found += [*_store(home), *_runs(home), *_supervisor(home), _spawn(), _capacity(home, effective)]
    found += [*checks, _agents(), *_trust(effective), *_models(effective), _local(), _watching()]
    return Checkup(tuple(found))


def _store(home: StoreHome) -> Iterator[Check]:
    shown = shown_folder(home.root)
    if not home.runs.is_dir():
        yield Check("store", True, f"{shown} (not made yet)")
    else:
        info = home.root.stat()
        yours = "owned by you" if os.name != "posix" or info.st_uid == os.getuid() else f"owned by user {info.st_uid}"
        yield Check("store", True, f"{shown}, {yours}, mode {stat.S_IMODE(info.st_mode):04o}")
        fault = lock_fault(home.supervisor / "doctor.lock")
        elsewhere = f"export {HOME_VARIABLE}=~/subagents   # on a local disk"
        yield Check("locks", not fault, fault or "taken, seen and released by the system", elsewhere if fault else "")
    existing = next(path for path in (home.root, *home.root.parents) if path.is_dir())
    free = shutil.disk_usage(existing).free
    short = free < _FREE_BYTES
    yield Check("disk", not short, f"{size(free)} free", "subagents-nb gc --days 7 --now" if short else "")


def _runs(home: StoreHome) -> Iterator[Check]:
    reader = FileRuns(home)
    ids = reader.ids()
    live, broken, dead = 0, [], 0
    for snapshot in map(reader.snapshot, ids):
        if snapshot.damage:
            broken.append(snapshot.run_id)
        elif not snapshot.ended:
            status = snapshot.status
            who = (status.runner or status.queue_keeper) if status is not None else None
            gone = liveness_of(who, home.run(snapshot.run_id)) is Liveness.DEAD
            live, dead = (live, dead + 1) if gone else (live + 1, dead)
    tombs = len(Trash(home).tombs())
    yield Check("runs", True, f"{len(ids)}, of which {live} live; {tombs} in the trash")
    if broken:
        folder = _quoted(home.run(broken[0]).root)
        yield Check("unreadable", False, f"{len(broken)}: {', '.join(broken[:3])}", f"ls -la {folder}")
    if dead:
        yield Check("dead", False, f"{dead} ended without a word and are not judged yet", "subagents-nb list")


def _supervisor(home: StoreHome) -> Iterator[Check]:
    log = home.supervisor / "host.log"
    ours = {host_key("warm"): "warm", host_key("cold"): "cold"}
    up: list[str] = []
    silent: list[str] = []
    for path in sorted(home.supervisor.glob("*.lock")):
        if path.stem.endswith(("-warm", "-cold")) and probe(path) == "held":
            pid = ping(path.with_suffix(".sock"))
            word = ours.get(path.stem, "of another version")
            (silent if pid is None else up).append(word if pid is None else f"{word}, pid {pid}")
    stale = [path for path in home.supervisor.glob("*.sock") if probe(path.with_suffix(".lock")) != "held"]
    log_lines = plain(read_tail(log)).splitlines()
    read_it = f"cat {_quoted(log)}"
    if silent:
        yield Check("supervisor", False, f"does not answer ({'; '.join(silent)})", read_it)
    elif not up and any(line.startswith("Traceback") for line in log_lines):
        yield Check("supervisor", False, f"crashed: {one_line(log_lines[-1])}", read_it)
    else:
        yield Check("supervisor", True, "; ".join(up) or "none is up; the first launch starts one")
    if stale:
        removal = " ".join(["rm", *(_quoted(path) for path in stale)])
        yield Check("sockets", False, f"{len(stale)} left by a supervisor that is gone", removal)


def _spawn() -> Check:
    try:
        return Check("spawn", True, spawn_mode())
    except SubagentsError as error:
        return Check("spawn", False, str(error), f"unset {SPAWN_VARIABLE}")


def _capacity(home: StoreHome, effective: Settings | None) -> Check:
    taken, limit = slots_taken(home), effective.max_live_runs if effective is not None else None
    full = limit is not None and taken >= limit
    text = f"{taken} of {limit if limit is not None else 'an unknown number of'} places taken"
    return Check("capacity", True, text, "subagents-nb list --state live" if full else "")


def _settings() -> tuple[Settings | None, list[Check]]:
    try:
        effective = settings()
    except SettingsProblem as error:
        first = place_of(error.reasons[0])
        advice = f"unset {first}" if first.isidentifier() else f"${{EDITOR:-vi}} {first}"
        return None, [Check("settings", False, "; ".join(str(error).splitlines()), advice)]
    where = sorted(set(effective.origins.values()))
    return effective, [Check("settings", True, f"from {', '.join(where)}" if where else "the defaults")]


def _agents() -> Check:
    catalog = agents()
    if not catalog.problems:
        return Check("agents", True, ", ".join(agent.name for agent in catalog.agents))
    broken = "; ".join(f"{problem.where}: {one_line(problem.error)}" for problem in catalog.problems)
    return Check("agents", False, broken, "subagents-nb agents")


def _trust(effective: Settings | None) -> Iterator[Check]:
    try:
        read_answers(home_folder())
    except SubagentsError as error:
        yield Check("trust", False, str(error))
        return
    held = brought_here(Path.cwd(), agents(), effective, whole=True).held if effective is not None else ()
    if held:
        waiting = ", ".join(map(str, held[:_FEW])) + (" …" if len(held) > _FEW else "")
        yield Check("trust", True, f"{len(held)} of this project may not act yet: {waiting}", "subagents-nb trust")


def _models(effective: Settings | None) -> Iterator[Check]:
    named = [name for provider in PROVIDERS for name in provider.key_env]
    named += [end.key_env for end in (effective.endpoints.values() if effective is not None else ()) if end.key_env]
    keys = [name for name in dict.fromkeys(named) if os.environ.get(name, "").strip()]
    if effective is not None:
        try:
            choice = choose_model(call=None, agent=None, settings=effective, environ_names=frozenset(keys))
        except ValueError as error:
            yield Check("model", False, str(error), f"${{EDITOR:-vi}} {_USER_SETTINGS}")
        else:
            facts = look_up_environment(None, environ=os.environ, models=(choice.requested,))
            problem = model_problem(choice, facts) or _untrusted_default(choice, effective)
            text = f"{choice.label} (from: {choice.origin})"
            yield Check("model", problem is None, f"{text}: {problem}" if problem else text, _help(problem, choice))
    yield Check("keys", True, ", ".join(keys) if keys else "no provider key is set")


def _untrusted_default(choice: ModelChoice, effective: Settings) -> Reason | None:
    held = brought_here(Path.cwd(), agents(), effective).held
    return refusal(one for one in held if choice.origin == "settings" and one.item.name == "default_model")


def _help(problem: str | None, choice: ModelChoice) -> str:
    if problem is None:
        return ""
    command = advice_of(local_model.available() if choice.kind == "local" else problem)
    return command or (f"export {choice.key_env[0]}=…" if choice.key_env else f"${{EDITOR:-vi}} {_USER_SETTINGS}")


def _local() -> Check:
    problem = local_model.available()
    return Check("local model", True, problem or "installed", "subagents-nb local-model install" if problem else "")


def _watching() -> Check:
    try:
        watches, instances = (int((_INOTIFY / f"max_user_{n}").read_text()) for n in ("watches", "instances"))
    except (OSError, ValueError):
        return Check("watching", True, "this system has no inotify limits")
    few = watches < _WATCHES or instances < _INSTANCES
    more = f"sudo sysctl fs.inotify.max_user_watches={_WATCHES * 64} fs.inotify.max_user_instances={_INSTANCES * 8}"
    return Check("watching", not few, f"{watches} watches, {instances} instances allowed", more if few else "")


def _quoted(path: Path) -> str:
    shown = shown_folder(path)
    return f"~/{shlex.quote(shown[2:])}" if shown.startswith("~/") else shlex.quote(shown)


def lock_fault(path: Path) -> str:
    """Return why locks can't be trusted at this place, or nothing: a child takes one and lets it go by ending."""
    if os.name != "posix":
        return ""
    try:
        path.touch(0o600)
        argv = [sys.executable, "-I", "-S", "-c", _HOLD, str(path)]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
        with subprocess.Popen(argv, env=tool_environ(os.environ), **pipes) as child:  # type: ignore[call-overload]
            if child.stdout.readline() != b"held\n":
                return "a child process could not take a lock"
            if probe(path) != "held":
                return "a lock that a child process holds is not seen: this file system can't prove that runs live"
            child.communicate(timeout=_ASK_S)
        return "" if probe(path) == "free" else "a lock is still there after the process that held it ended"
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"locks can't be tried: {error}"
    finally:
        path.unlink(missing_ok=True)


def ping(path: Path) -> int | None:
    """Return the pid of the supervisor behind a socket, or None if nobody answers."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(_ASK_S)
        lines = Lines(connection)
        try:
            with wire.SocketName(path) as address:
                connection.connect(address)
            lines.say(wire.encode({"op": "ping"}))
            return int(wire.decode(lines.read_line(_ASK_S) or b"")["pid"])
        except (OSError, LaunchError, KeyError, ValueError):
            return None
