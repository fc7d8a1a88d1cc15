"""Whoever is delegated to, resumed or forked never gets what was denied above: by plans as they are made."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hypothesis import event, given, settings
from hypothesis import strategies as st
from policy_samples import CASES, NAMES, STRICT, calls, ceilings, rules
from support import WHEN, make_result, run_id

from subagents_nb.domain.agents.agent import AgentCatalog, AgentDefinition
from subagents_nb.domain.agents.settings import Settings
from subagents_nb.domain.plans.plan import Draft, LaunchPlan, LaunchRequest
from subagents_nb.domain.plans.request import Revival
from subagents_nb.domain.policy.decision import decide
from subagents_nb.domain.policy.policy import Ceiling, Policy
from subagents_nb.domain.policy.tool_call import ToolCall
from subagents_nb.domain.runs.snapshot import Snapshot
from subagents_nb.domain.runs.states import RunState
from subagents_nb.domain.tree.asks import ChildAsk
from subagents_nb.domain.tree.child_plan import child_draft, delegators, template_of
from subagents_nb.domain.tree.spent import Spent
from subagents_nb.domain.values.usage import Usage
from subagents_nb.errors import LaunchRefused
from subagents_nb.planning import LaunchEnvironment, draft
from subagents_nb.planning.launch_environment import SessionLookup
from subagents_nb.planning.resuming.revival import draft_revival
from subagents_nb.planning.steps.policy_plan import under_today

NOTHING = Spent()
BELOW = {"lead": ("mid",), "mid": ("leaf",), "leaf": None}
OURS = tuple(name for name in NAMES if "__" not in name and name not in ("skill", "delegate"))
said = st.lists(ceilings, max_size=2).map(
    lambda found: tuple(
        one.model_copy(update={"models": None, "max_thinking": None, "agents": one.agents and ("lead", "mid", "leaf")})
        for one in found
    )
)
words = st.none() | st.lists(st.sampled_from(("read", "grep", "bash", "bash(ls)", "delegate")), max_size=3).map(tuple)
budgets = st.none() | st.dictionaries(st.sampled_from(("tokens", "cost_usd")), st.integers(1, 1000), min_size=1)
spendings = st.builds(
    lambda tokens, usd, runs: Spent(usage=Usage(input_tokens=tokens, cost_usd=usd), runs=runs),
    st.integers(0, 1200), st.none() | st.integers(0, 1200), st.integers(0, 64),
)  # fmt: skip


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
        template = template_of(plan, ask, delegators(plan), root="lead")
        yield from line_below(child_draft(plan, ask, template, budget=plan.usage_budget))


def gone_on_from(one: Draft, spent: Spent) -> Draft | None:
    """Return the plan of what goes on from a run, of whose tree so much was used."""
    plan = grown(one)
    facts = LaunchEnvironment(cwd="/w", scripts=frozenset({"echo"}))
    seen = Snapshot(run_id=plan.run_id, plan=plan, result=make_result(state=RunState.PAUSED, reason="interrupted"))
    try:
        return draft_revival(
            Revival(text="on"), plan, plan.steps[0], seen, environment=facts, has_session=True, spent=spent
        )
    except LaunchRefused:
        event("used up")
        return None


def check_limits(above: Draft, one: Draft, spent: Spent = NOTHING) -> None:
    """Nobody may use or start more than what is above leaves."""
    begun = one.resumes.carried if one.resumes is not None else 0
    assert one.max_children - begun <= above.max_children - spent.runs
    for name, used in (("tokens", spent.usage.input_tokens), ("cost_usd", spent.usage.cost_usd or 0.0)):
        limit = getattr(above.usage_budget, name, None)
        if limit is not None:
            assert 0 < getattr(one.usage_budget, name).hard <= limit.hard - used


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
@given(teams(), said, said, words, words, st.booleans(), calls, budgets, st.integers(1, 64), spendings)
def test_no_plan_below_or_after_allows_what_one_above_or_today_denies(
    team: AgentCatalog,
    limits: tuple[Ceiling, ...],
    today: tuple[Ceiling, ...],
    tools: tuple[str, ...] | None,
    deny: tuple[str, ...] | None,
    forked: bool,
    call: ToolCall,
    budget: dict[str, int] | None,
    children: int,
    spent: Spent,
) -> None:
    asked = {"usage_budget": budget, "max_children": children}
    root = made(team, limits, tools=tools, deny=deny, fork="older" if forked else None, **asked)
    if root is None:
        return
    tree = list(line_below(root))
    event(f"a tree of {len(tree)}")
    for depth, one in enumerate(tree):
        for above in tree[:depth]:
            check_limits(above, one)
            check_narrower(above.steps[0].policy or Policy(), one, call)
        check_narrower(Policy.of(*limits), one, call)
        try:
            again = under_today(one, Settings(ceilings=today))
        except LaunchRefused:
            event("refused today")
            continue
        check_limits(one, again)
        after = gone_on_from(one, spent)
        for later in line_below(after) if after is not None else ():
            check_limits(one, later if later.resumes else later.model_copy(update={"resumes": after.resumes}), spent)
            check_narrower(one.steps[0].policy or Policy(), later, call)
        for later in line_below(again):
            check_narrower(one.steps[0].policy or Policy(), later, call)
            check_narrower(Policy.of(*today), later, call)
