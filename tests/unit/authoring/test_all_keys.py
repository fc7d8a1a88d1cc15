"""Every key that agent files have elsewhere: carried out, refused or noted, and the same in three spellings."""

from __future__ import annotations

import re

import pytest

from subagents_nb.authoring.examined import FileReport, examine
from subagents_nb.catalog.fields import KEYS
from subagents_nb.domain.values.faults import snake

CARRIED_OUT = {
    "alias": "a1", "aliases": "[a1, a2]", "tools": "Read, Bash", "excludeTools": "Bash", "disallowedTools": "Bash",
    "allowNestedSubagents": "true", "allowedAgents": "scout", "agents": "scout", "maxSubagentDepth": "1",
    "model": "openai:gpt-5", "thinking": "low", "effort": "high", "temperature": "0.1",
    "systemPromptMode": "append", "promptMode": "replace", "inheritProjectContext": "true",
    "timeoutMs": "60000", "timeout": "10m", "toolTimeoutMs": "1000", "toolTimeout": "5s",
    "acceptance": "attested", "acceptanceRole": "reader", "output": "x.md", "outputMode": "inline",
    "outputSchema": "{type: object}", "defaultReads": "a.md", "reads": "a.md", "defaultProgress": "true",
    "progress": "true", "toolBudget": "10", "maxTurns": "5", "maxRequests": "5", "maxSteps": "5",
    "isolation": "worktree", "worktree": "true", "permissionMode": "plan", "readonly": "true", "readOnly": "true",
    "disabled": "false", "disable": "false", "asks": "parent",
}  # fmt: skip
CARRIED_OUT |= {"mcpServers": "{files: {command: x}}"}
REFUSED = {
    "hooks": "{PreToolUse: []}", "isolation": "container",
}  # fmt: skip
NOTED = {
    "package": "lab", "advertise": "true", "runner": "{type: pi}", "machine": "big", "extensions": "[x]",
    "subagentOnlyExtensions": "[x]", "mutationTools": "[x]", "fallbackModels": "[x]", "modelProvider": "x",
    "defaultProvider": "x", "inheritGlobalContext": "true", "inheritSkills": "true", "async": "true",
    "completionGuard": "false", "interactive": "true", "background": "true", "color": "red", "initialPrompt": "x",
    "mode": "subagent", "hidden": "true", "kind": "local", "timeoutMins": "5", "isBackground": "true",
    "target": "vscode", "infer": "true", "argumentHint": "x", "handoffs": "[x]", "whatever": "x",
    "permissionMode": "acceptEdits",
}  # fmt: skip
# Carried out by parts that stand apart; here it only matters that nothing of them vanishes.
EITHER = {
    "skill": "pdf", "skills": "[pdf]", "skillPath": "skills/pdf", "skillPaths": "[skills/pdf]", "memory": "user",
    "permission": "{bash: ask}", "permissions": "{deny: [bash]}",
    "defaultContext": "fork", "sandbox": "workspace", "network": "true", "fast": "true", "permissionMode": "dontAsk",
    "promptCache": "on",
}  # fmt: skip
TABLE = [
    *((key, value, ("carried out",)) for key, value in CARRIED_OUT.items()),
    *((key, value, ("refused",)) for key, value in REFUSED.items()),
    *((key, value, ("noted",)) for key, value in NOTED.items()),
    *((key, value, ("carried out", "refused", "noted")) for key, value in EITHER.items()),
]


def report(key: str, value: str) -> FileReport:
    text = f"---\nname: x\ndescription: d\n{key}: {value}\n---\nYou work."
    return examine(text.encode(), where="x.md", source="user")


def fate(key: str, value: str) -> str:
    found = report(key, value)
    told = [one.fate for one in found.findings if one.line == 4]
    fates = ["carried out"] * (key in found.carried_out) + told
    assert len(fates) == 1, (key, fates, found.findings)
    return str(fates[0])


@pytest.mark.parametrize(("key", "value", "fates"), TABLE)
def test_a_key_has_one_fate_and_its_spelling_makes_no_difference(key: str, value: str, fates: tuple[str, ...]) -> None:
    spellings = {key, snake(key), snake(key).replace("_", "-")}
    found = {fate(spelling, value) for spelling in spellings}
    assert len(found) == 1
    assert found <= set(fates)


def test_the_table_has_every_key_that_is_read() -> None:
    known = {snake(key) for key, _, _ in TABLE} | {"name", "description"}
    assert {re.sub("_s$", "", key) for key in KEYS} - known == set()
