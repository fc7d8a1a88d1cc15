"""The acceptance report in an agent's answer: found, cut out, read.

Forgiving about spelling, strict about meaning: other names for a key or a word are understood, but a key nobody knows,
one given twice or a word that means nothing makes the report unusable. A report is what the agent says of itself.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

from pydantic import AfterValidator, BeforeValidator, Field, StrictBool, model_validator

from subagents_nb.domain.values.base import Value
from subagents_nb.domain.values.faults import shown, snake
from subagents_nb.domain.values.reading import Written, all_differ, must_be, one_or_many, read
from subagents_nb.domain.values.words import one_line
from subagents_nb.plain_text import shortened

MAX_REPORT_CHARS = 256 * 1024
MAX_ENTRIES = 200
MAX_TEXT_CHARS = 2000
_MOST_FAULTS = 5

_FENCE = re.compile(r"[ ]{0,3}(?P<mark>`{3,}|~{3,})[ \t]*(?P<info>[^`\r\n]*)")
_LABEL = re.compile(r"acceptance[-_ ]?report\b", re.IGNORECASE)
_MARKER = re.compile(r"^[ \t]*ACCEPTANCE[_-]REPORT[ \t]*:", re.MULTILINE)
_DECODER = json.JSONDecoder()

# The field -> its spellings in snake_case; camelCase and kebab-case are turned into it first.
_SPELLINGS: Mapping[str, tuple[str, ...]] = {
    "criteria": ("criteria", "criteria_satisfied", "criteria_results", "criterion_results"),
    "changed_files": ("changed_files", "files_changed", "changed"),
    "tests_added": ("tests_added", "tests_added_or_updated", "tests"),
    "commands_run": ("commands_run", "commands"),
    "validation_output": ("validation_output", "validation"),
    "residual_risks": ("residual_risks", "risks"),
    "no_staged_files": ("no_staged_files",),
    "diff_summary": ("diff_summary", "summary"),
    "review_findings": ("review_findings", "findings"),
    "manual_notes": ("manual_notes",),
    "notes": ("notes",),
}
_ALSO = {spelling: field for field, spellings in _SPELLINGS.items() for spelling in spellings}
_WRAPPERS = frozenset({"acceptance_report", "report"})
_STATUS = {
    "satisfied": ("satisfied", "pass", "passed", "ok", "met", "done", "yes", "true", "complete", "completed"),
    "not-satisfied": ("not-satisfied", "unsatisfied", "fail", "failed", "no", "false", "unmet", "not-met", "partial",
                      "partially-satisfied", "blocked"),
    "not-applicable": ("not-applicable", "n/a", "na", "skipped"),
}  # fmt: skip
_RESULT = {
    "passed": ("passed", "pass", "ok", "success", "succeeded", "true", "0"),
    "failed": ("failed", "fail", "error", "failure", "false"),
    "not-run": ("not-run", "notrun", "skipped", "n/a"),
}


CriterionStatus = Literal["satisfied", "not-satisfied", "not-applicable"]
CommandResult = Literal["passed", "failed", "not-run"]


class CriterionReport(Value):
    """What the agent says of one criterion."""

    id: str
    status: CriterionStatus
    evidence: str = ""


class CommandReport(Value):
    """A command the agent says it ran."""

    command: str
    result: CommandResult
    summary: str = ""


class Report(Value):
    """A report that could be read. A list is None when it was not given, empty when it was given as empty."""

    criteria: tuple[CriterionReport, ...] = ()
    changed_files: tuple[str, ...] | None = None
    tests_added: tuple[str, ...] | None = None
    commands_run: tuple[CommandReport, ...] | None = None
    validation_output: tuple[str, ...] | None = None
    residual_risks: tuple[str, ...] | None = None
    no_staged_files: bool | None = None
    diff_summary: str = ""
    review_findings: tuple[str, ...] | None = None
    manual_notes: str = ""


@dataclass(frozen=True, slots=True)
class ReportSource:
    """The source of a report in an answer, and the answer without it."""

    source: str
    answer: str
    open_ended: bool = False  # nothing marks its end: what follows the object is no part of it


class ReportProblem(ValueError):
    """The report can't be used; the message says why."""


