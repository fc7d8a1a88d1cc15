"""Skills looked for and read: which one a name means, what keeps one from being copied, and what is copied."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from subagents_nb.domain.agents.skills import MOST_FILES, SkillLookup, SkillRecord, SkillWanted
from subagents_nb.errors import StoreError
from subagents_nb.launching.gathering.skill_folders import SkillLookups
from subagents_nb.store import StoreHome
from subagents_nb.store.runs.skill_files import kept_skills, write_skills
from tests.support import run_id


class Ground:
    """A home and a project in it, with skills where a test wants them."""

    def __init__(self, top: Path) -> None:
        self.home, self.cwd = top / "home", top / "home/work"
        (self.cwd / ".git").mkdir(parents=True)

    def skill(self, where: str, name: str = "pdf", description: str = "", **files: str) -> Path:
        folder = (self.home / where[2:] if where.startswith("~/") else self.cwd / where) / name
        folder.mkdir(parents=True)
        (folder / "SKILL.md").write_text(f"---\nname: {name}\ndescription: {description or where}\n---\nbody\n")
        for path, text in files.items():
            (folder / path).write_text(text)
        return folder

    def shelf(self) -> SkillLookups:
        return SkillLookups(self.cwd, self.home)

    def fact(self, name: str = "pdf", **wanted: object) -> SkillLookup:
        shelf = self.shelf()
        asked = SkillWanted.model_validate({"name": name, **wanted})
        shelf.look_up(asked)
        return shelf.lookups[asked]

    def record(self, name: str = "pdf", **wanted: object) -> SkillRecord:
        fact = self.fact(name, **wanted)
        assert fact.record is not None, fact.problem
        return fact.record


@pytest.fixture
def ground(tmp_path: Path) -> Ground:
    return Ground(tmp_path)


def test_the_agents_own_comes_before_the_projects_and_that_before_the_persons(ground: Ground) -> None:
    own = {"paths": ("lib",), "agent_where": ".claude/agents/x.md", "agent_source": "project"}
    found = []
    for where in ("~/.agents/skills", "~/.claude/skills", "~/.subagents/skills", ".agents/skills", ".claude/skills",
                  ".subagents/skills", ".claude/agents/lib"):  # fmt: skip
        ground.skill(where)
        found.append((ground.record(**own).where, ground.record(**own).source))
    assert found == [
        ("~/.agents/skills/pdf", "user"),
        ("~/.claude/skills/pdf", "user"),
        ("~/.subagents/skills/pdf", "user"),
        (".agents/skills/pdf", "project"),
        (".claude/skills/pdf", "project"),
        (".subagents/skills/pdf", "project"),
        (".claude/agents/lib/pdf", "agent"),
    ]


def test_an_agent_may_name_the_skill_itself_and_one_of_the_person_lies_by_its_file(ground: Ground) -> None:
    ground.skill("~/.claude/agents/lib")
    mine = {"paths": ("lib/pdf",), "agent_where": "~/.claude/agents/x.md", "agent_source": "user"}
    assert ground.record(**mine).where == "~/.claude/agents/lib/pdf"


def test_an_installed_package_brings_skills_by_its_entry_point(
    ground: Ground, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = tmp_path / "site-packages"
    folder = site / "made_up_tools/skills/pdf"
    folder.mkdir(parents=True)
    (site / "made_up_tools/__init__.py").write_text("raise SystemExit('imported')")
    (folder / "SKILL.md").write_text("---\nname: pdf\ndescription: d\n---\n")
    about = site / "made_up_tools-1.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: made-up-tools\nVersion: 1\n")
    (about / "entry_points.txt").write_text(
        "[subagents_nb.skills]\nmine = made_up_tools:skills\nno = not_there.at_all\n"
    )
    monkeypatch.syspath_prepend(str(site))
    assert (ground.record().source, ground.record().where) == ("package", "made-up-tools:made_up_tools/skills/pdf")
    ground.skill("~/.agents/skills")
    assert ground.record().source == "user"


def test_metadata_that_lies_on_the_way_of_imports_brings_no_skills_and_is_not_imported(
    ground: Ground, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kernel has the folder of its notebook there, so a clone could bring a package of its own."""
    clone = tmp_path / "clone"
    folder = clone / "evil/sub/skills/pdf"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text("---\nname: pdf\ndescription: d\n---\n")
    for name in ("evil/__init__.py", "evil/sub/__init__.py"):
        (clone / name).write_text("raise SystemExit('imported')")
    about = clone / "evil-1.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: evil\nVersion: 1\n")
    (about / "entry_points.txt").write_text("[subagents_nb.skills]\nmine = evil.sub:skills\n")
    monkeypatch.syspath_prepend(str(clone))
    assert ground.fact() == SkillLookup()


