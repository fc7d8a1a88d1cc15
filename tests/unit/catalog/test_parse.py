from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from subagents_nb.catalog import parse_agent
from subagents_nb.catalog.fields import KEYS, TOOL_SPELLINGS
from subagents_nb.catalog.parse import MAX_FILE_BYTES
from subagents_nb.domain.agents.agent import KNOWN_TOOLS, READ_TOOLS, THINKING_LEVELS, AgentDefinition, AgentProblem


def agent_text(*lines: str, body: str = "Do it.") -> str:
    return "\n".join(["---", "name: scout", "description: Looks.", *lines, "---", "", body, ""])


def read(text: str) -> AgentDefinition | AgentProblem | None:
    return parse_agent(text, where=".agents/scout.md", source="project")


def good(*lines: str) -> AgentDefinition:
    agent = read(agent_text(*lines))
    assert isinstance(agent, AgentDefinition), agent
    return agent


def bad(*lines: str) -> str:
    problem = read(agent_text(*lines))
    assert isinstance(problem, AgentProblem), problem
    assert (problem.name, problem.where, problem.source) == ("scout", ".agents/scout.md", "project")
    return problem.error


def test_a_minimal_file_gives_a_definition_with_the_defaults() -> None:
    text = agent_text()
    assert read(text) == AgentDefinition(
        name="scout",
        description="Looks.",
        prompt="Do it.",
        source="project",
        where=".agents/scout.md",
        content_sha256=sha256(text.encode()).hexdigest(),
    )


# --- what is no agent -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "",
        "# A readme\n\nname: nobody\n",
        "---\n---\n",
        "---\nname: scout\n---\nbody",
        "---\nname: scout\ndescription:\n---\nbody",
        "---\nname: scout\ndescription: '  '\n---\nbody",
        "---\ndescription: Looks.\nthinking: enormous\n---\nbody",
        "---\ntitle: [unclosed\n---\nbody",
        "---\njust words\n---\nbody",
        "+++\nname = 'scout'\n+++\n",
    ],
)
def test_a_file_without_both_name_and_description_is_no_agent(text: str) -> None:
    assert read(text) is None


def test_a_named_file_whose_frontmatter_never_ends_is_a_problem() -> None:
    problem = read("---\nname: scout\ndescription: Looks.\n\nDo it.\n")
    assert isinstance(problem, AgentProblem)
    assert (problem.name, problem.error) == ("scout", "the frontmatter is opened with --- but never closed")


# --- text forms -------------------------------------------------------------------------------------------------


def test_windows_newlines_and_a_byte_order_mark_change_nothing() -> None:
    text = agent_text("tools: Read", body="One.\n\nTwo.")
    assert read("\ufeff" + text.replace("\n", "\r\n")) == read(text)


def test_a_rule_in_the_body_belongs_to_the_prompt() -> None:
    agent = read(agent_text(body="One.\n\n---\n\nTwo."))
    assert isinstance(agent, AgentDefinition)
    assert agent.prompt == "One.\n\n---\n\nTwo."


