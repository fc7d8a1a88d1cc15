"""What a chain that goes on as a whole takes over: decided from how its stages and steps stand."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence

from subagents_nb.domain.plans.resumed import How, Taken
from subagents_nb.domain.runs.snapshot import Snapshot
from subagents_nb.domain.runs.stages import Stage
from subagents_nb.domain.runs.states import RunState, StepState

Places = tuple[tuple[Taken, ...], ...]
_STANDS = (StepState.COMPLETE, StepState.STOPPED)  # a stopped one is over for good
_NEVER_BEGAN = (StepState.PENDING, StepState.SKIPPED)


def taken_over(stages: Sequence[Stage], states: Mapping[int, StepState], *, sessions: Container[int]) -> Places:
    """Return what became of the steps of each stage, up to the first one that is not done.

    What lies behind that one begins anew, although it may have been carried out: what it read is another thing now.
    """
    found: list[tuple[Taken, ...]] = []
    for stage in stages:
        if not stage.steps:
            if stage.state is not StepState.COMPLETE:
                break
            found.append(())
            continue
        known = {number: states.get(number, StepState.PENDING) for number in stage.steps}
        if all(state in _NEVER_BEGAN for state in known.values()):
            break
        found.append(tuple(Taken(step=n, how=_how(state, n in sessions)) for n, state in known.items()))
        if any(taken.how != "stands" for taken in found[-1]) or _unsettled(stage):
            break
    return tuple(found)


def is_done(stages: Sequence[Stage], taken: Places) -> bool:
    """Say whether nothing of a chain is left to be done."""
    settled = not any(map(_unsettled, stages))
    return settled and len(taken) == len(stages) and all(one.how == "stands" for steps in taken for one in steps)


def _unsettled(stage: Stage) -> bool:
    """Whether a stage is not accepted as a whole, or was being judged; that can go well another time."""
    return stage.state in (StepState.REJECTED, StepState.RUNNING, StepState.PAUSED)


def states_of(snapshot: Snapshot) -> dict[int, StepState]:
    """Return the states of the steps of a run that has ended, by their numbers."""
    return {step.index: step.state for step in snapshot.steps}


def chain_can_resume(snapshot: Snapshot) -> bool:
    """Say whether a chain that has ended can be gone on with as a whole."""
    if not snapshot.stages or snapshot.state in (None, RunState.COMPLETE, RunState.STOPPED):
        return False
    return not is_done(snapshot.stages, taken_over(snapshot.stages, states_of(snapshot), sessions=()))


def _how(state: StepState, has_session: bool) -> How:
    if state in _STANDS:
        return "stands"
    return "goes-on" if has_session else "anew"
