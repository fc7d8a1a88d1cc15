"""A reason is a text that knows what it is about."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import subagents_nb
from subagents_nb.domain.values.reasons import NO_EARLIER_OUTPUT, Reason, Reasons, place_of


def test_a_reason_reads_as_its_text_and_keeps_what_it_is_about() -> None:
    reason = Reason("it is a number", lead="step 2: count", place="2", path=("count",))
    assert reason == "step 2: count: it is a number" and reason.text == "it is a number"
    again = Reason(reason, lead="cell 3")
    assert again == "cell 3: step 2: count: it is a number"
    assert (again.place, again.path, again.text) == ("2", ("count",), "it is a number")
    with pytest.raises(AttributeError, match="a value"):
        reason.place = "3"


def test_what_is_found_at_a_place_is_told_to_those_around_it_with_the_place() -> None:
    reasons = Reasons()
    step = reasons.at("2.1", "step 2.1 (scout)")
    step.at("", "acceptance.review.agent").append("there is none")
    step.extend(["no task", Reason("no such output", code=NO_EARLIER_OUTPUT)])
    assert reasons == [
        "step 2.1 (scout): acceptance.review.agent: there is none",
        "step 2.1 (scout): no task",
        "step 2.1 (scout): no such output",
    ]
    assert step == ["acceptance.review.agent: there is none", "no task", "no such output"]
    assert [one.place for one in reasons] == ["2.1"] * 3 and reasons[2].code == NO_EARLIER_OUTPUT
    assert place_of(reasons[0]) == "2.1" and place_of("a plain text") == ""


# Whose words are taken apart: git's, argparse's, pydantic-ai's, a kernel's, a model's and a script's.
FOREIGN = {
    "repository_lookup.py", "line_parser.py", "native.py", "failures.py", "tool.py", "scripted.py", "verdict.py",
}  # fmt: skip
SAYING = {"error", "fault", "message", "note", "problem", "reason", "reasons", "said", "text", "told", "why", "words"}
PARTS = {"startswith", "endswith", "partition", "rpartition", "split", "removeprefix", "removesuffix", "find", "index"}


def name_of(node: ast.AST) -> str:
    """Return the last name of what is asked: `text` for `one.text`, `str(text)`, `text.lower()` and `text[0]`."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case ast.Call(func=ast.Name(id="str"), args=[first, *_]):
            return name_of(first)
        case ast.Call(func=ast.Attribute(value=inner)) | ast.Subscript(value=inner):
            return name_of(inner)
        case ast.BoolOp(values=[first, *_]):
            return name_of(first)
    return ""


def wording(node: ast.AST) -> bool:
    """Whether it is some words of a sentence, and not the sign that parts a list or ends a line."""
    return (
        isinstance(node, ast.Constant) and isinstance(node.value, str) and len(re.findall("[A-Za-z]", node.value)) > 2
    )


def test_no_sentence_of_ours_is_read_back_to_learn_what_it_is_about() -> None:
    root, found = Path(subagents_nb.__file__).parent, []
    for path in sorted(root.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())) if path.name not in FOREIGN else ():
            match node:
                case ast.Compare(left=words, ops=[ast.In() | ast.NotIn()], comparators=[asked]):
                    pass
                case ast.Call(func=ast.Attribute(value=asked, attr=part), args=[words, *_]) if part in PARTS:
                    pass
                case _:
                    continue
            if wording(words) and name_of(asked) in SAYING:
                found.append(f"{path.relative_to(root)}:{node.lineno}: {ast.unparse(node)}")
    assert found == []
