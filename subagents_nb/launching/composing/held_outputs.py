"""Whether the output files of a launch are free, told among all that speaks against it; `claiming` then decides."""

from __future__ import annotations

import os

from subagents_nb.domain.plans.plan import Draft, LaunchRequest, outputs_of
from subagents_nb.launching.composing.flows import steps_of
from subagents_nb.launching.starting.claiming import settled_in
from subagents_nb.store import StoreHome
from subagents_nb.store.waiting.output_claims import held_outputs


def held_now(home: StoreHome, draft: Draft | None, request: LaunchRequest) -> list[str]:
    """Say which output files of a launch belong to live runs; of one that can't be planned, those that it names."""
    if draft is not None:
        return held_outputs(home, draft.cwd, outputs_of(draft.steps, draft.items), settled_in(home))
    cwd = os.path.realpath(request.cwd or os.curdir)
    named = [(request, "")] if request.flow is None else [(step, step.cwd or "") for step in steps_of(request)]
    here = [(one.output, folder) for one, folder in named if isinstance(one.output, str) and not one.worktree]
    files = [os.path.join(folder, output) for output, folder in here]
    return held_outputs(home, cwd, [os.path.normpath(file) for file in files], settled_in(home))
