"""What people ask of a step's acceptance: every form that is understood, and every refusal by its text."""

from __future__ import annotations

from typing import Any

import pytest

from subagents_nb.domain.agents.agent import AgentDefinition
from subagents_nb.domain.plans.acceptance import EVIDENCE_OF, Acceptance
from subagents_nb.domain.plans.flow import Step
from subagents_nb.planning.acceptance.acceptance_parser import plan_acceptance

READER = AgentDefinition(name="a", description="d")
WRITER = AgentDefinition(name="w", description="d", role="writer", tools=("read", "edit"))
SCHEMA = {"type": "object", "properties": {}}


def plan(asked: Any = None, agent: AgentDefinition = READER, **step: Any) -> tuple[Acceptance | None, list[str]]:
    reasons: list[str] = []
    return plan_acceptance(Step(acceptance=asked, **step), agent, reasons), reasons


def planned(asked: Any = None, agent: AgentDefinition = READER, **step: Any) -> Acceptance:
    found, reasons = plan(asked, agent, **step)
    assert found is not None and reasons == []
    return found


@pytest.mark.parametrize("asked", [None, "auto", False])
def test_nothing_is_asked_of_an_agent_without_a_role(asked: Any) -> None:
    assert plan(asked) == (None, [])
    assert plan(asked, AgentDefinition(name="r", description="d", role="reader", tools=("bash",))) == (None, [])
    assert plan(asked, AgentDefinition(name="w", description="d", role="writer", tools=("read",))) == (None, [])


def test_a_writer_by_its_file_is_looked_at_without_being_asked() -> None:
    found = planned(None, WRITER)
    assert (found.level, found.explicit, found.report) == ("checked", False, "optional")
    assert plan(False, WRITER) == (None, [])
    assert planned(None, WRITER, output_schema=SCHEMA).evidence == ("no-staged-files",)


def test_a_level_alone_asks_for_its_evidence_in_a_report() -> None:
    for level in ("attested", "checked"):
        found = planned(level)
        assert (found.level, found.explicit, found.report) == (level, True, "required")
        assert found.evidence == EVIDENCE_OF[level]


def test_what_is_asked_may_raise_what_the_role_asks_for_and_never_lower_it() -> None:
    assert planned("attested", WRITER).level == "checked"
    assert planned({"verify": "make"}, WRITER).level == "verified"
    off = planned({"level": "none", "reason": "a draft"}, WRITER)
    assert (off.level, off.reason) == ("none", "a draft")


def test_a_gate_is_one_command_and_no_report() -> None:
    found = planned(None, gate=" make test ")
    assert (found.level, found.report, found.evidence) == ("verified", "off", ())
    assert [(one.id, one.command) for one in found.verify] == [("gate", "make test")]
    assert planned(False, gate="true").level == "verified"


def test_both_spellings_of_keys_mean_the_same() -> None:
    snake = {
        "level": "verified",
        "stop_rules": ["no network"],
        "agent_contract": {"version": 1},
        "gate_on": "acceptance",
        "verify": [{"command": "x", "timeout_ms": 1500, "allow_failure": True}],
    }
    camel = {
        "level": "verified",
        "stopRules": ["no network"],
        "agentContract": {"version": 1},
        "gateOn": "acceptance",
        "verify": [{"command": "x", "timeoutMs": 1500, "allowFailure": True}],
    }
    found = planned(snake)
    assert found == planned(camel)
    assert found.contract and found.gate_on == "acceptance" and found.stop_rules == ("no network",)
    assert (found.verify[0].timeout_s, found.verify[0].allow_failure, found.verify[0].id) == (1.5, True, "verify-1")


def test_who_names_no_level_asks_for_what_is_written_and_nothing_else() -> None:
    found = planned({"criteria": ["rows counted", {"id": "Big One!", "must": "m", "severity": "recommended"}]})
    assert [one.id for one in found.criteria] == ["criterion-1", "big-one"]
    assert (found.level, found.evidence, found.report) == ("checked", (), "required")
    assert planned({"review": True}).report == "optional"
    assert planned({"verify": ["a", "b"]}).level == "verified"
    assert planned('{"level": "checked", "evidence": ["residual_risks"]}').evidence == ("residual-risks",)
    asked = {"criteria": {"must": "m", "evidence": "tests-added"}}
    assert planned(asked).evidence == ("tests-added",)


@pytest.mark.parametrize(("word", "mode"), [("on", "required"), ("off", "off"), (True, "required"), (False, "off"),
                                            ("optional", "optional"), ("required", "required")])  # fmt: skip
def test_a_report_is_off_optional_or_required(word: Any, mode: str) -> None:
    assert planned({"verify": "x", "report": word}).report == mode


