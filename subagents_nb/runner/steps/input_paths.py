"""Where the inputs and skills of a run lie for its tools: by paths beside the workspace's own, and in variables."""

from __future__ import annotations

import os
from pathlib import Path

from subagents_nb.domain.agents.skills import FOLDER as SKILLS_FOLDER
from subagents_nb.domain.agents.skills import SKILLS_VARIABLE
from subagents_nb.domain.plans.inputs import FOLDER, INPUTS_VARIABLE, inputs_section
from subagents_nb.domain.plans.plan import LaunchPlan, StepPlan
from subagents_nb.runner.engines.engine import InputFiles, StepContext, StepSkills
from subagents_nb.store.layout import RunPaths


def visible_inputs(plan: LaunchPlan, paths: RunPaths, cwd: Path) -> InputFiles | None:
    """Return the inputs as the tools of a step in `cwd` see them; None if there are none."""
    return InputFiles(paths.root.absolute() / FOLDER, _free_folder(FOLDER, cwd), plan.inputs) if plan.inputs else None


def visible_skills(step: StepPlan, paths: RunPaths, cwd: Path) -> StepSkills | None:
    """Return the skills as the tools of a step in `cwd` see them; None if it has none."""
    root = paths.root.absolute() / SKILLS_FOLDER
    return StepSkills(root, _free_folder(SKILLS_FOLDER, cwd), step.skills) if step.skills else None


def _free_folder(folder: str, cwd: Path) -> str:
    return f"run-{folder}" if os.path.lexists(cwd / folder) else folder  # the workspace may have one of its own


def input_environ(inputs: InputFiles | None, skills: StepSkills | None = None) -> dict[str, str]:
    """Return the variables that tell processes of tools where the inputs and skills are."""
    environ = {} if inputs is None else {INPUTS_VARIABLE: str(inputs.root)}
    return environ if skills is None else environ | {SKILLS_VARIABLE: str(skills.root)}


def inputs_prompt(context: StepContext) -> str:
    """Return what is added to the task about the values that the run was given."""
    if context.inputs is None:
        return ""
    records, folder = context.inputs.records, context.inputs.folder
    return inputs_section(records, folder=folder, as_variables=context.python is not None)
