"""Who may say in which sandbox a step works: the strictest is in force, and what was asked for is never less."""

from __future__ import annotations

from typing import Any

import pytest
from support import WHEN, make_result, run_id

from subagents_nb.catalog.parse import parse_agent
from subagents_nb.domain.agents.agent import AgentCatalog, AgentDefinition
from subagents_nb.domain.agents.mcp_servers import McpServer, McpServers
from subagents_nb.domain.agents.settings import Settings
from subagents_nb.domain.plans.flow import Chain, Step
from subagents_nb.domain.plans.plan import Draft, LaunchRequest
from subagents_nb.domain.plans.request import Revival
from subagents_nb.domain.plans.worktree import WorktreePlan
from subagents_nb.domain.policy.policy import Ceiling, Policy
from subagents_nb.domain.policy.sandbox_plan import SandboxPlan
from subagents_nb.domain.runs.snapshot import Snapshot
from subagents_nb.domain.runs.states import RunState
from subagents_nb.domain.tree.spent import Spent
from subagents_nb.errors import LaunchRefused
from subagents_nb.planning import LaunchEnvironment, draft
from subagents_nb.planning.launch_environment import SessionLookup
from subagents_nb.planning.resuming.revival import draft_revival
from subagents_nb.planning.steps.policy_plan import under_today
from subagents_nb.planning.steps.sandboxed import outside

USER, PROJECT = "~/.subagents/settings.toml", ".subagents/settings.toml"
BOX = Ceiling(origin=USER, sandbox="workspace")
SHUT, OPEN = SandboxPlan(), SandboxPlan(network=True)


def agent(head: str, name: str = "worker") -> AgentDefinition:
    found = parse_agent(f"---\nname: {name}\ndescription: d\n{head}\n---\nx", where=f"{name}.md", source="user")
    assert isinstance(found, AgentDefinition), found
    return found


def plan(head: str = "", *ceilings: Ceiling, tools: str = "bash", others: tuple[Any, ...] = (), **asked: Any) -> Draft:
    settings = Settings(ceilings=ceilings, network=asked.pop("by_settings", None))
    request = {"agent": None if "flow" in asked else "worker", "task": "t", "model": "scripted:echo", **asked}
    return draft(
        LaunchRequest.model_validate(request),
        catalog=AgentCatalog(agents=(agent(f"tools: {tools}\n{head}"), *others)),
        settings=settings,
        environment=LaunchEnvironment(cwd="/home/me/w", scripts=frozenset({"echo"})),
    )


def box(*args: Any, **asked: Any) -> SandboxPlan | None:
    return plan(*args, **asked).steps[0].sandbox


def reasons(*args: Any, **asked: Any) -> list[str]:
    with pytest.raises(LaunchRefused) as caught:
        plan(*args, **asked)
    return list(caught.value.reasons)


def test_whoever_says_so_puts_a_step_into_the_sandbox() -> None:
    assert box() is None
    for said in (True, "workspace"):
        assert box(sandbox=said) == SHUT
    assert box("sandbox: workspace") == SHUT
    assert box("", BOX) == SHUT
    assert box("sandbox: none", BOX) == SHUT, "an agent's file takes nothing back"
    flow = Chain(items=(Step(agent="worker", task="t", sandbox="workspace"), Step(agent="worker")))
    assert [step.sandbox for step in plan(flow=flow).steps] == [SHUT, None]


def test_a_launch_takes_no_sandbox_back() -> None:
    assert reasons("", BOX, sandbox="none") == [f"sandbox none is asked for; {USER} says workspace"]
    assert reasons("sandbox: workspace", sandbox=False) == ["sandbox none is asked for; worker.md says workspace"]
    flow = Chain(items=(Step(agent="worker", task="t", sandbox="none"),))
    (reason,) = reasons(flow=flow, sandbox="workspace")
    assert reason.endswith("sandbox none is asked for; this launch says workspace")
    assert reasons(sandbox="jail") == ["there is no sandbox 'jail'; there are workspace and none"]
    without = plan("sandbox: workspace", ignore=("sandbox",))
    assert without.steps[0].sandbox is None
    assert without.notes == ("Agent worker works without the sandbox of its file, as this launch says.",)
    assert box("sandbox: workspace", BOX, ignore=("sandbox",)) == SHUT, "that of the settings stays"


def test_the_network_is_let_in_by_who_stands_behind_the_sandbox_and_shut_out_by_anybody() -> None:
    assert box("", BOX, network=True) == OPEN and box("", BOX, by_settings=True) == OPEN
    assert box("sandbox: workspace\nnetwork: true") == OPEN
    taken = plan("network: true", BOX)
    assert taken.steps[0].sandbox == SHUT
    assert taken.notes == (
        f"Agent worker goes without the network: the sandbox is that of {USER}; network=True at the launch lets it "
        "out.",
    )
    shut = Ceiling(origin=USER, sandbox="workspace", network=False)
    assert reasons("", shut, network=True) == [f"the network is asked for; {USER} says network false"]
    assert box("sandbox: workspace\nnetwork: true", shut) == SHUT
    assert box("sandbox: workspace\nnetwork: true", network=False) == SHUT


