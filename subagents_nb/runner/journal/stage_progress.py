"""The stages of a chain as the runner keeps them: what each holds, and how far it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from subagents_nb.domain.plans.acceptance import Ledger
from subagents_nb.domain.runs.stages import Stage, state_of
from subagents_nb.domain.runs.states import StepState


class Stages:
    """The stages in order. A stage's state follows from its steps, unless it was set."""

    def __init__(self, first: Sequence[Stage]) -> None:
        self._stages = list(first)
        self._set: dict[int, StepState] = {}

    def __len__(self) -> int:
        return len(self._stages)

    def add(self, stages: Sequence[Stage]) -> None:
        """Append stages."""
        self._stages.extend(stages)

    def hold(self, place: int, steps: Sequence[int]) -> None:
        """Say which steps a stage has."""
        self._stages[place] = self._stages[place].model_copy(update={"steps": tuple(steps)})

    def set(self, place: int, state: StepState, error: str | None = None) -> None:
        """Give a stage a state of its own: it has no steps, or it went wrong apart from them."""
        self._set[place] = state
        if error is not None:
            self._stages[place] = self._stages[place].model_copy(update={"error": error})

    def follow(self, place: int) -> None:
        """Let a stage's state follow from its steps again."""
        self._set.pop(place, None)

    def settle(self, *, paused: bool) -> None:
        """Let no stage be at work any more: the run has ended."""
        for place in [place for place, state in self._set.items() if state is StepState.RUNNING]:
            self.follow(place)
            if not self._stages[place].steps and not paused:
                self._set[place] = StepState.SKIPPED

    def judge(self, place: int, ledger: Ledger, error: str | None) -> None:
        """Take in the verdict over a stage; without an error its state follows from its steps again."""
        self._stages[place] = self._stages[place].model_copy(update={"acceptance": ledger, "error": error})
        self.follow(place)
        if error is not None:
            self._set[place] = StepState.REJECTED

    def shown(self, states: Mapping[int, StepState]) -> tuple[Stage, ...]:
        """Return the stages as they stand, given the states of the steps."""
        return tuple(
            stage.at(self._set.get(place) or state_of(states[i] for i in stage.steps if i in states))
            for place, stage in enumerate(self._stages)
        )
