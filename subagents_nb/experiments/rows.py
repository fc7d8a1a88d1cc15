"""Runs as rows: what tables and comparisons need of each, read fast and leniently. What can't be read is a row too.

Snapshots of the same runs, validated, take more than twice as long: a table of 10,000 would miss its two seconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from subagents_nb.domain.plans.experiments import ParamValue, judges_usage, latest
from subagents_nb.domain.runs.states import RunState
from subagents_nb.experiments.plan_parts import TASK, PlanParts
from subagents_nb.store import StoreHome
from subagents_nb.store.runs.raw_reader import read_raw
from subagents_nb.store.runs.reader import uncollected
from subagents_nb.store.runs.score_files import scores_in

_DOCUMENTS = ("result.json", "plan.json", "scores")
_LATER = ("verdict.json", "status.json")
_STEP_PARAMS = ("agent", "thinking", "temperature", "max_requests")
_PART_OF = ("phase", "lane", "workflow", "workflow_key")
_FIGURES = ("input_tokens", "output_tokens", "cache_read_tokens", "requests", "tool_calls", "cost_usd")


@dataclass(slots=True)
class RunRow:
    """One run. `scores` holds the latest of each name and case; `case` None is the run as a whole."""

    run_id: str
    name: str = ""
    state: str = "unreadable"
    reason: str | None = None
    error: str | None = None
    experiment: str | None = None
    notes: str = ""
    agent: str | None = None
    model: str | None = None  # as the plan names it
    requested: str | None = None  # as a person or a file wrote it
    answered: str | None = None  # as its provider named it
    digest: str | None = None  # of its launch contract
    task_sha256: str | None = None
    parts: dict[str, str] = field(default_factory=dict)  # what else its plan says: the digest of each part
    texts: Mapping[str, str] = field(default_factory=dict, repr=False)  # of the parts of all rows, by digest
    part_of: dict[str, str] = field(default_factory=dict)  # phase, lane, workflow: what a person said it belongs to
    sweep: str | None = None
    place: int | None = None
    repeat: int | None = None
    about: dict[str, ParamValue] = field(default_factory=dict)  # what is said about its case
    expected: ParamValue = None  # the right answer of its case, as it was at the launch
    failed: str | None = None  # what it is when it fails: missing or wrong, as its sweep said
    start: str | None = None
    end: str | None = None
    seconds: float | None = None
    params: dict[str, ParamValue] = field(default_factory=dict)  # what the person named
    resolved: dict[str, ParamValue] = field(default_factory=dict)  # what the plan came to
    tags: tuple[str, ...] = ()
    lineage: dict[str, Any] = field(default_factory=dict)
    usage: dict[str, int | float | None] = field(default_factory=dict)
    scores: dict[tuple[str, str | None], float] = field(default_factory=dict)
    unchecked: set[str] = field(default_factory=set)  # what scorers read that nobody can compare
    judges: dict[str, float] = field(default_factory=dict)  # what scorers asked of models: tokens, money
    steps: list[dict[str, Any]] = field(default_factory=list)

    def metrics(self) -> dict[str, float]:
        """Return the scores by name; of one that was given for single cases only, the mean over them."""
        whole: dict[str, float] = {}
        cases: dict[str, list[float]] = {}
        for (name, case), value in self.scores.items():
            if case is None:
                whole[name] = value
            else:
                cases.setdefault(name, []).append(value)
        return {name: sum(values) / len(values) for name, values in cases.items()} | whole


def read_rows(home: StoreHome, run_ids: Iterable[str]) -> list[RunRow]:
    """Return a row for each run, in the order given."""
    parts = PlanParts()
    with uncollected():
        return [read_row(home, run_id, parts) for run_id in run_ids]


def read_row(home: StoreHome, run_id: str, parts: PlanParts | None = None) -> RunRow:
    """Return one run as a row; with the parts of those that were read before."""
    documents = read_raw(home, run_id, _DOCUMENTS)
    row = RunRow(run_id)
    result, plan = documents["result.json"], documents["plan.json"]
    if plan is not None:
        _from_plan(row, plan, parts or PlanParts())
    if result is None:
        documents |= read_raw(home, run_id, _LATER)
        _from_status(row, documents["status.json"], documents["verdict.json"])
    else:
        _from_result(row, result)
        if row.state == RunState.PAUSED:  # it may have been stopped since
            _from_verdict(row, read_raw(home, run_id, ("verdict.json",))["verdict.json"])
    if documents["scores"]:
        judged = scores_in(documents["scores"], run_id)
        standing = latest(judged)
        row.scores = {key: score.number for key, score in standing.items()}
        row.unchecked = {
            f"{name} of {score.by.split(' ')[0]}" for score in standing.values() for name in score.unchecked
        }
        row.judges = judges_usage(judged)
    return row


def _from_plan(row: RunRow, plan: dict[str, Any], parts: PlanParts) -> None:
    row.name, row.state, row.start = _text(plan.get("name")), "queued", _maybe(plan.get("created_at"))
    row.tags = tuple(tag for tag in _list(plan.get("tags")) if isinstance(tag, str))
    row.part_of = {name: text for name in _PART_OF if isinstance(text := plan.get(name), str) and text}
    part = _dict(plan.get("experiment"))
    row.experiment, row.notes = _maybe(part.get("name")), _text(part.get("notes"))
    row.params = {name: value for name, value in _dict(part.get("params")).items() if _scalar(value)}
    row.lineage, cell = _dict(part.get("lineage")), _dict(part.get("cell"))
    row.failed = _maybe(part.get("failed"))
    case = _dict(part.get("case"))
    row.about = {name: value for name, value in _dict(case.get("metadata")).items() if _scalar(value)}
    row.expected = case.get("expected") if _scalar(case.get("expected")) else None
    row.sweep, row.place, row.repeat = _maybe(cell.get("sweep")), cell.get("place"), cell.get("repeat")
    steps = [_dict(step) for step in _list(plan.get("steps"))]
    first = steps[0] if steps else {}
    model = _dict(first.get("model"))
    if len(steps) == 1 and not plan.get("items"):
        row.agent = _maybe(first.get("agent"))
        row.resolved = {name: first[name] for name in _STEP_PARAMS if _scalar(first.get(name)) and name in first}
    else:
        row.agent = _maybe(plan.get("mode"))
        row.resolved = {"agent": row.agent}
    row.model = _label(model)
    row.resolved["model"] = row.model
    row.digest, row.parts, row.texts = _maybe(plan.get("digest")), parts.of(plan), parts.texts
    row.task_sha256 = row.parts.get(TASK)


def _label(model: dict[str, Any]) -> str | None:
    return f"{model.get('provider')}:{model['name']}" if isinstance(model.get("name"), str) else None


def _from_result(row: RunRow, result: dict[str, Any]) -> None:
    row.name, row.state = _text(result.get("name")) or row.name, _text(result.get("state")) or "unreadable"
    row.reason, row.error = _maybe(result.get("reason")), _maybe(result.get("error"))
    row.start, row.end = _maybe(result.get("started_at")) or row.start, _maybe(result.get("ended_at"))
    _figures(row, result)
    if row.agent is None and row.steps:
        row.agent = _maybe(row.steps[0].get("agent"))
        row.model = _maybe(row.steps[0].get("selected")) or _maybe(row.steps[0].get("model"))


def _from_status(row: RunRow, status: dict[str, Any] | None, verdict: dict[str, Any] | None) -> None:
    if status is not None:
        row.name, row.state = _text(status.get("name")) or row.name, _text(status.get("state")) or "unreadable"
        row.start = _maybe(status.get("started_at")) or row.start
        _figures(row, status)
    _from_verdict(row, verdict)


def _from_verdict(row: RunRow, verdict: dict[str, Any] | None) -> None:
    if verdict is not None:
        row.state, row.reason = _text(verdict.get("state")) or row.state, _maybe(verdict.get("reason"))
        row.error, row.end = _maybe(verdict.get("message")), _maybe(verdict.get("judged_at"))


def _figures(row: RunRow, document: dict[str, Any]) -> None:
    seconds = document.get("elapsed_s")
    row.seconds = float(seconds) if isinstance(seconds, int | float) else None
    usage = _dict(document.get("usage"))
    row.usage = {name: figure for name in _FIGURES if isinstance(figure := usage.get(name), int | float)}
    row.steps = [_dict(step) for step in _list(document.get("steps"))]
    row.requested, row.answered = _each(row.steps, "requested"), _each(row.steps, "model", unless="selected")


def _each(steps: list[dict[str, Any]], name: str, unless: str = "") -> str | None:
    """Return what steps have under a name, each once; not where it says no more than another field."""
    texts: dict[str, None] = {}
    for step in steps:
        text = step.get(name)
        if isinstance(text, str) and text and not (unless and text == step.get(unless)):
            texts[text] = None
    return ", ".join(texts) or None


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _maybe(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list) else ()


def _scalar(value: Any) -> bool:
    return value is None or isinstance(value, str | int | float | bool)
