"""Whether the sandboxes of a plan can be made here: tried for real, for those who ask for one."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from subagents_nb.domain.plans.plan import PlanItem, StepPlan, everything
from subagents_nb.store.layout import default_home


class Planned(Protocol):
    """Anything with steps and the items over them: a draft, or what is appended."""

    @property
    def steps(self) -> Sequence[StepPlan]:
        """Return the steps."""
        ...

    @property
    def items(self) -> Sequence[PlanItem]:
        """Return the items over them."""
        ...


def sandbox_problems(plan: Planned, cwd: str) -> tuple[str, ...]:
    """Return why a plan can't be carried out in the sandboxes that it asks for."""
    boxed = [step for step in everything(plan.steps, plan.items) if step.sandbox is not None]
    if not boxed:
        return ()
    from subagents_nb.store.processes.bubblewrap import NoSandbox, bubblewrap, workspace_problem

    found = [] if (problem := workspace_problem(Path(cwd), Path.home())) is None else [problem]
    try:
        bubblewrap(default_home(), os.environ, cwd=Path(cwd))
    except NoSandbox as error:
        found.append(str(error))
    return tuple(found)