def test_a_file_over_the_limit_is_a_problem_if_it_names_itself() -> None:
    problem = read(agent_text(body="é" * (MAX_FILE_BYTES // 2)))
    assert isinstance(problem, AgentProblem)
    assert (problem.name, problem.error) == ("scout", "the file is larger than 64 KiB")
    assert read("x" * (MAX_FILE_BYTES + 1)) is None


# --- spellings --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "tool"),
    [
        ("Read", "read"),
        ("read", "read"),
        ("LS", "list"),
        ("ls", "list"),
        ("list", "list"),
        ("Glob", "find"),
        ("find", "find"),
        ("Grep", "grep"),
        ("grep", "grep"),
        ("Write", "write"),
        ("write", "write"),
        ("Edit", "edit"),
        ("edit", "edit"),
        ("MultiEdit", "edit"),
        ("Bash", "bash"),
        ("bash", "bash"),
        ("shell", "bash"),
        ("ask", "ask"),
        ("AskUserQuestion", "ask"),
    ],
)
def test_every_spelling_of_a_tool_means_ours(written: str, tool: str) -> None:
    assert good(f"tools: {written}").tools == (tool,)


def test_every_tool_we_have_can_be_written() -> None:
    assert set(TOOL_SPELLINGS.values()) == set(KNOWN_TOOLS)


@pytest.mark.parametrize(
    "lines",
    [
        ("tools: Read, Grep, Bash",),
        ("tools: read,grep , , bash,",),
        ("tools: [Read, Grep, Bash]",),
        ("tools:", "  - Read", "  - Grep, Bash", "  - Read"),
        ("tools:", "- Read", "- Grep", "- Bash"),
        ("tools: |", "  Read, Grep,", "  Bash"),
    ],
)
def test_tools_are_a_list_or_text_with_commas(lines: tuple[str, ...]) -> None:
    assert good(*lines).tools == ("read", "grep", "bash")


@pytest.mark.parametrize("line", ["tools:", "tools: ''", "tools: []", "tools: ~", "tools: false", "tools: none"])
def test_tools_present_but_empty_mean_no_tools(line: str) -> None:
    assert good(line).tools == ()


def test_omitted_tools_are_the_read_only_ones() -> None:
    assert good().tools is None
    assert good().effective_tools == READ_TOOLS


def test_tools_we_do_not_have_are_kept_aside_for_planning() -> None:
    agent = good("tools: Read, mcp:github, WebSearch, contact_supervisor, mcp__x__y, ../ext.ts")
    assert agent.tools == ("read", "mcp__github", "mcp__x__y")
    unsupported = ["WebSearch", "contact_supervisor", "../ext.ts"]
    assert agent.extra == {"unsupported_tools": unsupported}


def test_a_restricted_tool_is_not_granted_whole() -> None:
    agent = good("tools: Read, Bash(git add:*, git log:*), Python(x), Bash(git *")
    assert agent.tools == ("read", "bash")
    assert agent.allow == ("read", "Bash(git add:*)", "Bash(git log:*)")
    assert agent.extra["unsupported_tools"] == ["Python(x)", "Bash(git *"]


def test_permissions_are_rules_in_either_spelling() -> None:
    agent = good("tools: Bash, Edit", "permissions: {allow: Bash(git log:*), deny: ['Read(secrets/**)', 'bash(x, y)']}")
    assert (agent.allow, agent.ask, agent.deny) == (("Bash(git log:*)",), None, ("Read(secrets/**)", "bash(x, y)"))
    agent = good("permission: {edit: ask, bash: deny, WebFetch: allow}", "allowedAgents: [scout, worker]")
    assert (agent.allow, agent.ask, agent.deny) == (("WebFetch",), ("edit",), ("bash",))
    assert agent.agents == ("scout", "worker") and good("permissions: {}").deny is None


@pytest.mark.parametrize(
    ("line", "why"),
    {
        "permissions: {deny: 'bash(git *'}": "rule 'bash(git *' has no closing bracket; it would guard nothing",
        "permissions: {bahs: deny}": "rule 'bahs' names no tool with 'bahs' (did you mean bash?); it would guard",
        "permissions: bash": "must be a mapping",
        "permissions: {bash: maybe}": "has neither rules for allow, ask or deny, nor one of these words, at 'bash'",
    }.items(),
)
def test_permissions_that_would_guard_nothing_make_the_file_unusable(line: str, why: str) -> None:
    assert why in bad(line)


@pytest.mark.parametrize(
    ("lines", "agents"),
    [
        ((), None),
        (("tools: Read",), None),
        (("tools: Read, Task",), ("*",)),
        (("tools: [read, delegate]",), ("*",)),
        (("tools: Read, Agent(scout, reviewer), Agent(scout)",), ("scout", "reviewer")),
        (("agents: scout, reviewer",), ("scout", "reviewer")),
        (("allowedAgents: [scout, '*']",), ("*",)),
        (("allowed-agents: none",), ()),
        (("agents: false",), ()),
        (("agents: scout, worker", "tools: Agent(worker, oracle)"), ("worker",)),
        (("agents: scout, worker", "tools: Agent"), ("scout", "worker")),
        (("agents: '*'", "tools: Agent(scout)"), ("scout",)),
        (("allowNestedSubagents: true",), ("*",)),
        (("allowNestedSubagents: true", "agents: scout"), ("scout",)),
        (("allowNestedSubagents: false", "tools: Agent(scout)"), ()),
        (("disallowedTools: Agent", "agents: scout"), ()),
        (("disallowedTools: Agent(scout)", "agents: scout, worker"), ("worker",)),
        (("disallowedTools: Task(scout)", "tools: Task"), ()),
        (("disallowedTools: Agent",), ()),
        (("permissionMode: plan", "agents: worker"), ()),
    ],
)
def test_whom_an_agent_may_delegate_to_is_the_narrowest_of_what_its_file_says(
    lines: tuple[str, ...], agents: tuple[str, ...] | None
) -> None:
    assert good(*lines).agents == agents


def test_a_name_that_is_none_can_not_be_delegated_to() -> None:
    assert bad("allowedAgents: scout, plugin:reviewer") == (
        "field `allowedAgents` must hold names of agents, or * for all, not 'plugin:reviewer'"
    )
    agent = good("tools: Read, Agent(plugin:reviewer)")
    assert (agent.agents, agent.extra) == (None, {"unsupported_tools": ["Agent(plugin:reviewer)"]})


@pytest.mark.parametrize("value", ["-1", "1.5", "true", "two"])
def test_a_depth_is_a_whole_number_from_zero(value: str) -> None:
    assert bad(f"maxSubagentDepth: {value}").startswith("field `maxSubagentDepth` must be a whole number from 0")
    assert good("max_subagent_depth: '2'").max_depth == 2
    assert good("maxSubagentDepth: 0").max_depth == 0


def test_an_isolation_is_a_worktree_or_a_guard_that_is_not_kept_here() -> None:
    assert good("isolation: worktree").worktree is True
    assert good("isolation: container").extra == {"isolation": "container"}
    assert bad("isolation: worktree", "worktree: no") == (
        "`isolation: worktree` and `worktree: false` say the opposite: keep one"
    )


def test_a_file_cannot_write_the_note_about_unsupported_tools_itself() -> None:
    assert good("unsupported_tools: 7").extra == {}


@pytest.mark.parametrize("key", ["disallowedTools", "excludeTools", "exclude-tools"])
def test_a_deny_list_takes_tools_away(key: str) -> None:
    assert good("tools: Read, Edit, Bash", f"{key}: MultiEdit, Bash(rm:*), WebSearch").tools == ("read",)
    assert good(f"{key}: Grep").tools == ("read", "list", "find")
    assert good(f"{key}: WebSearch").tools is None
    assert good("tools: Read", f"{key}:").tools == ("read",)


@pytest.mark.parametrize(
    ("snake", "value", "field", "expected"),
    [
        ("alias", "a1", "aliases", ("a1",)),
        ("aliases", "[a1, 'a2', a1, scout]", "aliases", ("a1", "a2")),
        ("model", "openai:gpt-5", "model", "openai:gpt-5"),
        ("model", "inherit", "model", None),
        ("model", "sonnet", "model", "sonnet"),
        ("model", "", "model", None),
        ("thinking", "false", "thinking", "off"),
        ("thinking", "off", "thinking", "off"),
        ("thinking", "'off'", "thinking", "off"),
        ("thinking", "", "thinking", None),
        ("system_prompt_mode", "append", "prompt_mode", "append"),
        ("system_prompt_mode", "replace", "prompt_mode", "replace"),
        ("prompt_mode", "append", "prompt_mode", "append"),
        ("inherit_project_context", "true", "inherit_project_context", True),
        ("inherit_project_context", "no", "inherit_project_context", False),
        ("skill", "plots", "skills", ("plots",)),
        ("skills", "plots, sql", "skills", ("plots", "sql")),
        ("skills", "false", "skills", ()),
        ("skill_path", "./skills/plots/, more/sql.md", "skill_paths", ("skills/plots", "more/sql.md")),
        ("output_schema", "{type: object, properties: {1: {type: string}}}", "output_schema",
         {"type": "object", "properties": {"1": {"type": "string"}}}),
        ("output_schema", "false", "output_schema", None),
        ("timeout_ms", "90000", "timeout_s", 90.0),
        ("tool_timeout_ms", "90000", "tool_timeout_s", 90.0),
        ("tool_timeout", "30m", "tool_timeout_s", 1800.0),
        ("timeout", "90", "timeout_s", 90.0),
        ("timeout", "0.5", "timeout_s", 0.5),
        ("timeout", "'90'", "timeout_s", 90.0),
        ("timeout", "90s", "timeout_s", 90.0),
        ("timeout", "30m", "timeout_s", 1800.0),
        ("timeout", "1.5h", "timeout_s", 5400.0),
        ("timeout", "500 ms", "timeout_s", 0.5),
        ("max_requests", "7", "max_requests", 7),
        ("max_turns", "7", "max_requests", 7),
    ],
)  # fmt: skip
def test_a_field_is_understood_in_snake_camel_and_kebab_case(
    snake: str, value: str, field: str, expected: object
) -> None:
    head, *rest = snake.split("_")
    for key in (snake, snake.replace("_", "-"), head + "".join(part.title() for part in rest)):
        assert getattr(good(f"{key}: {value}"), field) == expected, key


def test_every_level_of_thinking_is_accepted() -> None:
    assert [good(f"thinking: '{level}'").thinking for level in THINKING_LEVELS] == list(THINKING_LEVELS)


def test_unknown_keys_are_kept_as_plain_data() -> None:
    agent = good("color: blue", "machine: {name: lab, path: x}", "date: 2024-01-31", "on: 1", "odd key: [~, 1.5]")
    expected = {
        "color": "blue",
        "machine": {"name": "lab", "path": "x"},
        "date": "2024-01-31",
        "on": 1,
        "odd key": [None, 1.5],
    }
    assert agent.extra == expected
    assert json.loads(agent.model_dump_json())["extra"] == expected


# --- problems ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ("tools: 7", "field `tools` must be a list of texts or text with commas, not 7"),
        ("tools: true", "field `tools` must be a list of texts or text with commas, not True"),
        ("tools: [read, {a: b}]", "field `tools` must be a list of texts or text with commas, not {'a': 'b'}"),
        ("model: 4.1", "field `model` must be text, not 4.1 (put it in quotes)"),
        ("thinking: huge", "field `thinking` must be off, minimal, low, medium, high, xhigh or max, not 'huge'"),
        ("thinking: true", "field `thinking` must be off, minimal, low, medium, high, xhigh or max, not True"),
        ("thinking: [low]", "field `thinking` must be off, minimal, low, medium, high, xhigh or max, not ['low']"),
        ("systemPromptMode: add", "field `systemPromptMode` must be replace or append, not 'add'"),
        ("inherit-project-context: 1", "field `inherit-project-context` must be true or false, not 1"),
        ("skills: {a: b}", "field `skills` must be a list of texts or text with commas, not {'a': 'b'}"),
        ("skillPath: .", "field `skillPath` must hold paths below the agent file's folder, without . or .. parts, "
         "not '.'"),
        ("skillPath: a/../../b", "field `skillPath` must hold paths below the agent file's folder, without . or .. "
         "parts, not 'a/../../b'"),
        ("skillPath: /etc", "field `skillPath` must hold paths relative to the agent file, not '/etc'"),
        ("skillPath: ~/x", "field `skillPath` must hold paths relative to the agent file, not '~/x'"),
        ("skillPath: 'C:\\x'", "field `skillPath` must hold paths relative to the agent file, not 'C:\\\\x'"),
        ("outputSchema: text", "field `outputSchema` must be a JSON Schema written as a mapping, not 'text'"),
        ("timeout: soon", "field `timeout` must be seconds, or text such as 90s, 30m or 1h, not 'soon'"),
        ("timeout: true", "field `timeout` must be seconds, or text such as 90s, 30m or 1h, not True"),
        ("timeout: 0s", "field `timeout` must be above zero and at most 7 days, not '0s'"),
        ("timeoutMs: 1.5", "field `timeoutMs` must be a whole number above zero, not 1.5"),
        ("timeoutMs: -1", "field `timeoutMs` must be a whole number above zero, not -1"),
        ("maxTurns: many", "field `maxTurns` must be a whole number above zero, not 'many'"),
        ("maxRequests: 0", "field `maxRequests` must be a whole number above zero, not 0"),
        ("alias: ../x", "field `alias` must be 1 to 64 letters, digits or . _ - and start with a letter or digit, "
         "not '../x'"),
        ("alias: ['x, ../y']", "field `alias` must be 1 to 64 letters, digits or . _ - and start with a letter or "
         "digit, not '../y'"),
        ("skill: a\nskills: b", "fields `skill` and `skills` mean the same: keep one"),
        ("timeout: 1\ntimeoutMs: 1", "fields `timeout` and `timeoutMs` mean the same: keep one"),
    ],
)  # fmt: skip
def test_a_wrong_value_is_a_problem_that_names_the_field(line: str, error: str) -> None:
    assert bad(line) == error