def find_report(text: str) -> ReportSource | None:
    """Return the report in an answer: a fence that says so, else a JSON fence that looks like one, else a marker.

    Of several fences the last counts. One inside a longer fence is a quotation and does not count.
    """
    blocks = list(_blocks(text))
    for block in reversed(blocks):
        if _LABEL.match(block.info):
            return _cut_out(text, block)
    for block in reversed(blocks):
        if block.info.lower() == "json" and _looks_like_one(text[block.body : block.end]):
            return _cut_out(text, block)
    marker = next(reversed(list(_MARKER.finditer(text))), None)
    if marker is None or any(block.start <= marker.start() < block.after for block in blocks):
        return None
    return _cut_out(text, _Block(marker.start(), marker.end(), len(text), len(text), False, ""))


def parse_report(source: ReportSource) -> Report:
    """Read a report.

    Raises:
        ReportProblem: it is no JSON object of the known keys and words.
    """
    report, faults = read(_WrittenReport, _unwrapped(_load(source.source, open_ended=source.open_ended)))
    if report is None:
        raise ReportProblem("; ".join(fault.at() for fault in faults[:_MOST_FAULTS]))
    return report.report()


@dataclass(frozen=True, slots=True)
class _Block:
    """A fence: where it begins, where its body begins and ends, where the text goes on; whether it is closed."""

    start: int
    body: int
    end: int
    after: int
    closed: bool
    info: str


def _blocks(text: str) -> Iterator[_Block]:
    opened: tuple[int, int, str, str] | None = None
    at = 0
    while at < len(text):
        after = text.find("\n", at) + 1 or len(text)
        match = _FENCE.match(text, at, after)
        if match is not None:
            mark, info = match["mark"], match["info"].strip()
            if opened is not None and mark[0] == opened[2][0] and len(mark) >= len(opened[2]):
                # A fence that forgot its end does not swallow the report behind it.
                ends, begins = not info, bool(_LABEL.match(info))
                if ends or begins:
                    yield _Block(opened[0], opened[1], at, after if ends else at, ends, opened[3])
                    opened = (at, after, mark, info) if begins else None
            elif opened is None:
                opened = (at, after, mark, info)
        at = after
    if opened is not None:
        yield _Block(opened[0], opened[1], len(text), len(text), False, opened[3])


def _cut_out(text: str, block: _Block) -> ReportSource:
    source, after = text[block.body : block.end], block.after
    if not block.closed:
        begins = block.body + len(source) - len(source.lstrip())
        try:
            _, end = _DECODER.raw_decode(text, begins)
            source, after = text[begins:end], end
        except (ValueError, RecursionError):
            pass  # it breaks off: reading it will say so
    parts = (text[: block.start].rstrip(), text[after:].strip())
    return ReportSource(source, "\n\n".join(part for part in parts if part), not block.closed)


def _looks_like_one(source: str) -> bool:
    try:
        data = json.loads(source) if len(source) <= MAX_REPORT_CHARS else None
    except (ValueError, RecursionError):
        return False
    keys = {_snake(key) for key in data} if isinstance(data, dict) else set()
    return bool(keys & {"criteria_satisfied", "acceptance_report"}) or len(keys & _ALSO.keys()) >= 3


def _load(source: str, *, open_ended: bool) -> dict[str, Any]:
    if len(source) > MAX_REPORT_CHARS:
        raise ReportProblem(f"it has more than {MAX_REPORT_CHARS // 1024} KiB")
    try:
        data = json.loads(source, object_pairs_hook=_once, parse_constant=_no_constant)
    except ReportProblem:
        raise
    except RecursionError:
        raise ReportProblem("it is nested too deeply") from None
    except ValueError as error:
        what = "it breaks off" if open_ended else "it is no JSON"
        raise ReportProblem(f"{what}: {one_line(str(error), 120)}") from None
    if not isinstance(data, dict):
        raise ReportProblem("it is no JSON object")
    return data


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    by_name = dict(pairs)
    if len(by_name) < len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise ReportProblem(f"the key {shown(twice)} is given twice")
    return by_name


def _no_constant(name: str) -> Any:
    raise ReportProblem(f"it holds {name}, which is no JSON")


def _unwrapped(data: dict[str, Any]) -> dict[str, Any]:
    for _ in range(2):
        if len(data) != 1:
            break
        key, inner = next(iter(data.items()))
        if _snake(key) not in _WRAPPERS or not isinstance(inner, dict):
            break
        data = inner
    return data


