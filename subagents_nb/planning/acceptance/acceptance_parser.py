"""Read what a step's acceptance asks for, in all the forms people write it; each fault is told with its path."""

from __future__ import annotations

import json
from collections.abc import Mapping
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
    Verify,
)
from subagents_nb.domain.plans.flow import Step
from subagents_nb.domain.values.faults import shown
from subagents_nb.domain.values.reasons import Reasons
from subagents_nb.domain.values.words import one_line
from subagents_nb.planning.acceptance.demand_parser import AcceptanceParser
from subagents_nb.planning.acceptance.terms import NO_TERMS, GateOn, Terms, terms_of

_KEYS = ("level", "report", "criteria", "evidence", "verify", "review", "stop_rules", "reason", "gate_on",
         "agent_contract")  # fmt: skip
_ASKING = ("criteria", "evidence", "verify", "review", "stop_rules")
_FORMS = "write attested, checked, false, or a mapping with level, criteria, evidence, verify, review"
_REPORT = {"off": "off", "optional": "optional", "required": "required", "on": "required", True: "required",
           False: "off"}  # fmt: skip


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
    given, path, outranked = asked.acceptance, "acceptance", False
    if given is None or given == "auto":
        given, path = agent.acceptance, f"acceptance of agent {agent.name}"
        outranked = True
    if given is None or given == "auto":
        return inferred
    if given is False:
        return None
    reading = _Reading(path, reasons, terms, outranked=outranked)
    return reading.acceptance(given, inferred, answers_json=schema is not None)


def _inferred(agent: AgentDefinition, *, answers_json: bool) -> Acceptance | None:
    if agent.role != "writer" or not set(agent.effective_tools) & set(WRITE_TOOLS):
        return None
    evidence = EVIDENCE_OF["checked"]
    if answers_json:
        return Acceptance(level="checked", explicit=False, evidence=_seen(evidence), report="off")
    return Acceptance(level="checked", explicit=False, evidence=evidence, report="optional")


def _gate(command: Any, reasons: Reasons, terms: Terms) -> Acceptance | None:
    reading = _Reading("gate", reasons, terms)
    text = reading.text("gate", command)
    verify = (Verify(id="gate", command=text),)
    contract, gate_on = reading.terms({})
    if not reading.well:
        return None
    return Acceptance(level="verified", explicit=True, verify=verify, report="off", contract=contract, gate_on=gate_on)


def _seen(kinds: tuple[Evidence, ...]) -> tuple[Evidence, ...]:
    return tuple(kind for kind in kinds if kind in SEEN_BY_RUNNER)


