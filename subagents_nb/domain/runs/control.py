"""What may be asked of a live run and how it answers. What does not fit its verb is refused, never widened."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Literal, Self

from pydantic import ConfigDict, Field, model_validator

from subagents_nb.domain.plans.plan import GroupItem, PlanItem, StepItem, StepPlan, output_names
from subagents_nb.domain.runs.states import REQUEST, RequestEvent, RequestState
from subagents_nb.domain.values.base import Document, Value
from subagents_nb.domain.values.given import Real, Whole
from subagents_nb.domain.values.usage import Usage

Verb = Literal["stop", "interrupt", "steer", "drain", "retune", "cancel-tool", "append"]
MAX_STEER_CHARS = 128 * 1024
KEPT_RECEIPTS = 20
PARENT = "its parent"  # who asks, where the run that delegated does


class Retune(Value):
    """New limits for a live run; None leaves a limit as it is."""

    timeout_s: float | None = Field(default=None, gt=0)
    max_requests: Whole | None = Field(default=None, gt=0)
    tool_timeout_s: float | None = Field(default=None, gt=0)
    concurrency: Whole | None = Field(default=None, gt=0)  # steps at work at a time
    tokens: Real | None = Field(default=None, gt=0)  # hard amounts of the usage budget
    cost_usd: Real | None = Field(default=None, gt=0)

    @property
    def changes(self) -> dict[str, float]:
        """Return what is to change."""
        return self.model_dump(exclude_none=True)

    def holds_nothing(self, used: Usage) -> bool:
        """Say whether it limits money alone, in a run whose usage so far has no known price."""
        return self.cost_usd is not None and self.tokens is None and used.requests > 0 and used.cost_usd is None


class Appendix(Value):
    """What is appended to a live chain: planned items over steps that are numbered from 0."""

    items: tuple[PlanItem, ...] = Field(min_length=1)
    steps: tuple[StepPlan, ...] = ()
    agents: dict[str, dict[str, Any]] = Field(default_factory=dict)  # their definitions by name, for a later resume

    @property
    def names(self) -> frozenset[str]:
        """Return the names that it gives to outputs."""
        return output_names(self.items, self.steps)

    def numbered(self, number: Callable[[int], int]) -> Self:
        """Return it with other numbers for its steps."""
        steps = tuple(step.model_copy(update={"index": number(step.index)}) for step in self.steps)
        return self.model_copy(update={"steps": steps, "items": tuple(_moved(item, number) for item in self.items)})

    def then(self, other: Self) -> Self:
        """Return both together, this one first."""
        agents = {**self.agents, **other.agents}
        both = {"items": (*self.items, *other.items), "steps": (*self.steps, *other.steps), "agents": agents}
        return self.model_copy(update=both)


def _moved(item: PlanItem, number: Callable[[int], int]) -> PlanItem:
    match item:
        case StepItem():
            return item.model_copy(update={"step": number(item.step)})
        case GroupItem():
            return item.model_copy(update={"steps": tuple(map(number, item.steps))})
        case _:
            return item


class AppendedItems(Document):
    """All that was appended to a chain: `appended.json`, replaced by the runner before it promises anything."""

    kind: Literal["appended"] = "appended"
    taken: Appendix | None = None  # their steps have their numbers
    waiting: tuple[Appendix, ...] = ()  # taken in, with steps numbered from 0, when the chain comes to them


class Retuned(Value):
    """A change of limits that was carried out: recorded beside the contract, which stays as it was launched."""

    at: str
    by: str
    changes: dict[str, float]


def in_force(retunes: Iterable[Retuned]) -> Retune:
    """Return all changes together; of the same limit the last counts."""
    changes = {name: value for one in retunes for name, value in one.changes.items() if name in Retune.model_fields}
    counts = {name: int(changes[name]) for name in ("max_requests", "concurrency") if name in changes}
    return Retune.model_validate(changes | counts)


_NEEDED = {"steer": ("text", "mode"), "retune": ("retune",), "cancel-tool": ("call_id",), "append": ("append",)}


class ControlRequest(Document):
    """Something asked of a live run by any process of its user; created once, under `control/VERB-ID.json`."""

    model_config = ConfigDict(frozen=True, extra="forbid", protected_namespaces=())

    kind: Literal["control"] = "control"
    request_id: str = Field(pattern=r"^[A-Za-z0-9-]{1,80}$")
    verb: Verb
    asked_at: str
    asked_by: str = ""  # surface and session, never a user or host name
    reason: str = ""
    step: int | None = None  # one step of the run; None: the run
    text: str | None = None  # steer
    mode: Literal["steer", "follow-up"] | None = None  # steer: before the next request, or when the turn is over
    call_id: str | None = None  # cancel-tool
    retune: Retune | None = None
    append: Appendix | None = None

    @model_validator(mode="after")
    def _fits_its_verb(self) -> Self:
        needed = _NEEDED.get(self.verb, ())
        for name in ("text", "mode", "call_id", "retune", "append"):
            is_set = getattr(self, name) is not None
            if is_set != (name in needed):
                raise ValueError(f"a {self.verb} request {'needs' if name in needed else 'has no'} {name}")
        if self.text is not None and not (self.text.strip() and len(self.text) <= MAX_STEER_CHARS):
            raise ValueError(f"the text must have 1 to {MAX_STEER_CHARS:,} characters")
        if self.retune is not None and not self.retune.changes:
            raise ValueError("a retune request changes nothing")
        return self


class ControlAnswer(Document):
    """The runner's answer to one request, under `control/answers/ID.json`; replaced only from `queued` to its end."""

    kind: Literal["answer"] = "answer"
    request_id: str
    outcome: RequestState
    text: str = ""
    answered_at: str

    @classmethod
    def after(cls, was: RequestState, event: RequestEvent, **said: Any) -> Self:
        """Return the answer that an event makes to a request that was in this state.

        Raises:
            IllegalTransition: the table of the lives of requests lacks the move.
        """
        return cls.model_validate({**said, "outcome": REQUEST.follow(was, event)})

    def to(self, event: RequestEvent, **said: Any) -> Self:
        """Return the answer that takes the place of this one. Raises as `after`."""
        return self.after(self.outcome, event, **{**dict(self), **said})

    def receipt(self, preview: str) -> SteerReceipt:
        """Return it as the run's status shows it: the answer to a steering message."""
        return SteerReceipt(request_id=self.request_id, preview=preview, outcome=self.outcome, at=self.answered_at)


class SteerReceipt(Value):
    """A steering message as the run's status shows it; the preview is short, and free of secrets."""

    request_id: str
    preview: str
    outcome: RequestState
    at: str
