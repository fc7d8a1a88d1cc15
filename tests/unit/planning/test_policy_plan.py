"""All who have a say over a step are met; what was asked for and is not allowed is an error, told with all others."""

from __future__ import annotations

from typing import Any

import pytest
from support import WHEN, make_step, run_id

from subagents_nb.catalog.parse import parse_agent
from subagents_nb.domain.agents.agent import AgentCatalog, AgentDefinition
from subagents_nb.domain.agents.settings import Settings
from subagents_nb.domain.plans.budgets import Amount, UsageBudget
from subagents_nb.domain.plans.flow import Chain, Step
from subagents_nb.domain.plans.plan import Draft, LaunchRequest
from subagents_nb.domain.policy.policy import Ceiling, Policy
from subagents_nb.domain.runs.control import Retune
from subagents_nb.errors import LaunchRefused
from subagents_nb.planning import LaunchEnvironment, draft
from subagents_nb.planning.steps.policy_plan import above_policy, split_words, under_today

USER = "~/.subagents/settings.toml"


def agent(head: str = "", name: str = "worker") -> AgentDefinition:
    text = f"---\nname: {name}\ndescription: d\n{head}\n---\nYou work."
    found = parse_agent(text, where=f".subagents/agents/{name}.md", source="user")
    assert isinstance(found, AgentDefinition), found
    return found


def plan(head: str = "tools: read, grep, edit, bash, python", *ceilings: Ceiling, **asked: Any) -> Draft:
    request = {"agent": None if "flow" in asked else "worker", "task": "t", "model": "scripted:echo", **asked}
    return draft(
        LaunchRequest.model_validate(request),
        catalog=AgentCatalog(agents=(agent(head), agent("tools: read", "scout"))),
        settings=Settings(ceilings=ceilings),
        environment=LaunchEnvironment(cwd="/home/me/w", scripts=frozenset({"echo"})),
    )


def reasons(*args: Any, **asked: Any) -> list[str]:
    with pytest.raises(LaunchRefused) as caught:
        plan(*args, **asked)
    return list(caught.value.reasons)


def test_a_tool_that_the_call_names_and_nobody_allows_is_an_error() -> None:
    reads = Ceiling(origin=USER, tools=("read", "list", "find", "grep"))
    assert reasons("tools: read, bash", reads, tools=("bash",)) == [
        "bash is asked for; ~/.subagents/settings.toml allows read, list, find, grep"
    ]
    assert reasons("tools: read, bash", Ceiling(origin=USER, deny=("bash",)), tools=("read", "Bash(git log:*)")) == [
        "bash is asked for; ~/.subagents/settings.toml denies bash"
    ]
    assert reasons("tools: read", tools=("bash",)) == [
        "bash is asked for; agent worker (.subagents/agents/worker.md) has read"
    ]


def test_a_tool_of_the_agents_file_that_is_not_allowed_is_taken_away_and_said() -> None:
    made = plan("tools: read, bash", Ceiling(origin=USER, tools=("read", "grep")))
    assert made.steps[0].tools == ("read",)
    assert made.notes == ("Agent worker goes without bash: ~/.subagents/settings.toml allows read, grep.",)
    quiet = plan("tools: read, bash", tools=("read",))
    assert quiet.steps[0].tools == ("read",) and quiet.notes == (), "who launched it knows"


VERIFIES = "tools: read, bash\nacceptance: {verify: [make test]}"


def test_commands_of_an_agents_file_that_no_rule_binds_are_told() -> None:
    said = "The verify commands in the file of agent worker are run by us, and no call of the agent's: "
    reads = Ceiling(origin=USER, tools=("read",))
    assert f"{said}~/.subagents/settings.toml allows read, and they run all the same." in plan(VERIFIES, reads).notes
    assert f"{said}this launch allows read, and they run all the same." in plan(VERIFIES, tools=("read",)).notes
    some = Ceiling(origin=USER, allow=("bash(git log:*)",))
    assert plan(VERIFIES, some).notes == (f"{said}rules on bash don't bind them.",)
    for given in ({"gate": "make"}, {"acceptance": {"verify": ["make"]}}, {"acceptance": False}):
        assert not [one for one in plan(VERIFIES, some, **given).notes if said in one], "who launched it knows"
    assert plan(VERIFIES).notes == () and plan("tools: read, bash", some).notes == ()


