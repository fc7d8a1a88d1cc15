"""What a step says beside its work: how much of its answer is given on, what a rejection means, words for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import ValidationError

from subagents_nb.domain.plans.bounds import MAX_OUTPUT_CHARS, OutputBound
from subagents_nb.domain.plans.flow import StepOptions, Together
from subagents_nb.domain.plans.options import OPTIONS
from subagents_nb.domain.values.base import Value
from subagents_nb.domain.values.given import parse_amount
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
            return "gate_on: it says something only under an agent_contract; without one a rejection fails"
        return None


NO_TERMS = Terms()


def terms_of(contract: Any, gate_on: Any, reasons: Reasons, *, path: str = "") -> Terms:
    """Read both; what is wrong with them is added to the reasons."""
    held: bool | None = None if contract is None else contract is not False
    if held and not (
        isinstance(contract, Mapping) and dict(contract) == {"version": 1} and contract["version"] is not True
    ):
        reasons.append(f"{path}agent_contract: it is {{version: 1}}, not {one_line(repr(contract), 60)}")
    if gate_on not in (None, "execution", "acceptance"):
        reasons.append(f"{path}gate_on: it is execution or acceptance, not {one_line(repr(gate_on), 60)}")
        gate_on = None
    return Terms(contract=held, gate_on=gate_on)


def plan_max_output(asked: Any, reasons: Reasons) -> OutputBound | None:
    """Return how much of an answer is given on; None: as much as a result holds."""
    if asked is None or isinstance(asked, OutputBound):
        return asked
    fields = dict(asked) if isinstance(asked, Mapping) else {"chars": asked}
    if isinstance(fields.get("chars"), str):
        try:
            number, unit = parse_amount(fields["chars"])
            fields["chars"] = int(number) if not unit and number == int(number) else None
        except (ValueError, OverflowError):
            fields["chars"] = None
    if fields and not any(isinstance(value, bool) or value is None for value in fields.values()):
        try:
            return OutputBound.model_validate(fields)
        except ValidationError:
            pass
    reasons.append(f"max_output can't be {one_line(repr(asked), 60)}; {_FORMS}")
    return None


def words_for_people(asked: StepOptions | Together) -> dict[str, str]:
    """Return what is recorded beside a task, each in one line, cut to what views have room for."""
    given = {one.name: getattr(asked, one.name, None) for one in OPTIONS if one.kind == "remark"}
    return {
        name: one_line(text, _PHASE_CHARS if name == "phase" else _TEXT_CHARS) for name, text in given.items() if text
    }
