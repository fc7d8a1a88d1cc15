"""Skills: folders of instructions, scripts and other files that an agent may look into, as agentskills.io has them."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable
from typing import Annotated, Literal, TypeAlias

from pydantic import BeforeValidator

from subagents_nb.domain.agents.acting import Acting, Held
from subagents_nb.domain.agents.agent import AgentSource
from subagents_nb.domain.values.base import Value, sha256_text
from subagents_nb.domain.values.reading import must_be

FOLDER = "skills"  # below the run's directory
SKILLS_VARIABLE = "SUBAGENTS_SKILLS"  # tells the processes of tools where the folders are
LOAD_TOOL = "load_capability"  # pydantic-ai's own name for the tool that loads a skill's text
LISTED_BYTES = 16 * 1024  # of names and descriptions, which a model is told with each request
MOST_BYTES, MOST_FILES = 10_000_000, 500
MAIN_FILES = ("SKILL.md", "skill.md")
# Comes and goes by itself, or says nothing to an agent: neither copied nor hashed.
LEFT_OUT = frozenset({".git", "__pycache__", ".DS_Store"})
_PROGRAMS = (".py", ".sh", ".bash", ".zsh", ".js", ".mjs", ".ts", ".rb", ".pl", ".php", ".lua", ".r", ".jl", ".ps1",
             ".bat", ".cmd", ".exe")  # fmt: skip

SkillSource: TypeAlias = Literal["agent", "project", "user", "package"]


class SkillWanted(Value):
    """A skill that somebody names: by an agent's own `skillPath` it is looked for first."""

    name: str
    paths: tuple[str, ...] = ()  # relative to the agent's file
    agent_where: str = ""
    agent_source: AgentSource = "registered"
    by_project: bool = False  # an agent's file of the project says it, so its own is meant


class SkillRecord(Value):
    """A skill as it was found at the launch, and copied; nothing changes it there."""

    name: str
    description: str
    sha256: str  # over all its files and their names
    files: int
    bytes: int
    source: SkillSource
    where: str  # as shown to people: never absolute

    @property
    def folder(self) -> str:
        """Return the name of its copy: two agents of a run may have two skills of one name."""
        return f"{self.name[:32]}-{self.sha256[:12]}"

    def contract(self) -> dict[str, str]:
        """Return what the launch contract binds of it."""
        return {"name": self.name, "sha256": self.sha256}


class SkillLookup(Value):
    """What was found where a skill was looked for: the skill, or why it can't be used; neither: it is nowhere."""

    record: SkillRecord | None = None
    problem: str | None = None
    asks_for: str = ""  # its `allowed-tools`, which grant nothing
    scripts: int = 0  # files that are programs
    acting: Acting | None = None  # what the person has to allow of it, by the very bytes that are copied
    held: Held | None = None  # they have not


def is_script(path: str, runs: bool) -> bool:
    """Say whether a file of a skill is a program, by its place, its name or its mode."""
    return runs or path.startswith("scripts/") or path.lower().endswith(_PROGRAMS)


def acting_skill(where: str, files: Iterable[tuple[str, bool, str]], *, takes_name: bool = False) -> Acting | None:
    """Return a project's skill as something that can act, by path, mode and hash of its files; None if it is text.

    `takes_name`: it stands before one of the person's own, which their agents mean by this name.
    """
    listed = list(files)
    scripts = sum(is_script(path, runs) for path, runs, _ in listed)
    does = [f"{scripts} script{'' if scripts == 1 else 's'}"] if scripts else []
    does += ["takes the name of one in your home folder"] if takes_name else []
    if not does:
        return None
    ordered = sorted(listed, key=lambda one: (one[0] not in MAIN_FILES, one[0]))
    return Acting(
        kind="skill",
        name=posixpath.basename(where),
        does=tuple(does),
        files={f"{where}/{path}": sha256 for path, _, sha256 in ordered},
    )


def folder_sha256(files: Iterable[tuple[str, bool, str]]) -> str:
    """Return the SHA-256 of a skill: over path and content of each file, and whether it may be run."""
    lines = sorted(f"{path}\0{'x' if runs else ''}\0{sha256}" for path, runs, sha256 in files)
    return sha256_text("\n".join(lines))


def split_skill(text: str) -> tuple[str, str] | None:
    """Return the frontmatter of a skill's text, and its body; None if it has none that is closed."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    if not lines[0].startswith("---"):
        return None
    end = next((number for number, line in enumerate(lines[1:], 1) if line.startswith("---")), None)
    if end is None:
        return None
    return "\n".join([lines[0][3:], *lines[1:end]]), "\n".join(lines[end + 1 :]).strip()


def fitting(records: Iterable[SkillRecord]) -> tuple[tuple[SkillRecord, ...], tuple[SkillRecord, ...]]:
    """Return those of which the model can be told within the bound, and those that are left out, whole."""
    kept: list[SkillRecord] = []
    dropped: list[SkillRecord] = []
    left = LISTED_BYTES
    for one in records:
        size = len(f"- {one.name}: {one.description}\n".encode())
        (kept if size <= left else dropped).append(one)
        left -= size if size <= left else 0
    return tuple(kept), tuple(dropped)


def _names(given: object) -> object:
    """Accept text with commas, a list of such texts, or `false` for none."""
    if given is None or given is False or given == "false" or given in (["false"], ("false",)):
        return None if given is None else False
    entries = list(given) if isinstance(given, list | tuple) else [given]
    texts = [one for one in entries if isinstance(one, str)]
    if len(texts) < len(entries):
        raise must_be("a list of names of skills, or false", given)
    return tuple(dict.fromkeys(name for one in texts for part in one.split(",") if (name := part.strip())))


SkillNames: TypeAlias = Annotated[tuple[str, ...] | Literal[False] | None, BeforeValidator(_names)]
