"""Documents cut, flipped and forged: a typed reason each time, never a default, never through the list."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

import pytest
from support import (
    make_answer,
    make_candidate,
    make_identity,
    make_plan,
    make_process,
    make_recovery,
    make_request,
    make_result,
    make_status,
    make_step,
    make_verdict,
    run_id,
)

from subagents_nb.domain.runs.records import StepStatus
from subagents_nb.domain.values.base import Document
from subagents_nb.errors import Unreadable
from subagents_nb.launching.listing import list_runs
from subagents_nb.store import FileRuns, StoreHome
from subagents_nb.store.files.codec import decode, encode
from subagents_nb.store.files.disk import MAX_DOCUMENT_BYTES
from subagents_nb.store.layout import RunPaths

Case = Callable[..., None]
MAKERS: list[Callable[[], Document]] = [
    make_plan, make_status, make_result, make_verdict, make_process, make_recovery, make_request, make_answer,
    make_candidate,
]  # fmt: skip
KINDS = [(make(), make().kind) for make in MAKERS]
LISTED = [(make(), f"{make().kind}.json") for make in (make_plan, make_status, make_result, make_verdict, make_process)]


def good_neighbour(home: StoreHome) -> None:
    home.run(run_id(2)).root.mkdir(exist_ok=True)
    home.run(run_id(2)).result.write_bytes(encode(make_result(2)))


def run_directory(home: StoreHome) -> RunPaths:
    paths = home.run(run_id(1))
    paths.root.mkdir(exist_ok=True)
    return paths


def expect_listed(home: StoreHome) -> None:
    rows = {run.id: run for run in list_runs(home, state=None, agent=None, name=None, limit=None)}
    assert set(rows) == {run_id(1), run_id(2)}
    assert str(rows[run_id(2)].state) == "complete"


@pytest.mark.parametrize(("document", "kind"), KINDS, ids=[kind for _, kind in KINDS])
def test_a_document_comes_back_as_it_was(document: Document, kind: str) -> None:
    assert decode(encode(document), type(document), document.run_id) == document
    assert json.loads(encode(document))["kind"] == kind


def test_nothing_inside_a_value_or_a_schema_is_lost_on_the_way() -> None:
    value = {"a": None, "b": [None, {"c": None}], "": "", "é\u2028\0": 1.5e300, "n": -(2**63)}
    step = make_result().steps[0].model_copy(update={"value": value})
    result = make_result(steps=(step,))
    assert decode(encode(result), type(result), result.run_id).steps[0].value == value
    schema = {"type": "object", "properties": {"a": {"enum": [None, 1], "default": None}}}
    plan = make_plan(steps=(make_step(output_schema=schema),))
    assert decode(encode(plan), type(plan), plan.run_id).steps[0].output_schema == schema


def test_half_a_character_in_what_a_model_wrote_does_not_cost_the_result() -> None:
    step = make_result().steps[0].model_copy(update={"text": "half \ud83d here", "value": {"\udc00": ["\ud800"]}})
    result = make_result().model_copy(update={"steps": (step,)})
    read = decode(encode(result), type(result), result.run_id)
    assert read.steps[0].text.startswith("half ") and read.steps[0].text.endswith(" here")
    assert read.state == result.state


@pytest.mark.row(6, at_least=150)
@pytest.mark.parametrize(("document", "kind"), KINDS, ids=[kind for _, kind in KINDS])
def test_cut_at_any_byte_a_document_is_unreadable_and_says_how(document: Document, kind: str, case: Case) -> None:
    data = encode(document)
    for length in range(len(data)):
        with pytest.raises(Unreadable) as caught:
            decode(data[:length], type(document), document.run_id)
        assert caught.value.kind == ("torn" if length else "empty")
        case()


@pytest.mark.row(6, at_least=200)
@pytest.mark.parametrize(("document", "name"), LISTED, ids=[name for _, name in LISTED])
def test_cut_at_any_byte_a_run_stays_a_row_beside_its_neighbours(
    home: StoreHome, document: Document, name: str, case: Case
) -> None:
    good_neighbour(home)
    paths = run_directory(home)
    runs, data = FileRuns(home), encode(document)
    for length in range(len(data)):
        (paths.root / name).write_bytes(data[:length])
        snapshot = runs.snapshot(run_id(1), whole=True)
        assert [d.document for d in snapshot.damage] == [name]
        assert snapshot.state is None
        assert (paths.root / name).read_bytes() == data[:length], "a reader changed what it read"
        case()
    expect_listed(home)


FORGED: list[tuple[str, Callable[[dict[str, Any]], bytes], str]] = [
    ("empty", lambda d: b"", "empty"),
    ("zeros", lambda d: b"\0" * 4096, "empty"),
    ("blanks", lambda d: b" \n\t ", "empty"),
    ("zeros after it", lambda d: json.dumps(d).encode() + b"\0" * 10, "torn"),
    ("another after it", lambda d: json.dumps(d).encode() * 2, "torn"),
    ("a list", lambda d: json.dumps([d]).encode(), "foreign"),
    ("null", lambda d: b"null", "foreign"),
    ("a number", lambda d: b"12", "foreign"),
    ("a long number", lambda d: b"1" * 5000, "torn"),
    ("a text", lambda d: b'"status"', "foreign"),
    ("a key twice", lambda d: json.dumps(d).encode()[:-1] + b', "name": "other"}', "torn"),
    ("NaN", lambda d: json.dumps({**d, "elapsed_s": float("nan")}).encode(), "torn"),
    ("infinite", lambda d: json.dumps({**d, "elapsed_s": float("inf")}).encode(), "torn"),
    ("too deep", lambda d: b'{"a":' * 10_000 + b"1" + b"}" * 10_000, "torn"),
    ("a deep list", lambda d: b"[" * 100_000, "torn"),
    ("half a character", lambda d: json.dumps({**d, "name": "\ud800"}).encode(), "foreign"),
    ("no text", lambda d: b'{"name": "\xff\xfe"}', "torn"),
    ("another run", lambda d: json.dumps({**d, "run_id": run_id(9)}).encode(), "foreign"),
    ("no run", lambda d: json.dumps({k: v for k, v in d.items() if k != "run_id"}).encode(), "foreign"),
    ("another kind", lambda d: json.dumps({**d, "kind": "result"}).encode(), "foreign"),
    ("no kind", lambda d: json.dumps({k: v for k, v in d.items() if k != "kind"}).encode(), "foreign"),
    ("an unknown state", lambda d: json.dumps({**d, "state": "dreaming"}).encode(), "foreign"),
    ("newer", lambda d: json.dumps({**d, "schema_version": 2, "state": "dreaming"}).encode(), "newer"),
    ("a page", lambda d: b"<html>", "torn"),
    ("pickle", lambda d: b"\x80\x04cos\nsystem\n.", "torn"),
]


@pytest.mark.row(7, cases=1)
@pytest.mark.parametrize(("forge", "kind"), [row[1:] for row in FORGED], ids=[row[0] for row in FORGED])
def test_a_damaged_status_is_a_row_with_a_reason(
    home: StoreHome, forge: Callable[[dict[str, Any]], bytes], kind: str, case: Case
) -> None:
    good_neighbour(home)
    paths = run_directory(home)
    paths.plan.write_bytes(encode(make_plan()))
    data = forge(json.loads(encode(make_status())))
    paths.status.write_bytes(data)
    snapshot = FileRuns(home).snapshot(run_id(1))
    assert [(d.document, d.kind) for d in snapshot.damage] == [("status.json", kind)]
    assert snapshot.state is None, "a state was made up for a run whose status can't be read"
    assert snapshot.error is not None and "status.json" in snapshot.error
    expect_listed(home)
    assert paths.status.read_bytes() == data
    case()


@pytest.mark.row(7, cases=2)
def test_a_document_of_two_megabytes_is_read_and_one_beyond_the_limit_is_not_even_parsed(
    home: StoreHome, case: Case
) -> None:
    good_neighbour(home)
    paths = run_directory(home)
    paths.status.write_bytes(b" " * 2_000_000 + encode(make_status()))
    assert FileRuns(home).snapshot(run_id(1)).state is not None
    paths.status.write_bytes(b"[" * (MAX_DOCUMENT_BYTES + 1))
    assert FileRuns(home).snapshot(run_id(1)).damage[0].kind == "too-large"
    expect_listed(home)
    case(2)


def test_unknown_keys_of_the_same_schema_are_no_damage(home: StoreHome) -> None:
    data = json.dumps({**json.loads(encode(make_status())), "mood": "good"}).encode()
    assert decode(data, type(make_status()), run_id(1)) == make_status()


@pytest.mark.row(7, at_least=1000)
@pytest.mark.parametrize("name", ["status.json", "plan.json", "result.json"])
def test_no_flipped_byte_comes_through_the_list_as_an_exception(home: StoreHome, name: str, case: Case) -> None:
    good_neighbour(home)
    paths = run_directory(home)
    makers: dict[str, Document] = {
        "status.json": make_status(runner=make_identity(), steps=(StepStatus(agent="a", model="m", tail="x" * 20),)),
        "plan.json": make_plan(),
        "result.json": make_result(),
    }
    data = encode(makers[name])
    rng = random.Random(11)
    print("seed 11")
    for position in range(len(data)):
        flipped = bytearray(data)
        flipped[position] ^= 1 << rng.randrange(8)
        for other in ("verdict.json", "status.json", "plan.json", "result.json"):
            (paths.root / other).unlink(missing_ok=True)
        (paths.root / name).write_bytes(flipped)
        list_runs(home, state=None, agent=None, name=None, limit=None)
        case()
    expect_listed(home)


def test_what_is_not_as_this_version_writes_it_is_read_all_the_same(home: StoreHome) -> None:
    result = make_result()
    value = json.loads(encode(result))
    for text in (json.dumps(value), json.dumps({**value, "of a later version": 1}), json.dumps(value, indent=7)):
        assert decode(text.encode(), type(result), result.run_id) == result


def test_a_key_that_stands_twice_is_seen_in_a_document_as_it_was_written() -> None:
    data = encode(make_result()).replace(b' "name": "scout-1",', b' "name": "scout-1",\n "name": "scout-1",')
    with pytest.raises(Unreadable, match="a key stands twice"):
        decode(data, type(make_result()), run_id(1))
    with pytest.raises(Unreadable, match="names another run"):
        decode(encode(make_result()), type(make_result()), run_id(2))
