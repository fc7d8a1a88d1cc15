"""An acceptance as people write it: its keys, and what each may hold in which forms."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Annotated, Any, ClassVar, Literal, Self, TypeAlias

from pydantic import AfterValidator, BeforeValidator, Field, StrictBool, model_validator

from subagents_nb.domain.acceptance.reports import criterion_id
from subagents_nb.domain.plans.acceptance import VERIFY_SECONDS, Criterion, Evidence, Level, ReportMode, Review, Verify
from subagents_nb.domain.values.faults import shown
from subagents_nb.domain.values.given import Milliseconds, Seconds, Text
from subagents_nb.domain.values.reading import Unfit, Written, all_differ, matching, must_be, one_or_many
from subagents_nb.domain.values.words import one_line
from subagents_nb.planning.acceptance.terms import WrittenTerms

MAX_CRITERIA = 50
MAX_COMMANDS = 20
_REPORT = {"on": "required", True: "required", False: "off"}
_FORMS = "write attested, checked, false, or a mapping with level, criteria, evidence, verify, review"
_REVIEWED = (
    "reviewed is what a step comes to when a reviewer accepted it, so it can't be asked for; "
    "write {level: checked, review: {agent: reviewer}}"
)


def _short(key: str, form: str) -> BeforeValidator:
    """Take a text for a mapping with this key alone."""

    def spelt_out(given: Any) -> Any:
        if not isinstance(given, str | Mapping | Criterion | Verify):
            raise must_be(form, given)
        return {key: given} if isinstance(given, str) else given

    return BeforeValidator(spelt_out)


def _with_ids(prefix: str) -> AfterValidator:
    """Number what has no id of its own; all ids differ."""

    def numbered(written: list[Any]) -> list[Any]:
        named = [one if one.id else one.model_copy(update={"id": f"{prefix}-{n}"}) for n, one in enumerate(written, 1)]
        all_differ("id", (one.id for one in named))
        return named

    return AfterValidator(numbered)


def _id(given: Any) -> str:
    name = criterion_id(str(given)) if isinstance(given, str | int) and not isinstance(given, bool) else ""
    if not name:
        raise Unfit(f"must have a letter or digit, and {shown(given)} has none")
    return name


def _evidence(given: Any) -> Any:
    return given.strip().lower().replace("_", "-") if isinstance(given, str) else given


def _report(given: Any) -> Any:
    word = given.lower() if isinstance(given, str) else given
    return _REPORT.get(word, word) if isinstance(word, str | bool) else word


def _folder(given: str) -> str:
    if given.startswith(("/", "~")) or "\\" in given or ".." in PurePosixPath(given).parts:
        raise must_be("a folder below the working directory", given)
    return given


_Variable: TypeAlias = Annotated[str, matching("[A-Za-z_][A-Za-z0-9_]*", "the name of a variable")]
_Value: TypeAlias = Annotated[str, matching("[^\\0]*", "text without a zero character")]
Id: TypeAlias = Annotated[str, BeforeValidator(_id)]
EvidenceList: TypeAlias = Annotated[
    tuple[Annotated[Evidence, BeforeValidator(_evidence)], ...],
    one_or_many(MAX_CRITERIA, "kinds of evidence; there are nine"),
    AfterValidator(lambda found: tuple(dict.fromkeys(found))),
]


class WrittenCriterion(Written):
    """One thing that must hold."""

    id: Id | None = None
    must: Text
    evidence: EvidenceList = ()
    severity: Literal["required", "recommended"] = "required"


class WrittenVerify(Written):
    """One command that the runner is to run."""

    _ALSO: ClassVar[Mapping[str, str]] = {"timeout_s": "timeout"}

    id: Id | None = None
    command: Text
    timeout: Seconds | None = None
    timeout_ms: Milliseconds | None = None
    cwd: Annotated[Text, AfterValidator(_folder)] | None = None
    env: dict[_Variable, _Value] = Field(default={})
    allow_failure: StrictBool = False

    @model_validator(mode="after")
    def _single_timeout(self) -> Self:
        if self.timeout is not None and self.timeout_ms is not None:
            raise ValueError("timeout and timeout_ms say the same: keep one")
        return self

    def planned(self) -> Verify:
        """Return the command as it is planned."""
        seconds = self.timeout or self.timeout_ms or VERIFY_SECONDS
        return Verify(timeout_s=seconds, **self.model_dump(exclude={"timeout", "timeout_ms"}))


class WrittenReview(Written):
    """Who is to review the work."""

    agent: Text = "reviewer"
    focus: Text | None = None
    required: StrictBool = True


def _review(given: Any) -> Any:
    if given is True or given is False:
        return WrittenReview() if given else None
    if not isinstance(given, Mapping | Review):
        raise must_be("false, or a mapping with agent, focus, required", given)
    return given


def _level(given: Any) -> Any:
    if given == "reviewed":
        raise ValueError(_REVIEWED)
    return None if given == "auto" else given


class WrittenAcceptance(WrittenTerms):
    """All that may be asked for."""

    level: Annotated[Level | None, BeforeValidator(_level)] = None
    report: Annotated[ReportMode, BeforeValidator(_report)] | None = None
    criteria: Annotated[
        list[Annotated[WrittenCriterion, _short("must", "text, or a mapping with must")]],
        one_or_many(MAX_CRITERIA, f"criteria; at most {MAX_CRITERIA} are judged"),
        _with_ids("criterion"),
    ] = Field(default=[])
    evidence: EvidenceList | None = None
    verify: Annotated[
        list[Annotated[WrittenVerify, _short("command", "a command, or a mapping with command")]],
        BeforeValidator(lambda given: [] if given is False else given),
        one_or_many(MAX_COMMANDS, f"commands; at most {MAX_COMMANDS} are run"),
        _with_ids("verify"),
    ] = Field(default=[])
    review: Annotated[WrittenReview | None, BeforeValidator(_review)] = None
    stop_rules: Annotated[tuple[Text, ...], one_or_many(MAX_CRITERIA, f"rules; at most {MAX_CRITERIA} are told")] = ()
    reason: Text | None = None

    @model_validator(mode="before")
    @classmethod
    def _form(cls, given: Any) -> Any:
        if isinstance(given, str) and given.lstrip().startswith("{"):
            try:
                given = json.loads(given)
            except (ValueError, RecursionError) as error:
                raise ValueError(f"it begins like JSON and is none: {one_line(str(error), 120)}") from error
        match given:
            case "none":
                raise ValueError('none needs a reason: write {level: none, reason: "why nothing is checked"}')
            case "verified":
                raise ValueError(
                    "verified needs a command: write {level: verified, verify: [{command: …}]}, or use gate"
                )
            case "reviewed":
                raise ValueError(_REVIEWED)
            case "attested" | "checked":
                return {"level": given}
        if not isinstance(given, Mapping) or not given:
            raise ValueError(f"it can't be {shown(given)}; {_FORMS}")
        return given


class WrittenGate(Written):
    """One command that must succeed."""

    gate: Text