def _text(value: Any) -> str:
    if isinstance(value, bool | int | float):
        value = json.dumps(value)
    if isinstance(value, list) and all(isinstance(part, str) for part in value):
        value = "; ".join(value)
    if not isinstance(value, str):
        raise must_be("text", value)
    return shortened(value.encode("utf-8", "replace").decode("utf-8").strip(), MAX_TEXT_CHARS)


def _flag(value: Any) -> Any:
    word = value.strip().lower() if isinstance(value, str) else value
    return {"yes": True, "true": True, "no": False, "false": False}.get(word, value) if isinstance(word, str) else value


def _meaning(synonyms: Mapping[str, tuple[str, ...]]) -> BeforeValidator:
    """Take a word for what it means; of a command an exit code too."""

    def found(value: Any) -> Any:
        if isinstance(value, int) and not isinstance(value, bool) and "passed" in synonyms:
            return "passed" if value == 0 else "failed"
        text = json.dumps(value) if isinstance(value, bool) else value if isinstance(value, str) else ""
        word = re.sub(r"[\s_]+", "-", text.strip().lower())
        return next((meaning for meaning, spellings in synonyms.items() if word in spellings), value)

    return BeforeValidator(found)


_MANY = one_or_many(MAX_ENTRIES, f"entries, more than {MAX_ENTRIES}")
_Text: TypeAlias = Annotated[str, BeforeValidator(_text)]
_Texts: TypeAlias = Annotated[tuple[_Text, ...], AfterValidator(lambda texts: tuple(filter(None, texts))), _MANY]


class _OfReport(Written):
    @classmethod
    def named(cls, key: str) -> str:
        return super().named(key.replace(" ", "_"))


class _WrittenCriterion(_OfReport):
    _ALSO: ClassVar[Mapping[str, str]] = {
        "criterion": "id", "criterion_id": "id", "result": "status", "satisfied": "status", "proof": "evidence",
        "notes": "evidence",
    }  # fmt: skip
    id: Annotated[str, BeforeValidator(lambda value: criterion_id(_text(value)))] = ""
    must: Any = Field(default=None, exclude=True)
    status: Annotated[CriterionStatus, _meaning(_STATUS)]
    evidence: _Text = ""


class _WrittenCommand(_OfReport):
    _ALSO: ClassVar[Mapping[str, str]] = {
        "cmd": "command", "status": "result", "exit_code": "result", "output": "summary"
    }  # fmt: skip
    command: _Text = ""
    result: Annotated[CommandResult, _meaning(_RESULT)]
    summary: _Text = ""

    @model_validator(mode="before")
    @classmethod
    def _form(cls, given: Any) -> Any:
        return {"command": given, "result": "not-run"} if isinstance(given, str) else given


def _by_id(value: Any) -> Any:
    if isinstance(value, dict) and "id" not in value:
        value = [{"id": name, **(one if isinstance(one, dict) else {"status": one})} for name, one in value.items()]
    return value


def _criteria(written: list[_WrittenCriterion]) -> list[_WrittenCriterion]:
    all_differ("criterion", (one.id for one in written))
    return written


_Criteria: TypeAlias = Annotated[list[_WrittenCriterion], AfterValidator(_criteria), _MANY, BeforeValidator(_by_id)]


class _WrittenReport(_OfReport):
    _ALSO: ClassVar[Mapping[str, str]] = _ALSO
    criteria: Annotated[list[_WrittenCriterion], AfterValidator(_criteria), _MANY, BeforeValidator(_by_id)] = Field(
        default=[]
    )
    changed_files: _Texts | None = None
    tests_added: _Texts | None = None
    commands_run: Annotated[list[_WrittenCommand], _MANY] | None = None
    validation_output: _Texts | None = None
    residual_risks: _Texts | None = None
    no_staged_files: Annotated[StrictBool, BeforeValidator(_flag)] | None = None
    diff_summary: _Text = ""
    review_findings: _Texts | None = None
    manual_notes: _Text = ""
    notes: _Text = ""

    def report(self) -> Report:
        """Return it as it is kept."""
        fields = {**self.model_dump(exclude={"notes"}), "manual_notes": self.manual_notes or self.notes}
        if self.commands_run is not None:
            fields["commands_run"] = [one.model_dump() for one in self.commands_run if one.command]
        return Report.model_validate(fields)


def criterion_id(text: str) -> str:
    """Return an id as it is compared: small letters and digits, anything else one dash."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:64]


def _snake(key: str) -> str:
    return snake(key).replace(" ", "_")
