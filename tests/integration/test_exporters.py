"""Runs in a real MLflow server, a real trackio store, and Inspect AI's own reader.

They live in an environment of their own below `build/`, made when it is not there and kept from then on.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from filelock import FileLock
from support import CHILDREN, free_port, script, until

from subagents_nb import Run, chain, export, launch, parallel, step
from subagents_nb.cli import main
from subagents_nb.exporters.gather import gather
from subagents_nb.exporters.otel import OtelExporter

pytestmark = [pytest.mark.timeout(900), pytest.mark.usefixtures("shared_home")]

BUILD = Path(__file__).parents[2] / "build"
WANTED = ["mlflow>=3.10,<4", "trackio>=0.40,<1", "inspect-ai>=0.3.200,<0.4"]
READER = """
import json, os, sys
from inspect_ai.event import event_tree, event_tree_walk
from inspect_ai.log import convert_eval_logs, list_eval_logs, read_eval_log

def opened(folder):
    (info,) = list_eval_logs(folder)
    log = read_eval_log(info)
    sample = log.samples[0]
    return {
        "task": log.eval.task,
        "status": log.status,
        "model": log.eval.model,
        "tags": log.eval.tags,
        "samples": [s.id for s in log.samples],
        "roles": [m.role for m in sample.messages],
        "answer": sample.output.completion,
        "scores": {s.name: s.metrics["mean"].value for s in log.results.scores},
        "usage": log.stats.model_usage[log.eval.model].total_tokens,
    }

def told(event):
    match event.event:
        case "model":
            usage = event.output.usage
            return {
                "input": [message.text for message in event.input],
                "output": event.output.completion,
                "calls": [call.arguments for call in event.output.choices[0].message.tool_calls or []],
                "tokens": usage and usage.total_tokens,
                "within": event.timestamp <= event.completed,
            }
        case "tool":
            return {"arguments": event.arguments, "result": event.result, "error": event.error and event.error.type}
        case "info":
            return event.data
        case "score":
            return [event.scorer, event.score.value]
        case "sample_init":
            return event.sample.input

def events(folder):
    found = []
    for info in list_eval_logs(folder):
        for sample in read_eval_log(info, resolve_attachments="full").samples:
            spans = [node.name for node in event_tree_walk(event_tree(sample.events)) if hasattr(node, "children")]
            events = [e for e in sample.events if not e.event.startswith("span_")]
            assert events == sorted(events, key=lambda event: event.timestamp)
            found.append({"spans": spans, "events": [[event.event, told(event)] for event in events]})
    return found

def converted(folder, to):
    convert_eval_logs(folder, "eval", to)
    return sorted(os.listdir(to))

answers, sys.stdout = sys.stdout, sys.stderr
for line in sys.stdin:
    what, *where = json.loads(line)
    answer = {"opened": opened, "events": events, "converted": converted}[what](*where)
    print(json.dumps(answer), file=answers, flush=True)
"""
READ_TRACE = """
import json, sys
from google.protobuf.json_format import ParseDict
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
read = ParseDict(json.load(sys.stdin), ExportTraceServiceRequest())
print(json.dumps([span.name for span in read.resource_spans[0].scope_spans[0].spans]))
"""


def _environment() -> dict[str, str]:
    """Return what a tracker's process gets; it compiles its many modules once, whatever the tests themselves do."""
    left_out = ("PYTHONDONTWRITEBYTECODE", "PYTHONPATH", "VIRTUAL_ENV")
    return {name: value for name, value in os.environ.items() if name not in left_out}


