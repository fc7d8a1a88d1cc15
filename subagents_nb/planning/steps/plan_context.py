"""What the steps of one launch are planned on."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Self

from subagents_nb.domain.agents.acting import Acting, Held, refusal
from subagents_nb.domain.agents.agent import AgentCatalog
from subagents_nb.domain.agents.settings import Settings
from subagents_nb.domain.agents.skills import SkillWanted
from subagents_nb.domain.plans.plan import LaunchRequest
from subagents_nb.domain.policy.policy import Policy
from subagents_nb.domain.values.reasons import Reason, Reasons
from subagents_nb.planning.acceptance.terms import Terms, terms_of
from subagents_nb.planning.launch_environment import LaunchEnvironment


@dataclass(frozen=True, slots=True)
class PlanContext:
    """What the steps of one launch are planned on; notes gather here, each once, and what keeps a run from beginning.

    `place` and `where` are what is planned just now, as `Reason` has it and in words, for what is said of it.
    """

    request: LaunchRequest
    catalog: AgentCatalog
    settings: Settings
    environment: LaunchEnvironment
    notes: dict[str, None] = field(default_factory=dict)
    start_problems: dict[Reason, None] = field(default_factory=dict)
    used: dict[str, Acting] = field(default_factory=dict)  # what of the project would act in the run, by its key
    wanted: dict[SkillWanted, None] = field(default_factory=dict)  # named, and not looked up
    place: str = ""
    where: str = ""
    above: Policy | None = None  # of the step that may delegate to what is planned just now
    network: bool = False  # whether the sandbox of that one has it
    folder: str = ""  # below the working directory, where whoever delegates to it works
    depth: int | None = None  # how many levels may stand below what is planned just now; None: it is a root

    @property
    def terms(self) -> Terms:
        """Return what a rejection means where no step says so; faults in it are told once, with the launch."""
        return terms_of(self.request.agent_contract, self.request.gate_on, Reasons())

    def note(self, text: str) -> None:
        """Add a quiet remark."""
        self.notes[text] = None

    def start_problem(self, text: str) -> None:
        """Add why the run can't begin here and now, although it could be planned."""
        self.start_problems[Reason(text, lead=self.where, place=self.place)] = None

    @property
    def problems(self) -> tuple[Reason, ...]:
        """Return all that keeps the run from beginning."""
        held = self._held
        untrusted = refusal(held[key] for key in self.used if key in held)
        return (*self.start_problems, *([] if untrusted is None else [untrusted]))

    @property
    def allowed(self) -> tuple[str, ...]:
        """Return what of the project would act in the run since the person allowed it, in words."""
        return tuple(str(item) for key, item in self.used.items() if key not in self._held)

    @property
    def _held(self) -> dict[str, Held]:
        of_skills = [fact.held for fact in self.environment.skills.values() if fact.held is not None]
        of_refinements = [one.held for one in self.environment.refinements if one.held is not None]
        return {one.item.key: one for one in (*self.environment.held, *of_skills, *of_refinements)}

    def uses(self, items: Iterable[Acting]) -> None:
        """Note what of the project would act: what of it is not allowed is one reason against the run."""
        self.used.update({item.key: item for item in items})

    def noted(self) -> tuple[dict[Reason, None], dict[str, Acting]]:
        """Return what is known so far against the run, to be gone back to."""
        return dict(self.start_problems), dict(self.used)

    def back_to(self, noted: tuple[dict[Reason, None], dict[str, Acting]]) -> None:
        """Forget what was found against the run since."""
        problems, used = noted
        self.start_problems.clear()
        self.start_problems.update(problems)
        self.used.clear()
        self.used.update(used)

    def at(self, place: str, where: str) -> Self:
        """Return the same context for a place in the launch."""
        return replace(self, place=place or self.place, where=": ".join(filter(None, (self.where, where))))
