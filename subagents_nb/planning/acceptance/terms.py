"""What a step says beside its work: how much of its answer is given on, what a rejection means, words for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator

from subagents_nb.domain.plans.bounds import MAX_OUTPUT_CHARS, OutputBound
from subagents_nb.domain.plans.flow import StepOptions, Together
from subagents_nb.domain.plans.options import OPTIONS
from subagents_nb.domain.values.base import Value
from subagents_nb.domain.values.reading import Written, must_be, read
from subagents_nb.domain.values.reasons import Reasons
from subagents_nb.domain.values.words import one_line

GateOn = Literal["execution", "acceptance"]
_PHASE_CHARS, _TEXT_CHARS = 60, 160
_FORMS = f"write a number of characters, 20k say, or a mapping with chars and lines; {MAX_OUTPUT_CHARS:,} at most"


class Terms(Value):
    """What a rejection means, as step, group or run say; None where nobody does."""

    contract: bool | None = None
    gate_on: GateOn | None = None

    def under(self, wider: Terms) -> Terms:
        """Return these, and of what they leave open the wider ones."""
        return Terms(
            contract=wider.contract if self.contract is None else self.contract,
            gate_on=self.gate_on or wider.gate_on,
        )

    @property
    def senseless(self) -> str | None:
        """Return what makes no sense together, if anything does."""
        if self.gate_on is not None and self.contract is None:
            return "it says something only under an agent_contract; without one a rejection fails"
        return None

    def as_planned(self) -> dict[str, Any]:
        """Return them as an acceptance has them."""
        held = bool(self.contract)
        return {"contract": held, "gate_on": (self.gate_on if held else None) or "execution"}


NO_TERMS = Terms()


def _contract(given: Any) -> Any:
    if given is False:
        return False
    if not isinstance(given, Mapping) or dict(given) != {"version": 1} or given["version"] is True:
        raise must_be("{version: 1}", given)
    return True


class WrittenTerms(Written):
    """What a rejection means, as people write it."""

    agent_contract: Annotated[bool, BeforeValidator(_contract)] | None = None
    gate_on: GateOn | None = None


def terms_of(contract: Any, gate_on: Any, reasons: Reasons) -> Terms:
    """Read both; what is wrong with them is added to the reasons."""
    written, faults = read(WrittenTerms, {"agent_contract": contract, "gate_on": gate_on})
    reasons.extend(fault.at() for fault in faults)
    if written is None:
        return Terms(contract=None if contract is None else contract is not False)
    return Terms(contract=written.agent_contract, gate_on=written.gate_on)


def plan_max_output(asked: Any, reasons: Reasons) -> OutputBound | None:
    """Return how much of an answer is given on; None: as much as a result holds."""
    if asked is None or isinstance(asked, OutputBound):
        return asked
    bound, _ = read(OutputBound, asked) if asked != {} else (None, ())
    if bound is None:
        reasons.append(f"max_output can't be {one_line(repr(asked), 60)}; {_FORMS}")
    return bound


def words_for_people(asked: StepOptions | Together) -> dict[str, str]:
    """Return what is recorded beside a task, each in one line, cut to what views have room for."""
    remarks = {one.name: getattr(asked, one.name, None) for one in OPTIONS if one.kind == "remark"}
    return {
        name: one_line(text, _PHASE_CHARS if name == "phase" else _TEXT_CHARS) for name, text in remarks.items() if text
    }
