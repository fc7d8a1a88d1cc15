"""What is asked of a group or fan-out as a whole: one verdict over all its steps, made when they have ended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from subagents_nb.domain.agents.agent import AgentDefinition
from subagents_nb.domain.plans.acceptance import Acceptance
from subagents_nb.domain.plans.flow import Expand, Parallel, Step
from subagents_nb.domain.plans.plan import StepPlan
from subagents_nb.domain.values.reasons import Reasons
from subagents_nb.planning.acceptance.acceptance_parser import plan_acceptance
from subagents_nb.planning.acceptance.terms import Terms, terms_of

_NOBODY = AgentDefinition(name="group", description="")  # nothing is inferred of a group
_ANY_OBJECT = {"type": "object"}


def plan_together(
    asked: Parallel | Expand, members: Sequence[StepPlan], terms: Terms, reasons: Reasons
) -> Acceptance | None:
    """Return what all members together must show, or None; what is wrong with it is added to the reasons."""
    terms = terms_of(asked.agent_contract, asked.gate_on, reasons).under(terms)
    if asked.acceptance in (None, False, "auto") and asked.gate is None:
        return None
    silent = bool(members) and all(_answers_json(one) for one in members)
    as_step = Step(acceptance=asked.acceptance, gate=asked.gate, output_schema=_ANY_OBJECT if silent else None)
    planned = plan_acceptance(as_step, _NOBODY, reasons, terms)
    own = asked.acceptance
    if (isinstance(own, Mapping) and own.get("review")) or (planned is not None and planned.review is not None):
        reasons.append("acceptance.review: a reviewer reads one step's work; let a step behind the group review it")
    if planned is None or planned.level == "none":
        return None
    if planned.verify and any(one.worktree is not None for one in members):
        what = "gate" if asked.gate is not None else "acceptance.verify"
        reasons.append(f"{what}: it is run where what was done in worktrees is not to be seen; give it to the steps")
    return planned


def reporting(member: StepPlan, joint: Acceptance) -> StepPlan:
    """Return a member of a group that is asked for its part of the report on all of it.

    What the group asks for is judged over all: by itself it fails no member. A member with an acceptance of its own
    answers to that, and says what holds of the group's criteria beside.
    """
    own = member.acceptance
    asks = joint.report != "off" and not _answers_json(member)
    if not asks and not joint.stop_rules:
        return member
    rules = joint.stop_rules
    if own is None or not own.explicit:
        reported = Acceptance(
            level="attested",
            explicit=False,
            criteria=joint.criteria if asks else (),
            evidence=joint.evidence if asks else (),
            stop_rules=rules,
            report=joint.report if asks else "off",
        )
        return member.model_copy(update={"acceptance": reported})
    if own.level == "none":
        own = own.model_copy(update={"level": "attested", "explicit": False})
    own = own.model_copy(update={"stop_rules": tuple(dict.fromkeys((*own.stop_rules, *rules)))})
    if asks:
        known = {one.id for one in own.criteria}
        more = [one.model_copy(update={"severity": "recommended"}) for one in joint.criteria if one.id not in known]
        report = "optional" if own.report == "off" else own.report
        own = own.model_copy(update={"criteria": (*own.criteria, *more), "report": report})
    return member.model_copy(update={"acceptance": own})


def _answers_json(step: StepPlan) -> bool:
    return step.output_schema is not None