def test_what_nobody_would_keep_is_refused_and_what_starts_no_process_needs_no_sandbox() -> None:
    (reason,) = reasons(network=False)
    assert reason.startswith("this launch says network false, which only the sandbox keeps from processes")
    assert box(tools="read, grep", network=False) is None
    assert box(tools="read, grep, write", sandbox=True) is None
    assert box(tools="read, python", sandbox=True) == SHUT
    assert box(tools="read", sandbox=True, gate="make test") == SHUT, "what it wrote is executed by the gate"


def test_a_child_has_the_sandbox_of_its_parent_and_can_not_let_itself_out() -> None:
    child = agent("tools: bash\nsandbox: none\nnetwork: true", "scout")
    for network, expected in ((None, SHUT), (True, OPEN)):
        (step,) = plan("agents: scout", others=(child,), sandbox="workspace", network=network).steps
        assert step.children[0].sandbox == expected
    (step,) = plan("agents: scout\nsandbox: workspace", others=(child,)).steps
    assert step.children[0].sandbox == SHUT
    (step,) = plan("agents: scout", others=(agent("tools: bash\nsandbox: workspace", "scout"),)).steps
    assert (step.sandbox, step.children[0].sandbox) == (None, SHUT)


def test_the_contract_binds_a_sandbox_and_nothing_where_there_is_none() -> None:
    assert "sandbox" not in plan().steps[0].contract()
    assert plan(sandbox=True).digest not in {plan().digest, plan(sandbox=True, network=True).digest}
    assert plan(network=True).digest == plan().digest, "without a sandbox it says nothing"


def test_a_run_that_goes_on_is_in_the_sandbox_of_then_and_in_that_of_now() -> None:
    earlier = plan()
    assert under_today(earlier, Settings(ceilings=(BOX,))).steps[0].sandbox == SHUT
    boxed = plan(sandbox=True, network=True)
    assert under_today(boxed, Settings()).steps[0].sandbox == OPEN
    shut = Ceiling(origin=USER, network=False)
    assert under_today(boxed, Settings(ceilings=(shut,))).steps[0].sandbox == SHUT
    assert Policy.of(BOX).meet(boxed.steps[0].policy).wants_sandbox is not None


def test_who_judges_works_in_the_sandbox_of_who_made_it() -> None:
    asked = {"review": {"agent": "judge"}}
    judge = agent("tools: bash", "judge")
    for said in ({"sandbox": "workspace"}, {}):
        planned = plan("" if said else "sandbox: workspace", others=(judge,), acceptance=asked, **said).steps[0]
        assert planned.reviewer is not None
        assert planned.reviewer.sandbox == planned.sandbox == SHUT


@pytest.mark.parametrize(
    ("overridden", "network"),
    [
        ((), True),
        ((("sandbox", USER),), False),
        ((("network", USER), ("sandbox", USER)), True),
        ((("network", PROJECT), ("sandbox", USER)), False),
        ((("network", PROJECT),), False),
        ((("network", PROJECT), ("sandbox", PROJECT)), True),
    ],
)
def test_only_who_puts_an_agent_into_the_sandbox_or_the_person_lets_the_network_in(
    overridden: tuple[tuple[str, str], ...], network: bool
) -> None:
    worker = agent("tools: bash\nsandbox: workspace\nnetwork: true").model_copy(update={"overridden": overridden})
    request = LaunchRequest(agent="worker", task="t", model="scripted:echo")
    environment = LaunchEnvironment(cwd="/home/me/w", scripts=frozenset({"echo"}))
    (step,) = draft(request, catalog=AgentCatalog(agents=(worker,)), settings=Settings(), environment=environment).steps
    assert step.sandbox == SandboxPlan(network=network)


DOCS = McpServer(name="docs", where=".mcp.json", source="project", url="https://docs.example/mcp")


def with_server(server: McpServer, *ceilings: Ceiling, worktree: Any = None, **asked: Any) -> Draft:
    own = agent("tools: read, mcp:docs")
    request = {"agent": "worker", "task": "t", "model": "scripted:echo", "worktree": worktree, **asked}
    mcp = McpServers(servers={"docs": server})
    here = LaunchEnvironment(cwd="/home/me/w", scripts=frozenset({"echo"}), mcp=mcp)
    return draft(
        LaunchRequest.model_validate(request),
        catalog=AgentCatalog(agents=(own,)),
        settings=Settings(ceilings=ceilings, network=asked.get("by_settings")),
        environment=here,
    )


