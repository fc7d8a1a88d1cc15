"""What an MLflow server is asked; `tests/integration/test_exporters.py` asks a real one."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

import pytest
from support import run_id

from subagents_nb import Run, export
from subagents_nb.domain.plans.request import Origin
from subagents_nb.errors import ExportError, RequestError
from subagents_nb.exporters.gather import gather
from subagents_nb.exporters.mlflow import MlflowExporter

Record = Callable[..., Run]
Serve = Callable[[Callable[[str, str, bytes], tuple[int, Any]]], Any]


class Tracking:
    """As much of a tracking server as is spoken with."""

    def __init__(self) -> None:
        self.runs: dict[str, dict[str, Any]] = {}
        self.experiments: list[str] = []
        self.files: dict[str, bytes] = {}
        self.broken = False

    def __call__(self, method: str, path: str, body: bytes) -> tuple[int, Any]:
        if self.broken:
            return 500, b"<html>\x1b[31mno</html>"
        if path.startswith("/api/2.0/mlflow-artifacts/artifacts/"):
            self.files[path.removeprefix("/api/2.0/mlflow-artifacts/artifacts/")] = body
            return 200, {}
        verb = path.partition("?")[0].removeprefix("/api/2.0/mlflow/")
        said = json.loads(body) if body else {}
        return getattr(self, verb.replace("/", "_").replace("-", "_"))(said, path)

    def experiments_get_by_name(self, _: Any, path: str) -> tuple[int, Any]:
        name = path.rpartition("=")[2]
        if name not in self.experiments:
            return 404, {"error_code": "RESOURCE_DOES_NOT_EXIST"}
        return 200, {"experiment": {"experiment_id": str(self.experiments.index(name))}}

    def experiments_create(self, said: Any, _: str) -> tuple[int, Any]:
        self.experiments.append(said["name"])
        return 200, {"experiment_id": str(len(self.experiments) - 1)}

    def runs_search(self, said: Any, _: str) -> tuple[int, Any]:
        found = [run for run in self.runs.values() if f"'{run['tags']['subagents_nb.run_id']}'" in said["filter"]]
        return 200, {"runs": [{"info": run["info"], "data": {"params": _pairs(run["params"])}} for run in found]}

    def runs_create(self, said: Any, _: str) -> tuple[int, Any]:
        name = f"m{len(self.runs)}"
        info = {"run_id": name, "artifact_uri": f"mlflow-artifacts:/0/{name}/artifacts", "lifecycle_stage": "active"}
        tags = {one["key"]: one["value"] for one in said["tags"]}
        self.runs[name] = {"info": info, "params": {}, "metrics": {}, "tags": tags, "created": said}
        return 200, {"run": {"info": info}}

    def runs_get(self, _: Any, path: str) -> tuple[int, Any]:
        run = self.runs.get(path.rpartition("=")[2])
        return (200, {"run": {"info": run["info"]}}) if run else (404, {})

    def runs_log_batch(self, said: Any, _: str) -> tuple[int, Any]:
        for kind in ("params", "metrics", "tags"):
            self.runs[said["run_id"]][kind].update({one["key"]: one["value"] for one in said.get(kind, ())})
        return 200, {}

    def runs_update(self, said: Any, _: str) -> tuple[int, Any]:
        self.runs[said["run_id"]]["info"].update(said)
        return 200, {}


def _pairs(values: dict[str, str]) -> list[dict[str, str]]:
    return [{"key": key, "value": value} for key, value in values.items()]


@pytest.fixture
def tracking() -> Tracking:
    return Tracking()


@pytest.fixture
def server(serve: Serve, tracking: Tracking) -> Any:
    return serve(tracking)


def test_what_a_run_is_there(record: Record, server: Any, tracking: Tracking) -> None:
    run = record(plan={"experiment": {"name": "rows", "notes": "a try", "params": {"style": "short"}}})
    run.score("accuracy", 0.5)
    (sent,) = export(run, to="mlflow", url=server.url)
    there = tracking.runs["m0"]
    assert (sent.outcome, sent.link.url) == ("created", f"{server.url}/#/experiments/0/runs/m0")
    assert tracking.experiments == ["rows"]
    assert there["created"]["run_name"] == "scout-1"
    assert (there["info"]["status"], there["info"]["end_time"]) == ("FINISHED", 1772366406000)
    assert there["params"]["style"] == "short" and there["params"]["model"] == "scripted:echo"
    assert (there["metrics"]["accuracy"], there["metrics"]["output_tokens"]) == (0.5, 5.0)
    assert there["tags"]["subagents_nb.run_id"] == run.id and there["tags"]["tag.nightly"] == "true"
    assert there["tags"]["mlflow.note.content"] == "a try"
    assert tracking.files == {"0/m0/artifacts/artifacts/plot.png": b"png"}


def test_a_run_below_one_that_was_sent_is_shown_below_it(record: Record, server: Any, tracking: Tracking) -> None:
    lead = record(1)
    child = record(2, plan={"origin": Origin(parent=lead.id, root=lead.id, path="scout")})
    alone = record(3, plan={"origin": Origin(parent=run_id(4), root=run_id(4), path="scout")})
    export([lead, child, alone], to="mlflow", url=server.url)
    assert [run["tags"].get("mlflow.parentRunId") for run in tracking.runs.values()] == [None, "m0", None]


def test_the_runs_of_a_sweep_are_shown_below_one_run_that_stands_for_it(
    record: Record, server: Any, tracking: Tracking
) -> None:
    cells = [{"name": "rows", "cell": {"sweep": "ab" * 32, "place": place, "of": 2}} for place in (0, 1)]
    runs = [record(number, plan={"experiment": cell}) for number, cell in enumerate(cells, 1)]

    export(runs, to="mlflow", url=server.url)
    runs[0].score("accuracy", 1)
    export(runs, to="mlflow", url=server.url)

    (parent,) = [name for name, run in tracking.runs.items() if run["created"]["run_name"] == "sweep rows"]
    below = [run["tags"].get("mlflow.parentRunId") for name, run in tracking.runs.items() if name != parent]
    assert below == [parent, parent] and tracking.runs[parent]["info"]["status"] == "FINISHED"


def test_a_second_export_of_the_same_sends_nothing(record: Record, server: Any) -> None:
    run = record()
    export(run, to="mlflow", url=server.url)
    before = len(server.requests)
    (sent,) = export(run, to="mlflow", url=server.url)
    assert sent.outcome == "unchanged"
    assert [path.partition("?")[0] for _, path, _ in server.requests[before:]] == ["/api/2.0/mlflow/runs/get"]


def test_a_new_score_goes_to_the_run_that_is_there(record: Record, server: Any, tracking: Tracking) -> None:
    run = record()
    export(run, to="mlflow", url=server.url)
    run.score("accuracy", 0.5)
    (sent,) = export(run, to="mlflow", url=server.url)
    assert (sent.outcome, list(tracking.runs)) == ("updated", ["m0"])
    assert tracking.runs["m0"]["metrics"]["accuracy"] == 0.5


def test_without_its_ledger_a_run_is_found_by_its_id(record: Record, server: Any, tracking: Tracking) -> None:
    run = record()
    export(run, to="mlflow", url=server.url)
    ledger = run.home.run(run.id).root / "exports" / "mlflow.json"
    for damage in (b"", b"{}", b'{"kind": "export"'):
        ledger.write_bytes(damage)
        export(run, to="mlflow", url=server.url)
    assert list(tracking.runs) == ["m0"]


def test_a_run_that_somebody_deleted_there_is_made_anew(record: Record, server: Any, tracking: Tracking) -> None:
    run = record()
    export(run, to="mlflow", url=server.url)
    tracking.runs.clear()
    (sent,) = export(run, to="mlflow", url=server.url)
    assert (sent.outcome, list(tracking.runs)) == ("updated", ["m0"])


def test_another_server_gets_its_own_copy(record: Record, server: Any, serve: Serve) -> None:
    run, other = record(), Tracking()
    export(run, to="mlflow", url=server.url)
    (sent,) = export(run, to="mlflow", url=serve(other).url)
    assert (sent.outcome, list(other.runs)) == ("created", ["m0"])


@pytest.mark.parametrize(("value", "said"), [(math.nan, "NaN"), (math.inf, "Infinity"), (-math.inf, "-Infinity")])
def test_what_is_not_finite_is_said_so(
    record: Record, server: Any, tracking: Tracking, value: float, said: str
) -> None:
    run = record()
    run.score("loss", value)
    export(run, to="mlflow", url=server.url)
    assert tracking.runs["m0"]["metrics"]["loss"] == said


def test_a_server_that_fails_leaves_the_run_as_it_was(
    record: Record, server: Any, tracking: Tracking, files_of: Callable[[Run], dict[str, bytes]]
) -> None:
    run = record()
    before = files_of(run)
    tracking.broken = True
    with pytest.raises(ExportError, match=r"the runs are as they were\.\n.*answered 500: <html>no</html>"):
        export(run, to="mlflow", url=server.url)
    assert files_of(run) == before
    tracking.broken = False
    assert export(run, to="mlflow", url=server.url)[0].outcome == "created"


def test_what_answers_but_is_no_tracking_server_is_named(record: Record, serve: Serve) -> None:
    odd = serve(lambda *_: (200, {"hello": []}))
    with pytest.raises(ExportError, match="does not answer like an MLflow server"):
        export(record(), to="mlflow", url=odd.url)


def test_nobody_there_is_said_so(record: Record) -> None:
    with pytest.raises(ExportError, match=r"http://127\.0\.0\.1:9 could not be reached"):
        export(record(), to="mlflow", url="http://127.0.0.1:9")


@pytest.mark.parametrize(("url", "why"), [("", "Set MLFLOW_TRACKING_URI"), ("sqlite:///x.db", "Start `mlflow server`")])
def test_what_is_no_server_is_refused_before_anything_is_read(
    record: Record, monkeypatch: pytest.MonkeyPatch, url: str, why: str
) -> None:
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    with pytest.raises(RequestError, match=why):
        export(record(), to="mlflow", url=url)


def test_a_token_is_sent_and_stands_nowhere_else(record: Record, server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_TOKEN", "tok-12345678")
    run = record(plan={"experiment": {"notes": "with tok-12345678"}})
    export(run, to="mlflow", url=server.url)
    assert {headers["Authorization"] for headers in server.headers} == {"Bearer tok-12345678"}
    assert not any(b"tok-12345678" in body for _, _, body in server.requests)
    assert b"tok-12345678" not in (run.home.run(run.id).root / "exports" / "mlflow.json").read_bytes()


def test_user_and_password_of_an_address_are_sent_and_not_shown(record: Record, server: Any) -> None:
    run = record()
    (sent,) = export(run, to="mlflow", url=server.url.replace("//", "//me:hunter22@"))
    assert server.headers[0]["Authorization"].startswith("Basic ")
    assert "hunter22" not in str(sent)
    assert b"hunter22" not in (run.home.run(run.id).root / "exports" / "mlflow.json").read_bytes()


def test_refused_credentials_are_named(record: Record, serve: Serve) -> None:
    with pytest.raises(ExportError, match="refused the credentials"):
        export(record(), to="mlflow", url=serve(lambda *_: (401, {})).url)


NAMES = [
    ("a b/c.d:e", "a b/c.d:e"),
    ("<img onerror=x>", "_img onerror_x_"),
    ("größe 正解率", "größe 正解率"),
    ("x" * 999, "x" * 250),
]


@pytest.mark.parametrize(("name", "there"), NAMES)
def test_names_become_names_that_are_allowed_there(record: Record, name: str, there: str) -> None:
    found = MlflowExporter(url="http://x").contents(gather(record(plan={"experiment": {"params": {name: 1}}})))
    assert there in [one["key"] for one in found["params"]]


def test_names_that_would_fall_together_stay_apart(record: Record) -> None:
    run = record(plan={"experiment": {"params": {"a?": 1, "a!": 2}}})
    keys = {one["value"]: one["key"] for one in MlflowExporter(url="http://x").contents(gather(run))["params"]}
    assert keys["1"] == "a_" and keys["2"].startswith("a_-")


def test_prompts_go_along_only_on_demand(record: Record, server: Any, tracking: Tracking) -> None:
    run = record()
    export(run, to="mlflow", url=server.url)
    assert not any(b"count the rows" in body for _, _, body in server.requests)
    export(run, to="mlflow", url=server.url, prompts=True)
    assert sorted(name.rpartition("/")[2] for name in tracking.files) == ["answer.md", "plot.png", "transcript.ipynb"]
    assert any(b"count the rows" in body for _, _, body in server.requests)
