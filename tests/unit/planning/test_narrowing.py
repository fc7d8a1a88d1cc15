"""Whoever is delegated to, gone on from or forked never gets what was denied above: by plans as they are made."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hypothesis import event, given, settings
from hypothesis import strategies as st
from policy_samples import CASES, NAMES, STRICT, calls, ceilings, rules
from support import WHEN, run_id

from subagents_nb.domain.agents.agent import AgentCatalog, AgentDefinition
from subagents_nb.domain.agents.settings import Settings
from subagents_nb.domain.plans.plan import Draft, LaunchPlan, LaunchRequest
from subagents_nb.domain.policy.decision import decide
from subagents_nb.domain.policy.policy import Ceiling, Policy
from subagents_nb.domain.policy.tool_call import ToolCall
from subagents_nb.domain.tree.asks import ChildAsk
from subagents_nb.domain.tree.child_plan import child_draft, delegators, template_of
from subagents_nb.errors import LaunchRefused
from subagents_nb.planning import LaunchEnvironment, draft
from subagents_nb.planning.launch_environment import SessionLookup
from subagents_nb.planning.steps.policy_plan import under_today

BELOW = {"lead": ("mid",), "mid": ("leaf",), "leaf": None}
OURS = tuple(name for name in NAMES if "__" not in name and name not in ("skill", "delegate"))
said = st.lists(ceilings, max_size=2).map(
    lambda found: tuple(
        one.model_copy(update={"models": None, "max_thinking": None, "agents": one.agents and ("lead", "mid", "leaf")})
        for one in found
    )
)
words = st.none() | st.lists(st.sampled_from(("read", "grep", "bash", "bash(ls)", "delegate")), max_size=3).map(tuple)


@st.composite
def teams(draw: st.DrawFn) -> AgentCatalog:
    def one(name: str) -> AgentDefinition:
        lists = {kind: draw(rules) or None for kind in ("deny", "ask", "allow")}
        tools = OURS if name == "lead" else tuple(draw(st.lists(st.sampled_from(OURS), max_size=5, unique=True)))
        return AgentDefinition(name=name, description="d", prompt="Work.", agents=BELOW[name], tools=tools, **lists)

    return AgentCatalog(agents=tuple(map(one, BELOW)))


def made(team: AgentCatalog, limits: tuple[Ceiling, ...], **asked: Any) -> Draft | None:
    request = {"agent": "lead", "task": "t", "model": "scripted:echo", **asked}
    session = SessionLookup(run_id=run_id(9), step=0, sha256="0" * 64)
    environment = LaunchEnvironment(cwd="/w", scripts=frozenset({"echo"}), forks={"older": session})
    try:
        launch = LaunchRequest.model_validate(request)
        return draft(launch, catalog=team, settings=Settings(ceilings=limits), environment=environment)
    except LaunchRefused:
        event("refused")
        return None


def grown(one: Draft) -> LaunchPlan:
    return one.to_plan(run_id=run_id(1), token="t", created_at=WHEN)


def line_below(one: Draft) -> Iterator[Draft]:
    """Yield the plan of a run, and of each that it starts in turn, as the supervisor makes them."""
    yield one
    plan = grown(one)
    for child in plan.steps[0].children:
        fields = {"run_id": plan.run_id, "ask_id": "d1", "step": 0, "agent": child.agent, "task": "t"}
        ask = ChildAsk.model_validate({**fields, "path": child.agent, "cwd": "/w", "asked_at": WHEN})
        yield from line_below(child_draft(plan, ask, template_of(plan, ask, delegators(plan), root="lead")))


def check_narrower(above: Policy, one: Draft, call: ToolCall) -> None:
    step = one.steps[0]
    assert STRICT.index(decide(step.policy or Policy(), call).verdict) >= STRICT.index(decide(above, call).verdict)
    for name in (*NAMES, "delegate"):
        if above.who_forbids_tool(name) is not None:
            assert name not in step.tools
            assert (step.policy or Policy()).who_forbids_tool(name) is not None
    for name in BELOW:
        if above.who_forbids_agent(name) is not None or above.who_forbids_tool("delegate") is not None:
            assert name not in step.delegates
            assert name not in [child.agent for child in step.children]
    if above.max_depth is not None:
        assert len(list(line_below(one))) - 1 <= above.max_depth


@settings(max_examples=CASES, deadline=None)
@given(teams(), said, said, words, words, st.booleans(), calls)
def test_no_plan_below_or_after_allows_what_one_above_or_today_denies(
    team: AgentCatalog,
    limits: tuple[Ceiling, ...],
    today: tuple[Ceiling, ...],
    tools: tuple[str, ...] | None,
    deny: tuple[str, ...] | None,
    forked: bool,
    call: ToolCall,
) -> None:
    root = made(team, limits, tools=tools, deny=deny, fork="older" if forked else None)
    if root is None:
        return
    tree = list(line_below(root))
    event(f"a tree of {len(tree)}")
    for depth, one in enumerate(tree):
        for above in tree[:depth]:
            check_narrower(above.steps[0].policy or Policy(), one, call)
        check_narrower(Policy.of(*limits), one, call)
        try:
            again = under_today(one, Settings(ceilings=today))
        except LaunchRefused:
            event("refused today")
            continue
        for later in line_below(again):
            check_narrower(one.steps[0].policy or Policy(), later, call)
            check_narrower(Policy.of(*today), later, call)
