"""A run in full: events become entries by pages, what is behind one is whole, search finds what is folded."""

from __future__ import annotations

import json
import queue
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from support import make_plan, make_recovery, make_result, make_status, run_id, until

from subagents_nb.domain.plans.budgets import Amount, UsageBudget
from subagents_nb.domain.runs.control import ControlRequest
from subagents_nb.domain.runs.events import ModelAsked, Noticed, TextStreamed, ThoughtStreamed, ToolEnded, ToolStarted
from subagents_nb.domain.runs.questions import Question, Reply
from subagents_nb.domain.runs.records import Artifact
from subagents_nb.domain.runs.states import RunState
from subagents_nb.domain.values.usage import Usage
from subagents_nb.launching import Run
from subagents_nb.notebook.full.event_pages import PAGE_BYTES, read_page
from subagents_nb.notebook.full.facts import answer_of, facts_of, lineage_of
from subagents_nb.notebook.full.finding import places_of
from subagents_nb.notebook.full.full_view import OPEN, FullRequests
from subagents_nb.notebook.full.parts import WINDOW, parts_of
from subagents_nb.runner.journal.eventlog import event_line
from subagents_nb.store import StoreHome, create_run

T = "2026-03-01T12:00:{:02d}.000Z"


class Written:
    """A run in the store, with its events written as the runner writes them."""

    def __init__(self, home: StoreHome, number: int = 1, **plan: Any) -> None:
        self.home, self.seq, self.number = home, 0, number
        self.writer = create_run(home, make_plan(number, **plan), make_recovery(number))
        self.run = Run(home, run_id(number))
        self.paths = home.run(run_id(number))

    def line(self, kind: str, step: int | None = 0, **fields: Any) -> None:
        self.seq += 1
        where = {} if step is None else {"step": step}
        record = {"seq": self.seq, "t": T.format(min(59, self.seq)), "s": float(self.seq), "type": kind}
        self.writer.events.append({**record, **where, **fields}, keep=True)

    def event(self, event: Any, step: int = 0) -> None:
        kind, fields = event_line(event)
        self.line(kind, step, **fields)

    def session(self, *said: dict[str, Any], step: int = 0) -> None:
        folder = self.paths.step(step)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "session.json").write_text(json.dumps([{"kind": "response", "parts": list(said)}]))

    def page(self, begin: int = 0, step: int | None = None) -> dict[str, Any]:
        return FullRequests(self.run, step).page(begin)


@pytest.fixture
def written(store_home: StoreHome) -> Written:
    return Written(store_home)


def called(call: str, tool: str, args: Any, result: str, at: str | None = None) -> list[dict[str, Any]]:
    given = {"part_kind": "tool-call", "tool_name": tool, "tool_call_id": call, "args": args, "timestamp": at}
    return [given, {"part_kind": "tool-return", "tool_name": tool, "tool_call_id": call, "content": result}]


def test_events_become_lines_and_streams_become_one(written: Written) -> None:
    for event in (
        ModelAsked(1), ThoughtStreamed("The columns "), ThoughtStreamed("first."),
        ToolStarted("c1", "grep", "list_price"), ToolEnded("c1", True, 0.5, "3 lines"),
        ToolStarted("c2", "bash", "pip install x"),
        ToolEnded("c2", False, 0.1, "", "no network"), Noticed("cut", "It was cut."), TextStreamed("Done."),
    ):  # fmt: skip
        written.event(event)
    rows = written.page()["entries"]
    assert [(row["kind"], row["name"], row["line"], row.get("state", "")) for row in rows] == [
        ("thinking", "", "The columns first.", ""),
        ("call", "grep", "list_price", "complete"),
        ("call", "bash", "pip install x", "refused"),
        ("remark", "note", "It was cut.", ""),
        ("text", "", "Done.", ""),
    ]
    assert (rows[1]["took"], rows[2]["aside"], rows[0]["chars"]) == (0.5, "refused: no network", 18)


def test_one_step_has_its_own_lines_alone(written: Written) -> None:
    for step in (0, 1):
        written.event(ToolStarted("c", f"tool{step}", ""), step)
    written.line("run-ended", None, state="complete")
    assert [row["name"] for row in written.page(step=1)["entries"]] == ["tool1"]


def test_what_ends_a_call_of_an_earlier_page_names_it_and_an_open_stream_is_read_again(written: Written) -> None:
    written.event(ToolStarted("c1", "grep", "x"))
    written.event(TextStreamed("begins"))
    first = written.page()
    assert first["entries"][0]["state"] == "running"
    assert first["next"] == first["entries"][1]["at"] < first["to"]
    written.event(TextStreamed(" and goes on"))
    written.event(ToolEnded("c1", True, 1.0, "y"))
    later = written.page(first["next"])
    assert later["entries"] == [first["entries"][1] | {"line": "begins and goes on", "chars": 18}]
    (end,) = later["ends"]
    assert end == {"key": first["entries"][0]["key"], "state": "complete", "took": 1.0}


