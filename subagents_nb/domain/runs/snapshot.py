"""A run as read at one moment: the documents that are there, and the reasons for those that are not."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from subagents_nb.domain.agents.attention import Attention, stalled
from subagents_nb.domain.plans.budgets import UsageBudget
from subagents_nb.domain.plans.plan import LaunchPlan
from subagents_nb.domain.runs.control import Retuned
from subagents_nb.domain.runs.exit_report import ProcessRecord
from subagents_nb.domain.runs.postmortem import Verdict
from subagents_nb.domain.runs.questions import OpenQuestion
from subagents_nb.domain.runs.records import (
    EndReason,
    NamedOutput,
    RunResult,
    RunStatus,
    StepResult,
    StepStatus,
    ToolRow,
    Usage,
)
from subagents_nb.domain.runs.stages import Stage
from subagents_nb.domain.runs.states import RunState
from subagents_nb.domain.runs.tree_rows import TreeRow, questions_below, to_person, used_by_all
from subagents_nb.domain.values.base import Value


class Damage(Value):
    """A document that is there but can't be read. `kind` as in `errors.Unreadable`."""

    document: str
    kind: str
    message: str


class Snapshot(Value):
    """One reading of a run. Precedence: result, verdict, status, plan; None for what was not there or not asked for.

    A verdict beside the result of a paused run says that somebody stopped it since.
    """

    run_id: str
    plan: LaunchPlan | None = None
    status: RunStatus | None = None
    result: RunResult | None = None
    verdict: Verdict | None = None
    process: ProcessRecord | None = None
    damage: tuple[Damage, ...] = Field(default=())
    unheard_s: float = 0.0  # for how long the process of a run at work has written nothing, if that is too long

    @property
    def state(self) -> RunState | None:
        """Return the state that readers believe; None if nothing readable says one."""
        word = self.terminal_record
        if word is not None:
            return RunState(word.state)
        if self.status is not None:
            return self.status.state
        # A status that is there and can't be read may have said anything: that is no queued run.
        unread = any(damage.document == "status.json" for damage in self.damage)
        return RunState.QUEUED if self.plan is not None and not unread else None

    @property
    def terminal_record(self) -> RunResult | Verdict | None:
        """Return the document that says how the run ended; None while none does."""
        paused = self.result is not None and self.result.state is RunState.PAUSED
        return self.verdict if self.result is None or (paused and self.verdict is not None) else self.result

    @property
    def ended(self) -> bool:
        """Whether there is nothing more to wait for. A run of which nothing can be read has ended for its waiters."""
        state = self.state
        return state.ended if state is not None else bool(self.damage)

    @property
    def head(self) -> RunResult | RunStatus | None:
        """Return the document that says most of the run, its result or how it stands; None if neither was read."""
        return self.result or self.status

    @property
    def steps(self) -> tuple[StepResult, ...] | tuple[StepStatus, ...]:
        """Return the steps, as they ended or as they stand."""
        return self.head.steps if self.head is not None else ()

    @property
    def name(self) -> str:
        """Return the run's name; its id if no document could be read."""
        document = self.head or self.plan
        return document.name if document is not None else self.run_id

    @property
    def agent(self) -> str:
        """Return the agent's name, or nothing."""
        return self.steps[0].agent if self.steps else ""

    @property
    def model(self) -> str:
        """Return the model that answers or answered, as `provider:model` or as the provider named it."""
        return self.steps[0].model if self.steps else ""

    @property
    def usage(self) -> Usage:
        """Return what was used so far."""
        return self.head.usage if self.head is not None else Usage()

    @property
    def elapsed_s(self) -> float:
        """Return the working time in seconds up to the last word anybody wrote."""
        document = self.result or self.verdict or self.status
        return document.elapsed_s if document is not None else 0.0

    @property
    def waited_s(self) -> float:
        """Return the time in seconds that was spent waiting for the person or for a rate limit."""
        return self.head.waited_s if self.head is not None else 0.0

    @property
    def timeout_s(self) -> float | None:
        """Return the run's deadline in seconds of work; None without one."""
        document = self.head or self.plan
        return document.timeout_s if document is not None else None

    @property
    def started_at(self) -> str:
        """Return when the run was launched, UTC in ISO 8601; empty if unknown."""
        if self.head is not None:
            return self.head.started_at
        return self.plan.created_at if self.plan is not None else ""

    @property
    def reason(self) -> EndReason | None:
        """Return why it ended as it did."""
        document = self.terminal_record or self.status
        return document.reason if document is not None else None

    @property
    def error(self) -> str | None:
        """Return what went wrong, in a sentence for a person."""
        document = self.terminal_record or self.status
        if document is not None and (document.error is not None or self.terminal_record is not None):
            return document.error
        if self.state is None and self.damage:
            first = self.damage[0]
            return f"{first.document} can't be read: {first.message}"
        return None

    @property
    def refusals(self) -> int:
        """Return how many tool calls were refused."""
        return sum(step.refused for step in self.steps)

    @property
    def attention(self) -> Attention | None:
        """Return why a live run may need a look: what its process says, or that it says nothing any more."""
        if self.status is None or self.ended:
            return None
        return stalled(self.unheard_s, self.elapsed_s) or self.status.attention

    @property
    def questions(self) -> tuple[OpenQuestion, ...]:
        """Return the questions that wait for the person: of a live run, oldest first, and of all below it."""
        if self.status is None or self.ended:
            return ()
        waiting = (*to_person(self.status.questions), *questions_below(self.status.tree))
        return tuple(sorted(waiting, key=lambda question: question.asked_at))

    @property
    def tree(self) -> tuple[TreeRow, ...]:
        """Return how the runs below it stand, or stood when it ended, each after its parent."""
        return self.head.tree if self.head is not None else ()

    @property
    def usage_of_all(self) -> Usage:
        """Return what it and all below it used."""
        return used_by_all(self.usage, self.tree)

    @property
    def retunes(self) -> tuple[Retuned, ...]:
        """Return the changes of its limits, oldest first."""
        return self.head.retunes if self.head is not None else ()

    @property
    def waits_for_slot(self) -> bool:
        """Whether it waits for another run to end."""
        return self.state is RunState.QUEUED and self._has_queue_owner

    @property
    def waits_for(self) -> str:
        """Return what a run in the line waits for, in words."""
        lacks = self.status.lacks if self.status is not None else ()
        if not lacks:
            return "a free place"
        return f"{' and '.join(lacks)}: look at it in a kernel that has {'it' if len(lacks) == 1 else 'them'}"

    @property
    def ended_in_queue(self) -> bool:
        """Whether it ended while it waited for a place, without ever having had a process."""
        return self.verdict is not None and self.result is None and self._has_queue_owner

    @property
    def _has_queue_owner(self) -> bool:
        return self.status is not None and self.status.queue_keeper is not None and self.status.runner is None

    @property
    def resumed_from(self) -> str | None:
        """Return the id of the run from which this one goes on, as far as a document that was read says so."""
        if self.result is not None and self.result.resumed_from is not None:
            return self.result.resumed_from
        return self.plan.resumes.run_id if self.plan is not None and self.plan.resumes is not None else None

    @property
    def changed_files(self) -> tuple[str, ...]:
        """Return the files that it is known to have changed, relative to its directory, as its last word says."""
        return self.result.changed_files if self.result is not None else ()

    @property
    def changed_meanwhile(self) -> tuple[str, ...]:
        """Return the files that changed while its programs were at work, by them or by others."""
        return self.result.changed_meanwhile if self.result is not None else ()

    @property
    def open_tools(self) -> tuple[ToolRow, ...]:
        """Return the tools that were at work when it ended, or that are at work now."""
        return self.head.open_tools if self.head is not None else ()

    @property
    def tail(self) -> str:
        """Return the last lines that the run wrote."""
        documents = (self.result, self.verdict, self.status)
        return next((one.tail for one in documents if one is not None and one.tail), "")

    @property
    def notes(self) -> tuple[str, ...]:
        """Return the quiet remarks: which model was chosen and why, what was left out."""
        documents = (self.head, self.plan)
        return next((one.notes for one in documents if one is not None and one.notes), ())

    @property
    def usage_budget(self) -> UsageBudget | None:
        """Return the usage budget in force, or that was at the end; None without one, or if nobody recorded it."""
        documents = (self.head, self.plan)
        return next((one.usage_budget for one in documents if one is not None and one.usage_budget is not None), None)

    @property
    def text(self) -> str:
        """Return the answer: of the only step, of a chain's last item; empty before the end."""
        answer = self.answer
        return answer.text if answer is not None else ""

    @property
    def has_value(self) -> bool:
        """Whether the answer is a structured value."""
        answer = self.answer
        return answer is not None and answer.has_value

    @property
    def value(self) -> Any:
        """Return the structured value of the answer, plain JSON data; None without one."""
        answer = self.answer
        return answer.value if answer is not None else None

    @property
    def answer(self) -> StepResult | NamedOutput | None:
        """Return what holds the answer: a step's result, or what a group or fan-out came to."""
        if self.result is None:
            return None
        answer = self.result.answer
        if answer is not None and answer.step is None:
            return answer
        index = answer.step if answer is not None else None
        if index is None:
            # A chain that broke off has no answer; its steps have theirs.
            return self.result.steps[-1] if self.result.steps and not self.result.stages else None
        return next((step for step in self.result.steps if step.index == index), None)

    @property
    def stages(self) -> tuple[Stage, ...]:
        """Return how the steps of a chain follow one another; nothing for a run of one step."""
        return self.head.stages if self.head is not None else ()
