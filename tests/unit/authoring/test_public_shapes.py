"""Files of the shapes that public repositories have load, or say why not. Shapes only: every word in them is ours."""

from __future__ import annotations

from typing import Any

import pytest

from subagents_nb.authoring.examined import examine
from subagents_nb.catalog.parse import parse_agent
from subagents_nb.domain.agents.agent import READ_TOOLS, AgentDefinition

# Each: what a file has between its fences, what it comes to, and what is said of it.
SHAPES: dict[str, tuple[str, dict[str, Any] | None, list[str]]] = {
    "a plain one of Claude Code": (
        "name: code-checker\ndescription: Use it after a change.\ntools: Read, Grep, Glob, Bash\nmodel: inherit",
        {"tools": ("read", "grep", "find", "bash"), "model": None},
        [],
    ),
    "a collection that names a family of models": (
        "name: data-engineer\ndescription: Build pipelines. Use PROACTIVELY for tables.\nmodel: sonnet",
        {"model": "sonnet", "tools": None},
        [],
    ),
    "a collection that lists programs as tools": (
        "name: deployer\ndescription: Ships things.\ntools: Read, Write, MultiEdit, Bash, docker, terraform",
        {"tools": ("read", "write", "edit", "bash")},
        ["tools that are not there: docker, terraform"],
    ),
    "a description with colons and examples, unquoted": (
        "name: tester\ndescription: Tests. Examples: <example>user: 'go' assistant: 'I go'</example>\ncolor: cyan",
        {"description": "Tests. Examples: <example>user: 'go' assistant: 'I go'</example>"},
        ["`color` is not carried out"],
    ),
    "a description in a block of several lines": (
        "name: planner\ndescription: >\n  Plans the work.\n  Asks first.\ntools:\n  - Read\n  - AskUserQuestion",
        {"description": "Plans the work. Asks first.", "tools": ("read", "ask")},
        [],
    ),
    "the newer keys of Claude Code": (
        "name: fixer\ndescription: Mends.\ndisallowedTools: Write\nmaxTurns: 12\neffort: high\nbackground: true\n"
        "isolation: worktree",
        {"tools": READ_TOOLS, "max_requests": 12, "thinking": "high", "worktree": True},
        ["`background` is not carried out"],
    ),
    "a guarded one of Claude Code": (
        "name: guarded\ndescription: Careful.\npermissionMode: dontAsk\nhooks:\n  PreToolUse:\n    - matcher: Bash",
        {"tools": None},
        [
            "`permissionMode` guards its tools elsewhere and is not carried out here",
            "`hooks` guards its tools elsewhere and is not carried out here",
        ],
    ),
    "a coordinator that names its agents": (
        "name: lead\ndescription: Hands out.\ntools: Agent(scout, reviewer), Read",
        {"agents": ("scout", "reviewer"), "tools": ("read",)},
        [],
    ),
    "the origin's": (
        "name: recon\ndescription: Looks.\ntools: read, grep, find, ls, bash\nthinking: low\n"
        "systemPromptMode: replace\ninheritProjectContext: true\ninheritSkills: false\n"
        "output: context.md\ndefaultProgress: true",
        {"tools": ("read", "grep", "find", "list", "bash"), "output": "context.md", "progress": True},
        ["`inheritSkills` is not carried out"],
    ),
    "OpenCode's, with a name, switched tools and a temperature": (
        "name: looker\ndescription: Looks.\nmode: subagent\ntemperature: 0.1\nmaxSteps: 8\n"
        "tools:\n  write: false\n  edit: false\n  bash: true\n  grep: false",
        {"tools": ("read", "list", "find", "bash"), "temperature": 0.1, "max_requests": 8},
        ["`mode` is not carried out"],
    ),
    "OpenCode's, whose name is that of its file": (
        "description: Looks.\nmode: subagent\ntools: {write: false}",
        None,
        ["it is no agent: it has no name"],
    ),
    "Cursor's": (
        "name: verifier\ndescription: Checks.\nmodel: inherit\nreadonly: true\nis_background: true\ntools: Read, Edit",
        {"tools": ("read",)},
        ["`is_background` is not carried out"],
    ),
    "Copilot's, with a name for people": (
        "name: Test Specialist\ndescription: 'Tests.'\ntools: ['read', 'edit', 'search']\ntarget: vscode",
        None,
        [
            "field `name` must be 1 to 64 letters, digits or . _ - and start with a letter or digit, not "
            "'Test Specialist'"
        ],
    ),
    "Gemini's": (
        "name: docs\ndescription: Writes.\nkind: local\ntools: [read_file, write_file]\ntemperature: 0.2\n"
        "max_turns: 10\ntimeout_mins: 5",
        {"tools": (), "temperature": 0.2, "max_requests": 10},
        [
            "`kind` is not carried out",
            "tools that are not there: read_file, write_file",
            "`timeout_mins` is not carried out",
        ],
    ),
}  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES)
def test_a_file_of_this_shape_loads_or_says_why_not(shape: str) -> None:
    head, comes_to, said = SHAPES[shape]
    text = f"---\n{head}\n---\n\nYou do your work.\n"
    agent = parse_agent(text, where="a.md", source="project")
    if comes_to is None:
        assert not isinstance(agent, AgentDefinition)
    else:
        assert isinstance(agent, AgentDefinition), agent
        assert {key: getattr(agent, key) for key in comes_to} == comes_to
        assert agent.prompt == "You do your work."
    report = examine(text.encode(), where="a.md", source="project")
    assert [finding.text for finding in report.findings] == said
