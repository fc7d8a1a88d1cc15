"""Is the runner alive, and what follows if it is not. Three answers: alive, dead, unknown; unknown ends nothing."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Literal, Self

from pydantic import Field

from subagents_nb.domain.runs.records import Actor, EndReason, Identity
from subagents_nb.domain.runs.states import RUN, RunEvent, RunState
from subagents_nb.domain.values.base import Document

UNSTORED = 74  # the exit code of a runner whose result no disk took
_UNSTORED_WORDS = "result not stored: "  # what it says last then


class Verdict(Document):
    """A judgement about a run whose runner is proved gone and left no result. Created once."""

    kind: Literal["verdict"] = "verdict"
    state: Literal[RunState.LOST, RunState.FAILED, RunState.STOPPED]
    reason: EndReason
    actor: Actor = "unknown"
    message: str
    tail: str = ""
    stderr_tail: str = ""
    judged_at: str
    judged_by: Literal["supervisor", "shim", "sweep", "launcher"]
    last_sign_of_life: str | None = None
    elapsed_s: float = 0.0
    evidence: dict[str, Any] = Field(default_factory=dict)

    @classmethod
    def over(cls, was: RunState, event: RunEvent, **said: Any) -> Self:
        """Return the verdict that an event makes over a run that was in this state.

        Raises:
            IllegalTransition: the table of the lives of runs lacks the move.
        """
        return cls.model_validate({**said, "state": RUN.follow(was, event)})

    @property
    def error(self) -> str:
        """What went wrong, by the name that the other documents have for it."""
        return self.message


class Liveness(StrEnum):
    ALIVE = "alive"
    DEAD = "dead"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What an observer saw of the process that a record names.

    `lock`: whether the run's lock is held; None where the file system can't tell. `ticks` is None if no such process
    was found; `readable` is False if looking was not permitted. `token` is the one that the run was launched under, by
    another document than the one that names the process; None if no such document says it.
    """

    lock: Literal["held", "free"] | None
    host: str | None
    boot_id: str | None
    pid_namespace: str | None
    exists: bool = False
    readable: bool = True
    zombie: bool = False
    ticks: int | None = None
    token: str | None = None


def judge_liveness(identity: Identity | None, seen: Seen) -> Liveness:
    """Decide whether the runner lives: the lock first, then token, host, boot, namespace, pid and start ticks.

    Source of the order: a lock the kernel releases is proof in itself; every other witness can be stale or reused.
    """
    if seen.lock == "held":
        return Liveness.ALIVE
    if identity is None or _differ(identity.token, seen.token):
        return Liveness.UNKNOWN  # nobody is named, or a process of another launch
    if _differ(identity.host, seen.host):
        return Liveness.UNKNOWN
    if None in (identity.host, seen.host) and (identity.boot_id is None or identity.boot_id != seen.boot_id):
        return Liveness.UNKNOWN  # nothing says that this is the same machine
    if _differ(identity.boot_id, seen.boot_id):
        return Liveness.DEAD
    if _differ(identity.pid_namespace, seen.pid_namespace):
        # Another container of this host: its pids mean nothing here, but a free lock on a shared kernel does.
        return Liveness.DEAD if seen.lock == "free" else Liveness.UNKNOWN
    if not seen.readable:
        return Liveness.UNKNOWN
    if not seen.exists or seen.zombie:
        return Liveness.DEAD
    if identity.start_ticks is None or seen.ticks is None:
        return Liveness.UNKNOWN
    return Liveness.ALIVE if identity.start_ticks == seen.ticks else Liveness.DEAD


def _differ(a: str | None, b: str | None) -> bool:
    return a is not None and b is not None and a != b


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """How a runner's process ended, as far as anybody knows."""

    exit_code: int | None = None
    signal: int | None = None
    observed: bool = False
    overdue: bool = False  # its watcher ended it, for it had not kept its deadline


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    event: RunEvent
    reason: EndReason
    actor: Actor
    message: str


def judge_end(
    *,
    began: bool,
    ending: Ending,
    stop_asked: bool,
    last_words: str,
    said: str | None = None,
    waited_as: str | None = None,
) -> Judgement:
    """Say what a run without a result came to, once its runner is proved gone.

    `began` is whether the runner had taken the run over from its launcher. `last_words` is the end of its error output,
    `said` what its status says of its end.
    """
    how = _how(ending)
    tail = f" Its last words: {last_words.rstrip('.')}." if last_words else ""
    if waited_as is not None:
        return Judgement(
            event=RunEvent.FAIL,
            reason="startup",
            actor="unknown",
            message="It waited for a free place and the supervisor that kept its turn went away: it never started. "
            f'Launch it with subagents_nb.attach("{waited_as}").launch_again().',
        )
    if ending.overdue:
        return Judgement(
            event=RunEvent.FAIL,
            reason="timeout",
            actor="deadline",
            message="The run passed its deadline and did not end by itself, so its process was ended from outside."
            f"{tail} What it had written is kept. Give it more with --timeout.",
        )
    if stop_asked and (ending.signal is not None or not ending.observed):
        return Judgement(
            event=RunEvent.STOP,
            reason="stopped",
            actor="person",
            message=f"The run was asked to stop and its process was ended ({_how(ending, by_us=True)}).{tail}",
        )
    if ending.exit_code == UNSTORED:
        return Judgement(
            event=RunEvent.FAIL,
            reason="not-stored",
            actor="self",
            message=said or not_stored(last_words.removeprefix(_UNSTORED_WORDS)),
        )
    if not began:
        return Judgement(
            event=RunEvent.FAIL,
            reason="startup",
            actor="self" if ending.exit_code else "unknown",
            message=f"The run's process ended before it began to work ({how}).{tail} Launch it again.",
        )
    sent = ending.signal is not None and ending.signal not in _FAULTS
    actor: Actor = "outside" if sent else "unknown"
    return Judgement(
        event=RunEvent.LOSE,
        reason="signal" if ending.signal is not None else "vanished",
        actor=actor,
        message=f"The run's process went away without a result ({how}).{tail} "
        "What it had written is kept; nothing restarts by itself.",
    )


def not_stored(why: str) -> str:
    """Say that a run ended without its result having been stored."""
    why = f": {why.rstrip('.')}" if why else ""
    return (
        f"The run came to its end and its result could not be stored{why}. "
        "Make room, then go on from its session with resume, or launch it again."
    )


_SIGNALS = {
    1: "SIGHUP",
    2: "SIGINT",
    3: "SIGQUIT",
    4: "SIGILL",
    5: "SIGTRAP",
    6: "SIGABRT",
    7: "SIGBUS",
    8: "SIGFPE",
    9: "SIGKILL",
    11: "SIGSEGV",
    13: "SIGPIPE",
    15: "SIGTERM",
    24: "SIGXCPU",
    25: "SIGXFSZ",
    31: "SIGSYS",
}
# A process brings these upon itself, or the system does for what it did; that somebody sent one can't be told.
_FAULTS = frozenset({4, 5, 6, 7, 8, 11, 24, 25, 31})


def signal_name(number: int) -> str:
    """Return what a signal is called."""
    return _SIGNALS.get(number, f"signal {number}")


def _how(ending: Ending, *, by_us: bool = False) -> str:
    if ending.signal is not None:
        name = signal_name(ending.signal)
        also = ", often the machine running out of memory" if ending.signal == 9 and not by_us else ""
        return f"ended by {name}{also}"
    if ending.exit_code is not None:
        return f"exit code {ending.exit_code}"
    return "nobody saw how it ended"
