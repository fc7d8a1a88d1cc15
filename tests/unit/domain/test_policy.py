"""A policy can only narrow: to meet another is to allow what both allow, in whatever order they come."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from policy_samples import CASES, NAMES, STRICT, calls, policies
from support import make_step

from subagents_nb.domain.plans.plan import Draft
from subagents_nb.domain.policy.decision import decide
from subagents_nb.domain.policy.policy import Ceiling, Policy
from subagents_nb.domain.policy.policy_rules import BadRule, parse_rule, rule_faults
from subagents_nb.domain.policy.tool_call import CallPath, ToolCall
from subagents_nb.domain.policy.tool_names import covers, tool_called


@settings(max_examples=CASES, deadline=None)
@given(policies, policies, policies)
def test_to_meet_is_associative_commutative_and_idempotent(one: Policy, two: Policy, three: Policy) -> None:
    assert one.meet(two) == two.meet(one)
    assert one.meet(two).meet(three) == one.meet(two.meet(three))
    assert one.meet(one) == one == one.meet(Policy()) == one.meet(None)
    assert Policy.model_validate_json(one.meet(two).model_dump_json()) == one.meet(two)
    assert one.meet(two).contract() == two.meet(one).contract()


@settings(max_examples=CASES, deadline=None)
@given(policies, policies, calls)
def test_what_either_denies_or_asks_about_both_together_do_not_allow(one: Policy, two: Policy, call: ToolCall) -> None:
    apart = max(STRICT.index(decide(policy, call).verdict) for policy in (one, two))
    assert STRICT.index(decide(one.meet(two), call).verdict) == apart


@settings(max_examples=CASES, deadline=None)
@given(policies, policies)
def test_nothing_else_gets_wider_either(one: Policy, two: Policy) -> None:
    both = one.meet(two)
    for name in NAMES:
        apart = any(policy.who_forbids_tool(name) is not None for policy in (one, two))
        assert (both.who_forbids_tool(name) is not None) == apart
    for policy in (one, two):
        assert policy.max_depth is None or (both.max_depth is not None and both.max_depth <= policy.max_depth)
        for agent in ("scout", "worker"):
            assert policy.who_forbids_agent(agent) is None or both.who_forbids_agent(agent) is not None


@settings(max_examples=CASES, deadline=None)
@given(policies, calls)
def test_what_the_person_granted_never_lifts_a_denial(policy: Policy, call: ToolCall) -> None:
    found = decide(policy, call)
    after = decide(policy, call, found.grants)
    assert after.verdict == ("allow" if found.verdict == "ask" else found.verdict)


@pytest.mark.parametrize(
    ("rule", "why"),
    {
        "bash(git *": "has no closing bracket",
        "bash(git log:*) x": "goes on behind its closing bracket",
        "bash)": "has no opening bracket",
        "bahs(git log)": "names no tool with 'bahs' (did you mean bash?)",
        "bash()": "has nothing in its brackets",
        "bash(git * main)": "has '*' in a word; a rule on bash is plain words, and :* at its end for whatever follows",
        "bash(cat $HOME)": "has '$' in a word; a rule on bash is plain words, and :* at its end for whatever follows",
        "bash(ls; rm:*)": "has ';' in a word; a rule on bash is plain words, and :* at its end for whatever follows",
        "read(src/[ab])": "has '[' in a path; a rule on files has *, ** and ? alone",
        "read(../x)": "has an empty, . or .. part in its path",
        "python(import os)": "says more than a tool, and python is judged whole",
        "mcp__": "names no tool with 'mcp__' (there are read, list, find, grep, write, edit, bash, python, ask)",
        "": "is no rule: it has 1 to 400 characters that can be shown",
    }.items(),
)
def test_a_rule_that_would_guard_nothing_is_refused(rule: str, why: str) -> None:
    with pytest.raises(BadRule):
        parse_rule(rule)
    (told,) = rule_faults("~/.subagents/settings.toml", deny=(rule,), ask=(), allow=())
    end = "it would guard nothing, so nothing is started"
    assert told == f"rule {rule!r} in ~/.subagents/settings.toml {why}; {end}"


def test_a_denied_command_is_no_guard_where_the_shell_is_allowed_whole() -> None:
    (told,) = rule_faults("x", deny=("bash(git push:*)",), ask=(), allow=("bash",))
    assert told.startswith("rule 'bash(git push:*)' in x would guard nothing where bash is allowed whole")
    assert not list(rule_faults("x", deny=("bash(git push:*)",), ask=(), allow=("bash(git log:*)",)))


def at(relative: str, **more: Any) -> CallPath:
    return CallPath(relative, relative, f"/w/{relative}", also=(relative,), **more)


@pytest.mark.parametrize(
    ("rules", "tool", "path", "verdict"),
    [
        ({"allow": ["read(src/**)"]}, "read", at("src/deep/a.py"), "allow"),
        ({"allow": ["read(src/**)"]}, "list", at("src"), "allow"),
        ({"allow": ["read(src/**)"]}, "read", at("SRC/a.py"), "ask"),
        ({"allow": ["read(src/**)"]}, "read", at("srcs/a.py"), "ask"),
        ({"allow": ["read(src/*.py)"]}, "read", at("src/deep/a.py"), "ask"),
        ({"allow": ["read(**/*.py)"]}, "read", at("a.py"), "allow"),
        ({"allow": ["read(src/**)"]}, "write", at("src/a.py"), "allow"),
        ({"allow": ["edit(src/**)"]}, "write", at("docs/a.md"), "ask"),
        ({"deny": ["read(secrets/**)"]}, "grep", at("secrets"), "deny"),
        ({"deny": ["read(secrets/**)"]}, "read", at("Secrets/A"), "deny"),
        ({"deny": ["read(secrets)"]}, "read", at("secrets/deep/a"), "deny"),
        ({"deny": ["read(.env)"]}, "read", at("a/b/.env"), "deny"),
        ({"deny": ["read(./.env)"]}, "read", at("a/b/.env"), "allow"),
        ({"deny": ["read(caf\u00e9)"]}, "read", at("cafe\u0301"), "deny"),
        ({"allow": ["read(caf\u00e9)"]}, "read", at("cafe\u0301"), "ask"),
        ({"deny": ["read(//etc/**)"]}, "read", CallPath("link", None, "/etc/passwd", also=("link",)), "deny"),
        ({"allow": ["read(link)"]}, "read", CallPath("link", None, "/etc/passwd", also=("link",)), "ask"),
        ({"deny": ["read(link)"]}, "read", CallPath("link", "a.py", "/w/a.py", also=("link",)), "deny"),
        ({"allow": ["write(src/**)"]}, "write", at("../s/files/0/out", given=True), "allow"),
        ({"deny": ["edit"], "allow": ["edit(src/**)"]}, "edit", at("src/a.py"), "deny"),
        ({"ask": ["write"]}, "edit", at("a.py"), "allow"),
    ],
)
def test_paths_are_allowed_as_they_are_and_denied_however_they_are_written(
    rules: dict[str, list[str]], tool: str, path: CallPath, verdict: str
) -> None:
    policy = Policy.of(Ceiling(origin="me", **{kind: tuple(found) for kind, found in rules.items()}))
    assert decide(policy, ToolCall(tool, path=path)).verdict == verdict


def test_a_search_passes_only_where_all_that_it_sees_is_allowed() -> None:
    def verdict(rule: str, folder: str) -> str:
        return decide(Policy.of(Ceiling(allow=(rule,))), ToolCall("grep", path=at(folder), below=True)).verdict

    assert verdict("read(src/**)", "src") == verdict("read(src/**)", "src/deep") == verdict("grep(**)", ".") == "allow"
    assert verdict("read(src/*.py)", "src") == verdict("read(src/**)", ".") == verdict("read(**/*.py)", ".") == "ask"


def test_a_tool_of_somebody_else_that_is_called_like_one_of_ours_is_denied() -> None:
    policy = Policy.of(Ceiling(allow=("read",)))
    assert decide(policy, ToolCall(tool_called("read", {"read"}))).verdict == "allow"
    assert decide(policy, ToolCall(tool_called("read", {"grep"}))).verdict == "deny"
    assert decide(policy, ToolCall(tool_called("Read", {"read"}))).verdict == "deny"


def test_servers_tools_and_capabilities_have_names_of_their_own() -> None:
    policy = Policy.of(
        Ceiling(deny=("mcp:files/write_text", "mcp__web__*", "skill(pdf)", "memory"), ask=("Agent(deploy)",))
    )
    for name, verdict in {
        "mcp__files__write_text": "deny", "mcp__files__read_text": "allow", "mcp__web__get": "deny",
        "write_memory": "deny", "load_capability": "allow", "delegate": "allow",
    }.items():  # fmt: skip
        assert decide(policy, ToolCall(tool_called(name, ()))).verdict == verdict
    assert decide(policy, ToolCall("skill", name="PDF")).verdict == "deny"
    assert decide(policy, ToolCall("delegate", name="deploy")).verdict == "ask"
    assert decide(policy, ToolCall("delegate", name="scout")).verdict == "allow"


def test_a_plan_without_a_policy_has_the_digest_it_had_and_who_says_it_is_not_bound() -> None:
    def digest(policy: Policy | None) -> str:
        return Draft(cwd="/w", steps=(make_step(policy=policy),)).digest

    here, there = (Policy.of(Ceiling(origin=origin, deny=("bash",))) for origin in ("~/a", "b"))
    assert "policy" not in make_step().contract()
    assert digest(here) == digest(there) == digest(here.meet(there)) != digest(None)
    assert digest(here.meet(Policy.of(Ceiling(max_depth=1)))) != digest(here)


def test_a_rule_on_one_tool_of_a_server_is_about_no_other() -> None:
    assert covers("mcp__t", "mcp__t__add")
    assert covers("mcp__t__add", "mcp__t__add")
    assert not covers("mcp__t__add", "mcp__t__add__all")


@pytest.mark.parametrize(
    "rule", ["delegate(work*)", "Task(scout, worker)", "skill(pdf?)", "agent(**/x)", "skill([p]df)"]
)
def test_a_rule_on_names_that_no_agent_or_skill_can_have_would_guard_nothing(rule: str) -> None:
    with pytest.raises(BadRule, match=r"in a name; a rule on (delegate|skill) names one, or has no brackets for all"):
        parse_rule(rule)
    assert parse_rule("delegate(*)").whole and parse_rule("skill(pdf-tools.v2)").name == "pdf-tools.v2"
