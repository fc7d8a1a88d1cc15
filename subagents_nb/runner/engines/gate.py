"""The gate that every tool call of a step passes, whoever the tool is from: allowed, asked about, or refused.

It decides nothing: the plan holds the policy, `decide` says what follows from it, and the person answers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from subagents_nb.domain.agents.agent import ASK_TOOLS
from subagents_nb.domain.plans.plan import StepPlan
from subagents_nb.domain.policy.decision import Decision, decide
from subagents_nb.domain.policy.permissions import PermissionAnswer, call_as_shown
from subagents_nb.domain.policy.policy import Policy
from subagents_nb.domain.policy.tool_call import ToolCall
from subagents_nb.domain.policy.tool_names import MCP
from subagents_nb.domain.values.words import duration
from subagents_nb.runner.engines.engine import Permit, StepContext

Judge = Callable[[str, Mapping[str, Any]], ToolCall]


class NotAllowed(Exception):
    """A call that the gate does not let through; the text goes on from `Not allowed:`."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


@dataclass(slots=True)
class CallGate:
    """One step's gate. Without a policy that judges calls, a step has none."""

    policy: Policy
    judge: Judge
    permit: Permit | None = None  # None: nobody can be asked
    granted: set[str] = field(default_factory=set)  # what the person allowed for the whole run
    hints: Mapping[str, str] = field(default_factory=dict)  # what servers say of their tools
    places: dict[str, str] = field(default_factory=dict)  # by call: where its path led when it was judged

    def allows(self, name: str, args: Mapping[str, Any]) -> bool:
        """Say whether a call may be made without a question."""
        return decide(self.policy, self.judge(name, args), self.granted).verdict == "allow"

    async def passed(self, name: str, args: dict[str, Any], *, call_id: str) -> dict[str, Any]:
        """Return the arguments that the call is made with.

        Raises:
            NotAllowed: it is not made.
        """
        call = self.judge(name, args)
        found = decide(self.policy, call, self.granted)
        self._note(call, call_id)
        if found.verdict == "allow":
            return args
        if found.verdict == "deny":
            raise NotAllowed(f"{found.reason}.")
        if self.permit is None:
            raise NotAllowed(f"{found.reason}, and nobody can be asked here.")
        asked = call_as_shown(name, args, found.reason, found.grants, call.path, self.hints.get(name, ""))
        answer = await self.permit(asked, call_id=call_id)
        passed = self._answered(name, args, found, answer)
        if passed is not args:
            self._note(self.judge(name, passed), call_id)
        return passed

    def _note(self, call: ToolCall, call_id: str) -> None:
        if call.path is not None and not call.widened:
            self.places[call_id] = call.path.absolute

    def _answered(
        self, name: str, args: dict[str, Any], decision: Decision, answer: PermissionAnswer
    ) -> dict[str, Any]:
        match answer.decision:
            case "once":
                return args
            case "run":
                self.granted.update(decision.grants)
                return args
            case "edit" if answer.args is not None:
                return self._edited(name, {**args, **answer.args})
            case "unattended":
                waited = f" within {duration(answer.waited_s)}" if answer.waited_s else ""
                raise NotAllowed(f"{decision.reason}, and nobody answered{waited}.")
        remark = f": {answer.text.strip()}" if answer.text.strip() else "."
        raise NotAllowed(f"the person said no{remark}")

    def _edited(self, name: str, args: dict[str, Any]) -> dict[str, Any]:
        """Return what the person wrote in place of the arguments: it is allowed as they are, but for what is denied."""
        decision = decide(self.policy, self.judge(name, args), self.granted)
        if decision.verdict == "deny":
            raise NotAllowed(f"the person changed its arguments, and {decision.reason}.")
        return args


def own_tools(step: StepPlan, context: StepContext) -> tuple[str, ...]:
    """Return the names of the tools of ours that a step has; where nobody can be asked, it asks nobody."""
    return tuple(
        name for name in step.tools if not name.startswith(MCP) and (name not in ASK_TOOLS or context.ask is not None)
    )


def gate_of(step: StepPlan, context: StepContext, names: Sequence[str]) -> CallGate | None:
    """Return the gate of a step, whichever engine carries it out; None where its plan limits no call.

    `names` are the tools of ours that the step has.
    """
    if step.policy is None or not step.policy.judges_calls:
        return None
    from subagents_nb.runner.engines.tools.judged_calls import CallRoots, judged_call

    judge = partial(judged_call, own=frozenset(names), places=CallRoots.of(context))
    granted = context.permit.granted if context.permit is not None else set[str]()
    hints = {one.name: one.hints for one in context.mcp.tools} if context.mcp is not None else {}
    return CallGate(step.policy, judge, context.permit, granted, hints)
