"""Which MCP servers a step has: by any spelling of their tools, as they are defined, bound by its contract."""

from __future__ import annotations

from typing import Any

import pytest

from subagents_nb.catalog.parse import parse_agent
from subagents_nb.domain.agents.acting import Acting
from subagents_nb.domain.agents.agent import READ_TOOLS, AgentCatalog, AgentDefinition, AgentProblem
from subagents_nb.domain.agents.mcp_servers import AllowedFiles, McpServer, McpServers
from subagents_nb.domain.agents.settings import Settings
from subagents_nb.domain.mcp.definitions import read_server
from subagents_nb.domain.plans.flow import Chain, Step
from subagents_nb.domain.plans.plan import Draft, LaunchRequest
from subagents_nb.domain.policy.policy import Ceiling
from subagents_nb.errors import LaunchRefused
from subagents_nb.planning import LaunchEnvironment, draft
from subagents_nb.planning.launch_environment import FolderLookup

FILES = McpServer(name="files", where="~/.subagents/settings.toml", command="files", args=("--root", "."))


def read(*lines: str) -> AgentDefinition | AgentProblem | None:
    head = "\n".join(["---", "name: user", "description: d", *lines, "---", "work"])
    return parse_agent(head, where="~/.subagents/agents/user.md", source="user")


def plan(
    *lines: str,
    servers: tuple[McpServer, ...] = (FILES,),
    known: dict[str, Any] | None = None,
    ceilings: tuple[Ceiling, ...] = (),
    **asked: Any,
) -> Draft:
    agent = read(*lines)
    assert isinstance(agent, AgentDefinition), agent
    where = asked.pop("cwd_of_step", None)
    request = LaunchRequest.model_validate({"agent": "user", "task": "t", "model": "scripted:echo", **asked})
    if where is not None:
        flow = Chain(items=(Step(agent="user", task="t", cwd=where),))
        request = request.model_copy(update={"flow": flow, "agent": None})
    mcp = McpServers(servers={one.name: one for one in servers}, **(known or {}).pop("mcp", {}) if known else {})
    facts = LaunchEnvironment(**{"cwd": "/home/me/w", "scripts": frozenset({"echo"}), "mcp": mcp, **(known or {})})
    return draft(
        request, catalog=AgentCatalog(agents=(agent,)), settings=Settings(ceilings=ceilings), environment=facts
    )


def refused(*lines: str, **more: Any) -> str:
    with pytest.raises(LaunchRefused) as caught:
        plan(*lines, **more)
    return "; ".join(caught.value.reasons)


@pytest.mark.parametrize("written", ["mcp:files", "mcp__files", "mcp:files/*", "mcp__files__*", "MCP:files"])
def test_a_server_is_named_in_any_spelling(written: str) -> None:
    (step,) = plan(f"tools: read, {written}").steps
    assert step.tools == ("read", "mcp__files") and step.mcp == (FILES,)


@pytest.mark.parametrize("written", ["mcp:files/read_text", "mcp__files__read_text"])
def test_so_is_a_tool_of_one(written: str) -> None:
    (step,) = plan(f"tools: {written}").steps
    assert step.tools == ("mcp__files__read_text",)
    assert plan("tools: mcp:files", tools=[written]).steps[0].policy is not None


def test_the_servers_of_a_file_come_beside_the_tools_it_names() -> None:
    assert plan("mcpServers: [files]").steps[0].tools == (*READ_TOOLS, "mcp__files")
    assert plan("tools: mcp:files/read", "mcpServers: files").steps[0].tools == ("mcp__files__read",)
    (own,) = plan("tools: read", "mcpServers: [{mine: {command: x, args: [y]}}]", servers=()).steps[0].mcp
    assert (own.name, own.command, own.args, own.source) == ("mine", "x", ("y",), "user")
    shadowed = plan("mcpServers: {files: {command: other}}").steps[0].mcp
    assert shadowed[0].command == "other", "what a file defines is nearer than settings"
    problem = read("mcpServers: {files: {command: x, url: http://y}}")
    assert isinstance(problem, AgentProblem) and "field `mcpServers`" in problem.error and "files" in problem.error


def test_what_a_file_denies_of_a_server_is_denied() -> None:
    whole = plan("tools: read, mcp:files", "disallowedTools: mcp:files").steps[0]
    assert whole.tools == ("read",) and whole.mcp == ()
    part = plan("tools: mcp:files", "disallowedTools: mcp__files__write").steps[0]
    assert part.policy is not None and part.policy.who_forbids_tool("mcp__files__write")
    assert part.policy.who_forbids_tool("mcp__files__read") is None


