"""What the items of a chain came to so far: the last answer, the named outputs, and the tasks that refer to them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from subagents_nb.domain.plans.placeholders import fill
from subagents_nb.domain.plans.plan import LaunchPlan, StepPlan
from subagents_nb.domain.runs.records import NamedOutput, StepResult
from subagents_nb.domain.runs.states import StepState
from subagents_nb.runner.chains.collecting import as_input


class Bindings:
    """The answer of the last item, and the outputs that have names."""

    def __init__(self, plan: LaunchPlan, result_of: Callable[[int], StepResult | None]) -> None:
        self._plan = plan
        self._result_of = result_of
        self.outputs: dict[str, NamedOutput] = {}
        self.attached: dict[str, NamedOutput] = {}  # those of the run that the chain began with
        self.answer: NamedOutput | None = None

    def became(self, name: str | None, output: NamedOutput) -> None:
        """Take in what an item came to."""
        self.answer = output
        if name is not None:
            self.outputs[name] = output

    def name(self, steps: Sequence[StepPlan]) -> None:
        """Give the outputs of steps their names, where the step came to something."""
        for step in steps:
            result = self._result_of(step.index)
            if step.output_name and result is not None and result.state is StepState.COMPLETE:
                self.outputs[step.output_name] = NamedOutput(step=step.index)

    def task_for(self, step: StepPlan, cwd: str, item: tuple[str, Any] | None = None) -> str:
        """Return the task of a step that works in `cwd` with everything put in. A run of one step has no placeholders.

        Raises:
            MissingField: the item lacks a field that the task names.
        """
        plan = self._plan
        if not plan.is_flow:
            return step.task
        return fill(
            step.task,
            task=plan.task,
            previous="" if self.answer is None else self._text(self.answer),
            chain_dir=cwd,
            outputs=_Texts(self.text_of),
            item=item,
        )

    def text_of(self, name: str) -> str:
        """Return the text of a named output; one whose step fell short is empty."""
        output = self.outputs.get(name) or self.attached.get(name)
        return "" if output is None else self._text(output)

    def value_of(self, name: str) -> Any:
        """Return the structured value of a named output.

        Raises:
            ValueError: it came to nothing, or to text.
        """
        output = self.outputs.get(name) or self.attached.get(name)
        if output is None:
            raise ValueError(f"its source {name!r} came to nothing")
        result = output if output.step is None else self._result_of(output.step)
        if result is None or not result.has_value:
            raise ValueError(f"its source {name!r} is no structured output")
        return result.value

    def _text(self, output: NamedOutput) -> str:
        if output.step is None:
            return output.text
        result = self._result_of(output.step)
        if result is None:
            return ""
        return as_input(result)


class _Texts(dict[str, str]):
    """The named outputs as texts, made when a task asks for them."""

    def __init__(self, text_of: Callable[[str], str]) -> None:
        super().__init__()
        self._text_of = text_of

    def __missing__(self, name: str) -> str:
        return self._text_of(name)
