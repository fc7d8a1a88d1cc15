"""The stages of a chain as the runner keeps them."""

from __future__ import annotations

import pytest

from subagents_nb.domain.runs.stages import Stage
from subagents_nb.domain.runs.states import StepState
from subagents_nb.runner.journal.stage_progress import Stages


@pytest.mark.parametrize(("paused", "waited"), [(True, StepState.PENDING), (False, StepState.SKIPPED)])
def test_no_stage_of_a_run_that_has_ended_is_at_work(paused: bool, waited: StepState) -> None:
    stages = Stages([Stage(kind="attached", label="a"), Stage(kind="parallel", label="b", steps=(0,))])
    stages.set(0, StepState.RUNNING)
    stages.set(1, StepState.RUNNING)
    stages.settle(paused=paused)
    shown = stages.shown({0: StepState.STOPPED})
    assert [one.state for one in shown] == [waited, StepState.STOPPED]