def test_every_spelling_of_a_field_has_a_wrong_value_that_is_named() -> None:
    for spelling in KEYS.keys() - {"name", "description"}:
        assert bad(f"{spelling}: [[1]]").startswith(f"field `{spelling}` must"), spelling


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ("x: [1", "bad YAML: did not find expected ',' or ']' (line 5)"),
        ("x: a: b", "bad YAML: mapping values are not allowed in this context (line 4)"),
        ("\tx: 1", "bad YAML: found character that cannot start any token (line 4)"),
        ("tools: read\ntools: bash", "the key 'tools' is given twice (line 5)"),
        ("x: {a: 1, 'a': 2}", "the key 'a' is given twice (line 4)"),
        ("x: !!python/object/apply:os.system ['true']",
         "the YAML tag 'tag:yaml.org,2002:python/object/apply:os.system' is not accepted (line 4)"),
        ("!!python/name:os.system x: 1", "a key must be plain text (line 4)"),
        ("x: !local 1", "the YAML tag '!local' is not accepted (line 4)"),
        ("x: !!binary aGk=", "the YAML tag 'tag:yaml.org,2002:binary' is not accepted (line 4)"),
        ("x: !!set {a, b}", "the YAML tag 'tag:yaml.org,2002:set' is not accepted (line 4)"),
        ("x: &a [1]\ny: *a", "YAML anchors and aliases are not accepted (line 4)"),
        ("x: &a [*a]", "YAML anchors and aliases are not accepted (line 4)"),
        ("? [a]\n: 1", "a key must be plain text (line 4)"),
        ("x: " + "[" * 40 + "]" * 40, "nested deeper than 32 levels (line 4)"),
        ("x: " + "[" * 9000, "bad YAML: exceeded maximum nesting depth (line 4)"),
        ("x: .inf", "bad YAML: Out of range float values are not JSON compliant"),
        ("x: \x07", "bad YAML: unacceptable character #x0007: control characters are not allowed"),
    ],
)  # fmt: skip
def test_yaml_that_is_not_plain_data_is_a_problem_with_its_line(line: str, error: str) -> None:
    assert bad(line).startswith(error)


