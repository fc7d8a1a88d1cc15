"""`[agents.NAME]` in settings: what it says stands in place of the file, and a project can only narrow."""

from __future__ import annotations

from pathlib import Path

import pytest

from subagents_nb.catalog.resolve import BrokenAgent, resolve
from subagents_nb.catalog.settings_files import SettingsProblem, load_settings
from subagents_nb.domain.agents.agent import AgentCatalog, AgentDefinition
from subagents_nb.domain.agents.memory import MemoryChoice
from subagents_nb.domain.agents.settings import Settings
from subagents_nb.launching.gathering.usable_agents import usable_agents

USER, PROJECT = "~/.subagents/settings.toml", ".subagents/settings.toml"


class Desk:
    """A home folder and a project below it."""

    def __init__(self, place: Path) -> None:
        self.home, self.project = place / "home", place / "home" / "work"
        for folder in (self.home, self.project):
            (folder / ".subagents").mkdir(parents=True)

    def catalog(self, user: str = "", project: str = "") -> AgentCatalog:
        for folder, text in ((self.home, user), (self.project, project)):
            (folder / ".subagents" / "settings.toml").write_text(text, encoding="utf-8")
        settings = load_settings(self.project, home=self.home, environ={})
        return usable_agents(self.project, settings, home=self.home)

    def agent(self, name: str, user: str = "", project: str = "") -> AgentDefinition:
        return resolve(name, self.catalog(user, project))

    def faults(self, user: str) -> tuple[str, ...]:
        with pytest.raises(SettingsProblem) as caught:
            self.catalog(user)
        return tuple(str(reason) for reason in caught.value.reasons)


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def test_the_person_may_say_all_that_a_file_may_and_the_project_after_them(desk: Desk) -> None:
    user = '[agents.worker]\nmodel = "openai:gpt-5"\neffort = "low"\ntools = ["Read", "Bash"]\n'
    user += 'timeoutMs = 60000\nagents = "scout"'
    agent = desk.agent("worker", user, '[agents.worker]\nthinking = "high"\ntools = "read"')
    assert (agent.model, agent.thinking, agent.tools, agent.timeout_s) == ("openai:gpt-5", "high", ("read",), 60)
    assert agent.agents == ("scout",)
    assert dict(agent.overridden) == {
        "agents": USER, "model": USER, "thinking": PROJECT, "timeout_s": USER, "tools": PROJECT
    }  # fmt: skip


def test_only_what_is_overridden_changes_what_an_agent_is(desk: Desk) -> None:
    plain = desk.agent("worker")
    assert desk.agent("worker", '[agents.worker]\ndescription = "Mine."').digest() == plain.digest()
    assert desk.agent("worker", '[agents.worker]\nmodel = "openai:gpt-5"').digest() != plain.digest()
    assert desk.agent("scout", '[agents.worker]\nmodel = "openai:gpt-5"') == desk.agent("scout")


def test_settings_that_went_through_plain_data_say_the_same(desk: Desk) -> None:
    (desk.home / ".subagents/settings.toml").write_text('[agents.scout]\nmemory = "user"\ntools = "read"\n')
    settings = load_settings(desk.project, home=desk.home, environ={})
    again = Settings.model_validate(settings.model_dump())
    found = [usable_agents(desk.project, one, home=desk.home) for one in (settings, again)]
    assert found[0] == found[1]
    assert isinstance(resolve("scout", found[1]).memory, MemoryChoice)


def test_a_deny_list_is_taken_from_the_agents_own_tools(desk: Desk) -> None:
    agent = desk.agent("worker", '[agents.worker]\ndisallowed_tools = ["Bash", "Python"]')
    assert agent.tools == ("read", "list", "find", "grep", "write", "edit")


def test_a_tool_that_is_granted_in_part_is_not_granted_whole(desk: Desk) -> None:
    agent = desk.agent("worker", '[agents.worker]\ntools = ["read", "Bash(git log:*)"]')
    assert (agent.tools, agent.allow) == (("read", "bash"), ("read", "Bash(git log:*)"))


RULED = "---\nname: {}\ndescription: d\ntools: bash, mcp:old\npermissions:\n  deny: bash(rm:*)\n---\nWork."


