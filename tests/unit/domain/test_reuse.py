"""What of a run's own documents keeps it from standing in for a new launch."""

from __future__ import annotations

import pytest
from support import make_plan, make_result

from subagents_nb.domain.agents.settings import ReusePolicy
from subagents_nb.domain.plans.experiments import ExperimentPart
from subagents_nb.domain.runs.reads import ReadLog
from subagents_nb.domain.runs.reuse import contract_key, reuse_miss
from subagents_nb.domain.runs.states import RunState

UNSEEN = ReadLog(untracked=("too large", "other"))


@pytest.mark.parametrize("state", [state for state in RunState if state is not RunState.COMPLETE])
def test_only_a_complete_run_may(state: RunState) -> None:
    assert reuse_miss(make_result(state=state, reads=ReadLog()), "complete") == f"scout-1 is {state}"


@pytest.mark.parametrize(
    ("reads", "policy", "why"),
    [
        (ReadLog(), "tracked", None),
        (UNSEEN, "tracked", "what scout-1 read is not known (too large)"),
        (UNSEEN, "complete", None),
        (None, "tracked", "nobody noted what scout-1 read"),
        (None, "complete", None),
        (ReadLog(changed=("a",)), "complete", "scout-1 changed a, so it is reused only when asked for by its id"),
        (
            ReadLog(changed=("a", "b", "c")),
            "tracked",
            "scout-1 changed a and 2 more, so it is reused only when asked for by its id",
        ),
    ],
)
def test_what_it_read_and_changed_decides(reads: ReadLog | None, policy: ReusePolicy, why: str | None) -> None:
    assert reuse_miss(make_result(reads=reads), policy) == why


def test_what_changed_by_whomever_keeps_it_from_standing_in_unless_another_run_explains_it() -> None:
    result = make_result(reads=ReadLog(meanwhile=("a", "b")))
    told = "changed while scout-1 was at work, by it or by others, so it is reused only when asked for by its id"
    assert reuse_miss(result, "complete") == f"a and 1 more {told}"
    assert reuse_miss(result, "tracked", explained={"a"}.__contains__) == f"b {told}"
    assert reuse_miss(result, "tracked", explained={"a", "b"}.__contains__) is None
    beside = make_result(reads=ReadLog(beside=("a",)))
    assert reuse_miss(beside, "complete") is None
    assert (reuse_miss(beside, "tracked") or "").startswith("a changed while a program of scout-1 stood by")


def test_of_an_older_version_the_files_that_its_tools_changed_count() -> None:
    result = make_result(changed_files=("a",))
    assert reuse_miss(result, "complete") == "scout-1 changed a, so it is reused only when asked for by its id"
    # A worktree's changes are in that list too, and not in the newer account.
    assert reuse_miss(result.model_copy(update={"reads": ReadLog()}), "tracked") is None


def test_another_experiment_or_other_parameters_ask_for_runs_of_their_own() -> None:
    plain = make_plan()
    keys = [
        contract_key(plain.model_copy(update={"experiment": part}))
        for part in (
            ExperimentPart(),
            ExperimentPart(notes="only said"),
            ExperimentPart(name="a"),
            ExperimentPart(name="b"),
            ExperimentPart(name="a", params={"x": 1}),
        )
    ]
    assert keys[0] == keys[1] == contract_key(plain)
    assert len(set(keys)) == 4
