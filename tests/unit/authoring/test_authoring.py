"""Agents as the person's own work: the same from Python, a cell and a terminal."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from subagents_nb import agents, create_agent, disable_agent, eject_agent, enable_agent, preflight
from subagents_nb.catalog.agent_files import builtin_agents
from subagents_nb.cli import main
from subagents_nb.errors import RequestError
from subagents_nb.notebook.magics.magics import magics_of
from subagents_nb.notebook.verbs.table import VERBS


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the project below a home folder of the test's own, in which it works."""
    project = tmp_path / "home" / "work"
    (project / ".subagents").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(project)
    return project


def found(name: str) -> Any:
    return next((agent for agent in agents().agents if agent.name == name), None)


def settings_text(folder: Path) -> Path:
    path = folder / ".subagents" / "settings.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


# --- create -----------------------------------------------------------------------------------------------------


def test_a_new_agent_is_there_at_once_and_says_what_was_said(place: Path) -> None:
    made = create_agent(
        "titrator", "You titrate.\n", description='Reads "curves": all', tools=("read", "python"), thinking="low"
    )
    assert str(made) == "titrator: created: ~/.subagents/agents/titrator.md"
    agent = found("titrator")
    assert (agent.description, agent.tools, agent.thinking) == ('Reads "curves": all', ("read", "python"), "low")
    assert (agent.prompt, agent.source, agent.model) == ("You titrate.", "user", None)


