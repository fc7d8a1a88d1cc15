"""Many runs, one exporter, a report for each."""

from __future__ import annotations

import importlib
import json
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from subagents_nb import Run, compare, export, runs
from subagents_nb.errors import ExportError, RequestError
from subagents_nb.exporters import Link, exporters, protocol
from subagents_nb.exporters.run_record import RunRecord
from subagents_nb.store.files.lock import hold

Record = Callable[..., Run]


class Shelf:
    """An exporter of somebody else's, which may break on some runs."""

    name = "shelf"
    target = "here"
    kept: dict[str, Any]

    def __init__(self, *, breaks_on: str = "", missing: str | None = None) -> None:
        self._breaks_on = breaks_on
        self._missing = missing

    def available(self) -> str | None:
        return self._missing

    def contents(self, record: RunRecord) -> dict[str, Any]:
        return {"name": record.name, "text": record.text, "env": "a-secret-value"}

    def has(self, link: Link) -> bool:
        return link.remote_id in self.kept

    def send(self, contents: dict[str, Any], record: RunRecord) -> Link:
        if record.name == self._breaks_on:
            raise KeyError("theirs")
        self.kept[record.run_id] = contents
        return Link(target=self.target, remote_id=record.run_id)


# All that somebody writes who wants a file for each run.
LINES = """
import json
from dataclasses import dataclass
from subagents_nb.exporters import FolderExporter

@dataclass
class Lines(FolderExporter):
    name = "lines"
    folder: str = "lines"

    def contents(self, record):
        return {"params": record.params(), "text": record.text}

    def send(self, contents, record):
        return self.write(f"{record.run_id}.json", json.dumps(contents))
"""


@pytest.fixture(autouse=True)
def shelf(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, Any]:
    """Install the exporter as another package would, by an entry point in its metadata."""
    site = tmp_path / "site-packages"
    info = site / "shelf-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: shelf\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        f"[{protocol.GROUP}]\nshelf = shelf_of_tests:Shelf\nlines = lines_of_tests:Lines\n"
        "broken = no_such_module_at_all:X\n"
    )
    (site / "shelf_of_tests.py").write_text("Shelf = None\n")
    (site / "lines_of_tests.py").write_text(LINES)
    monkeypatch.syspath_prepend(str(site))
    module = importlib.import_module("shelf_of_tests")
    monkeypatch.setattr(module, "Shelf", Shelf, raising=False)
    monkeypatch.setattr(Shelf, "kept", {}, raising=False)
    return Shelf.kept


def test_exporters_are_found_by_their_entry_points() -> None:
    assert {"inspect", "mlflow", "otel", "shelf", "trackio"} <= set(exporters())


def test_an_exporter_that_merely_lies_on_the_way_of_imports_is_none(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A clone could else take the name of one, and be sent what runs say."""
    info = tmp_path / "clone/evil-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: evil\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[{protocol.GROUP}]\nmlflow = evil:X\nnew = evil:X\n")
    monkeypatch.syspath_prepend(str(tmp_path / "clone"))
    assert "new" not in exporters() and type(protocol.exporter("mlflow")).__name__ == "MlflowExporter"


def test_an_exporter_of_files_is_a_dozen_lines(record: Record, tmp_path: Path) -> None:
    run, folder = record(), tmp_path / "out"
    (first,), (second,) = (export(run, to="lines", folder=str(folder)) for _ in range(2))
    assert (first.outcome, second.outcome) == ("created", "unchanged")
    (written,) = folder.iterdir()
    assert json.loads(written.read_text())["params"]["mode"] == "single"
    written.unlink()
    assert export(run, to="lines", folder=str(folder))[0].outcome == "updated"
    with pytest.raises(RequestError, match="only local folders can be written to"):
        export(run, to="lines", folder="s3://out")


def test_a_folder_that_can_not_be_written_is_named(record: Record, tmp_path: Path) -> None:
    (tmp_path / "out").write_text("a file")
    with pytest.raises(ExportError, match=r"out can't be written: "):
        export(record(), to="lines", folder=str(tmp_path / "out"))


def test_a_run_that_fails_does_not_stop_the_others(record: Record, shelf: dict[str, Any]) -> None:
    given = [record(1), record(2), record(3)]
    report = export(given, to="shelf", breaks_on="scout-2")
    assert [one.outcome for one in report] == ["created", "failed", "created"]
    assert list(shelf) == [given[0].id, given[2].id]
    assert [one.name for one in report.failed] == ["scout-2"]
    assert "scout-2: failed: KeyError: 'theirs'" in repr(report)


def test_a_single_run_that_fails_is_an_error_and_stays_as_it_was(
    record: Record, files_of: Callable[[Run], dict[str, bytes]]
) -> None:
    run = record()
    before = files_of(run)
    with pytest.raises(ExportError, match="KeyError"):
        run.export_to("shelf", breaks_on="scout-1")
    assert files_of(run) == before


def test_runs_may_be_named(record: Record) -> None:
    run = record()
    assert [one.outcome for one in export(["scout-1", run.id, "nobody"], to="shelf")] == [
        "created",
        "unchanged",
        "failed",
    ]
    assert export("scout-1", to="shelf")[0].outcome == "unchanged"


def test_what_means_runs_elsewhere_means_them_here_each_once(record: Record) -> None:
    pair = [record(1), record(2)]
    for given in (runs(), compare(pair), [pair[0], runs(), compare(pair)], (one for one in pair)):
        assert sorted(one.run_id for one in export(given, to="shelf")) == sorted(run.id for run in pair)
    with pytest.raises(RequestError, match="int is no run"):
        export([1], to="shelf")


def test_secrets_of_this_process_are_taken_out(
    record: Record, shelf: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_API_KEY", "a-secret-value")
    run = record()
    export(run, to="shelf")
    assert shelf[run.id]["env"] == "[redacted]"


BAD: list[tuple[str, dict[str, Any], str]] = [
    ("nowhere", {}, "there are: .*mlflow"),
    ("broken", {}, "can't be loaded"),
    ("shelf", {"colour": 1}, "can't be used like that: .*colour"),
    ("shelf", {"missing": "install it."}, "can't be used: install it."),
]


@pytest.mark.parametrize(("to", "options", "why"), BAD)
def test_what_can_not_be_used_is_said_before_any_run_is_read(
    to: str, options: dict[str, Any], why: str, record: Record
) -> None:
    with pytest.raises(RequestError, match=why):
        export("no-such-run", to=to, **options)


def test_two_at_once_send_a_run_once(record: Record, shelf: dict[str, Any]) -> None:
    run = record()
    outcomes: list[str] = []
    threads = [threading.Thread(target=lambda: outcomes.append(export(run, to="shelf")[0].outcome)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert sorted(outcomes) == ["created", "unchanged"]


def test_a_run_that_another_process_exports_is_left_to_it(record: Record) -> None:
    run = record()
    export(run, to="shelf")
    with_it = hold(run.home.run(run.id).root / "exports" / ".shelf.lock")
    run.score("a", 1)
    with pytest.raises(ExportError, match="another process exports this run"):
        export(run, to="shelf")
    os.close(with_it)


def test_nothing_to_export_is_no_error() -> None:
    assert len(export([], to="shelf")) == 0
