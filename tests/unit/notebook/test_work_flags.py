"""What the flags about a step's work become as arguments of a launch."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from IPython.core.error import UsageError
from magic_parsers import PARSERS

from subagents_nb.domain.plans.options import of_launch
from subagents_nb.errors import LaunchRefused
from subagents_nb.notebook.magics.cells import Faults
from subagents_nb.notebook.magics.magics import magics_of
from subagents_nb.notebook.magics.work_flags import defaults_of, launch_options

NOTHING = dict.fromkeys(one.name for one in of_launch(chain=False))


def defaults(**changes: Any) -> Any:
    return SimpleNamespace(**{name: one.default_value for name, one in magics_of().class_traits().items()} | changes)


def asked(line: str, **changes: Any) -> dict[str, Any]:
    parser = PARSERS["subagent"]()
    faults = Faults()
    said = launch_options(parser.read(line), parser, faults, defaults(**changes))
    faults.refuse()
    return said


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("scout", {}),
        ("--worktree", {"worktree": True}),
        ("--gate 'make test'", {"gate": "make test"}),
        ("--acceptance checked", {"acceptance": "checked"}),
        ("--acceptance off", {"acceptance": False}),
        ("--acceptance '{level: verified, verify: [make test]}'",
         {"acceptance": {"level": "verified", "verify": ["make test"]}}),
        ("""--acceptance '{"level": "attested"}'""", {"acceptance": {"level": "attested"}}),
        ("--acceptance 'level: checked'", {"acceptance": {"level": "checked"}}),
        ("--output notes/out.md --output-mode file-only", {"output": "notes/out.md", "output_mode": "file-only"}),
        ("--output false", {"output": False}),
        ("--reads a.md --reads 'b c.md'", {"reads": ["a.md", "b c.md"]}),
        ("--progress", {"progress": True}),
        ("--agent-contract --gate-on acceptance", {"agent_contract": {"version": 1}, "gate_on": "acceptance"}),
        ("--checkpoint 2m --max-output 20k", {"checkpoint": "2m", "max_output": "20k"}),
        ("--max-output '{lines: 40}'", {"max_output": {"lines": 40}}),
        ("--goal 'a b' --description c --phase d", {"goal": "a b", "description": "c", "phase": "d"}),
        ("--max-requests 7", {"max_requests": 7}),
        ("--tool-budget 40", {"tool_budget": 40}),
        ("--tool-budget '{soft: 10, hard: 20}'", {"tool_budget": {"soft": 10, "hard": 20}}),
        ("--usage-budget 200k", {"usage_budget": "200k"}),
        ("--usage-budget '$2'", {"usage_budget": "$2"}),
        ("--usage-budget '{tokens: 5000}'", {"usage_budget": {"tokens": 5000}}),
    ],
)  # fmt: skip
def test_each_flag_is_the_argument_of_its_name(line: str, said: dict[str, Any]) -> None:
    assert asked(line) == NOTHING | said


def test_what_no_agent_can_say_comes_from_the_defaults() -> None:
    kept = {"worktree": True, "gate": "make test"}
    assert asked("scout", **kept) == NOTHING | kept
    said = asked("--gate 'make lint' --max-requests 3", **kept)
    assert (said["gate"], said["max_requests"], said["worktree"]) == ("make lint", 3, True)


def test_a_default_of_what_an_agent_can_say_is_handed_on_as_a_default() -> None:
    kept = {"max_requests": 9, "tool_budget": "40", "usage_budget": "$1", "default_model": "a:b", "thinking": "low",
            "timeout": "30min", "tool_timeout": "5s", "acceptance": "checked", "output_mode": "file-only",
            "progress": True}  # fmt: skip
    assert asked("scout", **kept) == NOTHING
    found = defaults_of(defaults(**kept), PARSERS["subagent"](), Faults())["defaults"]
    assert found == {"model" if name == "default_model" else name: v for name, v in kept.items()} | {"tool_budget": 40}
    assert defaults_of(defaults(), PARSERS["subagent"](), Faults()) == {}


def test_a_default_deadline_is_that_of_a_whole_chain_of_which_no_agent_says_anything() -> None:
    parser = PARSERS["subagent_chain"]()
    said = launch_options(parser.read(""), parser, Faults(), defaults(timeout="7m", tool_timeout="5s"), chain=True)
    assert {name: value for name, value in said.items() if value is not None} == {"timeout": "7m"}


def test_the_limits_are_those_of_a_chain_too() -> None:
    parser = PARSERS["subagent_chain"]()
    options = parser.read("--max-requests 3 --usage-budget 200k --tool-budget 12")
    said = launch_options(options, parser, Faults(), chain=True)
    assert {name: value for name, value in said.items() if value is not None} == {
        "max_requests": 3, "tool_budget": 12, "usage_budget": "200k",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("--max-requests 0", "--max-requests: '0' is no number of 1 or more"),
        ("--acceptance '{level: '", "--acceptance: bad YAML"),
        ("--acceptance '!!python/name:os.system x'", "--acceptance: "),
    ],
)
def test_what_can_not_be_read_is_said_with_its_flag(line: str, fault: str) -> None:
    with pytest.raises(UsageError, match="%%subagent: ") as refused:
        asked(line)
    assert fault in str(refused.value)


def test_faults_of_the_line_are_told_together_and_with_what_else_is_wrong() -> None:
    parser, faults = PARSERS["subagent"](), Faults()
    launch_options(parser.read("--acceptance '{level: ' --max-requests ² --usage-budget '{'"), parser, faults)
    with pytest.raises(LaunchRefused) as refused:
        faults.refuse(lambda: ["there is no agent x"])
    flags = [reason.partition(":")[0] for reason in refused.value.reasons]
    assert flags == ["--acceptance", "--max-requests", "--usage-budget", "there is no agent x"]