def test_an_object_tag_runs_nothing(tmp_path: Path) -> None:
    marker = tmp_path / "made"
    assert "not accepted" in bad(f"x: !!python/object/apply:os.mkdir ['{marker}']")
    assert not marker.exists()


def test_aliases_cannot_unfold_into_gigabytes() -> None:
    lines = ["a0: &a0 [x, x]", *(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 20))]
    assert "aliases are not accepted" in bad(*lines)


@pytest.mark.parametrize("name", ["../x", "'a\\nb'", '"a\\nb"', ".hidden", "a/b", "a b", "-rf", "é", "x" * 65, "a:b"])
def test_a_hostile_name_is_a_problem_and_blocks_no_name(name: str) -> None:
    problem = read(f"---\nname: {name}\ndescription: d\n---\n")
    assert isinstance(problem, AgentProblem)
    assert problem.name is None
    assert problem.error.startswith("field `name` must be 1 to 64 letters")
    assert "\n" not in problem.error


@pytest.mark.parametrize("name", ["123", "true", "[a]", "{a: b}"])
def test_a_name_that_is_not_text_is_a_problem(name: str) -> None:
    problem = read(f"---\nname: {name}\ndescription: d\n---\n")
    assert isinstance(problem, AgentProblem)
    assert problem.error.startswith("field `name` must be text")


