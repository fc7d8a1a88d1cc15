"""A skill from a folder of the project to the step that loads it: copied once, bound, kept by who goes on."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support import until

from subagents_nb import Run, chain, launch, preflight, register_agent, step
from subagents_nb.catalog import unregister_agent
from subagents_nb.domain.agents.agent import AgentDefinition
from subagents_nb.store import StoreHome

pytestmark = pytest.mark.timeout(90)
LOADS = [{"skill": "totals", "say": True}]


@pytest.fixture(autouse=True)
def ground(shared_home: StoreHome) -> None:
    settings = Path.home() / ".subagents/settings.toml"
    settings.parent.mkdir(parents=True, exist_ok=True)
    settings.write_text(f'trusted_folders = ["{Path.cwd()}"]\n')
    write("first")
    script("loads", *LOADS)
    script("waits", {"await_steer": True}, *LOADS)


def write(text: str) -> None:
    folder = Path(".claude/skills/totals/scripts")
    folder.mkdir(parents=True, exist_ok=True)
    (folder.parent / "SKILL.md").write_text("---\nname: totals\ndescription: Adds.\n---\nthe text\n")
    (folder / "add.py").write_text(f"print({text!r})\n")


def script(name: str, *steps: object) -> None:
    folder = Path(".subagents/scripts")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.json").write_text(json.dumps(steps))


def copied(run: Run) -> list[str]:
    folder = run.home.run(run.id).root / "skills"
    return sorted(path.read_text() for path in folder.glob("totals-*/scripts/add.py"))


def test_a_skill_with_programs_that_a_project_brings_waits_for_the_persons_yes() -> None:
    (Path.home() / ".subagents/settings.toml").unlink()
    (reason,) = preflight("scout", "add", model="scripted:loads", skills="totals").reasons
    assert "skill totals (1 script)" in reason and "%subagent_trust" in reason
    Path(".claude/skills/totals/scripts/add.py").unlink()
    assert preflight("scout", "add", model="scripted:loads", skills="totals").ok


def test_a_run_keeps_the_skill_it_was_launched_with_and_a_changed_byte_makes_another_one() -> None:
    first = launch("scout", "add", model="scripted:waits", skills="totals")
    until(lambda: first.state == "running", what="the run at work")
    write("second")
    first.steer("go on")
    assert first.wait(30) and first.state == "complete", first.error
    assert "the text" in first.text and copied(first) == ["print('first')\n"]

    second = launch("scout", "add", model="scripted:waits", skills="totals", reuse="tracked")
    assert not second.reused and second.reuse_note == f"skill totals changed since {first.name}."
    second.stop()
    assert second.wait(30)

    resumed = first.resume("once more")
    until(lambda: resumed.state == "running", what="the resumed run at work")
    resumed.steer("go on")
    assert resumed.wait(30) and resumed.state == "complete", resumed.error
    assert copied(resumed) == ["print('first')\n"] and "the text" in resumed.text


def test_steps_have_their_own_beside_those_of_the_chain_and_what_is_appended_brings_its_own() -> None:
    run = launch(chain(step("scout", "a", model="scripted:waits"), task="t"), model="scripted:loads", skills=["totals"])
    until(lambda: run.state == "running", what="the run at work")
    write("second")
    run.append(step("scout", "b", skills="totals"))
    run.steer("go on", step=0)
    assert run.wait(30) and run.state == "complete", run.error
    assert copied(run) == ["print('first')\n", "print('second')\n"]
    assert [one.status.skills for one in run.steps] == [("totals",), ("totals",)]  # type: ignore[union-attr]
    assert all("the text" in one.text for one in run.steps)


def test_who_is_delegated_to_has_its_skills_from_the_run_that_delegates() -> None:
    script("leads", {"delegate": {"agent": "adder", "task": "add"}, "say": True})
    register_agent(AgentDefinition(name="adder", description="d", skills=("totals",), model="scripted:loads"))
    register_agent(AgentDefinition(name="lead", description="d", agents=("adder",), model="scripted:leads"))
    try:
        run = launch("lead", "go")
        assert run.wait(30) and run.state == "complete", run.error
        assert "the text" in run.text and copied(run) == ["print('first')\n"]
    finally:
        for name in ("adder", "lead"):
            unregister_agent(name)
