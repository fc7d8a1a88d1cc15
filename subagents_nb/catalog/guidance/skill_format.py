"""What a skill's own file must say, by the rules of agentskills.io. Pure."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

from subagents_nb.catalog.strict_yaml import YamlRefused, load_texts
from subagents_nb.domain.agents.skills import split_skill
from subagents_nb.domain.values.words import one_line

NAME_CHARS, DESCRIPTION_CHARS, COMPATIBILITY_CHARS = 64, 1024, 500
_HEAD_CHARS = 16_000
_KEYS = ("name", "description", "license", "allowed-tools", "metadata", "compatibility")


@dataclass(frozen=True, slots=True)
class SkillHead:
    """What a skill says of itself, or all that is wrong with that."""

    description: str = ""
    asks_for: str = ""
    faults: tuple[str, ...] = ()


def normal(name: str) -> str:
    """Return a name as names are compared."""
    return unicodedata.normalize("NFKC", name.strip())


def is_skill_name(name: str) -> bool:
    """Say whether a skill can have this name; no other one ever becomes a path."""
    return not any(_name_faults(normal(name)))


def read_head(content: bytes, folder: str) -> SkillHead:
    """Read the file of a skill that lies in a folder of this name."""
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        return SkillHead(faults=(f"the file is not UTF-8 (byte {error.start + 1})",))
    parts = split_skill(text)
    if parts is None:
        opened = "is never closed" if text.startswith("---") else "is missing; it begins with a line of ---"
        return SkillHead(faults=(f"the frontmatter {opened}",))
    if len(parts[0]) > _HEAD_CHARS:
        return SkillHead(faults=(f"the frontmatter has more than {_HEAD_CHARS:,} characters",))
    try:
        fields = load_texts(parts[0])
    except YamlRefused as error:
        return SkillHead(faults=(str(error),))
    faults = tuple(_faults(fields, normal(folder)))
    if faults:
        return SkillHead(faults=faults)
    asks = fields.get("allowed-tools", "")
    listed = ", ".join(map(str, asks)) if isinstance(asks, list) else str(asks)
    # On one line: the model is told of each skill in one line of a list.
    described = " ".join(str(fields["description"]).split())
    return SkillHead("".join(filter(str.isprintable, described)), listed)


def _faults(fields: dict[str, object], folder: str) -> Iterator[str]:
    if unknown := sorted(key for key in fields if key not in _KEYS):
        names = ", ".join(one_line(key, 40) for key in unknown)
        yield f"it has fields that the format does not know: {names}"
    name, description = fields.get("name"), fields.get("description")
    if not isinstance(name, str) or not name.strip():
        yield "it has no name"
    elif any(faults := tuple(_name_faults(normal(name)))):
        yield from faults
    elif normal(name) != folder:
        yield "the name must match its folder"
    if not isinstance(description, str) or not description.strip():
        yield "it has no description"
    elif len(description) > DESCRIPTION_CHARS:
        yield f"the description has {len(description):,} characters; {DESCRIPTION_CHARS:,} are the most"
    fits = fields.get("compatibility", "")
    if not isinstance(fits, str):
        yield "compatibility must be text"
    elif len(fits) > COMPATIBILITY_CHARS:
        yield f"compatibility has {len(fits):,} characters; {COMPATIBILITY_CHARS} are the most"


def _name_faults(name: str) -> Iterator[str]:
    if not name:
        yield "it has no name"
    if len(name) > NAME_CHARS:
        yield f"the name has {len(name)} characters; {NAME_CHARS} are the most"
    if name != name.lower():
        yield "the name must be in lower case"
    if name.startswith("-") or name.endswith("-") or "--" in name:
        yield "the name can't begin or end with a hyphen, nor have two in a row"
    if not all(char.isalnum() or char == "-" for char in name):
        yield "the name may hold letters, digits and hyphens only"
