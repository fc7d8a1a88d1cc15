"""What happened in a step, as the events of a sample in a log of Inspect AI: its viewer replays them.

Times are those of the run's own events, ids follow from the run's id. As in Inspect's own logs, the messages that went
into the requests stand in a pool, each once, and long texts among the attachments.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, TypeAlias

from subagents_nb.domain.runs.messages import Turn
from subagents_nb.exporters.inspect_forms import (
    Said,
    Texts,
    each_text,
    error_form,
    own_id,
    plain,
    usage_form,
    with_texts,
)
from subagents_nb.exporters.run_record import RunRecord, Span, StepRecord
from subagents_nb.store.clock import moment

_STOPPED = {"length": "max_tokens", "content_filter": "content_filter", "error": "unknown"}
# Not every version that reads these logs knows `max`, and one that does not refuses the whole log.
_EFFORTS = {"off": "none", **{level: level for level in ("minimal", "low", "medium", "high", "xhigh")}}

_Call: TypeAlias = tuple[dict[str, Any] | None, dict[str, Any] | None]  # its arguments, and the message with its result
_Piece: TypeAlias = tuple[int, str, str, dict[str, Any]]  # its place, kind, time and fields


def events_of(
    record: RunRecord,
    step: StepRecord,
    said: Sequence[Said],
    sample: Mapping[str, Any],
    scores: Mapping[str, Mapping[str, Any]],
    texts: Texts,
) -> dict[str, Any]:
    """Return `events` and `events_data` of a sample; a step that the run's events know nothing of has none.

    Args:
        record: the run.
        step: one of its steps.
        said: its messages in Inspect's form.
        sample: the sample so far: its id, input and error are told.
        scores: the scores that the sample has, by name.
        texts: where long texts are put.
    """
    if not step.began:
        return {}
    events, work = _Events(record, step), _Work(step, said, texts)
    error = sample["error"]["message"] if "error" in sample else None
    task = texts.short(sample["input"])
    init = events.open_span("init", step.start)
    state = {"messages": [{"role": "user", "content": task, "source": "input"}]}
    events.add("sample_init", step.start, init, sample={"input": task, "target": "", "id": sample["id"]}, state=state)
    events.end(init, step.start)
    solvers = events.open_span("solvers", step.start)
    agent = events.open_span("agent", step.start, parent=solvers, name=step.result.agent)
    pieces = (*work.requests(error), *work.tools(), *work.notes(record))
    for _, kind, at, fields in sorted(pieces, key=lambda piece: piece[0]):
        events.add(kind, at, agent, **fields)
    events.end(agent, step.end)
    events.end(solvers, step.end)
    if error is not None:
        events.add("error", step.end, None, error=error_form(error))
    events.judged(scores)
    pool = [with_texts(form, texts.short) for _, form in said[: work.heard]]
    return {"events": events.found, "events_data": {"messages": pool, "calls": []}}


class _Events:
    """The events of one sample, oldest first."""

    def __init__(self, record: RunRecord, step: StepRecord) -> None:
        self.found: list[dict[str, Any]] = []
        self._record = record
        self._index = step.result.index
        self._start, self._end = _time(step.start), _time(step.end)

    def add(self, kind: str, at: str, span: str | None, **fields: Any) -> None:
        when = moment(at) or self._end
        event: dict[str, Any] = {"uuid": self._id(f"event {len(self.found)}"), "event": kind}
        if span is not None:
            event["span_id"] = span
        # What is judged later takes nothing of the sample's time.
        working = (min(when, self._end) - self._start).total_seconds()
        self.found.append(event | {"timestamp": when.isoformat(), "working_start": working} | fields)

    def open_span(self, kind: str, at: str, *, parent: str | None = None, name: str = "") -> str:
        span = self._id(f"span {kind} {name}")
        within = {} if parent is None else {"parent_id": parent}
        self.add("span_begin", at, span, id=span, type=kind, name=name or kind, **within)
        return span

    def end(self, span: str, at: str) -> None:
        self.add("span_end", at, span, id=span)

    def judged(self, scores: Mapping[str, Mapping[str, Any]]) -> None:
        times = {name: max(s.at for s in self._record.scores if s.name == name) for name in scores}
        ordered = sorted(times, key=lambda name: (times[name], name))
        if not ordered:
            return
        around = self.open_span("scorers", times[ordered[0]])
        for name in ordered:
            one = self.open_span("scorer", times[name], parent=around, name=name)
            self.add("score", times[name], one, score=scores[name], scorer=name, intermediate=False)
            self.end(one, times[name])
        self.end(around, times[ordered[-1]])

    def _id(self, what: str) -> str:
        return own_id(self._record.run_id, f"{self._index} {what}")


class _Work:
    """What a step's agent did, piece by piece."""

    def __init__(self, step: StepRecord, said: Sequence[Said], texts: Texts) -> None:
        self.heard = 0  # how many messages went into the longest request
        self._step = step
        self._said = said
        self._texts = texts
        self._turns = [turn for turn, _ in said]
        self._exchanges = step.exchanges()
        self._calls = _calls_of(step, said)
        own = [turn.number for _, turn in self._exchanges if turn is not None]
        earlier = [turn.number for turn in step.session.turns if not own or turn.number < own[0]]
        self._before = max(earlier, default=-1)  # the latest response so far

    def requests(self, error: str | None) -> Iterator[_Piece]:
        """Yield the requests; if the last one brought no response, the step's error is its own."""
        step, plan = self._step, self._step.plan
        config = (
            {"temperature": plan.temperature, "reasoning_effort": _EFFORTS.get(plan.thinking or "")} if plan else {}
        )
        shared: dict[str, Any] = {
            "input": [],
            "tools": [{"name": name, "description": ""} for name in plan.tools] if plan else [],
            "tool_choice": "auto",
            "config": {name: value for name, value in config.items() if value is not None},
        }
        for number, (request, turn) in enumerate(self._exchanges, 1):
            last = number == len(self._exchanges)
            count = self._input(turn, last=last)
            self.heard = max(self.heard, count)
            fields = shared | {
                "model": (turn.model if turn is not None else "") or step.result.model or "none",
                "input_refs": [[0, count]] if count else [],
                "output": self._output(request, turn),
                "completed": _time(request.end).isoformat(),
                "working_time": _took(request),
            }
            failed = {"error": error} if error and last and turn is None else {}
            yield request.order, "model", request.start, fields | failed

    def tools(self) -> Iterator[_Piece]:
        """Yield the calls of tools; where no session has arguments and result, as far as the events show them."""
        for tool in self._step.tools:
            known_args, result = self._calls[tool.call_id].popleft() if self._calls.get(tool.call_id) else (None, None)
            args = known_args if known_args is not None else {"arguments": tool.args} if tool.args else {}
            text = tool.preview if result is None else result["content"]
            error = _tool_error(tool, text)
            fields = {
                "type": "function",
                "id": tool.call_id,
                "function": tool.name,
                "arguments": each_text(args, self._texts.short),
                "result": text,  # readers look for no reference here
                "completed": _time(tool.end).isoformat(),
                "working_time": _took(tool),
            }
            known = {"error": error, "message_id": result["id"] if result is not None else None}
            yield tool.order, "tool", tool.start, fields | {k: v for k, v in known.items() if v is not None}

    def notes(self, record: RunRecord) -> Iterator[_Piece]:
        """Yield what else happened; what is the whole run's stands with each step that was at work."""
        me = self._step.result.index
        for note in record.notes:
            if me == note.step or (note.step is None and me in _at_work(record, note.at)):
                data = each_text(plain({"type": note.kind, **note.facts}), self._texts.short)
                yield note.order, "info", note.at, {"source": "subagents_nb", "data": data}

    def _input(self, turn: Turn | None, *, last: bool) -> int:
        """Return how many messages went into a request."""
        if turn is not None:
            self._before = turn.number
            return bisect_left(self._turns, turn.number)
        return len(self._said) if last else bisect_right(self._turns, self._before + 1)

    def _output(self, request: Span, turn: Turn | None) -> dict[str, Any]:
        output: dict[str, Any] = {"model": "", "choices": [], "completion": "", "time": _took(request)}
        if turn is None:
            return output
        output["model"] = turn.model or self._step.result.model
        if turn.usage.input_tokens or turn.usage.output_tokens:
            output["usage"] = usage_form(turn.usage)
        place = bisect_left(self._turns, turn.number)
        if self._turns[place : place + 1] == [turn.number]:
            form = self._said[place][1]
            why = "tool_calls" if form.get("tool_calls") else _STOPPED.get(turn.finish_reason or "", "stop")
            output["choices"] = [{"message": with_texts(form, self._texts.short), "stop_reason": why}]
            output["completion"] = "\n".join(part["text"] for part in form["content"] if part["type"] == "text")
        return output