def test_what_was_asked_answered_and_steered_stands_among_it(written: Written) -> None:
    mail = written.writer.mail
    mail.question(
        Question(run_id=run_id(1), question_id="q-1", text="Which?", choices=("a", "b"), asked_at=T.format(1))
    )
    written.line("question-asked", question="q-1", open=1)
    reply = Reply(
        run_id=run_id(1), question_id="q-1", text="a", answered_at=T.format(2), answered_by="the notebook page"
    )
    mail.reply(reply)
    written.line("question-closed", question="q-1", open=0)
    steer = {"request_id": "s-1", "verb": "steer", "asked_at": T.format(3), "text": "Use list_price.", "mode": "steer"}
    mail.request(ControlRequest(run_id=run_id(1), **steer))
    written.line("steering", None, request="s-1", outcome="queued")
    written.line("steering", None, request="s-1", outcome="delivered")
    asked, steered = written.page()["entries"]
    assert (asked["kind"], asked["line"], asked["aside"]) == ("asked", "Which?", "the notebook page: a")
    assert (steered["kind"], steered["line"], steered["aside"]) == ("steered", "Use list_price.", "delivered")
    assert [part["text"] for part in parts_of(written.run, asked["at"], {})] == [
        "Which?\n– a\n– b",
        "the notebook page: a",
    ]
    assert parts_of(written.run, steered["at"], {})[0]["text"] == "Use list_price."


def test_a_call_shows_all_it_was_given_and_gave_by_windows(written: Written) -> None:
    result = "x" * 50_000 + " needle " + "y" * 50_000
    written.event(ToolStarted("c1", "python", "cut = …"))
    written.event(ToolEnded("c1", True, 1.0, "x" * 500))
    written.session(*called("c1", "python", {"code": "cut = 1\ncut"}, result))
    given, gave = parts_of(written.run, 0, {})
    assert given == {"name": "arguments", "text": "cut = 1\ncut", "from": 0, "read": 11, "all": 11}
    assert (gave["name"], gave["read"], gave["all"]) == ("result", WINDOW, len(result))
    more = parts_of(written.run, 0, {"result": WINDOW})[1]
    assert (more["from"], more["text"]) == (WINDOW, result[WINDOW : 2 * WINDOW])
    found = parts_of(written.run, 0, {}, "needle")[1]
    assert "needle" in found["text"]
    assert 0 < found["from"] < 50_001


def test_calls_under_one_id_are_told_apart_by_their_time(written: Written) -> None:
    for n in (1, 2):
        written.event(ToolStarted("c1", "read", f"short {n}"))
        written.event(ToolEnded("c1", True, 0.1, "…"))
    written.session(
        *called("c1", "read", {"path": "one"}, "first", T.format(1)),
        *called("c1", "read", {"path": "two"}, "second", T.format(3)),
    )
    rows = written.page()["entries"]
    texts = [[part["text"] for part in parts_of(written.run, row["at"], {})] for row in rows]
    assert texts == [["one", "first"], ["two", "second"]]


def test_without_a_history_the_events_say_what_they_have(written: Written) -> None:
    written.event(ToolStarted("c1", "read", "a.txt"))
    written.event(ToolEnded("c1", False, 0.1, "", "not allowed"))
    written.event(ToolStarted("c2", "read", "b.txt"))
    one, two = written.page()["entries"]
    assert [part["text"] for part in parts_of(written.run, one["at"], {})] == ["a.txt", "not allowed"]
    assert [part["text"] for part in parts_of(written.run, two["at"], {})] == ["b.txt", "no result yet"]
    assert parts_of(written.run, one["at"] + 1, {}) == []


