"""What a run at work has read lies beside its status: whole, written only when there is news, never too long."""

from __future__ import annotations

from pathlib import Path

import pytest
from support import make_plan, make_recovery, run_id

from subagents_nb.domain.runs.reads import FileRead, ReadLog, ReadsSoFar
from subagents_nb.runner.tracking import KeptReads
from subagents_nb.store import create_run, open_home
from subagents_nb.store.runs.reader import read_document
from subagents_nb.store.runs.writer import MAX_READS_BYTES, RunWriter


@pytest.fixture
def writer(tmp_path: Path) -> RunWriter:
    return create_run(open_home(tmp_path / "store"), make_plan(1), make_recovery(1))


def log(*paths: str) -> ReadLog:
    return ReadLog(files=tuple(FileRead(path=path, sha256="0" * 64) for path in paths))


def test_it_is_written_when_there_is_news_and_not_else(writer: RunWriter) -> None:
    logs = iter([None, ReadLog(), log("a"), log("a"), log("a", "b")])
    kept = KeptReads(run_id(1), lambda: next(logs), writer)
    found = []
    for _ in range(5):
        kept.keep()
        found.append(writer.paths.reads.stat().st_ino if writer.paths.reads.exists() else None)
    assert found[:2] == [None, None]
    assert found[2] == found[3]
    assert read_document(writer.paths.reads, ReadsSoFar, run_id(1)).reads == log("a", "b")


def test_an_account_that_is_too_long_leaves_the_one_before(writer: RunWriter) -> None:
    writer.reads(ReadsSoFar(run_id=run_id(1), reads=log("a")))
    writer.reads(ReadsSoFar(run_id=run_id(1), reads=log(*("x" * 200 for _ in range(MAX_READS_BYTES // 200)))))
    assert read_document(writer.paths.reads, ReadsSoFar, run_id(1)).reads == log("a")
