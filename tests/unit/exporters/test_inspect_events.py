"""What happened in a run as the events of a sample; `tests/integration/test_exporters.py` has Inspect AI read them."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from support import make_step

from subagents_nb import Run, export
from subagents_nb.domain.runs.records import StepResult
from subagents_nb.domain.runs.states import RunState, StepState

Record = Callable[..., Run]
REFUSED = "'bash' is not one of this step's tools."


def at(second: float) -> str:
    return f"2026-03-01T12:{int(second) // 60:02}:{second % 60:06.3f}Z"


def write(run: Run, events: Sequence[dict[str, Any]], session: Sequence[Any] | None = None) -> Run:
    """Give a run other events, a second apart unless they say when, and another session."""
    paths = run.home.run(run.id)
    lines = [{"seq": n, "t": at(n), **event} for n, event in enumerate(events, 1)]
    paths.events.write_text("".join(json.dumps(line) + "\n" for line in lines))
    if session is not None:
        (paths.step(0) / "session.json").write_text(json.dumps(session))
    return run


def asked(*texts: str, **more: Any) -> dict[str, Any]:
    return {"kind": "request", "parts": [{"part_kind": "user-prompt", "content": text} for text in texts], **more}


def answered(text: str, second: float | None = None) -> dict[str, Any]:
    stamp = {} if second is None else {"timestamp": at(second)}
    usage = {"input_tokens": 7, "output_tokens": 3}
    return {"kind": "response", "parts": [{"part_kind": "text", "content": text}], "usage": usage, **stamp}


def called(call_id: str, args: Any, second: float | None = None) -> dict[str, Any]:
    part = {"part_kind": "tool-call", "tool_name": "read", "args": args, "tool_call_id": call_id}
    return {**answered("", second), "parts": [part]}


def returned(call_id: str, text: str) -> dict[str, Any]:
    part = {"part_kind": "tool-return", "tool_name": "read", "content": text, "tool_call_id": call_id}
    return {"kind": "request", "parts": [part]}


def model_asked(number: int, **more: Any) -> dict[str, Any]:
    return {"type": "model-asked", "step": 0, "request": number, **more}


def tool(call: str, *, name: str = "read", ok: bool = True, **ends: Any) -> list[dict[str, Any]]:
    start = {"type": "tool-started", "step": 0, "call": call, "tool": name, "args": "rows.csv"}
    return [start, {"type": "tool-ended", "step": 0, "call": call, "ok": ok, "preview": "x,y", **ends}]


def strict(text: str) -> dict[str, Any]:
    def refuse(what: str) -> None:
        raise AssertionError(f"{what} is no JSON")

    return dict(json.loads(text, parse_constant=refuse))


def written(run: Run, out: Path) -> Path:
    (sent,) = export(run, to="inspect", folder=str(out))
    return out / str(sent.link and sent.link.remote_id)


def samples_of(run: Run, out: Path) -> list[dict[str, Any]]:
    return list(strict(written(run, out).read_text())["samples"])


def kinds(sample: dict[str, Any]) -> list[str]:
    return [event["event"] for event in sample["events"]]


def of_kind(sample: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    return [event for event in sample["events"] if event["event"] == kind]


def whole(sample: dict[str, Any], text: str) -> str:
    return str(sample["attachments"].get(text.removeprefix("attachment://"), text))


def inputs(sample: dict[str, Any], event: dict[str, Any]) -> list[dict[str, Any]]:
    pool = sample["events_data"]["messages"]
    return [message for start, end in event["input_refs"] for message in pool[start:end]]


def test_a_call_and_a_refused_one_are_replayed_in_their_order(record: Record, out: Path) -> None:
    # A script's session holds what was said, not what was called.
    bash = tool("call-2", name="bash", ok=False, refused=REFUSED)
    text = {"type": "text", "step": 0, "text": "three rows"}
    events = [{"type": "run-started"}, model_asked(1), *tool("call-1"), *bash, text, {"type": "run-ended"}]
    (sample,) = samples_of(write(record(), events, [asked("count the rows"), answered("three rows")]), out)
    assert kinds(sample) == [
        *("span_begin", "sample_init", "span_end"),
        *("span_begin", "span_begin", "model", "tool", "tool", "info", "span_end", "span_end"),
    ]
    read, refused = of_kind(sample, "tool")
    assert (read["id"], read["function"], read["arguments"], read["result"]) == (
        "call-1",
        "read",
        {"arguments": "rows.csv"},
        "x,y",
    )
    assert (read["timestamp"], read["completed"], read["working_time"], read["working_start"]) == (
        "2026-03-01T12:00:03+00:00",
        "2026-03-01T12:00:04+00:00",
        1.0,
        1.0,
    )
    assert "error" not in read and refused["error"] == {"type": "permission", "message": REFUSED}
    assert of_kind(sample, "info")[0]["data"] == {"type": "refused", "call": "call-2", "tool": "bash", "why": REFUSED}


def test_events_stand_in_the_span_of_their_agent(record: Record, out: Path) -> None:
    run = record()
    run.score("accuracy", 0.5)
    (sample,) = samples_of(run, out)
    spans = {event["id"]: event for event in of_kind(sample, "span_begin")}

    def path(event: dict[str, Any]) -> list[str]:
        found, span = [], event.get("span_id")
        while span is not None:
            found.append(spans[span]["name"])
            span = spans[span].get("parent_id")
        return found

    placed = {event["event"]: path(event) for event in sample["events"] if not event["event"].startswith("span")}
    assert placed == {
        "sample_init": ["init"],
        "model": ["scout", "solvers"],
        "tool": ["scout", "solvers"],
        "score": ["accuracy", "scorers"],
    }
    assert [span["type"] for span in spans.values()] == ["init", "solvers", "agent", "scorers", "scorer"]
    assert sorted(spans) == sorted(event["id"] for event in of_kind(sample, "span_end"))


def test_requests_have_what_went_in_and_what_came_back(record: Record, out: Path) -> None:
    (sample,) = samples_of(record(), out)
    first, second = of_kind(sample, "model")
    assert [message["role"] for message in inputs(sample, first)] == ["system", "user"]
    assert [message["role"] for message in inputs(sample, second)] == ["system", "user", "assistant", "tool"]
    assert first["output"]["choices"][0]["stop_reason"] == "tool_calls"
    assert first["output"]["choices"][0]["message"]["tool_calls"][0]["arguments"] == {"path": "a"}
    assert second["output"]["completion"] == "three rows"
    assert (first["output"]["usage"]["input_tokens"], second["output"]["usage"]["output_tokens"]) == (7, 2)
    assert (first["model"], first["working_time"], [one["name"] for one in first["tools"]]) == ("m-1", 1.0, ["read"])
    (call,) = of_kind(sample, "tool")
    assert (call["arguments"], call["result"]) == ({"path": "a"}, "x,y")
    assert call["message_id"] == sample["messages"][3]["id"]


@pytest.mark.parametrize("timed", [True, False])
def test_only_this_runs_requests_of_a_session_are_events(record: Record, out: Path, timed: bool) -> None:
    def second(value: float) -> float | None:
        return value if timed else None

    # The earlier run's times lie before; its call has the same id.
    session = [
        *(asked("count"), called("c1", {"path": "old"}, second(0.1)), returned("c1", "1,2")),
        *(answered("two", second(0.2)), asked("again"), called("c1", {"path": "new"}, second(2.5))),
        *(returned("c1", "1,2,3"), answered("three", second(5.5))),
    ]
    events = [{"type": "run-started"}, model_asked(1), *tool("c1"), model_asked(2), {"type": "run-ended"}]
    (sample,) = samples_of(write(record(), events, session), out)
    first, second_ = of_kind(sample, "model")
    assert [len(inputs(sample, event)) for event in (first, second_)] == [5, 7]
    assert [event["output"]["completion"] for event in (first, second_)] == ["", "three"]
    (call,) = of_kind(sample, "tool")
    assert (call["arguments"], call["result"]) == ({"path": "new"}, "1,2,3")


def test_a_request_that_failed_has_the_error_and_no_other_requests_answer(record: Record, out: Path) -> None:
    session = [asked("count"), called("c1", {"path": "a"}, 2.5), returned("c1", "x,y")]
    failed = StepResult(agent="scout", model="m", state=StepState.FAILED, reason="provider", error="no credit")
    run = record(state=RunState.FAILED, error="no credit", steps=(failed,))
    events = [{"type": "run-started"}, model_asked(1), *tool("c1"), model_asked(2), {"type": "run-ended"}]
    (sample,) = samples_of(write(run, events, session), out)
    first, second = of_kind(sample, "model")
    assert "error" not in first and first["output"]["choices"]
    assert (second["error"], second["output"]["choices"], len(inputs(sample, second))) == ("no credit", [], 3)
    assert of_kind(sample, "error")[0]["error"]["message"] == "no credit"
    assert kinds(sample)[-1] == "error"


def test_a_request_of_a_script_that_said_nothing_takes_no_other_ones_answer(record: Record, out: Path) -> None:
    text = {"type": "text", "step": 0, "text": "heard"}
    events = [model_asked(1), *tool("call-1"), model_asked(2), text, {"type": "run-ended"}]
    (sample,) = samples_of(write(record(), events, [asked("count"), asked("finish"), answered("heard")]), out)
    first, second = of_kind(sample, "model")
    assert (first["output"]["choices"], len(inputs(sample, first))) == ([], 1)
    assert (second["output"]["completion"], len(inputs(sample, second))) == ("heard", 2)


def test_a_call_that_was_open_at_the_end_is_cancelled(record: Record, out: Path) -> None:
    (sample,) = samples_of(write(record(), [model_asked(1), tool("c9")[0], {"type": "run-ended"}]), out)
    (call,) = of_kind(sample, "tool")
    assert call["error"]["type"] == "cancelled" and call["completed"] == "2026-03-01T12:00:03+00:00"


def test_notices_new_limits_and_steering_are_told(record: Record, out: Path) -> None:
    events = [
        model_asked(1),
        {"type": "notice", "step": 0, "code": "rate-limited", "text": "The provider is busy."},
        {"type": "retuned", "by": "python", "changes": {"timeout_s": 90.0}},
        {"type": "steering", "request": "r1", "outcome": "delivered"},
        {"type": "run-ended"},
    ]
    (sample,) = samples_of(write(record(), events), out)
    assert [event["data"] for event in of_kind(sample, "info")] == [
        {"type": "notice", "code": "rate-limited", "text": "The provider is busy."},
        {"type": "retuned", "by": "python", "changes": {"timeout_s": 90.0}},
        {"type": "steering", "request": "r1", "outcome": "delivered"},
    ]


def test_what_is_the_whole_runs_stands_with_the_steps_at_work(record: Record, out: Path) -> None:
    states = (StepState.COMPLETE, StepState.COMPLETE, StepState.SKIPPED)
    results = tuple(StepResult(index=n, agent="scout", model="m", state=state) for n, state in enumerate(states))
    steps = tuple(make_step(index=n) for n in range(3))
    run = record(plan={"steps": steps, "mode": "chain"}, steps=results)
    events = [
        {"type": "step-started", "step": 0},
        {"type": "step-ended", "step": 0},
        {"type": "retuned", "by": "between"},
        {"type": "step-started", "step": 1},
        {"type": "retuned", "by": "second"},
        {"type": "step-ended", "step": 1},
        {"type": "run-ended"},
    ]
    first, second, skipped = samples_of(write(run, events), out)
    assert [[event["data"]["by"] for event in of_kind(one, "info")] for one in (first, second)] == [
        ["between"],
        ["second"],
    ]
    assert "events" not in skipped


def test_the_same_run_is_the_same_file_and_a_score_leaves_the_rest_of_it(record: Record, tmp_path: Path) -> None:
    run = record()
    first, second = written(run, tmp_path / "a"), written(run, tmp_path / "b")
    assert first.read_bytes() == second.read_bytes()
    run.score("loss", math.nan)
    run.score("accuracy", math.inf)
    (before,), (after,) = (strict(path.read_text())["samples"] for path in (second, written(run, tmp_path / "a")))
    assert after["events"][: len(before["events"])] == before["events"]
    scores = of_kind(after, "score")
    assert {event["scorer"]: event["score"]["value"] for event in scores} == {"loss": "nan", "accuracy": "inf"}
    assert len({event["uuid"] for event in after["events"]}) == len(after["events"])
    assert {event["working_start"] for event in scores} == {after["total_time"]}


def test_a_long_session_makes_a_log_that_grows_with_it_and_not_faster(record: Record, out: Path) -> None:
    def size(number: int, requests: int) -> int:
        events: list[dict[str, Any]] = []
        session: list[Any] = [asked("count " * 50)]
        for n in range(requests):
            events += [model_asked(n + 1), *tool(f"c{n}")]
            session += [called(f"c{n}", {"path": f"{n} " * 100}), returned(f"c{n}", f"{n}," * 100)]
        return written(write(record(number), events, session), out).stat().st_size

    small, large = size(1, 40), size(2, 160)
    assert large < 4.3 * small


def test_long_texts_stand_in_the_attachments_once(record: Record, out: Path) -> None:
    long = "row " * 100
    session = [asked(long), called("c1", {"path": long}), returned("c1", "x"), answered(long)]
    (sample,) = samples_of(write(record(), [model_asked(1), *tool("c1"), model_asked(2)], session), out)
    (user, *_), (call,) = inputs(sample, of_kind(sample, "model")[0]), of_kind(sample, "tool")
    assert list(sample["attachments"].values()) == [long]
    assert user["content"] != long and whole(sample, user["content"]) == long
    assert whole(sample, call["arguments"]["path"]) == long
    assert sample["messages"][0]["content"] == long


def test_a_secret_in_a_long_text_leaves_no_trace(record: Record, out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = record()

    def sample(secret: str) -> dict[str, Any]:
        monkeypatch.setenv("SITE_PASSWORD", secret)
        return samples_of(write(run, [model_asked(1)], [asked(f"the password is {secret} " * 10)]), out)[0]

    # The names of attachments neither: from a digest a guess could be told.
    assert sample("hunter2hunter2") == sample("letmein-please")


def test_a_text_that_looks_like_a_reference_stays_what_it_is(record: Record, out: Path) -> None:
    secret, run = "something else " * 10, record()
    (sample,) = samples_of(write(run, [model_asked(1)], [asked(secret), answered("fine")]), out)
    (name,) = sample["attachments"]
    for lure in (f"attachment://{name}", f"tc://{name}"):
        (sample,) = samples_of(write(run, [model_asked(1)], [asked(secret), answered(lure)]), out)
        assert name in sample["attachments"]
        (event,) = of_kind(sample, "model")
        for message in (event["output"]["choices"][0]["message"], sample["messages"][1]):
            assert whole(sample, message["content"][0]["text"]) == lure


def test_hostile_content_makes_no_log_that_can_not_be_read(record: Record, out: Path) -> None:
    deep: Any = "deep"
    for _ in range(300):
        deep = [deep]
    session = [
        asked("count \ud800\x00</script>"),
        called("c1", {"deep": deep, "nan": math.nan, "event": "span_end"}),
        returned("c1", "\x1b[31m"),
        {"kind": "response", "timestamp": "yesterday", "parts": [{"part_kind": "text", "content": "fine"}]},
    ]
    events = [
        {"type": "run-started", "t": "zzz"},
        {"type": "notice", "step": 0, "code": [[math.nan]], "text": None},
        model_asked(1, t="2026-99-99T00:00:00Z"),
        *tool("c1", preview={"no": "text"}),
        {"type": "tool-ended", "step": 0},
        {"type": "model-asked", "step": "0"},
        model_asked(2, t=None),
    ]
    (sample,) = samples_of(write(record(), events, session), out)
    assert [event["event"] for event in sample["events"] if event["event"] in ("model", "tool")] == [
        *("model", "tool", "tool", "model")
    ]
    arguments = of_kind(sample, "tool")[0]["arguments"]
    assert arguments["nan"] == "nan" and "nested too deeply" in json.dumps(arguments["deep"])


def test_a_run_without_events_has_messages_only(record: Record, out: Path) -> None:
    run = record()
    run.home.run(run.id).events.unlink()
    (sample,) = samples_of(run, out)
    assert "events" not in sample and len(sample["messages"]) == 5


def test_a_step_without_a_session_has_its_answer_with_the_last_request(record: Record, out: Path) -> None:
    run = write(record(), [model_asked(1), *tool("c1"), model_asked(2), {"type": "run-ended"}])
    (run.home.run(run.id).step(0) / "session.json").unlink()
    (sample,) = samples_of(run, out)
    assert [event["output"]["completion"] for event in of_kind(sample, "model")] == ["", "three rows"]