def test_a_model_or_a_level_beyond_is_an_error_and_never_less_of_it() -> None:
    limits = Ceiling(origin=".subagents/settings.toml", models=("openai:*mini", "local:*"), max_thinking="medium")
    assert reasons("thinking: high", limits) == [
        "model scripted:echo is not among those that .subagents/settings.toml allows (openai:*mini, local:*)",
        "thinking high is above medium, the most that .subagents/settings.toml allows to worker",
    ]
    assert plan("", Ceiling(origin=USER, models=("SCRIPTED:*",), max_thinking="medium"), thinking="medium")


def test_a_rule_that_can_not_be_read_keeps_everything_from_beginning() -> None:
    assert reasons(deny=("bash(git *",), tools=("read", "nope")) == [
        "rule 'bash(git *' in this launch has no closing bracket; it would guard nothing, so nothing is started",
        "rule 'nope' in this launch names no tool with 'nope' (there are read, list, find, grep, write, edit, bash, "
        "python, ask); it would guard nothing, so nothing is started",
    ]


def test_the_policy_that_is_in_force_stands_in_the_plan() -> None:
    made = plan(
        "tools: Read, Bash(git log:*, git show), Edit\npermissions: {python: ask, deny: ['read(secrets/**)']}\n"
        "allowedAgents: scout",
        Ceiling(origin=USER, ask=("edit",)),
        tools=("read", "bash(ls:*),edit"),
        deny=("read(.env)",),
        agents=("scout",),
    )
    step = made.steps[0]
    assert step.tools == ("read", "bash", "edit") and step.policy is not None and step.delegates == ()
    by_origin = {one.origin: one.model_dump(exclude_defaults=True, exclude={"origin"}) for one in step.policy.ceilings}
    assert by_origin == {
        USER: {"ask": ("edit",)},
        "this launch": {
            "tools": ("read", "bash", "edit"), "allow": ("read", "bash(ls:*)", "edit"), "deny": ("read(.env)",),
            "agents": ("scout",),
        },
        ".subagents/agents/worker.md": {
            "allow": ("read", "Bash(git log:*)", "Bash(git show)", "edit"), "ask": ("python",),
            "deny": ("read(secrets/**)",),
        },
    }  # fmt: skip


def test_who_says_nothing_has_no_policy_and_the_digest_of_before() -> None:
    assert plan("").steps[0].policy is None
    assert plan("", Ceiling(origin=USER)).digest == plan("").digest != plan("", deny=("bash",)).digest


def test_what_a_launch_says_holds_for_every_step_of_a_chain_and_a_step_may_narrow_it() -> None:
    steps = (Step(agent="worker", task="a", deny=("python",)), Step(agent="scout", task="b"))
    made = plan(flow=Chain(items=steps), tools=("read", "bash", "python"))
    assert [step.tools for step in made.steps] == [("read", "bash"), ("read",)]
    assert reasons(flow=Chain(items=(steps[0], Step(agent="scout", task="b", tools=("bash",))))) == [
        "stage 2 (scout): bash is asked for; agent scout (.subagents/agents/scout.md) has read"
    ]


def test_only_agents_that_are_allowed_are_launched() -> None:
    assert reasons("", Ceiling(origin=USER, agents=("scout",)), agents=("deploy",)) == [
        "agent deploy is asked for; ~/.subagents/settings.toml allows scout",
        "agent worker is not among those that ~/.subagents/settings.toml allows (scout)",
    ]


def test_a_ceiling_of_agents_names_agents() -> None:
    assert reasons("", agents=("scuot", "scout", "*")) == ["agents: there is no agent 'scuot'; did you mean scout?"]
    assert reasons("", agents=("nobody",)) == ["agents: there is no agent 'nobody'; there are worker, scout"]
    assert plan("", agents=()).steps[0].policy is not None


def test_who_is_delegated_to_is_under_the_same_policy_and_under_that_of_its_parent() -> None:
    limits = Ceiling(origin=USER, deny=("python",), max_depth=1)
    step = plan("tools: read, bash\nagents: scout, worker", limits, deny=("read(.env)",), agents=("scout",)).steps[0]
    assert step.delegates == ("scout",) and step.depth == 1 and step.policy is not None
    (child,) = step.children
    assert child.policy == step.policy.meet(Policy.of(limits)) and child.tools == ("read",)
    quiet = plan("tools: read\nagents: scout", Ceiling(origin=USER, tools=("read",)))
    assert quiet.steps[0].delegates == () and quiet.steps[0].tools == ("read",)
    assert quiet.notes == ("Agent worker goes without delegate: ~/.subagents/settings.toml allows read.",)


