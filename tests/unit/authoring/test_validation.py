"""All agent files judged at once: each fault, each key that is not carried out, with its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from subagents_nb import validate_agents
from subagents_nb.authoring.examined import examine
from subagents_nb.cli import main


def lines(text: str) -> list[str]:
    report = examine(text.encode(), where="a.md", source="user")
    return [f"{one.line or ''}|{one.fate}|{one.text}" for one in report.findings]


def test_every_key_has_its_fate_and_its_line() -> None:
    text = (
        "---\nname: x\ndescription: d\ncolor: red\nhooks: {a: b}\ntools: Read, WebSearch\npermissionMode: auto\n---\np"
    )
    report = examine(text.encode(), where="a.md", source="user")
    assert lines(text) == [
        "4|noted|`color` is not carried out",
        "5|refused|`hooks` guards its tools elsewhere and is not carried out here",
        "6|noted|tools that are not there: WebSearch",
        "7|noted|`permissionMode` is not carried out",
    ]
    assert report.carried_out == ("name", "description", "tools")
    assert not report.ok


def test_all_that_is_wrong_is_told_with_the_lines_of_the_keys() -> None:
    assert lines(
        "---\nname: x\ndescription: d\n\ntimeoutMs: soon\ntools: read\nmax_turns: -1\nmaxRequests: 3\n---\np"
    ) == [
        "5|error|field `timeoutMs` must be a whole number above zero, not 'soon'",
        "7|error|field `max_turns` must be a whole number above zero, not -1",
        "8|error|fields `max_turns` and `maxRequests` mean the same: keep one",
    ]
    assert lines("---\nname: x\ndescription: d\nx: [1\n---\np")[0].startswith("5|error|bad YAML")
    assert lines("---\nname: x\ndescription: d") == ["|error|the frontmatter is opened with --- but never closed"]


def test_a_description_with_a_colon_hides_no_line() -> None:
    assert lines("---\nname: x\ndescription: one: two\ncolor: red\n---\np") == ["4|noted|`color` is not carried out"]


def test_what_is_no_agent_says_what_it_lacks() -> None:
    assert lines("# Notes\n") == ["|noted|it is no agent: it has no frontmatter"]
    assert lines("---\nname: x\n---\np") == ["|noted|it is no agent: it has no description"]
    assert lines("---\ntitle: x\n---\np") == ["|noted|it is no agent: it has no name and description"]


def test_who_is_disabled_in_the_file_is_noted() -> None:
    text = "---\nname: x\ndescription: d\ndisabled: true\n---\np"
    assert lines(text) == ["4|noted|it is disabled there: take `disabled: true` out to use it"]


def test_all_scopes_are_read_and_what_only_all_together_show(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    home, project = tmp_path / "home", tmp_path / "home" / "work"
    for folder, name, head in (
        (home / ".agents", "good", "color: red"),
        (project / ".claude/agents", "worker", "tools: Bash"),
        (project / ".claude/agents", "bad", "thinking: enormous"),
    ):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.md").write_text(f"---\nname: {name}\ndescription: d\n{head}\n---\np")
    (home / ".subagents").mkdir()
    (home / ".subagents/settings.toml").write_text("[agents.ghost]\nthinking = 'low'\n")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(project)
    found = {report.where: report for report in validate_agents().files}
    assert found["builtin/scout.md"].ok and not found["builtin/scout.md"].findings
    assert main(["validate"]) == 1
    told = capsys.readouterr().out.splitlines()
    assert "~/.agents/good.md (user): ok" in told
    assert "  line 4: noted: `color` is not carried out" in told
    assert "  carried out: name, description" in told
    assert ".claude/agents/bad.md (project): broken" in told
    assert (
        "  line 4: error: field `thinking` must be off, minimal, low, medium, high, xhigh or max, not 'enormous'"
        in told
    )
    assert any("refused: not used: it takes the name of the agent 'worker' that is built in" in line for line in told)
    assert any("[agents.ghost] is for no agent that is there" in line for line in told)