def test_an_agents_own_acceptance_is_asked_for_where_the_launch_says_nothing() -> None:
    mine = AgentDefinition(name="m", description="d", acceptance={"verify": "make"})
    assert planned(None, mine).level == planned("auto", mine).level == "verified"
    assert plan(False, mine) == (None, [])
    assert planned(None, mine, gate="true").verify[0].command == "true"
    wrong = AgentDefinition(name="m", description="d", acceptance="verified")
    assert plan(None, wrong)[1][0].startswith("acceptance of agent m: verified needs a command")


def test_with_an_output_schema_only_commands_and_reviewers_judge() -> None:
    found = planned({"verify": "x"}, output_schema=SCHEMA)
    assert (found.report, found.evidence) == ("off", ())
    assert planned("checked", output_schema=SCHEMA).evidence == ("no-staged-files",)
    assert planned({"criteria": ["c"], "review": {}}, output_schema=SCHEMA).report == "off"


JSON = "with an output schema the answer is JSON and can hold no report"
REFUSED: list[tuple[Any, str]] = [
    ("none", 'acceptance: none needs a reason: write {level: none, reason: "why nothing is checked"}'),
    ("verified", "acceptance: verified needs a command: write {level: verified, verify: [{command: …}]}, or use gate"),
    (
        "reviewed",
        "acceptance: reviewed is what a step comes to when a reviewer accepted it, so it can't be asked for; "
        "write {level: checked, review: {agent: reviewer}}",
    ),
    (
        "chekced",
        "acceptance: it can't be 'chekced'; write attested, checked, false, or a mapping with level, criteria, "
        "evidence, verify, review",
    ),
    (True, "acceptance: it can't be True; write attested"),
    (7, "acceptance: it can't be 7; write attested"),
    ({}, "acceptance: it can't be {}; write attested, checked, false, or a mapping with level, criteria, "),
    ("{level:", "acceptance: it begins like JSON and is none: "),
    ({"level": "reviewed"}, "acceptance.level: reviewed is what a step comes to"),
    (
        {"level": "high"},
        "acceptance.level must be none, attested, checked or verified, not 'high'",
    ),
    ({"level": "verified"}, "acceptance.verify: level verified needs at least one command that the runner can run"),
    ({"level": "none"}, "acceptance.reason: level none needs a reason, in words"),
    (
        {"level": "none", "reason": "r", "verify": "x"},
        "acceptance.verify: level none asks for nothing: leave it out, or choose a level",
    ),
    ({"level": "checked", "reason": 3}, "acceptance.reason must be text, not 3 (put it in quotes)"),
    ({"criterias": ["c"]}, "acceptance.criterias is unknown; did you mean criteria?"),
    ({"zzz": 1}, "acceptance.zzz is unknown; the keys are agent_contract, gate_on, level, report, criteria, evide"),
    ({"stop_rules": ["a"], "stopRules": ["b"]}, "acceptance: stop_rules and stopRules mean the same: keep one"),
    ({"stop_rules": [""]}, "acceptance.stop_rules[0] must say something, not ''"),
    ({"report": "maybe", "verify": "x"}, "acceptance.report must be off, optional or required, not 'maybe'"),
    ({"criteria": [3]}, "acceptance.criteria[0] must be text, or a mapping with must, not 3"),
    ({"criteria": [{"id": "a"}]}, "acceptance.criteria[0].must is missing"),
    (
        {"criteria": [{"must": "m", "id": "!!"}]},
        "acceptance.criteria[0].id must have a letter or digit, and '!!' has none",
    ),
    (
        {"criteria": [{"must": "m", "id": "A b"}, {"must": "n", "id": "a-B"}]},
        "acceptance.criteria: the id 'a-b' is there more than once",
    ),
    (
        {"criteria": [{"must": "m", "severity": "must"}]},
        "acceptance.criteria[0].severity must be required or recommended, not 'must'",
    ),
    (
        {"criteria": [{"must": "m", "evidence": ["x"]}]},
        "acceptance.criteria[0].evidence[0] must be changed-files, tests-added, commands-run, validation",
    ),
    ({"criteria": ["c"] * 51}, "acceptance.criteria has 51 criteria; at most 50 are judged"),
    (
        {"criteria": ["c"], "report": "off"},
        "acceptance.criteria: nobody could say whether they hold: report is off; add a review",
    ),
    (
        {"evidence": "changedfiles"},
        "acceptance.evidence can't be 'changedfiles'; did you mean changed-files?",
    ),
    (
        {"evidence": ["manual-notes"], "report": "off"},
        "acceptance.evidence: manual-notes can only stand in a report, and report is off",
    ),
    (
        {"level": "attested", "report": "off"},
        "acceptance.level: attested is a report of the agent's own, and report is off; use verify or review",
    ),
    ({"verify": [3]}, "acceptance.verify[0] must be a command, or a mapping with command, not 3"),
    ({"verify": [{"id": "t"}]}, "acceptance.verify[0].command is missing"),
    ({"verify": " "}, "acceptance.verify must say something, not ' '"),
    ({"verify": "a\0b"}, "acceptance.verify holds a character that no command or model can be given"),
    ({"verify": "x" * 10_001}, "acceptance.verify has 10,001 characters, more than 10,000"),
    (
        {"verify": [{"command": "x", "id": "t"}, {"command": "y", "id": "T"}]},
        "acceptance.verify: the id 't' is there more than once",
    ),
    ({"verify": ["x"] * 21}, "acceptance.verify has 21 commands; at most 20 are run"),
    (
        {"verify": {"command": "x", "shell": True}},
        "acceptance.verify.shell is unknown; the keys are id, command, timeout, timeout_ms, cwd, env, al",
    ),
    (
        {"verify": {"command": "x", "timeout": 1, "timeoutMs": 5}},
        "acceptance.verify: timeout and timeout_ms say the same: keep one",
    ),
    (
        {"verify": {"command": "x", "timeoutMs": 1.5}},
        "acceptance.verify.timeoutMs must be a whole number above zero, not 1.5",
    ),
    (
        {"verify": {"command": "x", "timeout": "soon"}},
        "acceptance.verify.timeout must be seconds, or text such as 90s, 30m or 1h, not 'soon'",
    ),
    (
        {"verify": {"command": "x", "timeout": []}},
        "acceptance.verify.timeout must be seconds, or text such as 90s, 30m or 1h, not []",
    ),
    (
        {"verify": {"command": "x", "cwd": "../up"}},
        "acceptance.verify.cwd must be a folder below the working directory, not '../up'",
    ),
    (
        {"verify": {"command": "x", "cwd": "/etc"}},
        "acceptance.verify.cwd must be a folder below the working directory, not '/etc'",
    ),
    ({"verify": {"command": "x", "env": ["A"]}}, "acceptance.verify.env must be a mapping, not ['A']"),
    (
        {"verify": {"command": "x", "env": {"A-B": "1"}}},
        "acceptance.verify.env.A-B must be the name of a variable, not 'A-B'",
    ),
    (
        {"verify": {"command": "x", "env": {"A": 1}}},
        "acceptance.verify.env.A must be text, not 1 (put it in quotes)",
    ),
    (
        {"verify": {"command": "x", "allow_failure": "yes"}},
        "acceptance.verify.allow_failure must be true or false, not 'yes'",
    ),
    (
        {"review": "reviewer"},
        "acceptance.review must be false, or a mapping with agent, focus, required, not 'reviewer'",
    ),
    ({"review": {"agnet": "x"}}, "acceptance.review.agnet is unknown; did you mean agent?"),
    ({"review": {"required": 1}}, "acceptance.review.required must be true or false, not 1"),
    (
        {"agent_contract": {"version": 2}, "verify": "x"},
        "acceptance.agent_contract must be {version: 1}, not {'version': 2}",
    ),
    ({"gate_on": "review", "verify": "x"}, "acceptance.gate_on must be execution or acceptance, not 'review'"),
    (
        {"gate_on": "execution", "verify": "x"},
        "acceptance.gate_on: it says something only under an agent_contract; without one a rejection fails",
    ),
]


