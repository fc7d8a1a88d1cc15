"""What a project brings counts if nobody else may write it, and acts only after the person allowed it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from subagents_nb.catalog import agent_files as files
from subagents_nb.catalog import discover, load_settings, project_root
from subagents_nb.domain.agents.agent import AgentCatalog

Write = Callable[..., Path]
NOBODY = 65534
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")


def source(catalog: AgentCatalog, name: str) -> str:
    return next(agent.source for agent in catalog.agents if agent.name == name)


def said(catalog: AgentCatalog) -> str:
    return "\n".join(f"{problem.where}: {problem.error}" for problem in catalog.problems)


# --- names ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["delegate", "scout", "reviewer", "worker", "developer"])
def test_a_project_takes_no_built_in_name_until_it_is_allowed(
    project: Path, home: Path, write_agent: Write, name: str
) -> None:
    write_agent(project / ".agents/x.md", name, "tools: read, bash")
    catalog = discover(project, home=home)
    (problem,) = catalog.problems
    assert (problem.where, problem.name, problem.withheld) == (".agents/x.md", None, name)
    assert "look at it with %subagent_trust, which allows it" in problem.error
    assert {agent.source for agent in catalog.agents} == {"builtin"}

    (home / ".subagents").mkdir()
    (home / ".subagents/settings.toml").write_text(f'trusted_folders = ["{project}"]')
    catalog = discover(project, home=home)
    assert (source(catalog, name), catalog.problems) == ("project", ())


def test_a_broken_file_of_a_project_blocks_no_built_in_agent_either(
    project: Path, home: Path, write_agent: Write
) -> None:
    write_agent(project / ".agents/x.md", "scout", "thinking: huge")
    assert source(discover(project, home=home), "scout") == "builtin"


@pytest.mark.parametrize("acts", ["tools: bash", "tools: python", "acceptance: {verify: [id]}", "tools: read"])
def test_an_agent_that_acts_does_not_stand_in_for_one_of_the_persons_own(
    project: Path, home: Path, write_agent: Write, acts: str
) -> None:
    write_agent(home / ".agents/mine.md", "mine", "tools: read")
    write_agent(project / ".agents/mine.md", "mine", acts)
    catalog = discover(project, home=home)
    assert source(catalog, "mine") == ("project" if acts == "tools: read" else "user")
    assert len(catalog.problems) == len(catalog.held) == (acts != "tools: read")


def test_files_of_the_person_take_any_name(project: Path, home: Path, write_agent: Write) -> None:
    write_agent(home / ".agents/scout.md", "scout", "tools: bash")
    assert source(discover(project, home=home), "scout") == "user"


# --- who may write ----------------------------------------------------------------------------------------------


@needs_root
@pytest.mark.parametrize(
    ("mode", "uid", "gid", "counts"),
    [
        (0o777, 0, 0, False),
        (0o1777, 0, 0, False),
        (0o775, 0, NOBODY, False),
        (0o755, NOBODY, 0, False),
        (0o755, 0, NOBODY, True),
        (0o775, 0, 0, True),
        (0o700, 0, 0, True),
    ],
)
def test_a_folder_above_counts_only_if_nobody_else_may_write_there(
    tmp_path: Path, home: Path, write_agent: Write, mode: int, uid: int, gid: int, counts: bool
) -> None:
    shared, below = tmp_path / "shared", tmp_path / "shared/me/project"
    below.mkdir(parents=True)
    write_agent(shared / ".agents/clerk.md", "clerk")
    (shared / ".subagents").mkdir()
    (shared / ".subagents/settings.toml").write_text("timeout = 7")
    os.chown(shared, uid, gid)
    shared.chmod(mode)

    assert project_root(below, home=home) == (shared if counts else below)
    assert (load_settings(below, home=home, environ={}).timeout_s == 7) is counts
    catalog = discover(below, home=home)
    assert any(agent.name == "clerk" for agent in catalog.agents) is counts
    assert ("../..: agents and settings there do not count" in said(catalog)) is not counts
    assert project_root(shared, home=home) == shared, "who works right there has chosen it"

    (home / ".subagents").mkdir()
    (home / ".subagents/settings.toml").write_text(f'trusted_folders = ["{shared}"]')
    assert project_root(below, home=home) == shared


@needs_root
@pytest.mark.parametrize("path", [".agents", ".agents/team", ".agents/team/clerk.md"])
def test_so_must_every_folder_and_file_of_it(tmp_path: Path, home: Path, write_agent: Write, path: str) -> None:
    root, below = tmp_path / "root", tmp_path / "root/below"
    below.mkdir(parents=True)
    write_agent(root / ".agents/team/clerk.md", "clerk")
    assert source(discover(below, home=home), "clerk") == "project"
    os.chown(root / path, NOBODY, 0)
    catalog = discover(below, home=home)
    assert {agent.source for agent in catalog.agents} == {"builtin"}
    assert said(catalog).startswith(f"{path}: it does not count: it belongs to another user (uid {NOBODY})")


@needs_root
def test_settings_above_that_another_may_write_do_not_count_and_that_is_said(tmp_path: Path, home: Path) -> None:
    root, below = tmp_path / "root", tmp_path / "root/below"
    below.mkdir(parents=True)
    (root / ".subagents").mkdir()
    (root / ".subagents/settings.toml").write_text("timeout = 7")
    (root / ".subagents").chmod(0o777)
    assert load_settings(below, home=home, environ={}).timeout_s != 7
    assert ".subagents/settings.toml: it does not count: everybody may write there" in said(discover(below, home=home))


# --- bounds -----------------------------------------------------------------------------------------------------


def test_a_link_out_of_the_project_is_no_agent(project: Path, home: Path, write_agent: Write, tmp_path: Path) -> None:
    write_agent(tmp_path / "theirs/a.md", "clerk")
    (project / ".agents").mkdir()
    (project / ".agents/a.md").symlink_to(tmp_path / "theirs/a.md")
    (project / ".agents/team").symlink_to(tmp_path / "theirs")
    (project / ".claude").mkdir()
    (project / ".claude/agents").symlink_to(tmp_path / "theirs")
    catalog = discover(project, home=home)
    assert {agent.source for agent in catalog.agents} == {"builtin"}
    assert [problem.where for problem in catalog.problems] == [".agents/a.md", ".agents/team", ".claude/agents"]
    assert "leads out of the project" in said(catalog)


def test_frontmatter_is_bounded_for_each_file_and_for_all_and_what_is_not_read_hides_no_other(
    project: Path, home: Path, write_agent: Write
) -> None:
    write_agent(project / ".agents/big.md", "big", "x: " + "y" * 16_384)
    number = files.MAX_HEADS_BYTES // 15_000
    for one in range(number + 2):
        write_agent(project / f".agents/n{one:02}.md", f"n{one:02}", "x: " + "y" * 15_000)
    write_agent(home / ".agents/last.md", f"n{number + 1:02}")
    for _ in range(2):  # read, and known
        catalog = discover(project, home=home)
        names = [agent.name for agent in catalog.agents if agent.source == "project"]
        assert names == [f"n{one:02}" for one in range(number - 1)]
        assert {problem.name for problem in catalog.problems} >= {"big", f"n{number:02}", f"n{number + 1:02}"}
        assert not any(agent.name == f"n{number + 1:02}" for agent in catalog.agents)
