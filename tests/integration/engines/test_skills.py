"""Skills on the wire: a line for each, the text of one that is loaded, its files, and nothing that can be written."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from subagents_nb.domain.agents.skills import SkillRecord
from subagents_nb.domain.runs.events import StepOutcome, ToolEnded
from subagents_nb.domain.runs.records import Usage
from subagents_nb.runner.engines.engine import StepSkills
from subagents_nb.runner.engines.native.native import NativeEngine
from subagents_nb.runner.engines.scripted.scripted import ScriptedEngine

BODY = "Never add the totals by hand: run scripts/add.sh."


@pytest.fixture
def skills(tmp_path: Path) -> StepSkills:
    records = []
    for name, description in (("totals", "Adds totals up."), ("other", "Does something else.")):
        sha256 = hashlib.sha256(name.encode()).hexdigest()
        fields: dict[str, Any] = {"name": name, "description": description, "sha256": sha256, "bytes": 999}
        made = SkillRecord(files=2, source="project", where=f".claude/skills/{name}", **fields)
        folder = tmp_path / "skills" / made.folder
        (folder / "scripts").mkdir(parents=True)
        (folder / "SKILL.md").write_text(f"---\nname: {name}\ndescription: {description}\n---\n\n{BODY}\n")
        (folder / "scripts/add.sh").write_text("echo the total is 42\n")
        records.append(made)
    return StepSkills(tmp_path / "skills", "skills", tuple(records))


def run(workshop: Any, engine: Any, step: Any, skills: StepSkills, own: int = 1) -> StepOutcome:
    own_skills = replace(skills, records=skills.records[:own])
    context = workshop.context(step)
    environ = {**context.tool_environ, "SUBAGENTS_SKILLS": str(skills.root)}
    workshop.context = lambda _step: replace(context, skills=own_skills, tool_environ=environ)
    outcome: StepOutcome = workshop.run(engine, step.model_copy(update={"skills": own_skills.records}))
    return outcome


def call(wire: Any, name: str, **args: str) -> None:
    wire.says(calls=[(f"c{len(wire.turns)}", name, json.dumps(args))], end="tool_calls")


def test_a_skill_is_listed_then_loaded_then_its_script_is_run(
    workshop: Any, plan: Any, wire: Any, skills: StepSkills
) -> None:
    totals = skills.records[0].folder
    call(wire, "load_capability", id="totals")
    call(wire, "read", path=f"skills/{totals}/scripts/add.sh")
    call(wire, "bash", command=f"sh $SUBAGENTS_SKILLS/{totals}/scripts/add.sh")
    wire.says("The total is 42.")

    outcome = run(workshop, NativeEngine(), plan("add up", at=wire.url, tools=("read", "bash")), skills)

    first, second, third, fourth = (json.dumps(body["messages"]) for body in wire.bodies)
    assert "- totals: Adds totals up." in first and "Does something else" not in first
    assert BODY not in first and BODY in second and totals in second
    assert "echo the total is 42" in third and "the total is 42" in fourth.replace("echo the total is 42", "")
    offered = {tool["function"]["name"] for tool in wire.bodies[0]["tools"]}
    assert offered == {"load_capability", "read", "bash"}
    assert outcome.text == "The total is 42." and outcome.usage.tool_calls == 3
    assert [(end.ok, end.refused) for end in workshop.told(ToolEnded)] == [(True, None)] * 3


@pytest.mark.parametrize(
    ("tool", "args", "ok", "told"),
    [
        ("list", {"path": "skills/{0}"}, True, "scripts"),
        ("find", {"pattern": "**/*.sh", "path": "skills/{0}"}, True, "add.sh"),
        ("grep", {"pattern": "total", "path": "skills/{0}"}, True, "echo the total"),
        ("read", {"path": "$SUBAGENTS_SKILLS/{0}/SKILL.md"}, True, BODY),
        ("read", {"path": "skills/{0}/../{1}/SKILL.md"}, False, "there is no such skill here; there are {0}"),
        ("list", {"path": "skills"}, False, "there is no such skill here; there are {0}"),
        ("write", {"path": "skills/{0}/SKILL.md", "content": "x"}, False, "belongs to a skill"),
        ("edit", {"path": "skills/{0}/SKILL.md", "old_text": BODY, "new_text": ""}, False, "belongs to a skill"),
    ],
)
def test_its_folder_is_read_and_searched_and_never_written(
    workshop: Any, plan: Any, wire: Any, skills: StepSkills, tool: str, args: dict[str, str], ok: bool, told: str
) -> None:
    folders = [one.folder for one in skills.records]
    call(wire, tool, **{key: value.format(*folders) for key, value in args.items()})
    wire.says("done")

    run(workshop, NativeEngine(), plan("look", at=wire.url, tools=(tool,)), skills)

    result = wire.bodies[1]["messages"][-1]["content"]
    assert told.format(*folders) in result
    assert [end.ok for end in workshop.told(ToolEnded)] == [ok]
    assert BODY in (skills.root / folders[0] / "SKILL.md").read_text()


def test_a_script_of_the_twin_loads_one_as_a_model_does(workshop: Any, plan: Any, skills: StepSkills) -> None:
    (workshop.cwd / "s.json").write_text(json.dumps([{"skill": "totals", "say": True}]))
    outcome = run(workshop, ScriptedEngine(), plan("add up", "scripted:s.json"), skills)
    assert BODY in outcome.text and f"$SUBAGENTS_SKILLS/{skills.records[0].folder}/" in outcome.text
    assert outcome.usage == Usage(**{**outcome.usage.model_dump(), "tool_calls": 1})
    session = (workshop.step_dir / "session.json").read_text()
    assert '"tool_name": "load_capability"' in session and BODY in session

    (workshop.cwd / "s.json").write_text(json.dumps([{"skill": "other"}]))
    failure = workshop.fail(ScriptedEngine(), plan("add up", "scripted:s.json", skills=skills.records[:1]))
    assert failure.message == "The script loads skill 'other', which this step does not have."
