"""What a step, its group and its run say beside the work, and who has the last word."""

from __future__ import annotations

from typing import Any

import pytest

from subagents_nb import chain, expand, parallel, preflight, step
from subagents_nb.domain.plans.bounds import OutputBound
from subagents_nb.domain.plans.plan import Draft, FanOutItem, GroupItem
from subagents_nb.launching.composing.parsed_launch import ParsedLaunch
from subagents_nb.launching.composing.planned import plan_launch
from subagents_nb.planning.acceptance.terms import plan_max_output

pytestmark = pytest.mark.usefixtures("store_home")
ECHO: dict[str, Any] = {"model": "scripted:echo"}
CONTRACT = {"version": 1}
LIST = {"type": "object", "properties": {"files": {"type": "array"}}}


def planned(flow: Any, task: str | None = None, **options: Any) -> Draft:
    found = plan_launch(ParsedLaunch.of(flow, task, **{**ECHO, **options}))
    assert found.draft is not None, found.reasons
    return found.draft


def refused(flow: Any, **options: Any) -> tuple[str, ...]:
    return preflight(flow, **{**ECHO, **options}).reasons


def means(draft: Draft) -> list[tuple[bool, str]]:
    return [(s.acceptance.contract, s.acceptance.gate_on) for s in draft.steps if s.acceptance is not None]


def test_a_contract_and_what_a_rejection_stops_come_from_step_then_group_then_run() -> None:
    one = step("scout", "a", gate="true")
    flow = chain(
        one,
        parallel(
            one,
            step("scout", "b", gate="true", gate_on="execution"),
            step("scout", "c", gate="true", agent_contract=False),
            step("scout", "d", acceptance={"verify": "true", "gate_on": "execution"}),
            gate_on="acceptance",
        ),
    )
    assert means(planned(flow, agent_contract=CONTRACT)) == [
        (True, "execution"), (True, "acceptance"), (True, "execution"), (False, "execution"), (True, "execution"),
    ]  # fmt: skip
    fan = chain(step("scout", "f", as_="f", schema=LIST), expand("f", "/files", one, max_items=2, gate_on="acceptance"))
    found = planned(fan, agent_contract=CONTRACT).items[1]
    assert isinstance(found, FanOutItem) and found.template.acceptance is not None
    assert found.template.acceptance.gate_on == "acceptance"


def test_under_a_contract_nothing_is_inferred_and_what_is_asked_for_is_kept() -> None:
    assert means(planned(chain(step("worker", "a")), agent_contract=CONTRACT)) == []
    assert means(planned("scout", "a", gate="true", agent_contract=CONTRACT)) == [(True, "execution")]


def test_terms_that_make_no_sense_are_refused_where_they_stand() -> None:
    assert "gate_on: it says something only under an agent_contract" in refused("scout", task="a", gate="true",
                                                                               gate_on="acceptance")[0]  # fmt: skip
    assert refused("scout", task="a", agent_contract=True) == ("agent_contract must be {version: 1}, not True",)
    assert refused(chain(step("scout", "a", gate_on="never"))) == (
        "stage 1 (scout): gate_on must be execution or acceptance, not 'never'",
    )


def test_a_bound_of_the_launch_that_is_none_is_told_once() -> None:
    (why,) = refused(chain(step("scout", "a"), step("scout", "b")), max_output="3G")
    assert why.startswith("max_output can't be '3G'")


def test_only_what_is_set_is_bound() -> None:
    plain = planned(chain(parallel(step("scout", "a"), step("scout", "b"))))
    said = planned(
        chain(parallel(step("scout", "a", goal="g", phase="p", checkpoint="2m"), step("scout", "b"), phase="q")),
        goal="all of it", description="d", phase="r", lane="l", workflow="w", workflow_key="k", checkpoint=90,
        agent_contract=CONTRACT,
    )  # fmt: skip
    assert plain.digest == said.digest and (said.lane, said.workflow, said.workflow_key) == ("l", "w", "k")
    unbound = {"goal", "description", "phase", "checkpoint_s", "max_output", "acceptance"}
    assert not unbound.intersection(plain.steps[0].contract())
    assert planned(chain(parallel(step("scout", "a"), step("scout", "b"), gate="true"))).digest != plain.digest
    assert planned(chain(parallel(step("scout", "a"), step("scout", "b"))), max_output="2k").digest != plain.digest


def test_words_for_people_and_limits_reach_the_plan() -> None:
    draft = planned(
        chain(parallel(step("scout", "a", description="x\ny", checkpoint="30s"), step("scout", "b", phase="own"),
                       phase="find")),
        goal="the whole", checkpoint="2m", max_output={"chars": 500, "lines": 3},
    )  # fmt: skip
    assert (draft.goal, draft.checkpoint_s) == ("the whole", 120)
    assert [(s.description, s.phase, s.checkpoint_s) for s in draft.steps] == [("x y", "find", 30), ("", "own", None)]
    assert {s.max_output for s in draft.steps} == {OutputBound(chars=500, lines=3)}
    assert isinstance(draft.items[0], GroupItem) and draft.items[0].phase == "find"
    single = planned(step("scout", "a", phase="find", goal="why", checkpoint=20, max_output=9))
    assert (single.steps[0].phase, single.goal, single.checkpoint_s) == ("find", "why", 20)
    assert single.steps[0].max_output == OutputBound(chars=9)


@pytest.mark.parametrize("wrong", [0, -1, True, "much", "$3", 10**9, {"bytes": 3}, {}, {"lines": 0}, [3]])
def test_a_bound_that_is_none_is_refused(wrong: Any) -> None:
    reasons: list[str] = []
    assert plan_max_output(wrong, reasons) is None
    assert len(reasons) == 1 and reasons[0].startswith("max_output can't be ")


@pytest.mark.parametrize(
    ("bound", "text", "head"),
    [
        (OutputBound(chars=3), "abcdef", "abc"),
        (OutputBound(lines=2), "a\nb\nc", "a\nb"),
        (OutputBound(lines=2), "a\nb", "a\nb"),
        (OutputBound(lines=1, chars=2), "abc\nd", "ab"),
        (OutputBound(chars=9), "short", "short"),
    ],
)
def test_the_head_of_an_answer(bound: OutputBound, text: str, head: str) -> None:
    assert bound.head(text) == head
