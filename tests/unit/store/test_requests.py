"""Requests to a run: what is not what its name says counts for nothing, and a stop of one step stops no run."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest
from support import WHEN, make_answer, make_plan, make_recovery, make_request, run_id

from subagents_nb.domain.runs.control import ControlRequest
from subagents_nb.errors import Unreadable
from subagents_nb.store import RunWriter, StoreHome, create_run
from subagents_nb.store.files.codec import encode
from subagents_nb.store.files.disk import Disk
from subagents_nb.store.runs.requests import is_heard, read_request, stops_of


@pytest.fixture
def writer(home: StoreHome) -> RunWriter:
    return create_run(home, make_plan(), make_recovery())


def asked(**more: Any) -> ControlRequest:
    fields: dict[str, Any] = {"run_id": run_id(), "request_id": "a-1", "verb": "stop", "asked_at": WHEN}
    return ControlRequest.model_validate(fields | more)


def put(writer: RunWriter, name: str, request: ControlRequest) -> Path:
    path = writer.paths.control / name
    path.write_bytes(encode(request))
    return path


STEER = {"verb": "steer", "text": "hi", "mode": "steer"}


def test_only_a_stop_of_the_whole_run_stops_the_run(writer: RunWriter) -> None:
    put(writer, "stop-b.json", asked(request_id="b", step=0))
    put(writer, "stop-c.json", asked(request_id="other"))
    put(writer, "stop-d.json", asked(request_id="d", **STEER))
    put(writer, "stop-e.json", asked(request_id="e", run_id=run_id(2)))
    (writer.paths.control / "stop-f.json").write_text('{"verb": "stop"')
    assert stops_of(writer.paths) == []
    writer.mail.request(asked(request_id="z", reason="enough"))
    assert [request.reason for request in stops_of(writer.paths)] == ["enough"]


@pytest.mark.parametrize(
    ("name", "request_id", "fields"),
    [
        ("stop-zzz.json", "zzz", {"request_id": "other", **STEER}),
        ("stop-a-1.json", "a-1", STEER),
        ("steer-a-1.json", "a-1", {}),
        ("stop-a-2.json", "a-2", {}),
        ("stop.json", "stop", {}),
    ],
)
def test_a_request_under_a_name_that_is_not_its_own_is_refused(
    writer: RunWriter, name: str, request_id: str, fields: dict[str, Any]
) -> None:
    path = put(writer, name, asked(**fields))
    with pytest.raises(Unreadable, match="would have to be called"):
        read_request(path, run_id())
    ((refused, why),) = writer.mail.requests(set())
    assert refused == request_id
    assert "would have to be called" in str(why)


def test_a_request_is_heard_once_it_is_answered_or_marked(writer: RunWriter) -> None:
    first, second = make_request(), asked(request_id="a-2")
    for request in (first, second):
        writer.mail.request(request)
        assert not is_heard(writer.paths, request)
    writer.mail.answer(make_answer())
    assert is_heard(writer.paths, first)
    assert not is_heard(writer.paths, second)
    writer.mail.mark_heard(second)
    assert is_heard(writer.paths, second)
    assert read_request(writer.paths.control / "stop-a-2.json", run_id()) == second


def test_marking_what_is_gone_or_a_link_marks_nothing(writer: RunWriter, tmp_path: Path) -> None:
    canary = tmp_path / "canary"
    canary.write_text("x")
    before = canary.stat().st_mtime_ns
    writer.mail.mark_heard(make_request())
    (writer.paths.control / "stop-a-1.json").symlink_to(canary)
    writer.mail.mark_heard(make_request())
    assert canary.stat().st_mtime_ns == before
    assert not is_heard(writer.paths, make_request())


class Refusing(Disk):
    """Opens nothing."""

    def open(self, path: Path, flags: int) -> int:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))


def test_a_mark_that_can_not_be_made_harms_nothing(writer: RunWriter) -> None:
    writer.mail.request(make_request())
    RunWriter(writer.paths, disk=Refusing()).mail.mark_heard(make_request())
    assert not is_heard(writer.paths, make_request())