def test_permissions_and_servers_are_added_to_those_of_the_file(desk: Desk) -> None:
    (desk.home / ".subagents/agents").mkdir()
    (desk.home / ".subagents/agents/ruled.md").write_text(RULED.format("ruled"), encoding="utf-8")
    user = '[agents.ruled]\npermissions = {ask = "bash", deny = ["bash(git push:*)"]}\n'
    user += 'mcpServers = ["old", {lab = {command = "lab"}}]'
    agent = desk.agent("ruled", user, '[agents.ruled]\npermission = {bash = "deny"}')
    assert (agent.deny, agent.ask) == (("bash(rm:*)", "bash(git push:*)", "bash"), ("bash",))
    assert agent.tools == ("bash", "mcp__old", "mcp__lab")
    (own,) = agent.mcp_servers or ()
    assert (own.name, own.command, own.where, own.source) == ("lab", "lab", USER, "user")
    (desk.home / ".subagents/settings.toml").write_text(user)
    settings = load_settings(desk.project, home=desk.home, environ={})
    again = Settings.model_validate(settings.model_dump())
    found = [usable_agents(desk.project, one, home=desk.home) for one in (settings, again)]
    assert found[0] == found[1]


def test_rules_and_servers_that_a_project_gives_its_own_agents_are_asked_for(desk: Desk) -> None:
    (desk.project / ".agents").mkdir()
    (desk.project / ".agents/own.md").write_text(RULED.format("own"), encoding="utf-8")
    table = '[agents.own]\npermissions = {allow = ["bash(ls:*)"], deny = ["bash(git:*)"]}\nmcpServers = "lab"'
    catalog = desk.catalog(project=table)
    assert "settings agents.own (permissions allow bash(ls:*), mcp:lab)" in [str(held) for held in catalog.held]
    assert desk.catalog(project='[agents.own]\npermissions = {deny = ["bash"]}').held == desk.catalog().held


@pytest.mark.parametrize(
    ("key", "why"),
    [
        ('name = "x"', "`agents.scout.name` is for agent files alone: who an agent is stands in its file"),
        ("readOnly = true", "`agents.scout.readOnly` is for agent files alone: take tools away by"),
        ('permissionMode = "plan"', "`agents.scout.permissionMode` is for agent files alone: take tools away by"),
        ('isolation = "worktree"', "`agents.scout.isolation` is for agent files alone: write `worktree = true`"),
        ('permissions = {deny = ["bash(x"]}', "`agents.scout.permissions`"),
        ("mcpServers = {a = {command = 1}}", "`agents.scout.mcpServers`"),
    ],
)
def test_what_a_table_can_not_say_is_refused_with_the_reason(desk: Desk, key: str, why: str) -> None:
    (fault,) = desk.faults(f"[agents.scout]\n{key}")
    assert why in fault


@pytest.mark.parametrize(
    ("table", "why"),
    [
        ('permissions = {allow = ["bash"], deny = ["read"]}', "permissions allow bash"),
        ('mcpServers = "lab"', "tools adds mcp__lab"),
        ('mcpServers = {lab = {command = "x"}}', "tools adds mcp__lab, mcp_servers is set: starts x"),
        ('tools = "read, bash"', "tools adds bash"),
        ('agents = "worker"', "agents adds worker"),
        ("disabled = false", "disabled is false"),
        ('output = "x.md"', "output is set"),
        ('model = "scripted:mine"', "model is scripted:mine, a script that makes tool calls"),
        (
            'acceptance = {verify = [{id = "a", command = "true"}]}',
            'acceptance is set: verify runs {"command":"true","id":"a"}',
        ),
        ('acceptance = {Verify = ["touch x"]}', "acceptance is set: verify runs touch x"),
    ],
)
def test_a_project_can_not_widen_an_agent_it_did_not_bring_until_it_is_trusted(
    desk: Desk, table: str, why: str
) -> None:
    with pytest.raises(BrokenAgent) as caught:
        desk.agent("scout", project=f"[agents.scout]\n{table}")
    assert f"[agents.scout] in {PROJECT} can't widen what it may do: {why}; look at it with %subagent_trust" in str(
        caught.value
    )
    assert isinstance(desk.agent("worker", project=f"[agents.scout]\n{table}"), AgentDefinition)
    assert isinstance(desk.agent("scout", 'trusted_folders = ["~/work"]', f"[agents.scout]\n{table}"), AgentDefinition)


def test_a_limit_of_the_person_can_be_lowered_by_a_project_and_not_raised(desk: Desk) -> None:
    user = "[agents.scout]\nmax_requests = 10"
    assert desk.agent("scout", user, "[agents.scout]\nmax_requests = 5").max_requests == 5
    with pytest.raises(BrokenAgent, match="max_requests is above 10"):
        desk.agent("scout", user, "[agents.scout]\nmax_requests = 50")