def test_from_a_sandbox_without_network_no_server_is_asked_over_http() -> None:
    with pytest.raises(LaunchRefused) as caught:
        with_server(DOCS, BOX)
    assert caught.value.reasons == (
        "MCP server 'docs' (.mcp.json) is asked over HTTP, outside of the sandbox, which has no network; network=True "
        "at the launch, or outside_sandbox = true below [mcp.docs] in ~/.subagents/settings.toml, allows it",
    )
    assert with_server(DOCS).steps[0].mcp == (DOCS,), "without a sandbox nobody asked for that"
    assert with_server(DOCS, BOX, network=True).steps[0].sandbox == OPEN
    started = McpServer(name="docs", command="docs-server")
    assert with_server(started, BOX).steps[0].sandbox == SHUT, "it is started inside"


@pytest.mark.parametrize(
    ("where", "source", "passes"), [(USER, "user", True), (PROJECT, "project", False), ("a package", "package", False)]
)
def test_the_person_alone_lets_a_server_be_asked_from_a_sandbox(where: str, source: str, passes: bool) -> None:
    said = DOCS.model_copy(update={"outside_sandbox": True, "where": where, "source": source})
    if passes:
        assert with_server(said, BOX).steps[0].mcp == (said,)
    else:
        with pytest.raises(LaunchRefused, match="asked over HTTP"):
            with_server(said, BOX)
    for shut in (BOX.model_copy(update={"network": False}), Ceiling(origin="/etc/x", network=False)):
        with pytest.raises(LaunchRefused, match=r"says network false\); go without it, by deny='mcp:docs'"):
            with_server(said, BOX, shut)
    assert with_server(said, BOX, Ceiling(origin="/etc/x", network=False), deny=("mcp:docs",)).steps[0].mcp == ()


def test_a_plan_of_before_asks_no_server_from_the_sandbox_of_today() -> None:
    before = with_server(DOCS)
    with pytest.raises(LaunchRefused, match="asked over HTTP, outside of the sandbox"):
        under_today(before, Settings(ceilings=(BOX,)))
    assert under_today(before, Settings(ceilings=(BOX,), network=True)).steps[0].sandbox == OPEN


@pytest.mark.parametrize("fields", [{"setup_hook": "/w/setup.sh"}, {"provider": "worktrunk"}])
def test_no_hook_of_a_worktree_runs_beside_a_sandbox_without_network(fields: dict[str, str]) -> None:
    tree = WorktreePlan(repo_root="/w", base_ref="HEAD", base_commit="0" * 40, **fields)  # type: ignore[arg-type]
    assert "outside of the sandbox, which has no network" in "".join(outside(SHUT, (), tree, Policy()))
    assert not [*outside(OPEN, (), tree, Policy()), *outside(None, (), tree, Policy())]


@pytest.mark.parametrize("today", [Settings(), Settings(network=True)])
def test_a_run_that_is_resumed_is_in_its_sandbox_whatever_is_said_today(today: Settings) -> None:
    made = plan(sandbox=True).to_plan(run_id=run_id(1), token="t", created_at=WHEN)
    ended = make_result(state=RunState.PAUSED, reason="interrupted")
    before = Snapshot(run_id=made.run_id, plan=made, result=ended)
    facts = LaunchEnvironment(cwd="/home/me/w", scripts=frozenset({"echo"}))
    how = {"environment": facts, "has_session": True, "spent": Spent()}
    revived = draft_revival(Revival(text="go on"), made, made.steps[0], before, **how)  # type: ignore[arg-type]
    assert revived.steps[0].sandbox == SHUT and under_today(revived, today).steps[0].sandbox == SHUT
    denied = Settings(ceilings=(Ceiling(origin=USER, network=False),))
    assert under_today(revived, denied).steps[0].sandbox == SHUT


def test_a_fork_is_a_launch_of_its_own_and_works_in_what_is_said_for_it() -> None:
    """The copy of a conversation brings no rights: neither those of the run before, nor fewer."""
    session = SessionLookup(run_id=run_id(9), step=0, sha256="0" * 64)

    def forked(*ceilings: Ceiling, **asked: Any) -> SandboxPlan | None:
        launch = LaunchRequest.model_validate(
            {"agent": "worker", "task": "t", "model": "scripted:echo", "fork": "older", **asked}
        )
        here = LaunchEnvironment(cwd="/home/me/w", scripts=frozenset({"echo"}), forks={"older": session})
        found = draft(
            launch, catalog=AgentCatalog(agents=(agent("tools: bash"),)), settings=Settings(ceilings=ceilings),
            environment=here,
        )  # fmt: skip
        return found.steps[0].sandbox

    assert forked() is None and forked(sandbox=True) == forked(BOX) == SHUT
    with pytest.raises(LaunchRefused, match="says workspace"):
        forked(BOX, sandbox="none")
