from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import make_identity, make_plan, make_process, make_result, make_status, make_verdict, run_id

from subagents_nb.domain.kept.retention import (
    DAY_S,
    SAID,
    Collection,
    Deleted,
    Keep,
    Reading,
    RunObservation,
    clocks_agree,
    may_be_resumed,
    reason_to_keep,
    size,
)
from subagents_nb.domain.runs.snapshot import Damage, Snapshot
from subagents_nb.domain.runs.states import RunState

KEEP_S = 30 * DAY_S


def snapshot(**parts: Any) -> Snapshot:
    made: dict[str, Any] = {"plan": make_plan(), "result": make_result(), "process": make_process()}
    return Snapshot(run_id=run_id(), **{**made, **parts})


def facts(**more: Any) -> RunObservation:
    usual: dict[str, Any] = {
        "snapshot": snapshot(),
        "age_s": 40 * DAY_S,
        "lock": "free",
        "lease": None,
        "referenced": False,
        "root_stays": False,
        "unresolved": False,
        "linked": False,
    }
    return RunObservation(**{**usual, **more})


def decide(**more: Any) -> Keep | None:
    return reason_to_keep(facts(**more), keep_s=KEEP_S)


@pytest.mark.parametrize("state", ["complete", "failed", "stopped", "rejected"])
def test_an_old_run_that_is_over_may_go(state: str) -> None:
    assert decide(snapshot=snapshot(result=make_result(state=state))) is None


def test_a_lost_run_may_go_once_it_has_its_verdict() -> None:
    running = make_status()
    assert decide(snapshot=snapshot(result=None, status=running)) is Keep.LIVE
    assert decide(snapshot=snapshot(result=None, status=running, verdict=make_verdict())) is None


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"linked": True}, Keep.LINKED),
        ({"lock": "held"}, Keep.LIVE),
        ({"lease": "held"}, Keep.LEASED),
        ({"referenced": True}, Keep.REFERENCED),
        ({"root_stays": True}, Keep.OF_TREE),
        ({"unresolved": True}, Keep.UNRESOLVED),
        ({"age_s": None}, Keep.UNKNOWN_AGE),
        ({"age_s": math.nan}, Keep.UNKNOWN_AGE),
        ({"age_s": math.inf}, Keep.UNKNOWN_AGE),
        ({"age_s": 29.9 * DAY_S}, Keep.YOUNG),
        ({"age_s": -DAY_S}, Keep.YOUNG),
        ({"snapshot": snapshot(plan=make_plan(tags=("draft", "Keep")))}, Keep.TAGGED),
        ({"snapshot": snapshot(plan=None)}, Keep.UNREADABLE),
        ({"snapshot": snapshot(damage=(Damage(document="events", kind="torn", message="torn"),))}, Keep.UNREADABLE),
        ({"snapshot": snapshot(result=make_result(state="partial"))}, Keep.PARTIAL),
        ({"snapshot": snapshot(result=make_result(state="paused"))}, Keep.PAUSED),
        ({"snapshot": snapshot(result=None)}, Keep.QUEUED),
        ({"snapshot": snapshot(result=None, status=make_status(state="complete"))}, Keep.NO_LAST_WORD),
        ({"snapshot": snapshot(result=make_result(digest="1" * 64))}, Keep.MISMATCH),
        ({"snapshot": snapshot(result=make_result(2))}, Keep.MISMATCH),
        ({"snapshot": snapshot(status=make_status(runner=make_identity(token="e" * 32)))}, Keep.MISMATCH),
    ],
)
def test_whatever_is_in_doubt_or_in_use_stays(more: dict[str, Any], reason: Keep) -> None:
    assert decide(**more) is reason


def test_a_limit_that_is_no_number_keeps_everything() -> None:
    assert reason_to_keep(facts(), keep_s=math.nan) is Keep.YOUNG


states = st.sampled_from([*RunState, None])
ages = st.one_of(st.none(), st.floats(allow_nan=True), st.floats(0, 90 * DAY_S))