class _Reading(AcceptanceParser):
    """The acceptance of one step, from any of its forms. What it says of its terms comes first, unless `outranked`."""

    def __init__(self, path: str, reasons: Reasons, terms: Terms, *, outranked: bool = False) -> None:
        super().__init__(path, reasons)
        self._terms = terms
        self._outranked = outranked

    def acceptance(self, given: Any, inferred: Acceptance | None, *, answers_json: bool) -> Acceptance | None:
        """Return the acceptance, or None if it is off or can't be read."""
        path = self.path
        if isinstance(given, Acceptance):
            return given
        fields = self._form(given)
        if fields is None:
            return None
        asked = self.keys(path, fields, _KEYS)
        level = self._level(asked)
        verify = self.commands(asked.get("verify"))
        criteria = self.criteria(asked.get("criteria"))
        review = self.review(asked.get("review"))
        stop_rules = self.texts(f"{path}.stop_rules", asked.get("stop_rules"))
        evidence = self.evidence(f"{path}.evidence", asked.get("evidence"))
        contract, gate_on = self.terms(asked)
        if level == "none":
            return self._off(asked)
        reason = self.text(f"{path}.reason", asked["reason"]) if asked.get("reason") is not None else None
        named = level is not None
        if level is None:
            level = "verified" if verify else "checked"
        elif level == "verified" and not verify and self.well:
            self.refuse(f"{path}.verify", "level verified needs at least one command that the runner can run")
        if inferred is not None and LEVELS.index(level) < LEVELS.index(inferred.level):
            level = inferred.level  # what is asked for may raise what the agent's role asks for, never lower it
        # Who names no level asks for what is written there and for nothing else.
        usual = EVIDENCE_OF[level] if evidence is None and (named or inferred is not None) else ()
        report, evidence = self._report(
            asked, level, criteria, evidence, usual, other=bool(verify or review), answers_json=answers_json
        )
        if not self.well:
            return None
        return Acceptance(
            level=level,
            explicit=True,
            criteria=criteria,
            evidence=evidence,
            verify=verify,
            review=review,
            stop_rules=stop_rules,
            reason=reason,
            report=report,
            gate_on=gate_on,
            contract=contract,
        )

    def _form(self, given: Any) -> Mapping[str, Any] | None:
        path = self.path
        if isinstance(given, str) and given.lstrip().startswith("{"):
            try:
                given = json.loads(given)
            except (ValueError, RecursionError) as error:
                self.refuse(path, f"it begins like JSON and is none: {one_line(str(error), 120)}")
                return None
        if given == "none":
            self.refuse(path, 'none needs a reason: write {level: none, reason: "why nothing is checked"}')
        elif given == "verified":
            self.refuse(path, "verified needs a command: write {level: verified, verify: [{command: …}]}, or use gate")
        elif given == "reviewed":
            self.refuse(path, _REVIEWED)
        elif given in ("attested", "checked"):
            return {"level": given}
        elif isinstance(given, Mapping):
            if given:
                return given
            self.refuse(path, f"it is empty; {_FORMS}")
        else:
            self.refuse(path, f"it can't be {shown(given)}; {_FORMS}")
        return None

    def _level(self, asked: Mapping[str, Any]) -> Level | None:
        given, path = asked.get("level"), f"{self.path}.level"
        if given is None or given == "auto":
            return None
        if given == "reviewed":
            self.refuse(path, _REVIEWED)
            return None
        level = next((level for level in LEVELS if given == level), None)
        if level is None:
            self.refuse(path, f"there is no level {shown(given)}; the levels are auto, {', '.join(LEVELS)}")
        return level

    def _off(self, asked: Mapping[str, Any]) -> Acceptance | None:
        reason = asked.get("reason")
        if not isinstance(reason, str) or not reason.strip():
            self.refuse(f"{self.path}.reason", "level none needs a reason, in words")
        beside = [key for key in _ASKING if asked.get(key)]
        if beside:
            self.refuse(f"{self.path}.{beside[0]}", "level none asks for nothing: leave it out, or choose a level")
        if not self.well:
            return None
        return Acceptance(level="none", explicit=True, reason=str(reason).strip(), report="off")

    def _report(
        self,
        asked: Mapping[str, Any],
        level: Level,
        criteria: tuple[Criterion, ...],
        evidence: tuple[Evidence, ...] | None,
        usual: tuple[Evidence, ...],
        *,
        other: bool,
        answers_json: bool,
    ) -> tuple[Any, tuple[Evidence, ...]]:
        """Decide whether the answer must hold a report, and which evidence is looked for.

        `other` says that a command or a reviewer judges the work too.
        """
        path, given = self.path, asked.get("report")
        word = given.lower() if isinstance(given, str) else given
        mode = _REPORT.get(word) if isinstance(word, str | bool) else None
        if word is not None and mode is None:
            self.refuse(f"{path}.report", f"it is off, optional or required, not {shown(given)}")
        wanted = dict.fromkeys([*(evidence or usual), *(kind for one in criteria for kind in one.evidence)])
        if answers_json:
            if mode == "required":
                self.refuse(f"{path}.report", f"it can't be required: {_JSON}")
            mode = "off"
        if mode is None:
            must = evidence or any(one.severity == "required" for one in criteria)
            mode = "required" if must or not other else "optional"
        if mode != "off":
            return mode, tuple(wanted)
        why = _JSON if answers_json else "report is off"
        if evidence and (lost := [kind for kind in evidence if kind not in SEEN_BY_RUNNER]):
            self.refuse(f"{path}.evidence", f"{', '.join(lost)} can only stand in a report, and {why}")
        if criteria and asked.get("review") in (None, False):
            self.refuse(f"{path}.criteria", f"nobody could say whether they hold: {why}; add a review")
        if level == "attested" and not other:
            self.refuse(f"{path}.level", f"attested is a report of the agent's own, and {why}; use verify or review")
        return mode, _seen(tuple(wanted))

    def terms(self, asked: Mapping[str, Any]) -> tuple[bool, GateOn]:
        """Return whether a contract holds, and what a rejection stops."""
        before = len(self._reasons)
        own = terms_of(asked.get("agent_contract"), asked.get("gate_on"), self._reasons, path=f"{self.path}.")
        whole = self._terms.under(own) if self._outranked else own.under(self._terms)
        if len(self._reasons) == before and whole.senseless is not None:
            self._reasons.append(f"{self.path}.{whole.senseless}" if own.gate_on is not None else whole.senseless)
        self.well = self.well and len(self._reasons) == before
        return bool(whole.contract), (whole.gate_on or "execution") if whole.contract else "execution"


_REVIEWED = (
    "reviewed is what a step comes to when a reviewer accepted it, so it can't be asked for; "
    "write {level: checked, review: {agent: reviewer}}"
)
_JSON = "with an output schema the answer is JSON and can hold no report"