def test_a_broken_file_is_still_known_by_its_name() -> None:
    for name in ("scout", '"scout"', "'scout'", "scout  # the quick one"):
        problem = read(f"---\nname: {name}\ndescription: d\ntools: [\n---\n")
        assert isinstance(problem, AgentProblem)
        assert problem.name == "scout"


# --- Claude Code ------------------------------------------------------------------------------------------------


def test_an_agent_of_claude_code_is_read_as_it_is() -> None:
    agent = read(
        "---\n"
        "name: data-scientist\n"
        "description: Use PROACTIVELY for SQL: joins, windows. <example>user: 'why?' assistant: \"let me\"</example>\n"
        "tools: Bash, Read, Write, Glob, NotebookEdit, mcp__bigquery__query\n"
        "disallowedTools: Write\n"
        "model: sonnet\n"
        "color: purple\n"
        "permissionMode: acceptEdits\n"
        "maxTurns: 20\n"
        "---\n\nYou write SQL.\n"
    )
    assert isinstance(agent, AgentDefinition), agent
    assert agent.description.startswith("Use PROACTIVELY for SQL: joins, windows. <example>user: 'why?'")
    query = "mcp__bigquery__query"
    assert (agent.tools, agent.model, agent.max_requests) == (("bash", "read", "find", query), "sonnet", 20)
    assert agent.extra == {
        "color": "purple",
        "permissionMode": "acceptEdits",
        "unsupported_tools": ["NotebookEdit"],
    }