def test_who_has_a_shell_is_told_that_rules_on_files_do_not_bind_it() -> None:
    (note,) = plan("tools: read, bash", deny=("read(secrets/**)",)).notes
    assert note == "Rules on files bind the file tools; agent worker also has bash, which they don't bind."
    assert plan("tools: read, bash", deny=("read(secrets/**)",), tools=("read", "bash(ls:*)")).notes == ()


def test_children_and_money_are_within_what_is_allowed() -> None:
    limits = Ceiling(origin=USER, max_children=4, max_usd=2)
    assert reasons("", limits, max_children=5, usage_budget="$3") == [
        "max_children 5 is above 4, the most that ~/.subagents/settings.toml allows",
        "usage_budget $3 is above $2, the most that ~/.subagents/settings.toml allows",
    ]
    made = plan("", limits, usage_budget="100k")
    assert made.max_children == 4 and made.usage_budget is not None
    assert made.usage_budget.tokens is not None and made.usage_budget.cost_usd is not None
    assert (made.usage_budget.tokens.hard, made.usage_budget.cost_usd.hard) == (100_000, 2)


def test_a_run_that_goes_on_is_under_what_is_allowed_today_too() -> None:
    before = Policy.of(Ceiling(origin="this launch", deny=("read(.env)",)))
    earlier = Draft(cwd="/w", steps=(make_step(tools=("read", "bash"), policy=before),))
    today = Settings(ceilings=(Ceiling(origin=USER, tools=("read",)),))
    step = under_today(earlier, today).steps[0]
    assert step.tools == ("read",) and step.policy == before.meet(Policy.of(*today.ceilings))
    assert under_today(earlier, Settings()) is earlier
    with pytest.raises(LaunchRefused) as caught:
        under_today(earlier, Settings(ceilings=(Ceiling(origin=USER, models=("openai:*",)),)))
    assert caught.value.reasons == (
        "model scripted:echo is not among those that ~/.subagents/settings.toml allows (openai:*)",
    )


def test_a_run_that_goes_on_is_under_the_budget_the_count_and_the_levels_of_today() -> None:
    leaf = make_step(agent="scout")
    mid = make_step(agent="mid", tools=("delegate",), delegates=("scout",), depth=1, children=(leaf,))
    lead = make_step(agent="lead", tools=("delegate",), delegates=("mid",), depth=2, children=(mid,))
    earlier = Draft(cwd="/w", steps=(lead,), usage_budget=UsageBudget(tokens=Amount(hard=5000)))
    today = Settings(ceilings=(Ceiling(origin=USER, max_tokens=1000, max_children=3, max_depth=1),))
    made = under_today(earlier, today)
    assert made.usage_budget is not None and made.usage_budget.tokens == Amount(hard=1000) and made.max_children == 3
    (below,) = made.steps[0].children
    assert (made.steps[0].depth, below.depth, below.children) == (1, 0, ())
    unlimited = under_today(earlier.model_copy(update={"usage_budget": None, "max_children": 2}), today)
    assert unlimited.usage_budget is not None and unlimited.usage_budget.tokens == Amount(hard=1000)
    assert unlimited.max_children == 2
    with pytest.raises(LaunchRefused, match="5,000 tokens is above 1,000 tokens, the most that"):
        under_today(earlier, today, asked_budget=True)


def test_words_are_told_apart_by_commas_outside_of_brackets() -> None:
    assert split_words(["read, bash(git add:*, git log:*)", "grep", "bash(x"]) == (
        "read", "bash(git add:*, git log:*)", "grep", "bash(x",
    )  # fmt: skip


def test_new_limits_for_a_live_run_stay_within_the_policy_that_it_was_launched_under() -> None:
    allowed = Ceiling(origin=USER, max_tokens=1000, max_usd=2)
    made = plan("tools: read", allowed, usage_budget="500").to_plan(run_id=run_id(), token="t", created_at=WHEN)
    assert list(above_policy(Retune(tokens=1000, cost_usd=2), made)) == []
    assert list(above_policy(Retune(tokens=1001, cost_usd=3), made)) == [
        f"1,001 tokens is above 1,000 tokens, the most that {USER} allows",
        f"$3 is above $2, the most that {USER} allows",
    ]
    free = plan("tools: read").to_plan(run_id=run_id(), token="t", created_at=WHEN)
    assert list(above_policy(Retune(tokens=10**9), free)) == []
