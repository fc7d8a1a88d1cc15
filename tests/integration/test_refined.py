"""A refinement on its whole way: a run, a reviewer's run over it, the person's yes, another launch."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from subagents_nb import launch, refinement
from subagents_nb.store import StoreHome

pytestmark = pytest.mark.timeout(90)


def test_what_a_reviewer_proposes_is_added_by_the_person_and_makes_another_launch(
    shared_home: StoreHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SUBAGENTS_NB_REUSE")
    edit = {"title": "Units", "guidance": "Name the unit.", "rationale": "s1 has none.", "evidence": ["s1"]}
    folder = Path(".subagents/scripts")
    folder.mkdir(parents=True)
    (folder / "judge.json").write_text(json.dumps([{"value": {"edits": [edit]}}]))
    first = launch("scout", "count", model="scripted:echo", wait=True)
    mine = refinement("scout")
    proposal = mine.propose(first, model="scripted:judge")
    assert proposal.result(60)["edits"][0]["title"] == "Units"
    assert launch("scout", "count", model="scripted:echo").reused
    mine.apply(proposal)
    second = launch("scout", "count", model="scripted:echo", wait=True)
    assert not second.reused and "- Units: Name the unit." in second.plan.steps[0].system_prompt
    assert "Agent scout is refined by ~/.subagents/refinements/scout.md." in second.status.notes
    mine.rollback()
    assert launch("scout", "count", model="scripted:echo").id == first.id