@pytest.mark.parametrize(("own", "above"), [("0", "0"), ("1", "1"), ("2", ""), (None, "")])
def test_neither_can_the_levels_of_runs_below_it(desk: Desk, own: str | None, above: str) -> None:
    user = f"[agents.delegate]\nmax_subagent_depth = {own}" if own else ""
    if not above:  # no agent has more than two
        assert desk.agent("delegate", user, "[agents.delegate]\nmax_subagent_depth = 5").max_depth == 5
        return
    with pytest.raises(BrokenAgent, match=f"max_depth is above {above};"):
        desk.agent("delegate", user, "[agents.delegate]\nmax_subagent_depth = 5")
    assert desk.agent("delegate", user, "[agents.delegate]\nmax_subagent_depth = 0").max_depth == 0


def test_other_commands_for_an_agent_of_the_project_are_asked_for_although_it_had_some(desk: Desk) -> None:
    (desk.project / ".agents").mkdir()
    text = "---\nname: own\ndescription: d\nacceptance: {verify: ['make test']}\n---\nWork."
    (desk.project / ".agents/own.md").write_text(text, encoding="utf-8")
    held = [str(one) for one in desk.catalog(project='[agents.own]\nacceptance = {verify = ["touch x"]}').held]
    assert held == ["agent own (verify)", "settings agents.own (verify runs touch x)"]
    assert len(desk.catalog(project='[agents.own]\nacceptance = {verify = ["make test"]}').held) == 1


def test_an_agent_of_the_project_is_the_projects_to_change(desk: Desk) -> None:
    folder = desk.project / ".agents"
    folder.mkdir()
    (folder / "own.md").write_text("---\nname: own\ndescription: d\n---\nWork.", encoding="utf-8")
    assert desk.agent("own", project='[agents.own]\ntools = "read, bash"').tools == ("read", "bash")
    assert [str(held) for held in desk.catalog(project='[agents.own]\ntools = "read, bash"').held] == [
        "settings agents.own (bash)"
    ]
    assert desk.catalog(project='[agents.own]\ntools = "read, grep"\neffort = "low"').acting == ()


def test_a_disabled_agent_can_not_be_named_and_says_who_disabled_it(desk: Desk) -> None:
    with pytest.raises(BrokenAgent) as caught:
        desk.agent("scout", project="[agents.scout]\ndisabled = true")
    assert f"it is disabled by [agents.scout] in {PROJECT}; %subagent_enable scout undoes that" in str(caught.value)
    catalog = desk.catalog("[agents.scout]\ndisabled = true")
    assert "scout" not in {agent.name for agent in catalog.agents}
    assert [problem.name for problem in catalog.problems if problem.disabled] == ["scout"]


def test_a_table_for_nobody_is_told_in_the_list_and_stops_nothing(desk: Desk) -> None:
    (problem,) = desk.catalog('[agents.nobody]\nmodel = "openai:gpt-5"').problems
    assert (problem.where, problem.error) == (USER, "[agents.nobody] is for no agent that is there")


def test_what_is_wrong_with_a_table_is_told_with_its_key(desk: Desk) -> None:
    assert desk.faults(
        '[agents.scout]\nmodle = "x"\nthinking = "enormous"\n'
        '[agents."a b"]\nmodel = "x"\n[agents.worker]\ntools = "read, WebSearch"\neffort = "low"\nthinking = "high"'
    ) == (
        f"{USER}: `agents.scout.thinking` must be off, minimal, low, medium, high, xhigh or max, not 'enormous'",
        f"{USER}: `agents.scout.modle` is unknown; did you mean model?",
        f"{USER}: `agents.a b` must be a table, by the name of an agent: [agents.scout]",
        f"{USER}: `agents.worker.thinking` says what another key says too: keep one",
        f"{USER}: `agents.worker.tools` names tools that are not there: WebSearch",
    )
    assert desk.faults("agents = 3") == (f"{USER}: `agents` must be tables: [agents.scout], not 3",)


def test_a_project_takes_nothing_back_that_the_person_asked_of_its_agents(desk: Desk) -> None:
    folder = desk.project / ".subagents" / "agents"
    folder.mkdir()
    (folder / "dep.md").write_text("---\nname: dep\ndescription: d\ntools: read\n---\nx", encoding="utf-8")
    boxed = '[agents.dep]\nsandbox = "workspace"\nnetwork = false\n'
    agent = desk.agent("dep", boxed, '[agents.dep]\nsandbox = "none"\nnetwork = true\nthinking = "low"')
    assert (agent.sandbox, agent.network, agent.thinking) == ("workspace", False, "low")
    with pytest.raises(BrokenAgent, match="disabled"):
        desk.agent("dep", "[agents.dep]\ndisabled = true", "[agents.dep]\ndisabled = false")
