"""Which skills a step has, what is noted of them, and what of them its contract binds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from subagents_nb.catalog import discover
from subagents_nb.domain.agents.agent import AgentDefinition
from subagents_nb.domain.agents.settings import Settings
from subagents_nb.domain.agents.skills import SkillLookup, SkillRecord, SkillWanted
from subagents_nb.domain.plans.plan import Draft, LaunchRequest
from subagents_nb.domain.runs.reuse import changed_skills, contract_key, key_but_for_skills
from subagents_nb.errors import LaunchRefused
from subagents_nb.launching.composing.flows import chain, step
from subagents_nb.planning import LaunchEnvironment, draft
from subagents_nb.planning.launch_environment import LookupsNeeded


def record(name: str, sha256: str = "0" * 64, **more: Any) -> SkillRecord:
    fields = {"description": "d", "files": 1, "bytes": 9, "source": "project", "where": f".claude/skills/{name}"}
    return SkillRecord.model_validate({"name": name, "sha256": sha256, **fields, **more})


FOUND = {name: SkillLookup(record=record(name)) for name in ("own", "asked", "all")}


def planned(found: dict[str, SkillLookup] | None = None, agent: dict[str, Any] | None = None, **request: Any) -> Draft:
    mine = {"name": "mine", "description": "d", "skills": ("own",), "model": "scripted:echo", **(agent or {})}
    catalog = discover(Path("/"), home=Path("/nowhere"), registered=[AgentDefinition.model_validate(mine)])
    asked = {"task": "t", "agent": None if "flow" in request else "mine", **request}
    environment = LaunchEnvironment(cwd="/w", scripts=frozenset({"echo"}))
    known = {SkillWanted(name=name): fact for name, fact in (FOUND | (found or {})).items()}
    return draft(
        LaunchRequest.model_validate(asked),
        catalog=catalog,
        settings=Settings(),
        environment=environment.model_copy(update={"skills": known}),
    )


def names(draft: Draft) -> list[list[str]]:
    return [[one.name for one in step.skills] for step in draft.steps]


def test_a_calls_own_come_in_place_of_the_agents_and_false_is_none() -> None:
    assert names(planned()) == [["own"]]
    for asked in ("asked, own", ["asked", "own"], ("asked,own",)):
        assert names(planned(skills=asked)) == [["asked", "own"]]
    for none in (False, "false", ["false"], ()):
        assert names(planned(skills=none)) == [[]]


def test_those_of_a_chain_come_beside_those_of_each_step_and_false_clears_them_all() -> None:
    flow = chain(step("mine", "a"), step("mine", "b", skills=["asked"]), step("mine", "c", skills=False))
    assert names(planned(flow=flow)) == [["own"], ["asked"], []]
    assert names(planned(flow=flow, skills=["all"])) == [["own", "all"], ["asked", "all"], []]
    assert names(planned(flow=flow, skills=False)) == [[], ["asked"], []]


def test_what_nobody_has_looked_up_is_asked_for_at_once_with_where_the_agent_keeps_it() -> None:
    with pytest.raises(LookupsNeeded) as caught:
        planned(skills=["new", "own", "newer"], task=" ")
    assert [one.name for one in caught.value.skills] == ["new", "newer"]
    with pytest.raises(LookupsNeeded) as caught:
        planned(agent={"skill_paths": ("lib",), "where": "~/.claude/agents/m.md", "source": "user"})
    (wanted,) = caught.value.skills
    assert (wanted.name, wanted.paths, wanted.agent_source) == ("own", ("lib",), "registered")
    with pytest.raises(LookupsNeeded):  # of who reviews, too
        planned(acceptance={"review": {"agent": "mine"}}, skills=["asked"], found={"own": None})  # type: ignore[dict-item]


def test_a_missing_one_is_a_note_and_a_broken_one_a_reason() -> None:
    missing = planned({"gone": SkillLookup()}, skills=["gone", "own"])
    assert names(missing) == [["own"]]
    (said,) = missing.notes
    assert said.startswith("No skill 'gone' was found for agent mine: skills lie in .subagents/skills, ")
    why = "skill 'pdf' (.claude/skills/pdf/SKILL.md): the name must match its folder"
    with pytest.raises(LaunchRefused) as caught:
        planned({"pdf": SkillLookup(problem=why)}, skills=["pdf"], task=" ")
    assert why in caught.value.reasons and len(caught.value.reasons) == 2


def test_what_of_a_skill_does_not_hold_here_is_noted() -> None:
    tools = SkillLookup(record=record("big", files=3), asks_for="Bash(git:*), Read", scripts=1)
    notes = planned({"big": tools}, agent={"tools": ("grep",)}, skills=["big"]).notes
    assert notes == (
        "Skill big names allowed-tools (Bash(git:*), Read), which grant nothing here.",
        "Agent mine has no read tool, so of skill big it sees the text alone.",
        "Agent mine has neither bash nor python, so it can't run the scripts of big.",
    )
    assert planned({"big": tools}, agent={"tools": ("grep",)}, skills=["big"]).steps[0].tools == ("grep",)
    assert "The embedded model can't call tools, so it has no skills." in planned(model="local:smollm2").notes


def test_what_does_not_fit_is_left_out_whole_and_counted() -> None:
    many = {f"s{n}": SkillLookup(record=record(f"s{n}", description="d" * 6_000)) for n in range(4)}
    made = planned(many, skills=list(many))
    assert names(made) == [["s0", "s1"]]
    assert made.notes == ("2 skills are left out, as the model is told at most 16 KiB of them: s2, s3.",)


def test_only_what_is_set_is_bound_and_of_a_skill_its_content() -> None:
    without, own = planned(skills=False), planned()
    assert "skills" not in without.steps[0].contract()
    moved = SkillLookup(record=record("own", where="~/elsewhere", description="else"))
    changed = SkillLookup(record=record("own", "1" * 64))
    assert planned({"own": moved}).digest == own.digest
    assert planned({"own": changed}).digest != own.digest != without.digest


def test_plans_that_differ_only_in_what_their_skills_hold_are_known_as_such() -> None:
    def both(sha256: str, task: str = "t") -> Draft:
        found = {"own": SkillLookup(record=record("own", sha256)), "all": SkillLookup(record=record("all"))}
        return planned(found, skills=["own", "all"], task=task, acceptance={"review": {"agent": "mine"}})

    one, other = both("1" * 64), both("2" * 64)
    assert contract_key(one) != contract_key(other)
    assert key_but_for_skills(one) == key_but_for_skills(other) != key_but_for_skills(both("1" * 64, "else"))
    assert changed_skills(one, other) == ("own",)
    assert key_but_for_skills(planned(skills=False)) is None