def test_a_cell_and_a_terminal_write_the_same(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    magics = magics_of(VERBS)(shell=None).magics
    receipt = magics["cell"]["subagent_create"]("one --description 'Looks.' --scope project", "You look.\n")
    assert repr(receipt) == "one: created: .subagents/agents/one.md"
    assert main(["create", "two", "You look.", "--description", "Looks."]) == 0
    assert capsys.readouterr().out == "two: created: ~/.subagents/agents/two.md\n"
    one, two = (place / ".subagents/agents/one.md").read_text(), found("two")
    assert two.prompt == found("one").prompt == "You look."
    assert one.startswith('---\nname: "one"\ndescription: "Looks."\n---\nYou look.')


@pytest.mark.parametrize(
    ("how", "why"),
    [
        ({"name": "a b"}, "field `name` must be 1 to 64 letters"),
        ({"description": " "}, "An agent has a name and a description"),
        ({"tools": "read, WebSearch"}, "there are no tools WebSearch"),
        ({"thinking": "enormous"}, "field `thinking` must be off"),
        ({"scope": "world"}, "There is no scope 'world'; there are user and project."),
        ({"prompt": "x" * 70_000}, "the file is larger than 64 KiB"),
    ],
)
def test_what_would_be_no_agent_is_not_written(place: Path, how: dict[str, str], why: str) -> None:
    with pytest.raises(RequestError, match=why):
        create_agent(**{"name": "x", "prompt": "p", "description": "d", **how})
    assert not (place.parent / ".subagents" / "agents").exists()


def test_no_file_and_no_agent_is_written_over(place: Path) -> None:
    create_agent("x", "p", description="d")
    with pytest.raises(RequestError, match=r"There is an agent 'x' already; edit its file: ~/.subagents/agents/x.md"):
        create_agent("x", "q", description="d")
    (place.parent / ".subagents/agents/notes.md").write_text("# Notes")
    with pytest.raises(RequestError, match=r"There is a file ~/.subagents/agents/notes.md already"):
        create_agent("notes", "q", description="d")


def test_nothing_is_written_where_a_link_leads_out_of_the_project(place: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (place / ".subagents" / "agents").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(RequestError, match="is a link that leads out of the project"):
        create_agent("x", "p", description="d", scope="project")


# --- eject ------------------------------------------------------------------------------------------------------


def test_a_built_in_agent_is_copied_whole_and_stands_behind_the_copy(place: Path) -> None:
    made = eject_agent("scout")
    assert str(made) == "scout: copied: ~/.subagents/agents/scout.md; it stands before builtin:scout"
    (original,) = (agent for agent in builtin_agents() if agent.name == "scout")
    assert found("scout").digest() == original.digest()
    assert found("scout").source == "user"
    with pytest.raises(RequestError, match=r"is no built-in or installed one; edit it where it is: ~/.subagents"):
        eject_agent("scout", scope="project")


def test_an_installed_agent_is_copied_too(place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site = tmp_path / "lib" / "site-packages"
    (site / "lab-1.0.dist-info").mkdir(parents=True)
    (site / "lab-1.0.dist-info" / "entry_points.txt").write_text("[subagents_nb.agents]\nmine = lab.agents\n")
    (site / "lab" / "agents").mkdir(parents=True)
    text = "---\nname: titrator\ndescription: d\n---\nYou titrate.  \n"
    (site / "lab" / "agents" / "any.md").write_text(text)
    monkeypatch.setattr(sys, "path", [*sys.path, str(site)])
    made = eject_agent("titrator")
    assert made.path.read_text() == text
    assert str(made) == "titrator: copied: ~/.subagents/agents/titrator.md; it stands before package:titrator"


def test_a_copy_that_a_project_may_not_bring_yet_says_so(place: Path) -> None:
    made = eject_agent("worker", scope="project")
    assert made.remark.startswith(
        "not used: it takes the name of the agent 'worker' that is built in; look at it with %subagent_trust"
    )


# --- disable and enable -----------------------------------------------------------------------------------------


def test_an_agent_is_switched_off_and_on_and_the_file_is_otherwise_as_it_was(place: Path) -> None:
    path = settings_text(place.parent)
    text = '# mine\ndefault_model = "openai:gpt-5"  # cheap\n\n[agents.worker]\nthinking = "low"\n'
    text += '\n[endpoints.lab]\nbase_url = "http://x"\n'
    path.write_text(text)
    path.chmod(0o640)
    assert str(disable_agent("scout")) == "scout: disabled: ~/.subagents/settings.toml"
    assert found("scout") is None
    assert disable_agent("scout").done == "already disabled"
    assert path.read_text() == text + "\n[agents.scout]\ndisabled = true\n"
    assert enable_agent("scout").done == "enabled"
    assert path.read_text() == text
    assert path.stat().st_mode & 0o777 == 0o640
    assert found("scout") is not None


@pytest.mark.parametrize(
    "before",
    [
        "",
        "[agents.worker]\n# why\nthinking = 'low'",
        "[agents.'worker']\ndisabled = false\nthinking = 'low'\n[reuse_not]\n",
        "[ agents . worker ]  # x\n[agents.scout]\ndisabled = true\n",
        "[agents]\n[agents.scout]\nthinking = 'low'\n",
    ],
)
def test_whatever_stands_there_it_says_afterwards_what_was_meant(place: Path, before: str) -> None:
    path = settings_text(place)
    path.write_text(before.replace("[reuse_not]\n", ""))
    old = tomllib.loads(path.read_text())
    disable_agent("worker", scope="project")
    new = tomllib.loads(path.read_text())
    assert new["agents"].pop("worker").pop("disabled") is True
    assert new["agents"].get("scout") == old.get("agents", {}).get("scout")
    enable_agent("worker", scope="project")
    assert "disabled" not in tomllib.loads(path.read_text()).get("agents", {}).get("worker", {})


def test_what_is_written_another_way_is_left_to_the_person(place: Path) -> None:
    path = settings_text(place)
    path.write_text("agents = {worker = {thinking = 'low'}}\n")
    with pytest.raises(RequestError, match=r"write yourself, below \[agents.worker\]: disabled = true"):
        disable_agent("worker", scope="project")
    assert path.read_text() == "agents = {worker = {thinking = 'low'}}\n"
    path.write_text("agents = [")
    with pytest.raises(RequestError, match="is not TOML"):
        disable_agent("worker", scope="project")


def test_to_enable_says_what_else_disables_it(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    disable_agent("scout")
    disable_agent("scout", scope="project")
    assert main(["enable", "scout"]) == 0
    assert "scout: enabled: ~/.subagents/settings.toml; still not to be used: " in (told := capsys.readouterr().out)
    assert "it is disabled by [agents.scout] in .subagents/settings.toml" in told
    with pytest.raises(RequestError, match=r"No agent is named 'scuot'. Did you mean scout\?"):
        enable_agent("scuot")


def test_what_settings_say_is_shown_with_its_file_in_the_list_and_in_a_plan(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings_text(place.parent).write_text("[agents.scout]\nthinking = 'high'\n")
    assert main(["agents"]) == 0
    assert "scout: thinking by ~/.subagents/settings.toml" in capsys.readouterr().out
    plan = preflight("scout", "Look.", model="scripted:echo").plan
    assert plan is not None and plan.steps[0].thinking == "high"
    assert "Agent scout: thinking by [agents.scout] in ~/.subagents/settings.toml." in plan.notes


def test_the_list_has_who_is_switched_off(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    disable_agent("scout")
    assert main(["agents"]) == 0
    told = capsys.readouterr().out
    assert "1 disabled" in told
    assert "scout: it is disabled by [agents.scout] in ~/.subagents/settings.toml" in told
