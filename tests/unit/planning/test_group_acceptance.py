"""An acceptance of a whole group: what is asked of it, what its members are told, what makes no sense."""

from __future__ import annotations

import subprocess
from typing import Any

import pytest

from subagents_nb import chain, expand, parallel, preflight, step
from subagents_nb.domain.plans.plan import Draft, FanOutItem, GroupItem
from subagents_nb.launching.composing.parsed_launch import ParsedLaunch
from subagents_nb.launching.composing.planned import plan_launch
from subagents_nb.notebook.bodies.chain_cell import parse

pytestmark = pytest.mark.usefixtures("store_home")
LIST = {"type": "object", "properties": {"files": {"type": "array"}}}
TWO = (step("scout", "a"), step("scout", "b"))


def planned(flow: Any) -> Draft:
    found = plan_launch(ParsedLaunch.of(flow, None, model="scripted:echo"))
    assert found.draft is not None, found.reasons
    return found.draft


def refused(*items: Any) -> list[str]:
    return list(preflight(chain(*items), model="scripted:echo").reasons)


def test_a_gate_of_a_group_is_its_own_and_asks_nothing_of_its_steps() -> None:
    draft = planned(chain(parallel(*TWO, gate="make test", agent_contract={"version": 1}, gate_on="acceptance")))
    (group,) = draft.items
    assert isinstance(group, GroupItem) and group.acceptance is not None
    assert [one.command for one in group.acceptance.verify] == ["make test"]
    assert (group.acceptance.contract, group.acceptance.gate_on) == (True, "acceptance")
    assert [one.acceptance for one in draft.steps] == [None, None]


def test_criteria_of_a_group_are_reported_by_its_steps_and_fail_none_of_them() -> None:
    own = step("scout", "c", acceptance={"criteria": ["it is short"], "stop_rules": ["no data"]})
    draft = planned(chain(parallel(*TWO, own, acceptance={"criteria": [{"id": "rows", "must": "rows"}]})))
    first, _, last = (one.acceptance for one in draft.steps)
    assert first is not None and last is not None
    assert (first.explicit, first.report, [one.id for one in first.criteria]) == (False, "required", ["rows"])
    assert (last.explicit, last.stop_rules) == (True, ("no data",))
    assert [(one.id, one.severity) for one in last.criteria] == [("criterion-1", "required"), ("rows", "recommended")]


def test_a_fan_out_has_one_too_in_yaml_as_in_python() -> None:
    composed = chain(
        step("scout", "find", as_="found", schema=LIST),
        expand("found", "/files", step("scout", "{item}"), max_items=3, gate="true", phase="look", gate_on="acceptance",
               agent_contract={"version": 1}),
        parallel(*TWO, acceptance={"verify": ["true"]}, phase="mend"),
    )  # fmt: skip
    cell = """\
- {agent: scout, task: find, as: found, schema: LIST}
- expand: {from: {output: found, path: /files}, max_items: 3}
  each: {agent: scout, task: "{item}"}
  gate: "true"
  gateOn: acceptance
  agent-contract: {version: 1}
  phase: look
- parallel: [{agent: scout, task: a}, {agent: scout, task: b}]
  acceptance: {verify: ["true"]}
  phase: mend
"""
    draft, same = planned(composed), planned(parse(cell, {"LIST": LIST}).chain)
    assert draft.items == same.items and draft.digest == same.digest
    fan = draft.items[1]
    assert isinstance(fan, FanOutItem) and fan.acceptance is not None and fan.acceptance.gate_on == "acceptance"


def test_what_makes_no_sense_of_a_group_is_refused_with_its_place() -> None:
    for words in (["init", "-q"], ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "0", "--allow-empty"]):
        subprocess.run(["git", *words], check=True)
    tree = step("worker", "a", worktree=True)
    assert any("gate: it is run where what was done in worktrees" in text for text in refused(parallel(tree, gate="x")))
    told = refused(parallel(*TWO, acceptance={"level": "checked", "criteria": [3]}, gate="x"))
    assert told == ["stage 1 (parallel group): gate is an acceptance by itself: put its command into "
                    "acceptance.verify, or leave one out"]  # fmt: skip
    why, also = refused(parallel(*TWO, acceptance={"agent_contract": 3, "review": True}))
    assert why == "stage 1 (parallel group): acceptance.agent_contract must be {version: 1}, not 3"
    assert also.startswith("stage 1 (parallel group): acceptance.review: a reviewer reads one step's work")
    mute = step("scout", "a", schema=LIST)
    assert any("criteria" in text for text in refused(parallel(mute, acceptance={"criteria": ["x"]})))
    assert refused(parallel(*TWO, gate="x", gate_on="acceptance"))[0].startswith("stage 1 (parallel group): gate_on: ")