@st.composite
def any_facts(draw: st.DrawFn) -> RunObservation:
    def pick(*values: Any) -> Any:
        return draw(st.sampled_from(values))

    status, result = draw(states), draw(states)
    damage = Damage(document="plan.json", kind="torn", message="torn")
    seen = Snapshot(
        run_id=run_id(),
        plan=pick(make_plan(), make_plan(), make_plan(tags=("keep",)), make_plan(2), None),
        status=make_status(state=status, runner=pick(None, make_identity(), make_identity(token="0")))
        if status
        else None,
        result=make_result(state=result, digest=pick("", "0" * 64, "0" * 64, "1" * 64)) if result else None,
        verdict=pick(None, None, make_verdict()),
        process=pick(None, make_process()),
        damage=pick((), (), (), (damage,)),
    )
    return RunObservation(
        snapshot=seen,
        age_s=draw(ages),
        lock=pick("free", None, "held"),
        lease=pick("free", None, "held"),
        referenced=pick(False, False, True),
        root_stays=pick(False, False, True),
        unresolved=pick(False, False, True),
        linked=pick(False, False, True),
    )


@given(any_facts())
def test_nothing_on_the_list_of_what_is_never_deleted_is_deleted(seen: RunObservation) -> None:
    run = seen.snapshot
    tokens = {run.status.runner.token if run.status and run.status.runner else None, "f" * 32} - {None}
    never = (
        run.state in (None, "queued", "running", "paused", "partial")
        or seen.lock == "held"
        or seen.lease == "held"
        or bool(run.damage)
        or run.plan is None
        or (run.result is None and run.verdict is None)
        or seen.age_s is None
        or not math.isfinite(seen.age_s)
        or seen.age_s < KEEP_S
        or run.plan.run_id != run.run_id
        or (run.result is not None and run.result.digest == "1" * 64)
        or len(tokens) > 1
        or "keep" in run.plan.tags
        or seen.referenced
        or seen.root_stays
        or seen.unresolved
        or seen.linked
    )
    assert (reason_to_keep(seen, keep_s=KEEP_S) is not None) is never


@given(states)
def test_only_a_run_that_is_over_for_good_needs_its_source_no_more(state: RunState | None) -> None:
    assert may_be_resumed(state) is (state not in (RunState.STOPPED, RunState.REJECTED))


def test_every_reason_has_words_for_people() -> None:
    assert set(SAID) == set(Keep)


def test_a_pass_says_what_it_did_and_what_it_left_and_why() -> None:
    done = Collection(
        dry_run=False,
        grace_s=DAY_S,
        deleted=(Deleted(run_id=run_id(), name="scout-1\x1b[31m", reason="complete, 41 days old"),),
        kept={Keep.YOUNG: 12, Keep.LIVE: 1},
        removed=(run_id(2), run_id(3)),
        in_grace=1,
        failed=((run_id(4), "Permission denied"),),
    )
    assert str(done).splitlines() == [
        "1 run deleted:",
        f"  {run_id()}  scout-1  complete, 41 days old",
        "  Back again within 24 h: subagents-nb restore RUN",
        "Kept: 1 live, 12 young.",
        "2 runs removed from the trash for good.",
        "1 run in the trash.",
        f"Not done: {run_id(4)}: Permission denied",
    ]


def test_a_rehearsal_says_that_it_is_one() -> None:
    assert str(Collection(dry_run=True, grace_s=DAY_S)) == "0 runs would be deleted."


@pytest.mark.parametrize(
    ("number", "said"),
    [(0, "0 B"), (640, "640 B"), (12_000, "12 KB"), (4_200_000, "4.2 MB"), (10**8, "100 MB"), (13 * 10**8, "1.3 GB")],
)
def test_bytes_are_said_in_few_characters(number: int, said: str) -> None:
    assert size(number) == said


@pytest.mark.parametrize(
    ("boot", "wall_days", "boot_days", "agree"),
    [
        ("a", 1.0, 1.0, True),
        ("a", 40.0, 40.0, True),
        ("a", 40.0, 1.0, False),
        ("a", -1.0, 1.0, False),
        ("b", 1.0, 0.1, True),
        ("b", 40.0, 0.1, False),
        ("b", -0.1, 0.1, False),
        (None, 1.0, 0.0, True),
    ],
)
def test_a_wall_clock_is_believed_if_an_earlier_reading_bears_it_out(
    boot: str | None, wall_days: float, boot_days: float, agree: bool
) -> None:
    before = Reading(wall_s=1e9, boot="a" if boot else None, since_boot_s=50.0)
    now = Reading(wall_s=1e9 + wall_days * DAY_S, boot=boot, since_boot_s=50.0 + boot_days * DAY_S)
    assert clocks_agree(before, now) is agree
    assert clocks_agree(None, now)
