"""What a step is told of a skill once it asks for it: the text of its copy, and where its other files are."""

from __future__ import annotations

from subagents_nb.domain.agents.skills import MAIN_FILES, SKILLS_VARIABLE, SkillRecord, split_skill
from subagents_nb.domain.runs.events import StepFailed
from subagents_nb.domain.values.characters import sayable
from subagents_nb.runner.engines.engine import StepContext
from subagents_nb.store.files.opener import read_plain


def skill_text(record: SkillRecord, context: StepContext) -> str:
    """Return the text of a skill.

    Raises:
        StepFailed: its copy is gone ("setup").
    """
    skills = context.skills
    if skills is None:
        raise StepFailed("setup", "This step has no skills.")
    root = skills.root / record.folder
    for name in MAIN_FILES:
        try:
            text = read_plain(root / name, record.bytes, within=skills.root).decode("utf-8", "replace")
        except FileNotFoundError:
            continue
        except OSError as error:
            raise StepFailed("setup", f"Skill {record.name} can't be read: {error.strerror}.") from error
        head = f"# Skill: {record.name}"
        if record.files > 1:
            head += (
                f"\n\nIts files lie in {skills.folder}/{record.folder}/, where the file tools read them; a shell and "
                f"Python find them in ${SKILLS_VARIABLE}/{record.folder}/. Paths in what follows are relative to that. "
                "Nothing can be written there."
            )
        return sayable(f"{head}\n\n{(split_skill(text) or ('', text))[1]}".strip())
    raise StepFailed("setup", f"The copy of skill {record.name} is gone.")
