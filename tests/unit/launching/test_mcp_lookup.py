"""Where MCP servers are defined, who outranks whom, and what of a project's waits for a yes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from subagents_nb import launching
from subagents_nb.catalog import load_settings
from subagents_nb.catalog.scopes.mcp_files import mcp_servers
from subagents_nb.store import StoreHome


@pytest.fixture
def project(store_home: StoreHome) -> Path:
    here = Path.cwd()
    (here / ".git").mkdir()
    settings(Path.home(), "[mcp.files]\ncommand = 'mine'\n[mcp.own]\ncommand = 'own'\n")
    agents = Path.home() / ".subagents/agents"
    agents.mkdir()
    (agents / "user.md").write_text("---\nname: user\ndescription: d\ntools: mcp:files\n---\nwork\n")
    (agents / "other.md").write_text("---\nname: other\ndescription: d\ntools: mcp:own\n---\nwork\n")
    return here


def settings(folder: Path, text: str) -> None:
    (folder / ".subagents").mkdir(exist_ok=True)
    (folder / ".subagents/settings.toml").write_text(text)


def define(folder: Path, **servers: object) -> None:
    (folder / ".mcp.json").write_text(json.dumps({"mcpServers": servers}))


def commands(cwd: Path) -> dict[str, str | None]:
    found = mcp_servers(cwd, load_settings(cwd, environ={}).mcp)
    return {name: one.command for name, one in found.servers.items()}


def refused(name: str = "user") -> str:
    return "; ".join(launching.preflight(name, "t", model="scripted:echo").reasons)


def test_the_nearest_definition_counts(project: Path) -> None:
    inner = project / "inner"
    inner.mkdir()
    assert commands(inner) == {"files": "mine", "own": "own"}
    define(project, files={"command": "far"}, more={"command": "more"})
    assert commands(inner) == {"files": "far", "own": "own", "more": "more"}
    define(inner, files={"command": "near"})
    assert commands(inner)["files"] == "near" and commands(project)["files"] == "far"
    settings(project, "[mcp.files]\ncommand = 'settings'\n")
    assert commands(inner)["files"] == "settings"


def test_a_broken_file_hides_what_it_might_define(project: Path) -> None:
    (project / ".mcp.json").write_text("{")
    assert mcp_servers(project, ()).broken[0].startswith(".mcp.json is no JSON")
    define(project, files={"command": 1})
    found = mcp_servers(project, load_settings(project, environ={}).mcp)
    assert (
        "files" not in found.servers
        and "MCP server 'files' (.mcp.json): `command` must be text" in found.problems["files"]
    )
    assert "`command` must be text" in refused() and refused("other") == ""


def test_settings_that_define_a_server_wrongly_refuse_with_file_and_key(project: Path) -> None:
    settings(project, "[mcp.files]\ncomand = 'x'\n")
    assert ".subagents/settings.toml: `mcp.files`: `comand` is unknown" in refused("other")


def test_ones_own_servers_are_not_asked_for_and_a_projects_are_again_when_a_byte_changes(project: Path) -> None:
    assert refused() == ""
    (project / "server.py").write_text("one")
    define(project, files={"command": "python", "args": ["server.py"]})
    said = "MCP server files (python server.py)"
    assert said in refused() and refused("other") == "", "of what is not used nothing is asked"
    shown = launching.trust()
    assert '+command = "python"' in shown.differences and "+one" in shown.differences
    assert launching.trust(contents=True).ok and refused() == ""

    (project / "server.py").write_text("two")
    assert "changed" in refused() and "-one\n+two" in launching.trust().differences
    launching.trust(contents=True)
    define(project, files={"command": "python", "args": ["server.py", "--all"]}, more={"command": "x"})
    assert said.replace("server.py", "server.py --all").replace(")", "; changed)") in refused()
    assert launching.trust(["files"], contents=True).done == "allowed as they are: MCP server files"
    assert refused() == ""


def test_who_allows_a_server_sees_each_file_as_it_is_started(project: Path, tmp_path: Path) -> None:
    (project / "bin").mkdir()
    (project / "bin/srv").write_text("echo by the path")
    (tmp_path / "elsewhere.py").write_text("")
    (project / "link.py").symlink_to(tmp_path / "elsewhere.py")
    args = ["two words", "a\nb", "\u202egnp.py", "link.py"]
    define(project, files={"command": "srv", "args": args, "env": {"PATH": "bin:${PATH}"}})
    shown = launching.trust().differences
    assert "+echo by the path" in shown and f"+a link to {tmp_path / 'elsewhere.py'}" in shown
    assert '"two words","a\\nb"' in shown and "\u202e" not in shown
    assert "srv 'two words' 'a b'" in refused()


def test_an_agent_of_a_project_that_has_tools_of_a_server_acts(project: Path) -> None:
    (project / ".agents").mkdir()
    (project / ".agents/theirs.md").write_text("---\nname: theirs\ndescription: d\ntools: mcp:own\n---\nwork\n")
    assert "agent theirs (mcp:own)" in refused("theirs")


@pytest.mark.parametrize(
    "definition",
    [
        {"command": "python", "args": ["srv.py"], "cwd": "tools"},
        {"command": "node", "args": ["--require=./tools/srv.py"]},
        {"command": "python", "args": ["${MISSING:-tools/srv.py}"]},
        {"command": "python", "env": {"LD_PRELOAD": "./tools/srv.py"}},
        {"command": "python", "args": ["{here}/tools/srv.py"]},
        {"command": "python", "args": ["${DIR}/srv.py"], "env": {"DIR": "tools"}},
        {"command": "srv.py", "env": {"PATH": "./tools:${PATH}"}},
    ],
)
def test_a_file_that_a_server_names_anywhere_is_asked_for_again(project: Path, definition: dict[str, object]) -> None:
    server = project / "tools" / "srv.py"
    server.parent.mkdir()
    server.write_text("x" * 1_500_000 + "one")  # what changes lies far behind its beginning
    text = json.dumps({"mcpServers": {"files": definition}}).replace("{here}", str(project))
    (project / ".mcp.json").write_text(text)
    launching.trust(contents=True)
    assert refused() == ""
    server.write_text("x" * 1_500_000 + "two")
    assert "changed" in refused()
