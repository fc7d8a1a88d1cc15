"""Runs as logs of Inspect AI (its JSON form, version 2): `inspect view` and `inspect log` open them.

A run is an eval, each of its steps a sample with its messages and what happened. Such a log is made of messages, so
prompts and answers always go along; leave this exporter out where they must stay. No package of Inspect's is needed
here.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, ClassVar

from subagents_nb.domain.runs.messages import Message, Session, Turn
from subagents_nb.domain.runs.states import RunState, StepState
from subagents_nb.exporters.inspect_events import events_of
from subagents_nb.exporters.inspect_forms import (
    Texts,
    error_form,
    inspect_messages,
    own_id,
    plain,
    usage_form,
    with_texts,
)
from subagents_nb.exporters.protocol import FolderExporter, Link
from subagents_nb.exporters.run_record import RunRecord, StepRecord
from subagents_nb.launching.judging.scoring import Scores
from subagents_nb.version import __version__

_WORD = re.compile(r"[^\w-]+", re.ASCII)
_STATUS = {RunState.COMPLETE: "success", RunState.PARTIAL: "success", RunState.STOPPED: "cancelled"}


@dataclass(frozen=True, kw_only=True)
class InspectExporter(FolderExporter):
    """One folder of logs; INSPECT_LOG_DIR if it is not given, else `logs`, as Inspect has it."""

    name: ClassVar[str] = "inspect"
    folder: str = field(default_factory=lambda: os.environ.get("INSPECT_LOG_DIR") or "logs")

    def contents(self, record: RunRecord) -> dict[str, Any]:
        """Return the whole log."""
        model = record.models[0] if record.models else "none"
        task = _word(record.name)
        scores = _scores(record)
        last = len(record.steps) - 1
        samples = [_sample(record, step, scores if n == last else {}) for n, step in enumerate(record.steps)]
        lineage = record.experiment.lineage
        log: dict[str, Any] = {
            "version": 2,
            "status": _STATUS.get(record.state, "error"),
            "eval": {
                "eval_id": own_id(record.run_id, "eval"),
                "run_id": record.run_id,
                "created": _seconds(record.start),
                "task": task,
                "task_id": own_id(record.run_id, "task"),
                "task_version": 0,
                "task_args": record.params(),
                "solver": ", ".join(record.agents) or None,
                "tags": list(record.tags),
                "dataset": {"name": record.experiment.name, "samples": len(samples), "shuffled": False},
                "model": model,
                "model_args": {},
                "config": {"epochs": 1},
                "packages": {"subagents-nb": __version__, **(lineage.packages if lineage is not None else {})},
                "metadata": {f"subagents_nb.{name}": value for name, value in record.labels().items()},
                "scorers": [{"name": name} for name in scores],
            },
            "plan": {
                "name": "plan",
                "steps": [{"solver": agent, "params": {}} for agent in record.agents],
                "config": {},
            },
            "results": _results(samples, scores),
            "stats": {
                "started_at": _seconds(record.start),
                "completed_at": _seconds(record.end),
                "model_usage": {model: usage_form(record.usage)},
            },
            "samples": samples,
        }
        if log["status"] == "error":
            log["error"] = error_form(record.error or f"the run is {record.state}")
        return log

    def send(self, contents: dict[str, Any], record: RunRecord) -> Link:
        """Write the log, in place of an earlier one of the run."""
        when = _seconds(record.start).replace(":", "-")
        name = f"{when}_{contents['eval']['task']}_{contents['eval']['task_id']}.json"
        return self.write(name, json.dumps(contents, ensure_ascii=False, indent=1))


def _sample(record: RunRecord, step: StepRecord, scores: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    result, texts = step.result, Texts(record.run_id, step.result.index)
    step = step if step.session.messages else _bare(step)
    messages = inspect_messages(step.session, result.model, run_id=record.run_id, step=result.index)
    last = next((form for _, form in reversed(messages) if form["role"] == "assistant"), None)
    sample: dict[str, Any] = {
        "id": f"{result.index}: {result.label}" if result.label else str(result.index),
        "epoch": 1,
        "input": step.plan.task if step.plan is not None else _first(step.session),
        "target": "",
        "messages": [with_texts(form, texts.literal) for _, form in messages],
        "output": {
            "model": result.model,
            "choices": [{"message": last, "stop_reason": "stop"}] if last is not None else [],
            "completion": step.text,
            "usage": usage_form(result.usage),
        },
        "metadata": {"agent": result.agent, "state": str(result.state), "value": plain(result.value)},
        "model_usage": {result.model or "none": usage_form(result.usage)},
        "started_at": _seconds(step.start),
        "completed_at": _seconds(step.end),
        "total_time": _between(step.start, step.end),
        "uuid": own_id(record.run_id, f"sample {result.index}"),
    }
    if scores:
        sample["scores"] = dict(scores)
    if result.state not in (StepState.COMPLETE, StepState.PARTIAL, StepState.SKIPPED):
        sample["error"] = error_form(result.error or f"the step is {result.state}")
    return sample | events_of(record, step, messages, sample, scores, texts) | {"attachments": texts.kept}


def _bare(step: StepRecord) -> StepRecord:
    """Return a step of which only task and answer are known, with a session of these."""
    asked = (Message(role="user", text=step.plan.task),) if step.plan is not None else ()
    messages = (Message(role="answer", text=step.text, turn=1),) if step.text else ()
    session = Session(messages=(*asked, *messages), turns=(Turn(number=1),) if messages else ())
    return step.model_copy(update={"session": session})


def _first(session: Session) -> str:
    return next((message.text for message in session.messages if message.role == "user"), "")


def _scores(record: RunRecord) -> dict[str, dict[str, Any]]:
    """Return the scores by name; of one that was given for single cases their mean, with the cases beside it."""
    scores = Scores(record.scores)
    comments = {score.name: score.comment for score in record.scores if score.comment}
    found = {}
    for name, value in scores.items():
        cases = {case: plain(number) for case, number in scores.cases(name).items()}
        found[name] = {
            "value": plain(value),
            "explanation": comments.get(name),
            "metadata": {"cases": cases} if cases else None,
        }
    return found


def _results(samples: list[Any], scores: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    done = [sample for sample in samples if "error" not in sample]
    results = [
        {"name": name, "scorer": name, "params": {}, "metrics": {"mean": {"name": "mean", "value": score["value"]}}}
        for name, score in scores.items()
    ]
    return {"total_samples": len(samples), "completed_samples": len(done), "scores": results}


def _seconds(at: str) -> str:
    return datetime.fromisoformat(at).isoformat(timespec="seconds")


def _between(start: str, end: str) -> float:
    return (datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds()


def _word(name: str) -> str:
    return _WORD.sub("-", name).strip("-")[:80] or "run"
