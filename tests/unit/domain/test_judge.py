"""Alive, dead or unknown: every combination of witnesses, and what a dead run came to."""

from __future__ import annotations

import itertools

import pytest
from support import make_identity

from subagents_nb.domain.judge import Ending, Liveness, Seen, judge_end, judge_liveness

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
    )
)


def seen(
    lock: str | None, host: bool | None, boot: bool | None, space: bool | None, readable: bool, exists: bool,
    zombie: bool, ticks: bool | None,
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
    )


@pytest.mark.parametrize("lock", ["held", "free", None])
def test_every_combination_of_witnesses_is_answered_as_the_rules_say(lock: str | None) -> None:
    identity, cases = make_identity(), 0
    for case in WITNESSES:
        if case[0] != lock:
            continue
        cases += 1
        _, host, boot, space, readable, exists, zombie, ticks = case
        answer = judge_liveness(identity, seen(*case))
        if lock == "held":
            assert answer is Liveness.ALIVE, case  # the kernel takes a lock away from the dead
        elif host is False:
            assert answer is Liveness.UNKNOWN, case  # another machine is never dead from here
        elif host is None and boot is not True:
            assert answer is Liveness.UNKNOWN, case  # it may be another machine
        elif boot is False:
            assert answer is Liveness.DEAD, case
        elif space is False:
            assert answer is (Liveness.DEAD if lock == "free" else Liveness.UNKNOWN), case
        elif not readable:
            assert answer is Liveness.UNKNOWN, case
        elif not exists or zombie:
            assert answer is Liveness.DEAD, case
        elif ticks is None:
            assert answer is Liveness.UNKNOWN, case
        else:
            assert answer is (Liveness.ALIVE if ticks else Liveness.DEAD), case
    assert cases == 648


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
    (True, None, 9, True, "stopped", "stopped", "person", "asked to stop"),
    (True, 0, None, False, "lost", "vanished", "unknown", "exit code 0"),
    (True, 1, None, True, "lost", "vanished", "unknown", "exit code 1"),
    (True, None, None, False, "lost", "vanished", "unknown", "nobody saw how it ended"),
]


@pytest.mark.parametrize(("began", "code", "signal", "asked", "state", "reason", "actor", "fragment"), ENDINGS)
def test_an_end_without_a_result_is_judged(
    began: bool, code: int | None, signal: int | None, asked: bool, state: str, reason: str, actor: str, fragment: str
) -> None:
    ending = Ending(exit_code=code, signal=signal, observed=code is not None or signal is not None)
    judgement = judge_end(began=began, ending=ending, stop_asked=asked, last_words="")
    assert (judgement.state, judgement.reason, judgement.actor) == (state, reason, actor)
    assert fragment in judgement.message


def test_a_run_that_never_began_repeats_its_last_words() -> None:
    judgement = judge_end(began=False, ending=Ending(exit_code=70), stop_asked=False, last_words="ImportError: x")
    assert "Its last words: ImportError: x" in judgement.message