def _calls_of(step: StepRecord, said: Sequence[Said]) -> dict[str, deque[_Call]]:
    """Return arguments and results of the step's calls by their ids; an earlier run's with the same id come first."""
    found: dict[str, deque[_Call]] = defaultdict(deque)
    for _, form in said:
        if form["role"] == "tool":
            calls = found[form.get("tool_call_id", "")]
            if calls and calls[-1][1] is None:
                calls.append((calls.pop()[0], form))
            else:
                calls.append((None, form))
        for call in form.get("tool_calls", ()):
            found[call["id"]].append((call["arguments"], None))
    for call_id, calls in found.items():
        for _ in range(len(calls) - sum(tool.call_id == call_id for tool in step.tools)):
            calls.popleft()
    return found


def _at_work(record: RunRecord, at: str) -> set[int]:
    """Return the steps that were at work at a time; between two it is the one before, at the beginning the first."""
    begun = sorted((step for step in record.steps if step.began), key=lambda step: step.start)
    working = [step for step in begun if step.start <= at <= step.end]
    before = [step for step in begun if step.start <= at]
    return {step.result.index for step in working or before[-1:] or begun[:1]}


def _tool_error(tool: Span, text: str) -> dict[str, str] | None:
    if tool.refused is not None:
        return {"type": "permission", "message": tool.refused}
    if tool.cut_off:
        return {"type": "cancelled", "message": "It was still at work when the run ended."}
    return None if tool.ok else {"type": "unknown", "message": text}  # whole: a cut might go through a secret


def _time(at: str) -> datetime:
    return datetime.fromisoformat(at)


def _took(span: Span) -> float:
    return (_time(span.end) - _time(span.start)).total_seconds()
