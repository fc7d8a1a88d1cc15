"""What is offered behind our magics. The store is empty here; runs are completed in tests/notebook."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pydantic import BaseModel
from support import make_plan, make_recovery
from typing_extensions import TypedDict

from subagents_nb.catalog.agent_files import builtin_agents
from subagents_nb.notebook.completion import candidates, in_body, make_matcher
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


def in_chain(*lines: str) -> dict[str, str]:
    found = in_body(lines, VARIABLES)
    return {} if found is None else dict(found[1])


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("- agent: sc", ["scout"]),
        ("    agent: ", AGENTS),
        ("- sc", ["scout", "schema"]),
        ("  - rev", ["reviewer"]),
        ("  each: {rev", ["reviewer"]),
        ("- {label: x, agent: wo", ["worker"]),
        ("- {label: x, tas", ["task"]),
        ("- {label: x, acceptance: ch", ["checked"]),
        ("- expand: {from: {output: a, p", ["path"]),
        ("- expand: {from: {output: a}, ", ["path", "item", "key", "max_items", "on_empty"]),
        ("  thinking: lo", ["low"]),
        ("  tools: [read, gr", ["grep"]),
        ("  schema: Fi", ["Findings"]),
        ("st", ["steps"]),
    ],
)
def test_agents_keys_and_values_are_offered_in_the_body_of_a_chain(line: str, offered: list[str]) -> None:
    assert list(in_chain(line)) == offered


@pytest.mark.parametrize(
    ("body", "some", "none"),
    [
        ("- ", {"scout", "task", "parallel", "expand", "attach"}, {"steps", "each"}),
        ("- scout: x\n  ", {"label", "as", "worktree", "max_requests"}, {"parallel", "scout"}),
        ("- scout: x\n- ", {"scout", "parallel"}, set()),
        ("- scout:\n    ", {"task", "label"}, {"agent", "scout"}),
        ("- agent: scout\n  lab", {"label"}, {"agent"}),
        ("- parallel:\n    - ", {"scout", "task"}, {"parallel", "expand"}),
        ("- parallel:\n  - scout: x\n    ", {"label", "count"}, {"parallel", "fail_fast"}),
        ("- parallel:\n  - scout: x\n  ", {"fail_fast", "concurrency"}, {"task", "scout", "parallel"}),
        ("- expand: {from: {output: a}}\n  ", {"each", "collect"}, {"expand", "task"}),
        ("- expand:\n    ", {"from", "max_items"}, {"scout", "task"}),
        ("- expand:\n    from: {output: a}\n  each:\n    ", {"scout", "task"}, {"expand"}),
        ("- expand:\n    from: {output: a}\n  collect:\n    ", {"as", "schema"}, {"each"}),
        ("- attach:\n    ", {"run", "step"}, {"task"}),
        ("task: x\nsteps:\n- ", {"scout", "parallel"}, {"attach:"}),
        ("task: x\nsteps:\n  - scout: x\n    max-c", set(), {"max_children"}),
        ("- scout: x\n  max-r", {"max_requests"}, {"max_children"}),
        ("task: x\n", {"steps", "attach"}, {"task", "scout"}),
    ],
)
def test_the_keys_of_the_mapping_at_hand_are_offered(body: str, some: set[str], none: set[str]) -> None:
    offered = set(in_chain(*body.split("\n")))
    assert some <= offered and not none & offered
    if body.endswith("x\n  "):
        assert "as" in offered  # what stands there already is not offered again, what does not is


@pytest.mark.parametrize(
    "body",
    [
        "- scout: Look at sc", "  task: sc", "sc", "- agent: scout x", "- zzz", "- scout: |\n    ta",
        "- scout: Look at\n    the ta", "- tools:\n  - ", "# - sc", "- acceptance:\n    ", "",
    ],
)  # fmt: skip
def test_elsewhere_in_a_body_nothing_of_agents_is_offered(body: str) -> None:
    assert not set(in_chain(*body.split("\n"))) - {"task", "steps", "attach"}


def test_every_key_of_a_chain_says_what_it_is() -> None:
    for body in ("- ", "- parallel:\n  - scout: x\n  ", "- expand: {}\n  ", "- expand: {", "- attach: {", ""):
        assert not [key for key, meaning in in_chain(*body.split("\n")).items() if meaning.strip().endswith(":")]


def test_the_shell_is_told_the_order_and_what_each_word_is() -> None:
    shell = SimpleNamespace(user_ns=VARIABLES)
    matcher = make_matcher(shell)

    def offers(text: str) -> list[tuple[str, str]]:
        lines = text.split("\n")
        context = SimpleNamespace(full_text=text, cursor_line=len(lines) - 1, cursor_position=len(lines[-1]))
        result = matcher(context)
        assert result["ordered"] and result["suppress"]
        return [(one.text, one.type) for one in result["completions"]]

    first = offers("%%subagent ")
    assert [word for word, _ in first[: len(AGENTS)]] == AGENTS
    assert all(kind.startswith("agent: ") for _, kind in first[: len(AGENTS)])
    assert all(kind.startswith("flag: ") and 6 < len(kind) <= 72 for _, kind in first[len(AGENTS) :])
    assert dict(offers("%%subagent_chain\n- scout: x\n  la"))["label"] == "key: what views call it"
    assert matcher(SimpleNamespace(full_text="%%subagent\n- sc", cursor_line=1, cursor_position=4))["suppress"] is False


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
