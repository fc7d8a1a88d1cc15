"""Alive, dead or unknown: every combination of witnesses, and what a dead run came to."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest
from support import make_identity

from subagents_nb.domain.runs.postmortem import Ending, Liveness, Seen, judge_end, judge_liveness
from subagents_nb.domain.runs.states import RUN, RunEvent, RunState

WITNESSES = list(
    itertools.product(
        ["held", "free", None],  # lock
        [True, False, None],  # same host, other host, not known
        [True, False, None],  # same boot
        [True, False, None],  # same pid namespace
        [True, False],  # readable
        [True, False],  # exists
        [True, False],  # zombie
        [True, False, None],  # same ticks, others, not known
        [True, False, None],  # launched under the same token, another, not known
    )
)


def seen(
    lock: str | None, host: bool | None, boot: bool | None, space: bool | None, readable: bool, exists: bool,
    zombie: bool, ticks: bool | None, token: bool | None = True,
) -> Seen:  # fmt: skip
    def witness(same: bool | None, own: str) -> str | None:
        return None if same is None else own if same else "other"

    return Seen(
        lock=lock,  # type: ignore[arg-type]
        host=witness(host, "h"),
        boot_id=witness(boot, "b"),
        pid_namespace=witness(space, "n"),
        exists=exists and readable,
        readable=readable,
        zombie=zombie,
        ticks=None if ticks is None or not (exists and readable) else 9 if ticks else 10,
        token=witness(token, "f" * 32),
    )


@pytest.mark.row(17, cases=3 * 648)
@pytest.mark.parametrize("lock", ["held", "free", None])
def test_every_combination_of_witnesses_is_answered_as_the_rules_say(
    lock: str | None, case: Callable[..., None]
) -> None:
    identity = make_identity()
    for one in WITNESSES:
        if one[0] != lock:
            continue
        case()
        _, host, boot, space, readable, exists, zombie, ticks, token = one
        answer = judge_liveness(identity, seen(*one))
        if lock == "held":
            assert answer is Liveness.ALIVE, one  # the kernel takes a lock away from the dead
        elif token is False:
            assert answer is Liveness.UNKNOWN, one  # the record names a process of another launch
        elif host is False:
            assert answer is Liveness.UNKNOWN, one  # another machine is never dead from here
        elif host is None and boot is not True:
            assert answer is Liveness.UNKNOWN, one  # it may be another machine
        elif boot is False:
            assert answer is Liveness.DEAD, one
        elif space is False:
            assert answer is (Liveness.DEAD if lock == "free" else Liveness.UNKNOWN), one
        elif not readable:
            assert answer is Liveness.UNKNOWN, one
        elif not exists or zombie:
            assert answer is Liveness.DEAD, one
        elif ticks is None:
            assert answer is Liveness.UNKNOWN, one
        else:
            assert answer is (Liveness.ALIVE if ticks else Liveness.DEAD), one


def test_without_an_identity_only_a_held_lock_says_anything() -> None:
    for case in WITNESSES:
        expected = Liveness.ALIVE if case[0] == "held" else Liveness.UNKNOWN
        assert judge_liveness(None, seen(*case)) is expected


def test_a_record_without_ticks_can_say_dead_but_never_alive() -> None:
    identity = make_identity(start_ticks=None)
    there = seen(None, True, True, True, True, True, False, True)
    gone = seen(None, True, True, True, True, False, False, None)
    assert judge_liveness(identity, there) is Liveness.UNKNOWN
    assert judge_liveness(identity, gone) is Liveness.DEAD


ENDINGS = [
    # began, exit, signal, asked to stop -> state, reason, actor, in the message
    (False, 75, None, False, "failed", "startup", "self", "before it began to work (exit code 75)"),
    (False, None, 9, False, "failed", "startup", "unknown", "ended by SIGKILL"),
    (False, None, None, True, "stopped", "stopped", "person", "nobody saw how it ended"),
    (False, None, 9, True, "stopped", "stopped", "person", "asked to stop"),
    (True, None, 9, False, "lost", "signal", "outside", "memory"),
    (True, None, 15, False, "lost", "signal", "outside", "SIGTERM"),
    (True, None, 64, False, "lost", "signal", "outside", "signal 64"),
    (True, None, 11, False, "lost", "signal", "unknown", "SIGSEGV"),
    (True, None, 6, False, "lost", "signal", "unknown", "SIGABRT"),
    (True, None, 7, False, "lost", "signal", "unknown", "SIGBUS"),
    (True, None, 25, False, "lost", "signal", "unknown", "SIGXFSZ"),
    (True, None, 9, True, "stopped", "stopped", "person", "asked to stop"),
    (True, 0, None, False, "lost", "vanished", "unknown", "exit code 0"),
    (True, 1, None, True, "lost", "vanished", "unknown", "exit code 1"),
    (True, None, None, False, "lost", "vanished", "unknown", "nobody saw how it ended"),
    (True, 74, None, False, "failed", "not-stored", "self", "its result could not be stored"),
    (True, 74, None, True, "failed", "not-stored", "self", "its result could not be stored"),
]


@pytest.mark.parametrize(("began", "code", "signal", "asked", "state", "reason", "actor", "fragment"), ENDINGS)
def test_an_end_without_a_result_is_judged(
    began: bool, code: int | None, signal: int | None, asked: bool, state: str, reason: str, actor: str, fragment: str
) -> None:
    ending = Ending(exit_code=code, signal=signal, observed=code is not None or signal is not None)
    judgement = judge_end(began=began, ending=ending, stop_asked=asked, last_words="")
    assert (RUN.follow(RunState.RUNNING, judgement.event), judgement.reason, judgement.actor) == (state, reason, actor)
    assert fragment in judgement.message


def test_what_we_ended_ourselves_is_no_guess_at_the_machine() -> None:
    asked = judge_end(began=True, ending=Ending(signal=9, observed=True), stop_asked=True, last_words="")
    assert "SIGKILL" in asked.message and "memory" not in asked.message
    late = judge_end(began=True, ending=Ending(signal=9, observed=True, overdue=True), stop_asked=False, last_words="x")
    assert (late.event, late.reason, late.actor) == (RunEvent.FAIL, "timeout", "deadline")
    assert "deadline" in late.message and "memory" not in late.message


@pytest.mark.parametrize("began", [True, False])
def test_a_run_that_ended_without_a_result_repeats_its_last_words(began: bool) -> None:
    judgement = judge_end(began=began, ending=Ending(exit_code=70), stop_asked=False, last_words="ImportError: x.")
    assert "(exit code 70). Its last words: ImportError: x. " in judgement.message


def test_a_result_that_never_fitted_is_told_in_the_runs_own_words() -> None:
    ending = Ending(exit_code=74, observed=True)
    words = "result not stored: No space left on device"
    judgement = judge_end(began=True, ending=ending, stop_asked=False, last_words=words)
    assert "could not be stored: No space left on device. Make room" in judgement.message
    judgement = judge_end(began=True, ending=ending, stop_asked=False, last_words=words, said="as it said")
    assert judgement.message == "as it said"