@pytest.mark.parametrize(("asked", "text"), REFUSED, ids=[text[:60] for _, text in REFUSED])
def test_what_can_not_be_asked_is_refused_with_its_path(asked: Any, text: str) -> None:
    found, reasons = plan(asked)
    assert found is None
    assert any(reason.startswith(text) for reason in reasons), reasons


@pytest.mark.parametrize(
    ("asked", "text"),
    [
        ({"verify": "x", "report": "required"}, f"acceptance.report: it can't be required: {JSON}"),
        ({"evidence": "tests-added"}, f"acceptance.evidence: tests-added can only stand in a report, and {JSON}"),
        ({"criteria": ["c"], "verify": "x"}, f"acceptance.criteria: nobody could say whether they hold: {JSON}"),
        ("attested", f"acceptance.level: attested is a report of the agent's own, and {JSON}"),
    ],
)
def test_a_report_beside_an_output_schema_is_refused(asked: Any, text: str) -> None:
    assert plan(asked, output_schema=SCHEMA)[1][0].startswith(text)
    assert plan(asked, READER.model_copy(update={"output_schema": SCHEMA}))[1][0].startswith(text)


def test_a_gate_beside_an_acceptance_and_an_empty_gate_are_refused() -> None:
    both = "gate is an acceptance by itself: put its command into acceptance.verify, or leave one out"
    assert plan("checked", gate="true") == (None, [both])
    assert plan(None, gate=" ") == (None, ["gate must say something, not ' '"])


def test_all_faults_are_told_at_once() -> None:
    assert len(plan({"level": "x", "verify": [{}], "criteria": [1], "evidence": "y"})[1]) == 4
