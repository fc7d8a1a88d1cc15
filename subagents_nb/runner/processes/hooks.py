"""Run the setup hook of a worktree: an executable of the user's, no shell, JSON in, JSON out, a time limit."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from subagents_nb.domain.agents.environment import tool_environ
from subagents_nb.domain.plans.worktree import HOOK_ANSWER_BYTES, synthetic_of
from subagents_nb.domain.values.words import duration, one_line
from subagents_nb.runner.processes.children import CHILDREN
from subagents_nb.signals import KILL, has_ended, signal_group

_KEPT_ERRORS = 4000
_CHUNK = 65_536
_LOOK_S = 0.05


class HookFailed(Exception):
    """The setup hook did not do its work; the text says how."""


def run_hook(
    hook: Path, facts: dict[str, Any], *, cwd: Path, within_s: float, ended: Callable[[], bool] = lambda: False
) -> tuple[str, ...]:
    """Run a hook in a new worktree and return the paths that it says it made; end it when `ended` says so.

    Raises:
        HookFailed: it can't be started, failed, took too long, or did not print what it must.
    """
    out = run_program([str(hook)], json.dumps(facts).encode(), cwd=cwd, within_s=within_s, ended=ended)
    try:
        return synthetic_of(out)
    except ValueError as error:
        raise HookFailed(str(error)) from error


def run_program(
    command: Sequence[str],
    said: bytes,
    *,
    cwd: Path,
    within_s: float,
    ended: Callable[[], bool] = lambda: False,
    variables: Mapping[str, str] | None = None,
) -> bytes:
    """Run a program of the user's and return what it printed; end it, with all that it started, when `ended` says so.

    `variables` are added to its environment.

    Raises:
        HookFailed: it can't be started, failed, took too long, or printed too much.
    """
    environ = {k: v for k, v in tool_environ(os.environ).items() if not k.startswith("GIT_")} | dict(variables or {})
    pipe = subprocess.PIPE
    try:
        process = subprocess.Popen(
            command, cwd=cwd, env=environ, stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=True
        )
    except (OSError, ValueError) as error:
        raise HookFailed(f"could not be started: {error}") from error
    CHILDREN.began(process.pid, what="tool", poll=lambda: process.returncode)
    with process:
        try:
            out, err = _communicate(process, said, time.monotonic() + within_s, ended)
        except TimeoutError as error:
            raise HookFailed(f"took longer than {duration(within_s)}") from error
        finally:
            # What it left in the background would work in a tree that is the agent's from now on.
            signal_group(process.pid, KILL)
            CHILDREN.ended(process.pid, process.wait(), group_empty=None)
    if process.returncode != 0:
        last = one_line(err.decode("utf-8", "replace").strip().rpartition("\n")[2], 300)
        raise HookFailed(f"failed (exit code {process.returncode})" + (f": {last}" if last else ""))
    return out


def _communicate(
    process: subprocess.Popen[bytes], said: bytes, deadline: float, ended: Callable[[], bool]
) -> tuple[bytes, bytes]:
    """Say it all, listen to the end; of a flood no more is kept than tells that it is one."""
    if process.stdin is None or process.stdout is None or process.stderr is None:
        raise ValueError("the hook has no pipes")
    out, err = bytearray(), bytearray()
    with contextlib.suppress(BrokenPipeError):  # it may not care; the text fits into the pipe whole
        process.stdin.write(said)
        process.stdin.flush()
    with contextlib.suppress(BrokenPipeError):
        process.stdin.close()
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ, out)
        selector.register(process.stderr, selectors.EVENT_READ, err)
        while selector.get_map():
            left = deadline - time.monotonic()
            if left <= 0:
                raise TimeoutError
            if ended():
                raise HookFailed("was ended with its step")
            ready = selector.select(min(left, _LOOK_S))
            if not ready and has_ended(process.pid):
                break  # it has ended; whoever holds its output open still is none of ours
            for key, _ in ready:
                chunk = os.read(key.fd, _CHUNK)
                if not chunk:
                    selector.unregister(key.fileobj)
                key.data.extend(chunk)
                if key.data is err:
                    del err[:-_KEPT_ERRORS]
                elif len(out) > HOOK_ANSWER_BYTES:
                    raise HookFailed(f"printed more than {HOOK_ANSWER_BYTES // 1024} KiB")
    while not has_ended(process.pid):  # its output is closed and it is still at work; it is reaped with its group
        if time.monotonic() > deadline:
            raise TimeoutError
        if ended():
            raise HookFailed("was ended with its step")
        time.sleep(_LOOK_S)
    return bytes(out), bytes(err)