def test_no_secret_of_this_process_is_shown(written: Written, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", "sk-a-long-secret-value-of-a-test")
    written.event(ToolStarted("c1", "bash", "env"))
    written.session(*called("c1", "bash", {"command": "env"}, "KEY=sk-a-long-secret-value-of-a-test"))
    assert "long-secret" not in str(parts_of(written.run, 0, {}))


def test_search_finds_what_is_folded_in_any_step(written: Written) -> None:
    written.event(ThoughtStreamed("Is LIST_PRICE net?"))
    written.event(ToolStarted("c1", "read", "a.txt"), step=1)
    written.event(ToolEnded("c1", True, 0.1, "short"), step=1)
    written.event(ToolStarted("c2", "read", "list_price.txt"))
    written.session(*called("c1", "read", {"path": "a.txt"}, "deep in it: list_price"), step=1)
    rows = written.page()["entries"]
    assert places_of(written.run, "list_price") == [row["at"] for row in rows]
    assert places_of(written.run, "nothing of the kind") == []
    assert places_of(written.run, "list_price", step=1) == [rows[1]["at"]]


def test_facts_say_how_near_each_limit_is_and_where_it_comes_from(store_home: StoreHome) -> None:
    budget = UsageBudget(cost_usd=Amount(hard=0.6))
    used = Usage(input_tokens=900, output_tokens=100, requests=45, tool_calls=31, cost_usd=0.6)
    written = Written(store_home, 2, timeout_s=600.0, usage_budget=budget)
    figure = Artifact(path="artifacts/f.png", size=2048, sha256="0" * 64, name="fig1", kind="figure", shape=(400, 600))
    written.writer.status(make_status(2), milestone=False)
    written.writer.result(
        make_result(2, state=RunState.FAILED, error="the limit", reason="budget", usage=used, timeout_s=600.0,
                    usage_budget=budget, resumed_from=run_id(1), artifacts=(figure,))
    )  # fmt: skip
    Written(store_home, 1).writer.status(make_status(1), milestone=False)
    facts = facts_of(written.run)
    meters = {one["label"]: (one["text"], one["word"]) for one in facts["meters"]}
    assert meters["requests"] == ("45 of 50", "near")
    assert meters["money"] == ("$0.600 of $0.600", "reached")
    assert meters["tools"] == ("31", "")
    assert (facts["error"], facts["task"], facts["did"]) == ("the limit", "count the rows", "31 calls · 45 requests")
    assert facts["artifacts"] == [{"name": "fig1", "kind": "figure", "size": "400 × 600 · 2 KB"}]
    (before,) = lineage_of(written.run)
    assert (before["word"], before["run"]) == ("resumed from", run_id(1))
    assert answer_of(written.run) is not None
    assert (facts["who"], facts["spent"]) == ("scout · scripted:echo", "0:01 · $0.600")


def test_a_long_run_opens_from_a_bounded_piece_of_its_file(written: Written) -> None:
    """20,000 events and a result of 7 MB: their beginning and end are read, and pages lead from one to the other."""
    lines = [{"seq": n, "t": T.format(0), "s": n / 10, "type": "text" if n % 4 else "tool-started", "step": 0,
              "text": "word " * 20, "call": f"c{n}", "tool": "grep", "args": "x"} for n in range(20_000)]  # fmt: skip
    written.paths.events.write_text("".join(json.dumps(one) + "\n" for one in lines))
    written.session(*called("c0", "grep", {"pattern": "x"}, "r" * 7_000_000))
    read, size = [], written.paths.events.stat().st_size
    whole = FullRequests(written.run).whole()
    assert size > 20 * PAGE_BYTES
    first, last = whole["pages"]
    assert (first["from"], last["to"]) == (0, size)
    assert len(json.dumps(whole)) < 4 * PAGE_BYTES
    begin = 0
    while begin < size:
        page = read_page(written.paths, begin)
        assert page.end - page.begin <= PAGE_BYTES + 1
        read += [record["seq"] for _, record in page.records]
        begin = page.end
    assert read == list(range(20_000))
    assert parts_of(written.run, 0, {})[1]["all"] == 7_000_000


def test_what_lies_between_is_not_read(written: Written) -> None:
    """A file of 3 GB, most of it a hole: who read it all would need as much memory."""
    written.event(ToolStarted("c1", "grep", "x"))
    with written.paths.events.open("r+b") as file:
        file.truncate(3 * 1024**3)
        file.seek(0, 2)
        last_line = {"type": "tool-started", "call": "c2", "tool": "read", "s": 9.0}
        file.write(b"\n" + json.dumps(last_line).encode() + b"\n")
    tracemalloc.start()
    first, last = FullRequests(written.run).whole()["pages"]
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert [row["name"] for row in (*first["entries"], *last["entries"])] == ["grep", "read"]
    assert last["to"] == last["size"] > 3 * 1024**3
    assert most < 40 * PAGE_BYTES


def test_a_page_may_ask_only_for_what_is_its_runs(written: Written, store_home: StoreHome) -> None:
    written.writer.status(make_status(1), milestone=False)
    requests, told = FullRequests(written.run), queue.SimpleQueue[dict[str, Any]]()
    strange: tuple[object, ...] = (
        None, {"kind": "full", "run": run_id(9), "token": "f0123456789"}, {"kind": "shut", "token": "../x"},
        {"kind": "drop"},
    )  # fmt: skip
    for content in strange:
        requests.hear(content, told.put)
    assert OPEN._widgets == {}
    odd = (
        {"kind": "page", "at": -5},
        {"kind": "part", "at": 10**12},
        {"kind": "find", "text": ["x"]},
        {"kind": "look"},
    )
    for content in odd:
        requests.hear(content, told.put)
    kinds = sorted(until(lambda: told.get(timeout=10), 10)["kind"] for _ in range(4))
    assert kinds == ["found", "head", "page", "part"]


def test_a_link_is_not_followed(written: Written, tmp_path: Path) -> None:
    secret = tmp_path / "other.jsonl"
    secret.write_text('{"seq": 1, "type": "text", "text": "secret"}\n')
    written.paths.events.symlink_to(secret)
    assert written.page()["entries"] == []