@pytest.fixture(scope="session")
def trackers() -> Path:
    """The interpreter of an environment with MLflow, trackio and Inspect AI."""
    folder = BUILD / "exporters"
    python, ready = folder / "bin" / "python", folder / "ready"
    BUILD.mkdir(exist_ok=True)
    with FileLock(BUILD / "exporters.lock"):
        if not ready.exists() or ready.read_text() != "\n".join(WANTED):
            shutil.rmtree(folder, ignore_errors=True)
            subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True, env=_environment())
            # With these hundred packages uv takes half a minute, pip many minutes.
            command = [Path(sys.executable).with_name("uv"), "pip", "install", "-q", "--python", python, *WANTED]
            done = subprocess.run(command, env=_environment(), capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr[-3000:]
            ready.write_text("\n".join(WANTED))
    return python


@pytest.fixture(scope="session")
def mlflow_url(trackers: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A tracking server on loopback with a database and artifacts of its own."""
    folder = tmp_path_factory.mktemp("mlflow")
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    command = [str(trackers), "-m", "mlflow", "server", "--host", "127.0.0.1", "--port", str(port), "--workers", "1"]
    command += ["--backend-store-uri", f"sqlite:///{folder}/db", "--artifacts-destination", str(folder / "artifacts")]
    environ = _environment() | {"MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}
    with open(folder / "log", "wb") as log:
        server = subprocess.Popen(
            command, env=environ, cwd=folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
        )
    try:
        until(lambda: _healthy(url, server, folder / "log"), 300, what="the start of the MLflow server", pause=0.2)
        yield url
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(server.pid, signal.SIGTERM)
        try:
            server.wait(20)
        except subprocess.TimeoutExpired:
            os.killpg(server.pid, signal.SIGKILL)
            server.wait(20)


def _healthy(url: str, server: subprocess.Popen[bytes], log: Path) -> bool:
    assert server.poll() is None, log.read_text()[-3000:]
    with contextlib.suppress(httpx.HTTPError):
        return httpx.get(f"{url}/health", timeout=5).is_success
    return False


Inspect = Callable[..., Any]


@pytest.fixture(scope="module")
def inspect(trackers: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Inspect]:
    """Ask Inspect AI's own reader, in one process for all: it takes three seconds to load."""
    folder = tmp_path_factory.mktemp("inspect")
    with (
        open(folder / "log", "wb") as log,
        subprocess.Popen(
            [str(trackers), "-c", READER],
            env=_environment(), cwd=folder, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log,
        ) as reader,
    ):  # fmt: skip

        def ask(what: str, *where: Path) -> Any:
            assert reader.stdin is not None and reader.stdout is not None
            print(json.dumps([what, *map(str, where)]), file=reader.stdin, flush=True)
            answer = reader.stdout.readline()
            assert answer, (folder / "log").read_text()[-3000:]
            return json.loads(answer)

        yield ask


@pytest.fixture
def judged() -> Run:
    """An ended run with a file's worth of everything: tags, and scores that are numbers and that are none."""
    model = script("count", {"text": "three rows"})
    run = launch("scout", "count the rows", model=model, name="counting", tags=["nightly"], wait=True)
    run.score("accuracy", 0.5)
    run.score("loss", math.nan)
    run.score("margin", math.inf, step=2)
    return run


def _asked(url: str, verb: str, **said: Any) -> dict[str, Any]:
    return dict(httpx.post(f"{url}/api/2.0/mlflow/{verb}", json=said, timeout=60).raise_for_status().json())


def test_a_real_mlflow_server_has_the_run_once_and_up_to_date(judged: Run, mlflow_url: str) -> None:
    assert [one.outcome for one in export(judged, to="mlflow", url=mlflow_url, prompts=True)] == ["created"]
    assert [one.outcome for one in export(judged, to="mlflow", url=mlflow_url, prompts=True)] == ["unchanged"]
    judged.score("accuracy", 0.75)
    (sent,) = export(judged, to="mlflow", url=mlflow_url, prompts=True)
    (judged.home.run(judged.id).root / "exports" / "mlflow.json").unlink()
    (again,) = export(judged, to="mlflow", url=mlflow_url, prompts=True)
    assert (sent.outcome, again.outcome, again.link) == ("updated", "created", sent.link)

    found = httpx.get(f"{mlflow_url}/api/2.0/mlflow/experiments/get-by-name?experiment_name=subagents", timeout=60)
    experiment = found.json()["experiment"]["experiment_id"]
    mine = f"tags.`subagents_nb.run_id` = '{judged.id}'"
    (run,) = _asked(mlflow_url, "runs/search", experiment_ids=[experiment], filter=mine)["runs"]
    assert (run["info"]["run_name"], run["info"]["status"]) == ("counting", "FINISHED")
    assert {one["key"]: one["value"] for one in run["data"]["params"]}["model"] == "scripted:count"
    metrics = {one["key"]: (one["value"], one.get("step", 0)) for one in run["data"]["metrics"]}
    assert metrics["accuracy"] == (0.75, 0)
    assert (metrics["loss"][0], metrics["margin"][1]) == ("NaN", 2)
    listed = httpx.get(
        f"{mlflow_url}/api/2.0/mlflow/artifacts/list", params={"run_id": run["info"]["run_id"]}, timeout=60
    )
    assert sorted(one["path"] for one in listed.json()["files"]) == ["answer.md", "transcript.ipynb"]


def test_the_terminal_sends_a_chain_with_its_steps(mlflow_url: str, capsys: pytest.CaptureFixture[str]) -> None:
    flow = chain(step("scout", "look", model="scripted:echo"), parallel(step("scout", "a"), step("scout", "b")))
    run = launch(flow, model="scripted:echo", name="three", wait=True)
    assert main(["send", "three", "--to", "mlflow", "--set", f"url={mlflow_url}", "--set", "experiment=chains"]) == 0
    assert "three: created: " in capsys.readouterr().out
    found = _asked(mlflow_url, "runs/search", experiment_ids=["1", "2", "3"], filter="attributes.run_name = 'three'")
    (there,) = found["runs"]
    metrics = {one["key"]: (one["value"], one.get("step", 0)) for one in there["data"]["metrics"]}
    assert metrics["steps"] == (3.0, 0) and metrics["step/output_tokens"][1] == 2
    assert run.export_to("mlflow", url=mlflow_url, experiment="chains")[0].outcome == "unchanged"


def test_a_real_trackio_store_has_the_run_once_and_up_to_date(judged: Run, trackers: Path, tmp_path: Path) -> None:
    options: dict[str, Any] = {"folder": str(tmp_path / "trackio"), "python": str(trackers), "project": "rows"}
    assert [one.outcome for one in export(judged, to="trackio", **options)] == ["created"]
    assert [one.outcome for one in export(judged, to="trackio", **options)] == ["unchanged"]
    judged.score("accuracy", 0.75)
    assert [one.outcome for one in export(judged, to="trackio", prompts=True, **options)] == ["updated"]
    with contextlib.closing(sqlite3.connect(tmp_path / "trackio" / "rows.db")) as database:
        rows = list(database.execute("select run_name, step, metrics from metrics order by step"))
        (config,) = database.execute("select config from configs").fetchone()
        files = [name for (name,) in database.execute("select name from artifacts")]
    assert [(name.partition("-")[0], at) for name, at, _ in rows] == [("counting", 0), ("counting", 2)]
    assert json.loads(rows[0][2])["accuracy"] == 0.75
    assert json.loads(rows[1][2])["output_tokens"] == 2.0
    assert json.loads(config)["subagents_nb.run_id"] == judged.id
    assert sorted(name.rpartition("-")[2] for name in files) == ["answer.md", "transcript.ipynb"]


def test_inspects_own_reader_opens_the_run(judged: Run, inspect: Inspect, trackers: Path, tmp_path: Path) -> None:
    export(judged, to="inspect", folder=str(tmp_path / "logs"))
    judged.score("accuracy", 0.75)
    export(judged, to="inspect", folder=str(tmp_path / "logs"))
    read = inspect("opened", tmp_path / "logs")
    assert math.isnan(read["scores"].pop("loss")) and math.isinf(read["scores"].pop("margin"))
    assert read == {
        "task": "counting",
        "status": "success",
        "model": "scripted:count",
        "tags": ["nightly"],
        "samples": ["0"],
        "roles": ["user", "assistant"],
        "answer": "three rows",
        "scores": {"accuracy": 0.75},
        "usage": judged.usage.input_tokens + judged.usage.output_tokens,
    }
    listing = [str(trackers.parent / "inspect"), "log", "list", "--log-dir", str(tmp_path / "logs"), "--json"]
    listed = subprocess.run(listing, env=_environment(), capture_output=True, text=True, check=True, cwd=tmp_path)
    assert [one["task"] for one in json.loads(listed.stdout)] == ["counting"]


def test_inspects_own_reader_and_converter_have_the_events_of_a_script(inspect: Inspect, tmp_path: Path) -> None:
    lure = "attachment://" + "0" * 32
    steps: list[dict[str, Any]] = [
        {"tool": "read", "args": {"path": "rows.csv"}, "result": "x,y"},
        {"tool": "bash", "args": {"command": "rm -rf build"}, "result": "no", "refused": "bash is not allowed"},
        {"text": lure},
    ]
    task = "count the rows of every file " * 10
    run = launch("scout", task, model=script("count", *steps), name="counting", wait=True)
    run.score("accuracy", 0.5)
    run.score("loss", math.nan)
    export(run, to="inspect", folder=str(tmp_path / "logs"))
    (sample,) = found = inspect("events", tmp_path / "logs")
    assert sample["spans"] == ["init", "solvers", "scout", "scorers", "accuracy", "loss"]
    why = {"type": "refused", "call": "call-2", "tool": "bash", "why": "bash is not allowed"}
    assert [event for event in sample["events"] if event[0] != "model"] == [
        ["sample_init", task],
        ["tool", {"arguments": {"path": "rows.csv"}, "result": "x,y", "error": None}],
        ["tool", {"arguments": {"command": "rm -rf build"}, "result": "no", "error": "permission"}],
        ["info", why],
        ["score", ["accuracy", 0.5]],
        ["score", ["loss", "nan"]],
    ]
    (asked,) = [told for kind, told in sample["events"] if kind == "model"]
    assert asked == {"input": [task, "", "x,y", "", "no"], "output": lure, "calls": [], "tokens": None, "within": True}
    (name,) = inspect("converted", tmp_path / "logs", tmp_path / "evals")
    assert name.endswith(".eval")
    assert inspect("events", tmp_path / "evals") == found


@pytest.fixture
def told() -> Iterator[str]:
    """A model on loopback that calls bash with what the task says behind `RUN: `."""
    command = [sys.executable, str(CHILDREN / "chat.py")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as peer:
        assert peer.stdin is not None and peer.stdout is not None
        own = Path.home() / ".subagents"
        own.mkdir(exist_ok=True)
        url = f"http://127.0.0.1:{int(peer.stdout.readline())}/v1"
        (own / "settings.toml").write_text(f'[endpoints.told]\nbase_url = "{url}"\n')
        yield "told:m"
        peer.stdin.close()


def test_inspects_own_reader_has_the_requests_of_a_session_and_of_its_sequel(
    told: str, inspect: Inspect, tmp_path: Path
) -> None:
    command = "seq -s ' ' 100"
    run = launch("worker", f"RUN: {command}", model=told, name="first", wait=True)
    export(run, to="inspect", folder=str(tmp_path / "logs"))
    later = run.resume("and then?")
    assert later.wait(60)
    export(later, to="inspect", folder=str(tmp_path / "later"))
    (sample,), (sequel,) = (inspect("events", tmp_path / name) for name in ("logs", "later"))
    first_said, later_said = ([event for event in one["events"] if event[0] != "info"] for one in (sample, sequel))
    assert [kind for kind, _ in first_said] == ["sample_init", "model", "tool", "model"]
    _, (_, first), (_, tool), (_, second) = first_said
    assert first["calls"] == [{"command": command}] and tool["arguments"] == {"command": command}
    assert "99 100" in tool["result"] and second["input"] == [*first["input"], "", tool["result"]]
    assert second["output"] == tool["result"] and first["tokens"] == second["tokens"] == 11
    _, (_, only) = later_said
    assert only["input"] == [*second["input"], second["output"], "and then?"]
    assert only["within"] and only["output"] == second["output"]


def test_the_trace_is_what_the_protocol_says(judged: Run, trackers: Path) -> None:
    sent = OtelExporter(endpoint="http://x/v1/traces", prompts=True).contents(gather(judged))
    done = subprocess.run(
        [str(trackers), "-c", READ_TRACE],
        input=json.dumps(sent), env=_environment(), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    assert json.loads(done.stdout) == ["invoke_workflow counting", "invoke_agent scout", "chat count"]
