"""The skills of a project that bring programs: which those are, and that a changed byte is seen whenever one asks."""

from __future__ import annotations

import os
import time
from pathlib import Path

from subagents_nb.catalog import discover
from subagents_nb.catalog.guidance.skill_trust import acting_skills
from subagents_nb.domain.agents.acting import Acting


def skill(project: Path, place: str, **files: str) -> Path:
    folder = project / place
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text("---\nname: x\ndescription: d\n---\n")
    for name, text in files.items():
        path = folder / name.replace("__", "/").replace("_py", ".py").replace("_csv", ".csv")
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    return folder


def found(project: Path) -> dict[str, Acting]:
    catalog = discover(project, home=project / "nowhere")
    return {item.where: item for item in acting_skills(project, catalog)}


def test_only_those_with_programs_ask_and_those_of_the_projects_agents_do_too(tmp_path: Path) -> None:
    skill(tmp_path, ".claude/skills/text", data_csv="1")
    skill(tmp_path, ".claude/skills/tool", scripts__run="x", more_py="y", data_csv="1")
    skill(tmp_path, ".agents/lib/own", a_py="z")
    (tmp_path / ".agents/me.md").write_text("---\nname: me\ndescription: d\nskillPath: lib\n---\n")
    marked = skill(tmp_path, ".subagents/skills/marked", go="x")
    (marked / "go").chmod(0o755)
    (tmp_path / ".claude/skills/no-skill").mkdir()
    (tmp_path / ".claude/skills/no-skill/x.py").write_text("")
    items = found(tmp_path)
    assert {where: (item.name, item.does) for where, item in items.items()} == {
        ".subagents/skills/marked/SKILL.md": ("marked", ("1 script",)),
        ".claude/skills/tool/SKILL.md": ("tool", ("2 scripts",)),
        ".agents/lib/own/SKILL.md": ("own", ("1 script",)),
    }
    assert len(items[".claude/skills/tool/SKILL.md"].files) == 4


def test_a_changed_byte_a_new_file_and_a_mode_are_seen_though_all_is_remembered(tmp_path: Path) -> None:
    folder = skill(tmp_path, ".claude/skills/tool", a_py="one")
    old = time.time() - 3600
    seen = []

    def look() -> None:
        for path in folder.iterdir():
            os.utime(path, (old, old))
        seen.append(next(iter(found(tmp_path).values())).files)
        assert next(iter(found(tmp_path).values())).files == seen[-1]

    look()
    (folder / "a.py").write_text("two")
    look()
    (folder / "b.csv").write_text("")
    look()
    assert len({tuple(sorted(files.items())) for files in seen}) == 3
    (folder / "a.py").unlink()
    assert found(tmp_path) == {}
