"""Where the inputs of a run lie for its tools: by a path beside the workspace's own, and in a variable."""

from __future__ import annotations

import os
from pathlib import Path

from subagents_nb.domain.plans.inputs import FOLDER, INPUTS_VARIABLE
from subagents_nb.domain.plans.plan import LaunchPlan
from subagents_nb.runner.engines.engine import InputFiles
from subagents_nb.store.layout import RunPaths

_OTHER_FOLDER = "run-inputs"  # where the workspace has an `inputs` of its own


def given_inputs(plan: LaunchPlan, paths: RunPaths, cwd: Path) -> InputFiles | None:
    """Return the inputs as the tools of a step in `cwd` see them; None if there are none."""
    if not plan.inputs:
        return None
    folder = _OTHER_FOLDER if os.path.lexists(cwd / FOLDER) else FOLDER
    return InputFiles(paths.root.absolute() / FOLDER, folder, plan.inputs)


def inputs_environ(inputs: InputFiles | None) -> dict[str, str]:
    """Return the variable that tells processes of tools where the inputs are."""
    return {} if inputs is None else {INPUTS_VARIABLE: str(inputs.root)}