def test_a_policy_that_allows_some_tools_of_a_server_leaves_it_and_judges_each_call() -> None:
    allowing = Ceiling(origin="me", tools=("read", "mcp__files__read"))
    (step,) = plan("tools: mcp:files, mcp:other", servers=(FILES,), ceilings=(allowing,)).steps
    assert step.tools == ("mcp__files",) and step.policy is not None
    assert step.policy.who_forbids_tool("mcp__files__write") and not step.policy.who_forbids_tool("mcp__files__read")


def test_a_server_that_is_nowhere_is_noted_unless_the_launch_names_it() -> None:
    draft = plan("tools: read, mcp:fils")
    assert draft.steps[0].tools == ("read",)
    assert "Agent user goes without mcp:fils: there is no MCP server 'fils'; did you mean files?." in draft.notes
    assert "there is no MCP server 'fils'" in refused("tools: mcp:fils", tools=["mcp:fils"])
    assert "files/x is asked for; agent user" in refused("tools: read", tools=["mcp:files/x"])


def test_a_definition_that_cannot_be_used_is_a_reason() -> None:
    problems = {"bad": "MCP server 'bad' (.mcp.json): `args` must be a list, not 'x'"}
    assert "`args` must be a list" in refused("tools: mcp:bad", known={"mcp": {"problems": problems}})
    broken = {"broken": (".mcp.json is no JSON: x",)}
    assert ".mcp.json is no JSON" in refused("tools: mcp:gone", known={"mcp": broken})
    assert plan("tools: read", known={"mcp": broken}).steps[0].mcp == (), "who needs none is not kept from beginning"


def test_a_disabled_server_is_gone_without() -> None:
    off = FILES.model_copy(update={"disabled": True})
    draft = plan("tools: read, mcp:files", servers=(off,))
    assert draft.steps[0].tools == ("read",) and "disabled in ~/.subagents/settings.toml" in draft.notes[0]


def test_without_the_extra_or_a_variable_nothing_begins() -> None:
    text = 'MCP servers need an extra: pip install "subagents-nb[mcp]"'
    assert plan("tools: mcp:files", known={"missing_extras": frozenset({"mcp"})}).start_problems == (text,)
    asking = FILES.model_copy(update={"env": {"TOKEN": "${LAB}", "MAY": "${OTHER:-x}"}})
    (problem,) = plan("tools: mcp:files", servers=(asking,)).start_problems
    assert "the variable LAB, which is not set" in problem
    there = {"environ_names": frozenset({"LAB"})}
    assert plan("tools: mcp:files", servers=(asking,), known=there).start_problems == ()


def test_the_contract_binds_command_arguments_and_names_of_variables() -> None:
    def digest(server: McpServer) -> str:
        return plan("tools: mcp:files", servers=(server,)).digest

    base = FILES.model_copy(update={"env": {"A": "1"}})
    assert digest(base) == digest(base.model_copy(update={"env": {"A": "2"}, "where": "elsewhere"}))
    changed = ({"command": "x"}, {"args": ("y",)}, {"env": {"B": "1"}}, {"env": {"A": "${C:-}"}}, {"cwd": "z"})
    digests = {digest(base.model_copy(update=update)) for update in changed}
    assert digest(base) not in digests and len(digests) >= 4
    assert "mcp" not in plan("tools: read").steps[0].contract(), "older digests stay as they are"


@pytest.mark.parametrize(("folder", "way"), [(None, ".."), ("a/b", "../../..")])
def test_a_plan_holds_what_was_allowed_of_a_projects_server(folder: str | None, way: str) -> None:
    server = FILES.model_copy(update={"where": ".mcp.json", "source": "project"})
    facts = {
        "brought": (server.acting({"server.py": "1" * 64}),),
        "project_root": "/home/me",
        "way_to_root": "..",
        "folders": {"a/b": FolderLookup(path="a/b")},
    }
    draft = plan("tools: mcp:files", servers=(server,), known=facts, cwd_of_step=folder)
    (found,) = draft.steps[0].mcp
    assert found.allowed == AllowedFiles(project="/home/me", way=way, files={"server.py": "1" * 64})
    (child,) = plan(
        "tools: mcp:files", "agents: user", servers=(server,), known=facts, cwd_of_step=folder
    ).steps[0].children  # fmt: skip
    assert child.mcp[0].allowed == found.allowed, "it works where whoever delegates to it does"
    bare = plan("tools: mcp:files", servers=(server,), cwd_of_step=folder, known={"folders": facts["folders"]})
    assert bare.steps[0].mcp[0].allowed is None and bare.digest == draft.digest, "no contract binds it"
    assert plan("tools: mcp:files", known={"brought": facts["brought"]}).steps[0].mcp == (FILES,), "one's own"