def test_a_loose_description_does_not_hide_another_fault() -> None:
    problem = read("---\nname: scout\ndescription: Use it: now\ntools: [Read\n---\n")
    assert isinstance(problem, AgentProblem)
    assert problem.error.startswith("bad YAML: did not find expected ',' or ']'")


def test_an_agent_of_the_origin_is_read_as_it_is() -> None:
    agent = good(
        "tools: read, grep, find, ls, bash, write, contact_supervisor",
        "thinking: low",
        "systemPromptMode: replace",
        "inheritProjectContext: true",
        "inheritSkills: false",
        "output: context.md",
        "defaultProgress: true",
    )
    assert agent.tools == ("read", "grep", "find", "list", "bash", "write")
    assert agent.inherit_project_context
    assert set(agent.extra) == {"inheritSkills", "unsupported_tools"}
    assert (agent.output, agent.progress) == ("context.md", True)


# --- output files and budgets -----------------------------------------------------------------------------------


def test_the_files_of_an_agent_are_read_in_both_spellings() -> None:
    agent = good("output: out/report.md", "outputMode: file-only", "defaultReads: a.md, b.md", "defaultProgress: true")
    assert (agent.output, agent.output_mode) == ("out/report.md", "file-only")
    assert (agent.reads, agent.progress) == (("a.md", "b.md"), True)
    ours = good("output: out/report.md", "output_mode: file-only", "reads: [a.md, b.md]", "progress: true")
    assert ours.model_copy(update={"content_sha256": ""}) == agent.model_copy(update={"content_sha256": ""})


def test_no_output_and_nothing_said_are_the_same() -> None:
    for line in ("output: false", "output:", "output: ''"):
        assert good(line).output is None
    assert (good().output_mode, good().reads, good().progress, good().tool_budget) == (None, None, None, None)


def test_a_bad_output_mode_is_a_problem_of_the_file() -> None:
    assert bad("outputMode: quiet") == "field `outputMode` must be inline or file-only, not 'quiet'"
    assert bad("output: 7").startswith("field `output` must be text, not 7")
    assert bad("reads: a.md", "defaultReads: b.md") == "fields `reads` and `defaultReads` mean the same: keep one"


def test_a_tool_budget_is_a_number_or_a_mapping() -> None:
    assert good("toolBudget: 12").tool_budget == 12
    assert good("toolBudget: false").tool_budget is None
    given = good('toolBudget: {"soft": 8, "hard": 12, "block": ["ls", "Grep"]}').tool_budget
    assert given == {"soft": 8, "hard": 12, "block": ["list", "grep"]}
    assert good("tool_budget: {hard: 3, block: '*'}").tool_budget == {"hard": 3, "block": ["*"]}


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("toolBudget: 0", " must be 1 or more, not 0"),
        ("toolBudget: many", " must be a number of calls, or a mapping with hard, soft and block, not 'many'"),
        ("toolBudget: {soft: 1}", " has a fault: hard is missing"),
        ("toolBudget: {hard: 0}", " has a fault: hard must be 1 or more, not 0"),
        ("toolBudget: {hard: 2, soft: 3}", ": soft (3) is larger than hard (2)"),
        ("toolBudget: {hard: 2, later: 3}", " has a fault: later is unknown; the keys are hard, soft, block"),
        (
            "toolBudget: {hard: 2, block: [mail]}",
            " has a fault: block[0] names no tool with 'mail'; the tools are read, list, find, ",
        ),
        ("toolBudget: {hard: 2, block: {a: 1}}", " has a fault: block must be text, not {'a': 1}"),
    ],
)
def test_a_faulty_tool_budget_is_a_problem_of_the_file(line: str, told: str) -> None:
    assert bad(line).startswith(f"field `toolBudget`{told}")


