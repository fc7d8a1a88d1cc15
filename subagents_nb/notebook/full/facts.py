"""What is said of a run above what it did: why it ended, its task, where it is from, how near its limits are."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from subagents_nb.blocks import clean
from subagents_nb.domain.kept.retention import size
from subagents_nb.domain.plans.plan import LaunchPlan, StepPlan
from subagents_nb.domain.runs.control import in_force
from subagents_nb.domain.runs.records import StepResult, StepStatus
from subagents_nb.domain.runs.snapshot import Snapshot
from subagents_nb.domain.values import words
from subagents_nb.domain.values.ids import is_run_id
from subagents_nb.domain.values.usage import Usage
from subagents_nb.errors import SubagentsError
from subagents_nb.launching import Run
from subagents_nb.notebook.cards.end_notes import ending
from subagents_nb.notebook.cards.shown import command, model_words, shown_name, shown_state, who
from subagents_nb.notebook.cards.view import question_row, widget_state
from subagents_nb.notebook.full.parts import window_of
from subagents_nb.notebook.page.lines import cut, line, plural
from subagents_nb.store import FileRuns, StoreHome
from subagents_nb.store.runs.raw_reader import read_raw

_TASK, _ERROR = 20_000, 4_000
_RELATIVES, _LOOKED_BACK, _ARTIFACTS = 12, 300, 40
_NEAR = 0.8


def facts_of(run: Run, step: int | None = None) -> dict[str, Any]:
    """Return all of it but the lineage, bounded; of one step if one is named."""
    snapshot = FileRuns(run.home).snapshot(run.id, whole=True)
    plan = snapshot.plan
    planned = next((one for one in plan.steps if one.index == step), None) if plan is not None else None
    about = next((one for one in snapshot.steps if one.index == step), None)
    task, left = cut(clean(_task(plan, planned)).strip(), _TASK)
    error = (about.error if about is not None else snapshot.error) or ""
    if not error.strip() and snapshot.ended and step is None:
        error = ending(snapshot)
    usage = about.usage if about is not None else snapshot.usage
    spent = [
        words.elapsed(snapshot.elapsed_s) if snapshot.elapsed_s else "",
        words.cost(snapshot.usage_of_all.cost_usd),
    ]
    return {
        "name": shown_name(snapshot),
        "state": str(about.state) if about is not None else shown_state(snapshot),
        "who": " · ".join(filter(None, who(snapshot))),
        "spent": " · ".join(filter(None, spent)) if step is None else "",
        "title": line(f"steps[{step}] · {about.label or about.agent}", 120) if about is not None else "",
        "live": not snapshot.ended,
        "error": cut(clean(error).strip(), _ERROR)[0],
        "task": task + " …" if left else task,
        "facts": [[name, value] for name, value in _facts(snapshot, planned, about) if value],
        "cell": line(plan.origin.cell_id or "", 80) if plan is not None else "",
        "meters": [] if step is not None else list(_meters(snapshot)),
        "did": _did(snapshot, usage, step),
        "artifacts": _artifacts(snapshot, step),
        "answer": window_of(_answer(snapshot, about)),
        "questions": [question_row(snapshot, question) for question in snapshot.questions[:4]],
        "next": command(snapshot, "transcript"),
    }


def answer_of(run: Run, step: int | None = None) -> str:
    """Return what the run or its step came to, or has written so far."""
    snapshot = FileRuns(run.home).snapshot(run.id, whole=True)
    return _answer(snapshot, next((one for one in snapshot.steps if one.index == step), None))


def _task(plan: LaunchPlan | None, planned: StepPlan | None) -> str:
    if plan is None:
        return ""
    return planned.task if planned is not None else plan.task or "\n\n".join(one.task for one in plan.steps)


def _facts(
    snapshot: Snapshot, planned: StepPlan | None, about: StepResult | StepStatus | None
) -> Iterator[tuple[str, str]]:
    plan = snapshot.plan
    yield "when", _when(snapshot)
    if plan is not None:
        yield "from", _origin(plan)
        yield "experiment", line(plan.experiment.name or "", 80)
        yield "tags", line(", ".join(plan.tags), 200)
        yield "with", line(", ".join(record.name for record in plan.inputs), 300)
        steps = [planned] if planned is not None else plan.steps
        yield "may", line(", ".join(dict.fromkeys(tool for one in steps for tool in one.tools)), 300)
    models = [about] if about is not None else snapshot.steps
    yield "model", "; ".join(dict.fromkeys(filter(None, map(model_words, models))))[:300]
    if about is None:
        yield "waited", words.elapsed(snapshot.waited_s) if snapshot.waited_s >= 1 else ""
        yield "files", line(", ".join(snapshot.changed_files), 600)
        yield "notes", line(" · ".join(snapshot.notes), 600)
        yield "limits", f"changed {plural(len(snapshot.retunes), 'time')} since the launch" if snapshot.retunes else ""


def _origin(plan: LaunchPlan) -> str:
    origin = plan.origin
    cell = f"a cell of {origin.notebook}" if origin.cell_id and origin.notebook else ""
    return line(cell or origin.notebook or {"cli": "a terminal"}.get(origin.surface, "Python"), 160)


def _when(snapshot: Snapshot) -> str:
    begun = _local(snapshot.started_at)
    if begun is None:
        return ""
    ended = _local(snapshot.result.ended_at) if snapshot.result is not None else None
    text = begun.strftime("%a %d %b %Y, %H:%M:%S")
    return f"{text} to {ended.strftime('%H:%M:%S')}" if ended is not None else text


def _local(when: str) -> datetime | None:
    try:
        return datetime.fromisoformat(when).astimezone()
    except ValueError:
        return None


def _meters(snapshot: Snapshot) -> Iterator[dict[str, Any]]:
    """Return how far it has come against each limit; what has none says what was used."""
    usage, plan = snapshot.usage, snapshot.plan
    budget, changed = snapshot.usage_budget, in_force(snapshot.retunes)
    alone = plan.steps[0] if plan is not None and not plan.is_flow and plan.steps else None
    requests = (changed.max_requests or alone.max_requests) if alone is not None else None
    tools = alone.tool_budget.hard if alone is not None and alone.tool_budget is not None else None
    tokens = budget.tokens.hard if budget is not None and budget.tokens is not None else None
    money = budget.cost_usd.hard if budget is not None and budget.cost_usd is not None else None
    everyone = snapshot.usage_of_all  # a budget is that of its whole tree
    used = everyone.input_tokens + everyone.output_tokens
    worked, deadline = snapshot.elapsed_s, widget_state(snapshot)["deadline_s"]
    yield _meter("deadline", words.elapsed(worked), worked, deadline, words.elapsed(deadline or 0))
    yield _meter("requests", f"{usage.requests:,}", usage.requests, requests, f"{requests or 0:,}")
    yield _meter("tools", f"{usage.tool_calls:,}", usage.tool_calls, tools, f"{tools or 0:,}")
    yield _meter("tokens", words.count(used), used, tokens, words.count(int(tokens or 0)))
    spent = "unknown" if everyone.cost_usd is None else words.cost(everyone.cost_usd)
    yield _meter("money", spent, everyone.cost_usd or 0.0, money, words.cost(money))


def _meter(label: str, text: str, used: float, limit: float | None, of: str) -> dict[str, Any]:
    if limit is None:
        return {"label": label, "text": text, "part": None, "word": ""}
    part = used / limit if limit > 0 else 1.0
    word = "reached" if part >= 1 else "near" if part >= _NEAR else ""
    return {"label": label, "text": f"{text} of {of}", "part": min(1.0, part), "word": word}


def _did(snapshot: Snapshot, usage: Usage, step: int | None) -> str:
    said = [plural(usage.tool_calls, "call"), plural(usage.requests, "request")]
    if step is None and snapshot.refusals:
        said.append(f"{snapshot.refusals:,} refused")
    return " · ".join(said)


def _answer(snapshot: Snapshot, about: StepResult | StepStatus | None) -> str:
    if isinstance(about, StepResult):
        return _pretty(about.value) if about.has_value else about.text
    if about is not None:
        return about.tail
    value = _pretty(snapshot.value) if snapshot.has_value else snapshot.text
    return value or (snapshot.tail if snapshot.ended else "")


def _pretty(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=1)


def _artifacts(snapshot: Snapshot, step: int | None) -> list[dict[str, str]]:
    records = snapshot.result.artifacts if snapshot.result is not None else ()
    kept = [one for one in records if step is None or one.step == step]
    rows = [
        {
            "name": line(one.name or one.path, 120),
            "kind": one.kind,
            "size": " · ".join(
                filter(None, [" × ".join(f"{n:,}" for n in one.shape) if one.shape else "", size(one.size)])
            ),
        }
        for one in kept[:_ARTIFACTS]
    ]
    if len(kept) > _ARTIFACTS:
        rows.append({"name": f"{len(kept) - _ARTIFACTS} more: run.artifacts", "kind": "", "size": ""})
    return rows


def lineage_of(run: Run) -> list[dict[str, str]]:
    """Return the runs that it came from and those that came from it, as far as the newest of the store say."""
    home, snapshot = run.home, FileRuns(run.home).snapshot(run.id, whole=True)
    plan, related = snapshot.plan, list[tuple[str, str]]()
    if plan is not None and plan.origin.parent:
        related.append(("child of", plan.origin.parent))
    if snapshot.resumed_from:
        related.append(("resumed from", snapshot.resumed_from))
    related += [("goes on from", one) for one in _attached(plan)]
    carried = dict.fromkeys(step.carried_from for step in snapshot.steps if step.carried_from)
    related += [("reuses steps of", one) for one in carried if one]
    related += [("started", row.run_id) for row in snapshot.tree]
    related += _later(home, snapshot.run_id, {run_id for _, run_id in related})
    reader, rows = FileRuns(home), []
    for word, run_id in [pair for pair in related if is_run_id(pair[1]) and pair[1] != snapshot.run_id][:_RELATIVES]:
        try:
            other = reader.snapshot(run_id)
        except SubagentsError:
            continue
        gone = other.state is None and not other.damage
        rows.append({
            "word": word, "run": "" if gone else run_id, "name": shown_name(other),
            "state": "deleted" if gone else shown_state(other),
        })  # fmt: skip
    return rows


def _attached(plan: LaunchPlan | None) -> list[str]:
    return [str(item.attached_run) for item in plan.items if item.kind == "attached"] if plan is not None else []


def _later(home: StoreHome, run_id: str, known: set[str]) -> list[tuple[str, str]]:
    """Return the runs after it that name it: what resumed it, and what goes on from it."""
    found = []
    for other in FileRuns(home).ids()[:_LOOKED_BACK]:
        if other <= run_id:
            break
        plan = None if other in known else read_raw(home, other, ("plan.json",), having=run_id.encode())["plan.json"]
        if not plan:
            continue
        resumes, origin = plan.get("resumes"), plan.get("origin")
        if isinstance(resumes, dict) and resumes.get("run_id") == run_id:
            found.append(("resumed as", other))
        elif isinstance(origin, dict) and origin.get("parent") != run_id:
            found.append(("used by", other))
    return found