def test_a_plan_holds_the_script_that_was_allowed_to_be_the_model() -> None:
    path = ".subagents/scripts/mine.json"
    item = Acting(kind="settings", name="default_model", files={".subagents/settings.toml": "1", path: "2"})
    known = {"brought": (item,), "scripts": frozenset({"mine"})}
    draft = plan("tools: read", known=known, model="scripted:mine")
    assert draft.steps[0].script == {path: "2"}
    assert draft.digest == plan("tools: read", known={"scripts": frozenset({"mine"})}, model="scripted:mine").digest
    assert plan("tools: read", known={"brought": (item,)}).steps[0].script == {}


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ("x", "it must be a table with `command` or `url`, not 'x'"),
        ({}, "`command` or `url` must say how it is reached: one of the two"),
        ({"command": "x", "url": "http://y"}, "one of the two"),
        ({"command": "x", "arguments": []}, "`arguments` is unknown"),
        ({"command": "x", "args": "y z"}, "`args` must be a list"),
        ({"command": 7}, "`command` must be text"),
        ({"type": "sse", "url": "http://y"}, "`type` must be stdio or http"),
        ({"type": "http", "command": "x"}, "`type` says http"),
        ({"url": "ftp://y"}, "`url` must begin with http:// or https://"),
        ({"url": "http://y", "args": ["x"]}, "`args` is for a server that is started"),
        ({"command": "x", "headers": {"A": "b"}}, "`headers` is for a server that is reached by url"),
        ({"command": "x", "args": ["${TOKEN}"]}, "`args[0]` uses ${TOKEN}, which `env` does not name"),
        ({"command": "x", "env": {"API_KEY": "sk-123"}}, "`env.API_KEY` holds a secret"),
        ({"url": "http://y", "headers": {"Authorization": "Bearer abc"}}, "`headers.Authorization` holds a secret"),
        ({"command": "x", "args": ["postgres://me:word@host/db"]}, "`args[0]` holds a secret"),
        ({"command": "x", "env": {"A": "${env:TOKEN}"}}, "`env.A` uses '${env:TOKEN}', for which nothing is put in"),
        ({"url": "http://y", "headers": {"A": "${input:a}"}}, "`headers.A` uses '${input:a}'"),
        ({"command": "x", "args": ["y " * 500]}, "have more than 200 words"),
        ({"command": "x", "env": {"SUBAGENTS_NB_RUN": "r"}}, "`env.SUBAGENTS_NB_RUN` is no variable"),
    ],
)  # fmt: skip
def test_a_bad_definition_is_refused_with_its_key(table: Any, said: str) -> None:
    server, reasons = read_server("x", table, where=".mcp.json", source="project")
    assert server is None and any(said in reason for reason in reasons), reasons


def test_a_good_one_is_read_in_any_spelling() -> None:
    table = {"type": "stdio", "command": "x", "args": ["--key", "${KEY}"], "env": ["KEY"], "alwaysAllow": ["y"]}
    server, reasons = read_server("x", table, where=".mcp.json", source="project")
    assert server is not None and reasons == []
    assert server.env == {"KEY": "${KEY}"} and server.wants == ("KEY",) and server.notes == ("alwaysAllow",)
    bearing = {"type": "http", "url": "https://y/mcp", "headers": {"Authorization": "Bearer ${LAB_TOKEN}"}}
    server, reasons = read_server("x", bearing, where="", source="user")
    assert server is not None and server.wants == ("LAB_TOKEN",) and reasons == []


@pytest.mark.parametrize("name", ["", "a__b", "a b", "-a", "a/b", "x" * 33, "a_"])
def test_a_name_that_could_not_be_found_again_in_the_names_of_its_tools_is_none(name: str) -> None:
    server, reasons = read_server(name, {"command": "x"}, where="", source="user")
    assert server is None and "its name must be" in reasons[0]
