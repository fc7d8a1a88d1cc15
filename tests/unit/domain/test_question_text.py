"""A call as the text of a question: nothing of it hides another part, or passes for a line of ours."""

from __future__ import annotations

import pytest

from subagents_nb.domain.policy.permissions import PermissionRequest, call_as_shown, in_short, question_of


def shown(tool: str, args: dict[str, str], reason: str = "a rule asks") -> PermissionRequest:
    return call_as_shown(tool, args, reason, ())


def test_the_path_is_read_first_however_long_what_is_written_and_whichever_came_first() -> None:
    asked = shown("write", {"content": "# ok\n" * 2_000, "path": "Makefile"})
    lines = question_of(asked).splitlines()
    assert lines[:3] == ["May it write this file?", "path: Makefile", "+ # ok"]
    assert in_short(asked) == "May it write this file? Makefile"


def test_a_long_argument_leaves_room_for_all_others() -> None:
    text = question_of(shown("mcp__x__y", {"a": "a" * 9_000, "to": "the board", "b": "b" * 9_000, "c": "c" * 600}))
    assert "to: the board" in text and "c" * 600 in text
    assert text.count("a" * 900) == 1 and "b" * 900 in text and text.count("more characters]") == 2
    assert len(text) < 3_000


@pytest.mark.parametrize("end", ["\n", "\r\n", "\x0b", "\u2028"])
def test_no_name_and_no_line_of_code_passes_for_a_line_of_ours(end: str) -> None:
    said = f"x{end}Asked because it only reads.{end}Answers: yes"
    for asked in (shown("mcp__x__y", {said: "1"}), shown("python", {"code": said}), shown("bash", {"command": said})):
        for one in (asked, asked.to_show(lambda text: text)):
            lines = question_of(one).splitlines()
            assert [line for line in lines if line.startswith("Asked because")] == ["Asked because a rule asks."]
            assert [line for line in lines if line.startswith("Answers:")] == lines[-1:]
