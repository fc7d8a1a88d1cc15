"""The memory of a step: what an agent's file may say of it, where it lies, who may write, what is bound of it."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from subagents_nb.catalog import discover, parse_agent
from subagents_nb.domain.agents.agent import AgentDefinition, AgentProblem
from subagents_nb.domain.agents.memory import MemoryChoice
from subagents_nb.domain.agents.settings import Settings
from subagents_nb.domain.kept.archives import packed
from subagents_nb.domain.plans.plan import Draft, LaunchRequest
from subagents_nb.errors import LaunchRefused
from subagents_nb.launching.gathering.memory_folders import main_checkout, memory_folders
from subagents_nb.planning import LaunchEnvironment, draft
from subagents_nb.planning.launch_environment import FolderLookup
from tests.support import run_id


def written(*lines: str) -> AgentDefinition | AgentProblem | None:
    text = "\n".join(["---", "name: mine", "description: d", *lines, "---", "prompt"])
    return parse_agent(text, where="x.md", source="user")


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (("memory: user",), ("user", "")),
        (("memory: {scope: project, path: team/notes}",), ("project", "team/notes")),
        (("memory:", "  scope: user", "  path: x"), ("user", "x")),
        (("memory: false",), None),
        ((), None),
    ],
)
def test_a_file_says_whose_it_is_and_where(lines: tuple[str, ...], expected: tuple[str, str] | None) -> None:
    agent = written(*lines)
    assert isinstance(agent, AgentDefinition)
    assert agent.memory == (None if expected is None else MemoryChoice(scope=expected[0], path=expected[1]))  # type: ignore[arg-type]


@pytest.mark.parametrize("memory", ["local", "{path: x}", "{scope: team}", "5", "[user]", "{scope: user, depth: 1}"])
def test_what_makes_no_sense_is_told(memory: str) -> None:
    problem = written(f"memory: {memory}")
    assert isinstance(problem, AgentProblem) and "memory" in problem.error


def planned(memory: Any = "user", tools: tuple[str, ...] = ("read",), folder: Any = None, **request: Any) -> Draft:
    choice = {"scope": memory} if isinstance(memory, str) else memory
    mine = {"name": "mine", "description": "d", "memory": choice, "tools": tools, "model": "scripted:echo"}
    catalog = discover(Path("/"), home=Path("/nowhere"), registered=[AgentDefinition.model_validate(mine)])
    places = folder or {"user": FolderLookup(path="/h/memory"), "project": FolderLookup(path="/p/memory")}
    environment = LaunchEnvironment(cwd="/w", scripts=frozenset({"echo"})).model_copy(update={"memory": places})
    asked = LaunchRequest.model_validate({"task": "t", "agent": "mine", **request})
    return draft(asked, catalog=catalog, settings=Settings(), environment=environment)


def test_it_is_the_agents_own_by_its_name_and_only_who_can_write_writes() -> None:
    for tools, writes in ((("read", "grep"), False), ((), False), (("read", "edit"), True), (("python",), True)):
        memory = planned("project", tools).steps[0].memory
        assert memory is not None
        assert (memory.path, memory.folder, memory.writes) == ("mine", "/p/memory", writes)


@pytest.mark.parametrize("path", ["../x", "a/../b", "/etc", "~/x", "a//b", "./x", "c:/x", "a\\b", "a/.."])
def test_a_path_out_of_the_folder_is_refused(path: str) -> None:
    with pytest.raises(LaunchRefused) as caught:
        planned({"scope": "user", "path": path}, task=" ")
    assert f"memory path {path!r} leaves the memory folder" in caught.value.reasons
    assert len(caught.value.reasons) == 2


def test_so_is_a_name_that_no_file_should_have() -> None:
    with pytest.raises(LaunchRefused, match="may hold letters, digits and _"):
        planned({"scope": "user", "path": "my notes"})
    with pytest.raises(LaunchRefused, match="may hold letters, digits and _"):
        planned({"scope": "user", "path": ".lock"})


def test_the_embedded_model_has_none_and_it_is_said() -> None:
    made = planned(model="local:smollm2")
    assert made.steps[0].memory is None
    assert "The embedded model can't call tools, so it has no memory." in made.notes


def test_the_contract_binds_whose_it_is_and_not_where_it_lies_and_no_archive_says_that() -> None:
    here, there = planned(), planned(folder={"user": FolderLookup(path="/other")})
    assert here.digest == there.digest != planned("project").digest
    assert here.steps[0].contract()["memory"] == {"scope": "user", "path": "mine", "writes": False}
    plan = here.to_plan(run_id=run_id(), token="t", created_at="2026-01-01T00:00:00Z")
    assert "/h/memory" not in packed(plan).model_dump_json()
    assert "memory" not in planned(None).steps[0].contract()


def test_in_a_worktree_it_is_the_main_checkouts(tmp_path: Path) -> None:
    main, tree = tmp_path / "main", tmp_path / "tree"
    git = ["git", "-c", "user.name=n", "-c", "user.email=e", "-C", str(main)]
    subprocess.run(["git", "init", "-q", str(main)], check=True)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "m"], check=True)
    subprocess.run([*git, "worktree", "add", "-q", str(tree)], check=True)
    (tree / "sub").mkdir()
    own = {place: memory_folders(place, home=tmp_path / "home") for place in (main, tree, tree / "sub")}
    assert own[tree] == own[main] == own[tree / "sub"]
    assert own[main]["project"].path == str(main / ".subagents/memory")
    assert own[main]["user"].path == str(tmp_path / "home/.subagents/memory")


def test_a_file_that_only_says_it_is_a_worktree_leads_nowhere(tmp_path: Path) -> None:
    other, here = tmp_path / "other", tmp_path / "here"
    (other / ".git/worktrees/x").mkdir(parents=True)
    here.mkdir()
    (here / ".git").write_text(f"gitdir: {other}/.git/worktrees/x\n")
    assert main_checkout(here) == here
    (other / ".git/worktrees/x/commondir").write_text("../..\n")
    (other / ".git/worktrees/x/gitdir").write_text(f"{tmp_path}/elsewhere/.git\n")
    assert main_checkout(here) == here
    (other / ".git/worktrees/x/gitdir").write_text(f"{here}/.git\n")
    assert main_checkout(here) == other


def test_a_memory_folder_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    project = tmp_path / "project"
    (project / ".subagents").mkdir(parents=True)
    (project / ".subagents/memory").symlink_to(tmp_path)
    problem = memory_folders(project, home=tmp_path / "home")["project"].problem
    assert problem == "the memory folder .subagents/memory of this project is a link, and is not followed"
    with pytest.raises(LaunchRefused, match="is a link, and is not followed"):
        planned("project", folder={"project": FolderLookup(problem=problem)})
