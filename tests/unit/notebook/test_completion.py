"""What is offered behind our magics. The store is empty here; runs are completed in tests/notebook."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel
from support import make_plan, make_recovery
from typing_extensions import TypedDict

from subagents_nb.catalog.agent_files import builtin_agents
from subagents_nb.notebook.completion import agents_in_body, candidates
from subagents_nb.store import create_run, open_home


class Findings(BaseModel):
    items: list[str]


class Row(TypedDict):
    a: int


@dataclasses.dataclass
class Point:
    x: int


VARIABLES: dict[str, Any] = {
    "Findings": Findings, "BaseModel": BaseModel, "Row": Row, "Point": Point,
    "text": "x", "other": {}, "_hidden": Findings,
    "plain": {"type": "object", "properties": {"a": {"type": "integer"}}},
}  # fmt: skip


@pytest.fixture(autouse=True)
def somewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("data", ".git", "my notes"):
        (tmp_path / "work" / name).mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("SUBAGENTS_NB_HOME", str(tmp_path / "store"))


AGENTS = [agent.name for agent in builtin_agents()]


def words(text: str) -> list[str]:
    found = candidates(text, VARIABLES)
    assert found is not None
    return [word for word, _ in found[1]]


def test_agents_come_first_and_then_the_flags() -> None:
    found = words("%%subagent ")
    assert found[: len(AGENTS)] == AGENTS
    assert "--model" in found


def test_verbs_about_agents_offer_them_and_where_to_write() -> None:
    assert "scout" in words("%subagent_eject ")
    assert "scout" not in words("%subagent_eject scout ")
    assert "scout" not in words("%%subagent_create ")
    assert words("%subagent_disable scout --scope ") == ["user", "project"]


def test_a_second_agent_is_not_offered() -> None:
    assert "scout" not in words("%%subagent scout ")
    assert "--model" in words("%%subagent scout ")
    assert "scout" in words("%%subagent --model scripted:echo ")


@pytest.mark.parametrize(
    ("text", "offered"),
    [
        ("%%subagent --mo", ["--model"]),
        ("%subagent --mo", ["--model"]),
        ("x = %subagent --mo", ["--model"]),
        ("%%subagent sc", ["scout"]),
        ("%%subagent --model scripted:e", ["scripted:echo"]),
        ("%%subagent --model=scripted:e", ["scripted:echo"]),
        ("%%subagent --inputs ", ["text", "other", "plain"]),
        ("%%subagent --schema ", ["Findings", "Row", "Point", "plain"]),
        ("%subagent_attach --schema F", ["Findings"]),
        ("%%subagent --thinking m", ["minimal", "medium", "max"]),
        ("%%subagent --cwd ", [".", "data/", "'my notes/'"]),
        ("%subagent_status --state re", ["rejected"]),
        ("%subagent_status --n", ["--notebook", "--number"]),
        ("%subagent_stop --r", ["--reason"]),
        ("%subagent_doctor ", ["--help", "-h"]),
        ("%%subagent_steer work --f", ["--follow-up"]),
        ("%subagent_answer work --q", ["--question"]),
        ("run = %subagent_resume work --max", ["--max-requests"]),
        ("%subagent_retune work --to", ["--tokens", "--tool-timeout"]),
        ("%subagent_stop work --s", ["--step"]),
        ("%%subagent_chain --max-c", ["--max-children"]),
        ("%subagent_interrupt work --re", ["--reason"]),
        ("%subagent_again work --w", ["--wait"]),
        ("%subagent_drain work --h", ["--help"]),
        ("%%subagent --no-", ["--no-queue"]),
        ("%%subagent --acceptance ", ["attested", "checked", "off"]),
        ("%%subagent --output-mode f", ["file-only"]),
        ("%%subagent --reads d", ["data/"]),
        ("%%subagent --worktr", ["--worktree"]),
        ("%%subagent --bind ", []),
        ("%subagent_diff work --", ["--help", "--step"]),
        ("%subagent_apply work --c", ["--check"]),
        ("%subagent_discard work --s", ["--step"]),
        ("%%subagent -o ", []),
        ("%%subagent --name ", []),
    ],
)
def test_what_fits_is_offered(text: str, offered: list[str]) -> None:
    assert words(text) == offered


@pytest.mark.parametrize(
    "text",
    [
        "", "subagent --", "x = 1", "%%bash --", "%subagents --", "%subagent_comparison --", "# %subagent --",
        "%subagent", "%subagent scout -- the task --mo", "%subagent_steer work -- --fo", "print('%subagent --')",
    ],
)  # fmt: skip
def test_nothing_is_offered_elsewhere(text: str) -> None:
    assert candidates(text, VARIABLES) is None


def test_every_offer_says_what_it_means() -> None:
    found = candidates("%%subagent ", VARIABLES)
    assert found is not None
    assert all(meaning for word, meaning in found[1])


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("- agent: sc", ["scout"]),
        ("    agent: ", AGENTS),
        ("- sc", ["scout"]),
        ("  - rev", ["reviewer"]),
        ("  each: {rev", ["reviewer"]),
        ("- {label: x, agent: wo", ["worker"]),
    ],
)
def test_agents_are_offered_in_the_body_of_a_chain(line: str, offered: list[str]) -> None:
    found = agents_in_body(line, VARIABLES)
    assert found is not None
    assert [word for word, _ in found[1]] == offered


@pytest.mark.parametrize("line", ["- scout: Look at sc", "  task: sc", "sc", "- agent: scout x", "- zzz"])
def test_elsewhere_in_a_body_nothing_is_offered(line: str) -> None:
    assert agents_in_body(line, VARIABLES) is None


def test_a_conversation_to_refer_to_is_offered_by_the_runs_that_are_there(tmp_path: Path) -> None:
    create_run(open_home(), make_plan(1, name="findings"), make_recovery(1))
    assert words("%%subagent worker --fork ") == ["findings"]


def test_what_the_project_has_is_offered_by_name() -> None:
    Path(".subagents/scripts").mkdir(parents=True)
    for name in ("mine.json", "not mine.json"):
        Path(".subagents/scripts", name).write_text("[]")
    for folder in (".claude/skills/totals", "../.agents/skills/charts"):
        Path(folder).mkdir(parents=True)
        Path(folder, "SKILL.md").write_text("")
    for text, offered in {
        "%%subagent scout --model scripted:m": ["scripted:mine"],
        "%%subagent scout --model scripted:n": [],
        "%%subagent scout --skills ": ["totals", "charts"],
        "%%subagent scout --tools re": ["read"],
        "%%subagent scout --deny b": ["bash"],
        "%%subagent scout --agents rev": ["reviewer"],
    }.items():
        found = candidates(text, VARIABLES)
        assert found is not None and [word for word, _ in found[1]] == offered, text
