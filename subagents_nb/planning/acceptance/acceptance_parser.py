"""Read what a step's acceptance asks for, in all the forms people write it; each fault is told with its path."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from subagents_nb.domain.agents.agent import WRITE_TOOLS, AgentDefinition
from subagents_nb.domain.plans.acceptance import (
    EVIDENCE_OF,
    LEVELS,
    SEEN_BY_RUNNER,
    Acceptance,
    Criterion,
    Evidence,
    Level,
    ReportMode,
    Review,
    Verify,
)
from subagents_nb.domain.plans.flow import Step
from subagents_nb.domain.values.reading import Fault, read
from subagents_nb.domain.values.reasons import Reasons
from subagents_nb.planning.acceptance.acceptance_models import WrittenAcceptance, WrittenGate
from subagents_nb.planning.acceptance.terms import NO_TERMS, Terms

_ASKING = ("criteria", "evidence", "verify", "review", "stop_rules")
_JSON = "with an output schema the answer is JSON and can hold no report"


def plan_acceptance(
    asked: Step, agent: AgentDefinition, reasons: Reasons, terms: Terms = NO_TERMS
) -> Acceptance | None:
    """Return what the step must show, or None when nothing is asked; what is wrong with it is added to the reasons.

    `terms` say what a rejection means, where the acceptance itself does not. Under a contract nothing is inferred.

    What the launch leaves open comes from the agent's file. Without either, only an agent that its file calls a writer,
    and that has tools to write with, is looked at; that is shown and never fails a step.
    """
    schema = asked.output_schema if asked.output_schema is not None else agent.output_schema
    inferred = None if terms.contract else _inferred(agent, answers_json=schema is not None)
    if asked.gate is not None:
        if asked.acceptance not in (None, False):
            reasons.append("gate is an acceptance by itself: put its command into acceptance.verify, or leave one out")
            return None
        return _gate(asked.gate, reasons, terms)
    value, path, outranked = asked.acceptance, "acceptance", False
    if value is None or value == "auto":
        value, path = agent.acceptance, f"acceptance of agent {agent.name}"
        outranked = True
    if value is None or value == "auto":
        return inferred
    if value is False:
        return None
    if isinstance(value, Acceptance):
        return value
    written, faults = read(WrittenAcceptance, value)
    reasons.extend(fault.at(path) for fault in faults)
    if written is None:
        return None
    own = Terms(contract=written.agent_contract, gate_on=written.gate_on)
    combined = terms.under(own) if outranked else own.under(terms)
    judged = _Judged(written, path, reasons)
    if combined.senseless is not None:
        judged.refuse("gate_on", combined.senseless, path=path if own.gate_on is not None else "")
    if written.level == "none":
        return judged.off()
    return judged.planned(inferred, combined, answers_json=schema is not None)


def _inferred(agent: AgentDefinition, *, answers_json: bool) -> Acceptance | None:
    if agent.role != "writer" or not set(agent.effective_tools) & set(WRITE_TOOLS):
        return None
    evidence = EVIDENCE_OF["checked"]
    if answers_json:
        return Acceptance(level="checked", explicit=False, evidence=_seen(evidence), report="off")
    return Acceptance(level="checked", explicit=False, evidence=evidence, report="optional")


def _gate(command: Any, reasons: Reasons, terms: Terms) -> Acceptance | None:
    written, faults = read(WrittenGate, {"gate": command})
    reasons.extend(fault.at() for fault in faults)
    if terms.senseless is not None:
        reasons.append(f"gate_on: {terms.senseless}")
    if written is None or terms.senseless is not None:
        return None
    verify = (Verify(id="gate", command=written.gate),)
    return Acceptance(level="verified", explicit=True, verify=verify, report="off", **terms.as_planned())


def _seen(kinds: tuple[Evidence, ...]) -> tuple[Evidence, ...]:
    return tuple(kind for kind in kinds if kind in SEEN_BY_RUNNER)


@dataclass(slots=True)
class _Judged:
    """What was written of one step's acceptance, whose parts are well, and whether they make sense together."""

    asked: WrittenAcceptance
    path: str
    reasons: Reasons
    well: bool = True

    def refuse(self, key: str, what: str, path: str | None = None) -> None:
        self.well = False
        where = self.path if path is None else path
        self.reasons.append(Fault((key,), what, sentence=True).at(where))

    def off(self) -> Acceptance | None:
        asked = self.asked
        if asked.reason is None:
            self.refuse("reason", "level none needs a reason, in words")
        if beside := next((key for key in _ASKING if getattr(asked, key)), None):
            self.refuse(beside, "level none asks for nothing: leave it out, or choose a level")
        return Acceptance(level="none", explicit=True, reason=asked.reason, report="off") if self.well else None

    def planned(self, inferred: Acceptance | None, terms: Terms, *, answers_json: bool) -> Acceptance | None:
        asked = self.asked
        level: Level = asked.level or ("verified" if asked.verify else "checked")
        if level == "verified" and not asked.verify:
            self.refuse("verify", "level verified needs at least one command that the runner can run")
        if inferred is not None and LEVELS.index(level) < LEVELS.index(inferred.level):
            level = inferred.level  # what is asked for may raise what the agent's role asks for, never lower it
        # Who names no level asks for what is written there and for nothing else.
        usual = EVIDENCE_OF[level] if asked.level is not None or inferred is not None else ()
        evidence = usual if asked.evidence is None else asked.evidence
        wanted = tuple(dict.fromkeys([*evidence, *(kind for one in asked.criteria for kind in one.evidence)]))
        report = self._report(level, answers_json=answers_json)
        if not self.well:
            return None
        return Acceptance(
            level=level,
            explicit=True,
            criteria=tuple(Criterion(**dict(one)) for one in asked.criteria),
            evidence=_seen(wanted) if report == "off" else wanted,
            verify=tuple(one.planned() for one in asked.verify),
            review=None if asked.review is None else Review(**dict(asked.review)),
            stop_rules=asked.stop_rules,
            reason=asked.reason,
            report=report,
            **terms.as_planned(),
        )

    def _report(self, level: Level, *, answers_json: bool) -> ReportMode:
        """Decide whether the answer must hold a report, and refuse what could only stand in one that there is not."""
        asked, mode = self.asked, self.asked.report
        judged_otherwise = bool(asked.verify or asked.review)
        if answers_json:
            if mode == "required":
                self.refuse("report", f"it can't be required: {_JSON}")
            mode = "off"
        if mode is None:
            must = asked.evidence or any(one.severity == "required" for one in asked.criteria)
            mode = "required" if must or not judged_otherwise else "optional"
        if mode != "off":
            return mode
        why = _JSON if answers_json else "report is off"
        if lost := [kind for kind in asked.evidence or () if kind not in SEEN_BY_RUNNER]:
            self.refuse("evidence", f"{', '.join(lost)} can only stand in a report, and {why}")
        if asked.criteria and asked.review is None:
            self.refuse("criteria", f"nobody could say whether they hold: {why}; add a review")
        if level == "attested" and not judged_otherwise:
            self.refuse("level", f"attested is a report of the agent's own, and {why}; use verify or review")
        return mode