# --- properties -------------------------------------------------------------------------------------------------

_WORDS = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), min_size=1, max_size=30)
_PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@given(st.text(max_size=300))
def test_no_text_makes_the_parser_raise(text: str) -> None:
    for candidate in (text, f"---\n{text}\n---\n", f"---\nname: scout\ndescription: d\n{text}\n---\nbody"):
        agent = read(candidate)
        if isinstance(agent, AgentDefinition):
            agent.digest()


@given(st.dictionaries(st.sampled_from([*KEYS, "name", "description", "color", "x"]), _PLAIN, max_size=6))
def test_no_value_in_any_field_makes_the_parser_raise(fields: dict[str, object]) -> None:
    head = yaml.safe_dump({"name": "scout", "description": "d", **fields})
    agent = read(f"---\n{head}---\nbody")
    if isinstance(agent, AgentDefinition):
        agent.digest()
        agent.model_dump_json()


@given(
    name=st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", fullmatch=True),
    description=_WORDS.filter(lambda text: bool(text.strip())),
    tools=st.lists(st.sampled_from(KNOWN_TOOLS), unique=True),
    thinking=st.sampled_from(THINKING_LEVELS),
    timeout=st.integers(1, 10**6),
    prompt=st.sampled_from(["", "Do it.", "One\n\n- two\n---\nthree", "{task} `x` $HOME"]),
)
def test_what_yaml_wrote_is_read_back(
    name: str, description: str, tools: list[str], thinking: str, timeout: int, prompt: str
) -> None:
    head = yaml.safe_dump(
        {"name": name, "description": description, "tools": tools, "thinking": thinking, "timeoutMs": timeout},
        allow_unicode=True,
    )
    agent = read(f"---\n{head}---\n{prompt}\n")
    assert isinstance(agent, AgentDefinition), agent
    assert (agent.name, agent.description, agent.prompt) == (name, description.strip(), prompt)
    assert (agent.tools, agent.thinking, agent.timeout_s) == (tuple(tools), thinking, timeout / 1000)


@pytest.mark.parametrize(
    ("asks", "seconds"), [("parent", 600.0), ("person", None), ("{parent: 2m}", 120.0), ("{parent: 5}", 5.0)]
)
def test_a_file_says_whom_it_asks_first(asks: str, seconds: float | None) -> None:
    assert good(f"asks: {asks}").asks_parent_s == seconds


@pytest.mark.parametrize("asks", ["nobody", "{parent: soon}", "{parent: 1, x: 2}", "{parent: 0}", "[parent]"])
def test_whom_else_it_can_not_ask(asks: str) -> None:
    assert "`asks`" in bad(f"asks: {asks}")


@pytest.mark.parametrize("entry", ["'*'", "mcp__*", "mcp__files__delete*", "mcp:files.add", "mcp:files/add.x"])
def test_a_deny_list_that_can_not_be_read_guards_nothing_and_is_told(entry: str) -> None:
    problem = read(f"---\nname: a\ndescription: d\ndisallowedTools: [{entry}]\n---\nx")
    assert isinstance(problem, AgentProblem)
    assert "names none: write mcp:SERVER" in str(problem)


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    ("text", "name"),
    [
        (f"---\nname: scout{' ' * 60_000}x\n: :\n---\n", None),
        (f"---\nname: a\ndescription: looks: {' ' * 15_000}x\n---\n", "a"),
        (f"---\nname: a\ndescription: looks\ntools: {'(' * 15_000}\n---\n", "a"),
        ("---\nname: 'a b' # old\n: :\n---\n", None),
        ("---\nname: scout # old\n: :\n---\n", "scout"),
        ('---\nname: "scout"  \n: :\n---\n', "scout"),
    ],
    ids=["name", "description", "tools", "quoted", "comment", "quotes"],
)
def test_a_strangers_file_costs_no_time_whatever_stands_in_it(text: str, name: str | None) -> None:
    found = read(text)
    assert found is not None and found.name == name
