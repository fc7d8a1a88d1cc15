"""What trackio is to write; `tests/integration/test_exporters.py` has a real one write it."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from subagents_nb import Run, export
from subagents_nb.errors import ExportError, RequestError
from subagents_nb.exporters.gather import gather
from subagents_nb.exporters.trackio import TrackioExporter

Record = Callable[..., Run]


@pytest.fixture
def pretended(tmp_path: Path) -> Path:
    """An interpreter whose trackio is a script that keeps what it got."""
    program = tmp_path / "python"
    program.write_text(
        f"#!{sys.executable}\nimport json, os, sys\n"
        "if '-c' in sys.argv: sys.exit(0)\n"
        f"kept = {str(tmp_path / 'kept.json')!r}\n"
        "got = json.load(sys.stdin)\n"
        "if got['name'] == 'scout-2': sys.exit('Traceback\\nValueError: no room')\n"
        "got['env'] = sorted(os.environ)\n"
        "json.dump(got, open(kept, 'w')); print(json.dumps({'name': got['name']}))\n"
    )
    program.chmod(0o700)
    return program


def test_configuration_figures_and_scores_by_step(record: Record) -> None:
    run = record(plan={"experiment": {"name": "rows"}})
    run.score("accuracy", 0.5)
    run.score("loss", math.inf, step=3)
    found = TrackioExporter().contents(gather(run))
    assert (found["project"], found["name"], found["config"]["model"]) == ("rows", "scout-1", "scripted:echo")
    assert found["config"]["subagents_nb.run_id"] == run.id
    assert [entry["step"] for entry in found["logs"]] == [0, 3]
    assert found["logs"][0]["values"] == {"accuracy": 0.5}
    assert found["logs"][1]["values"]["loss"] == "inf" and found["logs"][1]["values"]["output_tokens"] == 5.0


def test_where_trackio_is_not_installed_it_says_how(record: Record, tmp_path: Path) -> None:
    with pytest.raises(RequestError, match=r"pip install 'subagents-nb\[trackio\]'"):
        export(record(), to="trackio", python=str(tmp_path / "none"))


def test_the_writer_gets_the_run_and_no_address_of_a_server(
    record: Record, pretended: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRACKIO_SPACE_ID", "somebody/space")
    (sent,) = export(record(), to="trackio", python=str(pretended), folder=str(tmp_path / "t"))
    got = json.loads((tmp_path / "kept.json").read_text())
    assert sent.link.remote_id == "subagents/scout-1"
    assert "TRACKIO_DIR" in got["env"] and "TRACKIO_SPACE_ID" not in got["env"]
    assert got["files"] == [{"name": "artifacts/plot.png", "hex": b"png".hex()}]


def test_what_trackio_said_last_is_the_error(record: Record, pretended: Path) -> None:
    with pytest.raises(ExportError, match="trackio failed: ValueError: no room"):
        export(record(2), to="trackio", python=str(pretended))
