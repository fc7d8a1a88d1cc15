"""When a step counts as done: what it must show, what the host checks, who reviews it."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from subagents_nb.domain.values.base import Value
from subagents_nb.domain.values.usage import Usage
from subagents_nb.plain_text import shortened

Level = Literal["none", "attested", "checked", "verified"]
LEVELS: tuple[Level, ...] = ("none", "attested", "checked", "verified")
VERIFY_SECONDS = 120.0
_BRIEF_CHARS, _OUTPUT_CHARS = 300, 2_000

Evidence = Literal[
    "changed-files", "tests-added", "commands-run", "validation-output", "residual-risks", "no-staged-files",
    "diff-summary", "review-findings", "manual-notes",
]  # fmt: skip
# What the runner sees by itself; all other evidence can only stand in a report.
SEEN_BY_RUNNER: frozenset[Evidence] = frozenset({"no-staged-files"})
_CHECKED: tuple[Evidence, ...] = ("changed-files", "tests-added", "commands-run", "residual-risks", "no-staged-files")
EVIDENCE_OF: dict[Level, tuple[Evidence, ...]] = {
    "none": (),
    "attested": ("manual-notes", "residual-risks"),
    "checked": _CHECKED,
    "verified": (*_CHECKED, "validation-output"),
}

ReportMode = Literal["off", "optional", "required"]
Status = Literal[
    "not-asked", "claimed", "attested", "checked", "verified", "review-required", "reviewed", "rejected", "skipped"
]


class Criterion(Value):
    """One thing that must hold."""

    id: str
    must: str
    evidence: tuple[Evidence, ...] = ()
    severity: Literal["required", "recommended"] = "required"


class Verify(Value):
    """A command that the runner itself runs in the workspace; exit code 0 is yes."""

    id: str
    command: str
    timeout_s: float = Field(default=VERIFY_SECONDS, gt=0)
    cwd: str | None = None  # relative to the workspace
    env: dict[str, str] = Field(default_factory=dict)
    allow_failure: bool = False


class Review(Value):
    """A reviewer who reads what the step did and accepts or rejects it."""

    agent: str = "reviewer"
    focus: str | None = None
    required: bool = True


class Acceptance(Value):
    """What was asked for, or inferred from the agent's declared role and tools; wording is never judged.

    A rejection of what was asked for explicitly fails the step; one that was only inferred is shown.
    """

    level: Level
    explicit: bool
    criteria: tuple[Criterion, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    verify: tuple[Verify, ...] = ()
    review: Review | None = None
    stop_rules: tuple[str, ...] = ()  # when the agent is to stop and say so instead of going on
    reason: str | None = None  # why nothing is asked for, with level none
    report: ReportMode = "optional"
    # Whether a rejection keeps the chain from going on; under an agent contract only the acceptance says so.
    gate_on: Literal["execution", "acceptance"] = "execution"
    contract: bool = False


class VerifyRun(Value):
    """How one verify command went. Outputs are cut and redacted."""

    id: str
    command: str
    passed: bool
    exit_code: int | None = None  # None: it was ended, or could not be started
    seconds: float = 0.0
    output: str = ""
    memoised: bool = False
    allow_failure: bool = False


class Finding(Value):
    """One check of the runner or one criterion of the step, and what came of it."""

    id: str
    ok: bool
    text: str = ""
    required: bool = True


class Judgement(Value):
    """What a reviewer said. `accepted` is None when it gave no usable answer."""

    agent: str
    accepted: bool | None = None
    reasons: tuple[str, ...] = ()
    usage: Usage = Usage()


class Ledger(Value):
    """What came of a step's acceptance."""

    level: Level
    explicit: bool
    status: Status
    reason: str = ""
    criteria: tuple[Finding, ...] = ()
    checks: tuple[Finding, ...] = ()
    verify_runs: tuple[VerifyRun, ...] = ()
    report: dict[str, Any] | None = None
    report_problem: str | None = None
    review: Finding | None = None
    review_usage: Usage | None = None  # already part of the step's usage

    def brief(self) -> Ledger:
        """Return it as the status of a live run can hold it: the ends of outputs, and no report."""

        def short(found: tuple[Finding, ...]) -> tuple[Finding, ...]:
            return tuple(one.model_copy(update={"text": shortened(one.text, _BRIEF_CHARS)}) for one in found)

        runs = tuple(one.model_copy(update={"output": _tail(one.output)}) for one in self.verify_runs)
        found = {"criteria": short(self.criteria), "checks": short(self.checks), "verify_runs": runs, "report": None}
        return self.model_copy(update=found)

    @property
    def rejected(self) -> bool:
        """Whether the step was not accepted."""
        return self.status == "rejected"


def _tail(text: str) -> str:
    return text if len(text) <= _OUTPUT_CHARS else "…" + text[1 - _OUTPUT_CHARS :]
