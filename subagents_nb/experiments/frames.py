"""Runs, steps, messages and events as tables, for pandas, polars, arrow and parquet files.

Columns of runs are named as MLflow's `search_runs` names them: `run_id`, `status`, `start_time`, `end_time`,
`params.*`, `metrics.*`, `tags.*`. What is not there is missing, never zero.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any

from subagents_nb.domain.values.words import one_line
from subagents_nb.errors import RequestError
from subagents_nb.experiments.plan_parts import AGENT_FILE, PARTS
from subagents_nb.experiments.rescoring import settle
from subagents_nb.experiments.rows import RunRow, read_rows
from subagents_nb.launching import Run
from subagents_nb.launching.stored.selecting import ids_of
from subagents_nb.store.clock import moment
from subagents_nb.store.runs.raw_reader import read_raw_messages
from subagents_nb.store.runs.reader import uncollected

LEVELS = ("runs", "steps", "messages", "events")
_FIRST = ("run_id", "experiment", "name", "status", "reason", "start_time", "end_time")
_DIGESTS = {name: f"{name}_sha256" for name in PARTS} | {AGENT_FILE: "agent_digest"}
_READABLE = ("task", "system_prompt", "tools")  # parts of a plan, beside their digests
_HEAD = 200
_GROUPS = ("params.", "metrics.", "tags.", "lineage.")


class Frame(Sequence[dict[str, Any]]):
    """A table as plain records; `to_pandas` and its kin make the table of a library out of it."""

    def __init__(self, level: str, records: Sequence[dict[str, Any]]) -> None:
        self.level = level
        self._records = list(records)
        seen: dict[str, Any] = {}
        for record in self._records:
            seen.update(record)
        self.columns = tuple(sorted(seen, key=_rank)) if level == "runs" else tuple(seen)

    def records(self) -> list[dict[str, Any]]:
        """Return the rows as dictionaries; a cell that is missing has no key."""
        return [dict(record) for record in self._records]

    def to_pandas(self) -> Any:
        """Return a pandas.DataFrame. It shows a missing number as NaN, as a number that is NaN.

        Raises:
            RequestError: pandas is not installed.
        """
        pandas = _library("pandas", "to_pandas")
        return pandas.DataFrame.from_records(self._records, columns=list(self.columns))

    def to_polars(self) -> Any:
        """Return a polars.DataFrame. A column of several types becomes text.

        Raises:
            RequestError: polars is not installed.
        """
        polars = _library("polars", "to_polars")
        return polars.DataFrame(self._alike(), strict=False)

    def to_arrow(self) -> Any:
        """Return a pyarrow.Table. A column of several types becomes text.

        Raises:
            RequestError: pyarrow is not installed.
        """
        return _library("pyarrow", "to_arrow").table(self._alike())

    def to_parquet(self, path: str | os.PathLike[str]) -> None:
        """Write a parquet file, with pyarrow or with polars.

        Raises:
            RequestError: neither is installed.
            OSError: the file can't be written.
        """
        if importlib.util.find_spec("pyarrow") is None and importlib.util.find_spec("polars") is not None:
            self.to_polars().write_parquet(os.fspath(path))
            return
        table = _library("pyarrow", "to_parquet")
        importlib.import_module("pyarrow.parquet").write_table(table.table(self._alike()), os.fspath(path))

    def _alike(self) -> dict[str, list[Any]]:
        return {name: _one_type([record.get(name) for record in self._records]) for name in self.columns}

    def __getitem__(self, index: Any) -> Any:
        """Return one row, or several."""
        return self._records[index]

    def __len__(self) -> int:
        return len(self._records)

    def __repr__(self) -> str:
        return f"<Frame of {self.level}: {len(self._records)} rows, {len(self.columns)} columns>"


def frame(runs: Any = None, *, level: str = "runs") -> Frame:
    """Return runs as a table.

    Args:
        runs: what `runs()` gives, a sweep, a Run, several, or their ids; every run of the store if None.
        level: `runs`, `steps`, `messages` (what models were told and said, with tool calls) or `events`.

    Raises:
        RequestError: there is no such level, or these are no runs.
    """
    if level not in LEVELS:
        raise RequestError(f"There is no level {level!r}; the levels are {', '.join(LEVELS)}.")
    home, ids = ids_of(runs)
    settle(home, ids)
    records: Iterable[dict[str, Any]]
    if level == "runs":
        records = map(run_record, read_rows(home, ids))
    elif level == "steps":
        records = (record for row in read_rows(home, ids) for record in _step_records(row))
    else:
        make: Callable[[Run], Iterator[dict[str, Any]]] = _message_records if level == "messages" else _event_records
        records = (record for run_id in ids for record in make(Run(home, run_id)))
    with uncollected():
        return Frame(level, list(records))


def run_record(row: RunRow) -> dict[str, Any]:
    """Return a run as one row of the table."""
    record: dict[str, Any] = {
        "run_id": row.run_id,
        "experiment": row.experiment,
        "name": row.name,
        "status": row.state,
        "reason": row.reason,
        "start_time": moment(row.start),
        "end_time": moment(row.end),
        "sweep": row.sweep,
        "place": row.place,
        "repeat": row.repeat,
        "notes": row.notes or None,
    }
    record |= {f"params.{name}": value for name, value in (row.resolved | row.params).items()}
    record |= {f"case.{name}": value for name, value in row.about.items()}
    record["expected"] = row.expected
    record.update(row.part_of, model_requested=row.requested, model_answered=row.answered, digest=row.digest)
    for name, digest in row.parts.items():
        record[_DIGESTS[name]] = digest
    for name in _READABLE:
        record[name] = _head_of(row, name)
    record |= {f"metrics.{name}": value for name, value in row.usage.items()}
    record["metrics.seconds"] = row.seconds
    record |= {f"metrics.judge_{name}": value for name, value in row.judges.items()}
    record |= {f"metrics.{name}": value for name, value in row.metrics().items()}
    for tag in row.tags:
        key, equals, value = tag.partition("=")
        record[f"tags.{key}"] = value if equals else "true"
    for name, value in row.lineage.items():
        if name == "packages" and isinstance(value, dict):
            record |= {f"lineage.packages.{package}": version for package, version in value.items()}
        elif isinstance(value, str | bool):
            record[f"lineage.{name}"] = value
    return {name: value for name, value in record.items() if value is not None}


def _head_of(row: RunRow, name: str) -> str | None:
    """Return how a part of its plan begins, in one line."""
    text = row.texts.get(row.parts.get(name, ""))
    return _in_one_line(text[: 2 * _HEAD]) if text else None


@functools.lru_cache(maxsize=1024)  # many runs have parts in common
def _in_one_line(text: str) -> str:
    return one_line(text, _HEAD)


def _step_records(row: RunRow) -> Iterator[dict[str, Any]]:
    for step in row.steps:
        usage = step.get("usage")
        begin, end = step.get("started_s"), step.get("ended_s")
        text = step.get("text")
        record = {
            "run_id": row.run_id,
            "run_name": row.name,
            "step": step.get("index"),
            "label": step.get("label") or None,
            "phase": step.get("phase") or None,
            "lane": step.get("lane") or None,
            "agent": step.get("agent"),
            "model": step.get("model"),
            "model_requested": step.get("requested") or None,
            "model_selected": step.get("selected") or None,
            "context_tokens": step.get("context_tokens") or None,
            "context_window": step.get("context_window") or None,
            "status": step.get("state"),
            "reason": step.get("reason"),
            "error": step.get("error"),
            "output_name": step.get("output_name"),
            "started_s": begin,
            "seconds": end - begin if isinstance(begin, int | float) and isinstance(end, int | float) else None,
            **(usage if isinstance(usage, dict) else {}),
            "text": text if isinstance(text, str) else None,
            "value": json.dumps(step.get("value"), ensure_ascii=False) if step.get("has_value") else None,
        }
        yield {name: value for name, value in record.items() if value is not None}


def _message_records(run: Run) -> Iterator[dict[str, Any]]:
    for step in run.steps:
        for number, message in enumerate(read_raw_messages(run.home, run.id, step.index)):
            parts = message.get("parts")
            for part in parts if isinstance(parts, list) else ():
                if not isinstance(part, dict):
                    continue
                content = part.get("content", part.get("args"))
                record = {
                    "run_id": run.id,
                    "step": step.index,
                    "message": number,
                    "kind": message.get("kind"),
                    "part": part.get("part_kind"),
                    "tool": part.get("tool_name"),
                    "call": part.get("tool_call_id"),
                    "time": part.get("timestamp") or message.get("timestamp"),
                    "model": message.get("model_name"),
                    "content": content if isinstance(content, str) else _json(content),
                }
                yield {name: value for name, value in record.items() if value is not None}


def _event_records(run: Run) -> Iterator[dict[str, Any]]:
    for event in run.events():
        rest = {name: value for name, value in event.items() if name not in ("seq", "t", "s", "type", "step")}
        record = {
            "run_id": run.id,
            "seq": event.get("seq"),
            "time": event.get("t"),
            "seconds": event.get("s"),
            "type": event.get("type"),
            "step": event.get("step"),
            "data": _json(rest) if rest else None,
        }
        yield {name: value for name, value in record.items() if value is not None}


def _json(value: Any) -> str | None:
    return None if value is None else json.dumps(value, ensure_ascii=False, default=str)


def _rank(name: str) -> tuple[int, str]:
    if name in _FIRST:
        return _FIRST.index(name), ""
    group = next((at for at, prefix in enumerate(_GROUPS) if name.startswith(prefix)), None)
    return (len(_FIRST), name) if group is None else (len(_FIRST) + 1 + group, name)


def _one_type(values: list[Any]) -> list[Any]:
    kinds = {type(value) for value in values if value is not None}
    if len(kinds) <= 1 and not kinds & {dict, list}:
        return values
    if kinds == {int, float}:
        return [None if value is None else float(value) for value in values]
    return [None if value is None else _as_text(value) for value in values]


def _as_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return value.isoformat() if isinstance(value, datetime) else json.dumps(value, ensure_ascii=False, default=str)


def _library(name: str, method: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise RequestError(f'{method} needs {name}; run: pip install "subagents-nb[frames]"') from error
