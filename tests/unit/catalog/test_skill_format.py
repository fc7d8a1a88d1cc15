"""What a skill's own file must say: the verdict of the reference validator, in our words."""

from __future__ import annotations

import importlib.metadata
import json
from pathlib import Path
from typing import Any

import pytest
import skills_ref

from subagents_nb.catalog.guidance.skill_format import is_skill_name, read_head
from subagents_nb.domain.agents.skills import MAIN_FILES, SkillRecord, fitting, folder_sha256, split_skill

RECORDED = json.loads((Path(__file__).parents[2] / "fixtures/skills-ref.json").read_text(encoding="utf-8"))
CASES: list[dict[str, Any]] = RECORDED["skills"]


def verdict(case: dict[str, Any]) -> bool:
    """As it is come to for a folder: a file of the right name, and nothing wrong in it."""
    if case["text"] is None or case["file"] not in MAIN_FILES:
        return False
    return not read_head(case["text"].encode(), case["folder"]).faults


def test_the_verdict_is_that_of_the_reference_validator() -> None:
    assert len(CASES) >= 30 and 10 < sum(case["valid"] for case in CASES) < len(CASES) - 10
    differing = [(case["folder"], case["text"]) for case in CASES if verdict(case) is not case["valid"]]
    assert differing == []


def test_what_was_recorded_of_the_reference_validator_is_what_it_says(tmp_path: Path) -> None:
    assert importlib.metadata.version("skills-ref") == RECORDED["version"]
    said = []
    for number, case in enumerate(CASES):
        folder = tmp_path / str(number) / case["folder"]
        folder.mkdir(parents=True)
        if case["text"] is not None:
            (folder / case["file"]).write_bytes(case["text"].encode())
        said.append(not skills_ref.validate(folder))
    assert said == [case["valid"] for case in CASES]


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"---\nname: pdx\ndescription: d\n---\n", "the name must match its folder"),
        (b"---\nname: pdf\ndescription: d\nmodel: x\n---\n", "it has fields that the format does not know: model"),
        (b"---\nname: pdf\ndescription: [d]\n---\n",
         "lists and mappings stand on lines of their own, not in brackets (line 3)"),
        (b"---\nname: pdf\n\xff", "the file is not UTF-8 (byte 15)"),
        (b"---\nname: pdf\n" + b"# x\n" * 10_000 + b"---\n", "the frontmatter has more than 16,000 characters"),
    ],
)  # fmt: skip
def test_a_broken_one_is_told_what_is_wrong(content: bytes, told: str) -> None:
    assert read_head(content, "pdf").faults[0] == told


def test_a_description_is_one_line_of_plain_characters() -> None:
    head = read_head(b'---\nname: a\ndescription: "one\\n- b: two\\e[31m"\nallowed-tools:\n  - Bash\n---\n', "a")
    assert (head.description, head.asks_for) == ("one - b: two[31m", "Bash")


@pytest.mark.parametrize("name", ["../x", "a/b", "", ".", "a\0b", "A", "x" * 65])
def test_what_can_be_no_name_never_becomes_a_path(name: str) -> None:
    assert not is_skill_name(name)


def test_the_text_is_what_stands_below_the_frontmatter() -> None:
    assert split_skill("---\r\nname: a\r\n---\r\n\r\nbody\r\n--- more\r\n") == ("\nname: a", "body\n--- more")
    assert split_skill("---\nname: a\n") is None


def test_a_changed_byte_name_or_mode_is_another_skill() -> None:
    files = [("SKILL.md", False, "1" * 64), ("scripts/x.py", False, "2" * 64)]
    others = [
        [files[0], ("scripts/x.py", False, "3" * 64)],
        [files[0], ("scripts/y.py", False, "2" * 64)],
        [files[0], ("scripts/x.py", True, "2" * 64)],
        files[:1],
    ]
    assert len({folder_sha256(one) for one in (files, *others)}) == 5
    assert folder_sha256(files) == folder_sha256(reversed(files))


def test_what_does_not_fit_into_the_list_is_left_out_whole() -> None:
    def skill(name: str, size: int) -> SkillRecord:
        return SkillRecord(
            name=name, description="d" * size, sha256="0" * 64, files=1, bytes=1, source="user", where=""
        )

    skills = [skill("a", 16_000), skill("b", 1_000), skill("c", 100)]
    kept, dropped = fitting(skills)
    assert ([one.name for one in kept], [one.name for one in dropped]) == (["a", "c"], ["b"])


def test_two_skills_of_one_name_lie_apart() -> None:
    fields: dict[str, Any] = {"name": "a", "description": "", "files": 1, "bytes": 1, "source": "user", "where": ""}
    assert SkillRecord(sha256="1" * 64, **fields).folder != SkillRecord(sha256="2" * 64, **fields).folder