def test_what_is_nowhere_is_neither_found_nor_a_problem(ground: Ground) -> None:
    ground.skill(".agents/skills", "other")
    assert ground.fact() == SkillLookup() == ground.fact("../other") == ground.fact("Other")


def test_a_broken_one_is_not_passed_over_for_another(ground: Ground) -> None:
    ground.skill("~/.claude/skills")
    (ground.skill(".claude/skills") / "SKILL.md").write_text("---\nname: pdx\ndescription: d\n---\n")
    assert ground.fact().problem == "skill 'pdf' (.claude/skills/pdf/SKILL.md): the name must match its folder"


def test_links_stay_inside_and_nothing_but_plain_files_is_copied(ground: Ground, tmp_path: Path) -> None:
    folder = ground.skill(".claude/skills", **{"data.csv": "1"})
    (folder / "inner.csv").symlink_to("data.csv")
    (folder / "__pycache__").mkdir()
    (folder / "__pycache__/x.pyc").write_text("")
    assert ground.record().files == 3

    secret = tmp_path / "secret"
    secret.write_text("s")
    told = {}
    for name, make in {
        "out": lambda path: path.symlink_to(secret),
        "gone": lambda path: path.symlink_to(tmp_path / "gone"),
        "up": lambda path: path.symlink_to(".."),
        "self": lambda path: path.symlink_to("."),
        "pipe": os.mkfifo,
        "bad\nname": lambda path: path.write_text(""),
    }.items():
        make(folder / name)
        told[name] = (ground.fact().problem or "").removeprefix("skill 'pdf' (.claude/skills/pdf): ")
        (folder / name).unlink()
    assert told == {
        "out": "out is a link that leads out of the skill's folder",
        "gone": "gone is a link that leads out of the skill's folder",
        "up": "up is a link that leads out of the skill's folder",
        "self": "self is a link to a folder",
        "pipe": "pipe is no plain file",
        "bad\nname": "the name 'bad\\nname' is no plain text",
    }


def test_a_projects_skill_is_no_link_out_of_it_and_the_persons_may_be(ground: Ground, tmp_path: Path) -> None:
    real = ground.skill("~/elsewhere")
    (ground.cwd / ".claude/skills").mkdir(parents=True)
    (ground.cwd / ".claude/skills/pdf").symlink_to(real)
    why = "it is a link that leads out of the project, and is not followed"
    assert ground.fact().problem == f"skill 'pdf' (.claude/skills/pdf): {why}"
    (ground.cwd / ".claude/skills/pdf").unlink()
    (ground.home / ".claude/skills").mkdir(parents=True)
    (ground.home / ".claude/skills/pdf").symlink_to(real)
    assert ground.record().where == "~/.claude/skills/pdf"


def test_too_much_is_refused_and_not_cut(ground: Ground) -> None:
    folder = ground.skill(".claude/skills")
    for number in range(MOST_FILES):
        (folder / f"{number}.txt").write_text("")
    assert ground.fact().problem == f"skill 'pdf' (.claude/skills/pdf): it has more than {MOST_FILES} files"
    (folder / "0.txt").unlink()
    with (folder / "1.txt").open("wb") as file:
        file.truncate(10_000_001)
    assert ground.fact().problem == "skill 'pdf' (.claude/skills/pdf): it has more than 10 MB"


def test_a_copy_is_the_folder_read_only_and_known_again_by_its_hash(ground: Ground, store_home: StoreHome) -> None:
    folder = ground.skill(".claude/skills", **{"x.sh": "echo"})
    (folder / "deep/er").mkdir(parents=True)
    (folder / "deep/er/y").write_text("y")
    (folder / "x.sh").chmod(0o755)
    shelf = ground.shelf()
    shelf.look_up(SkillWanted(name="pdf"))
    record = shelf.lookups[SkillWanted(name="pdf")].record
    assert record is not None
    paths = store_home.run(run_id())
    paths.root.mkdir(parents=True)
    for _ in range(2):
        write_skills(paths, {record.folder: shelf.files[record.sha256]})
    copied = paths.root / "skills" / record.folder
    assert [path.name for path in (paths.root / "skills").iterdir()] == [record.folder]
    modes = {str(path.relative_to(copied)): stat.S_IMODE(path.stat().st_mode) for path in copied.rglob("*")}
    assert modes == {"SKILL.md": 0o400, "x.sh": 0o500, "deep": 0o700, "deep/er": 0o700, "deep/er/y": 0o400}
    assert kept_skills(paths, [record]) == {record.folder: shelf.files[record.sha256]}

    (copied / "deep/er/y").chmod(0o600)
    (copied / "deep/er/y").write_text("z")
    with pytest.raises(StoreError, match=f"The copy of skill pdf in run {run_id()} is gone, or was changed"):
        kept_skills(paths, [record])
