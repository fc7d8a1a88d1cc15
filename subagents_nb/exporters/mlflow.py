"""Runs to an MLflow tracking server, over its REST interface: no package of MLflow's is needed here.

An experiment is an experiment, a run a run: what it was launched with are params, figures and scores metrics, the rest
tags; the files that the run left become artifacts where the server takes them. With `prompts=True` the transcript goes
along. A run is found again by its tag `subagents_nb.run_id`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, ClassVar
from urllib.parse import quote

from subagents_nb.domain.runs.states import RunState
from subagents_nb.domain.values.base import sha256_text
from subagents_nb.errors import ExportError, Unreadable
from subagents_nb.exporters.http_client import Server, without_credentials
from subagents_nb.exporters.protocol import Link
from subagents_nb.exporters.run_record import RunRecord
from subagents_nb.exporters.sent_files import Attachment, attachments, read_attachment
from subagents_nb.plain_text import shortened

DEFAULT_EXPERIMENT = "subagents"
ID_TAG = "subagents_nb.run_id"
_PARENT_TAG = "mlflow.parentRunId"
_API = "/api/2.0/mlflow"
_NAME = re.compile(r"[^\w\-. /:]")
_KEY_CHARS, _PARAM_CHARS, _TAG_CHARS = 250, 6000, 5000
_BATCH = {"params": 100, "metrics": 1000, "tags": 100}
_STATUS = {RunState.COMPLETE: "FINISHED", RunState.PARTIAL: "FINISHED", RunState.STOPPED: "KILLED"}
_AUTH = ("MLFLOW_TRACKING_USERNAME", "MLFLOW_TRACKING_PASSWORD", "MLFLOW_TRACKING_TOKEN")


@dataclass(frozen=True, kw_only=True)
class MlflowExporter:
    """One tracking server; `url` is MLFLOW_TRACKING_URI if it is not given."""

    name: ClassVar[str] = "mlflow"
    url: str = field(default_factory=lambda: os.environ.get("MLFLOW_TRACKING_URI", ""), repr=False)
    experiment: str | None = None  # the run's own if None, else `subagents`
    prompts: bool = False

    @property
    def target(self) -> str:
        """Return the server's address and what the experiment was called, if it was."""
        return without_credentials(self.url) + (f"#{self.experiment}" if self.experiment else "")

    def available(self) -> str | None:
        """Return why there is no server to send to."""
        if not self.url:
            return "no server is named. Set MLFLOW_TRACKING_URI, or give url='http://…'."
        if not self.url.startswith(("http://", "https://")):
            return "only servers can be sent to. Start `mlflow server` over your store and give its http address."
        return None

    def contents(self, record: RunRecord) -> dict[str, Any]:
        """Return the experiment, the run, its params, metrics and tags, and its files by their digests."""
        experiment = self.experiment or record.experiment.name or DEFAULT_EXPERIMENT
        return {
            "experiment": _NAME.sub("_", experiment) if experiment.strip() else DEFAULT_EXPERIMENT,
            "name": record.name,
            "status": _STATUS.get(record.state, "FAILED"),
            "start": milliseconds(record.start),
            "end": milliseconds(record.end),
            "params": [
                {"key": key, "value": shortened(_param_text(value), _PARAM_CHARS)}
                for key, value in _by_keys(record.params()).items()
            ],
            "metrics": _metrics(record),
            "tags": [{"key": _key(k), "value": shortened(v, _TAG_CHARS)} for k, v in _tags(record).items()],
            "files": [one.model_dump(mode="json") for one in attachments(record, prompts=self.prompts)],
        }

    def has(self, link: Link) -> bool:
        """Say whether the server has the run and nobody deleted it there."""
        server = self._server()
        try:
            response = server.ask("GET", f"{_API}/runs/get", params={"run_id": link.remote_id}, allow=(404,))
            return response.is_success and response.json()["run"]["info"].get("lifecycle_stage") == "active"
        except (KeyError, TypeError, ValueError, AttributeError):
            return False
        finally:
            server.close()

    def send(self, contents: dict[str, Any], record: RunRecord) -> Link:
        """Create the run or bring it up to date."""
        server = self._server()
        try:
            experiment = _experiment(server, contents["experiment"])
            run = _find(server, experiment, record.run_id) or _create(server, experiment, contents, record.run_id)
            run_id = str(run["info"]["run_id"])
            tags = [*contents["tags"], *_parent_tag(server, experiment, record)]
            _log(server, run_id, contents | {"tags": tags}, _values(run.get("data", {}).get("params", ())))
            notes = _upload(server, run["info"], contents["files"], record)
            update = {"run_id": run_id, "status": contents["status"], "end_time": contents["end"]}
            server.ask("POST", f"{_API}/runs/update", json={**update, "run_name": contents["name"]})
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise ExportError(f"{server.address} does not answer like an MLflow server ({error!r})") from error
        finally:
            server.close()
        page = f"{server.address}/#/experiments/{experiment}/runs/{run_id}"
        return Link(target=self.target, remote_id=run_id, url=page, notes=notes)

    def _server(self) -> Server:
        user, password, token = (os.environ.get(name) for name in _AUTH)
        return Server(
            self.url,
            headers={"Authorization": f"Bearer {token}"} if token and not user else None,
            auth=(user, password or "") if user else None,
            certificates=os.environ.get("MLFLOW_TRACKING_SERVER_CERT_PATH"),
        )


def milliseconds(at: str) -> int:
    """Return a time as MLflow counts it."""
    return round(datetime.fromisoformat(at).timestamp() * 1000)


def _metrics(record: RunRecord) -> list[dict[str, Any]]:
    ended = milliseconds(record.end)
    metrics = [_metric(name, value, ended) for name, value in record.metrics().items()]
    for score in record.scores:
        name = score.name if score.case is None else f"{score.name}/{score.case}"
        metrics.append(_metric(name, score.number, milliseconds(score.at), score.step or 0))
    if len(record.steps) > 1:
        for step in record.steps:
            index, usage = step.result.index, step.result.usage
            at = milliseconds(step.end)
            figures = {"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens}
            metrics += [_metric(f"step/{name}", value, at, index) for name, value in figures.items()]
    return metrics


def _metric(name: str, value: float, at: int, step: int = 0) -> dict[str, Any]:
    number: float | str = value
    if value != value or abs(value) == float("inf"):
        number = "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"
    return {"key": _key(name), "value": number, "timestamp": at, "step": step}


def _tags(record: RunRecord) -> dict[str, str]:
    tags = {f"subagents_nb.{name}": value for name, value in record.labels().items()}
    tags |= {f"tag.{tag}": "true" for tag in record.tags}
    lineage = record.experiment.lineage
    if record.experiment.notes:
        tags["mlflow.note.content"] = record.experiment.notes
    if lineage is not None:
        if lineage.notebook:
            tags |= {"mlflow.source.name": lineage.notebook, "mlflow.source.type": "NOTEBOOK"}
        if lineage.git_commit:
            tags["mlflow.source.git.commit"] = lineage.git_commit
        if lineage.git_dirty is not None:
            tags["subagents_nb.git_dirty"] = str(lineage.git_dirty).lower()
        tags |= {f"package.{name}": version for name, version in lineage.packages.items()}
    return tags


def _experiment(server: Server, name: str) -> str:
    """Return the id of the experiment; it is made if it is not there. Somebody else may make it at the same time."""
    for _ in range(2):
        path = f"{_API}/experiments/get-by-name"
        response = server.ask("GET", path, params={"experiment_name": name}, allow=(404,))
        if response.is_success:
            kept = response.json()["experiment"]
            if kept.get("lifecycle_stage") == "deleted":
                raise ExportError(f"the experiment {name!r} was deleted on the server; restore it or name another")
            return str(kept["experiment_id"])
        created = server.ask("POST", f"{_API}/experiments/create", json={"name": name}, allow=(400, 409))
        if created.is_success:
            return str(created.json()["experiment_id"])
        if created.json().get("error_code") != "RESOURCE_ALREADY_EXISTS":
            raise ExportError(f"the experiment {name!r} could not be made: {created.json().get('message')}")
    raise ExportError(f"the experiment {name!r} could neither be found nor made")


def _find(server: Server, experiment: str, run_id: str) -> dict[str, Any] | None:
    query = {"experiment_ids": [experiment], "filter": f"tags.`{ID_TAG}` = '{run_id}'", "max_results": 1}
    runs = server.ask("POST", f"{_API}/runs/search", json=query).json().get("runs") or []
    return dict(runs[0]) if runs else None


def _parent_tag(server: Server, experiment: str, record: RunRecord) -> list[dict[str, str]]:
    """Return the tag by which the page shows a run below another: its parent, if that was sent before, or its sweep."""
    if record.origin.parent is not None:
        parent = _find(server, experiment, record.origin.parent)
    else:
        parent = _sweep(server, experiment, record)
    return [{"key": _PARENT_TAG, "value": str(parent["info"]["run_id"])}] if parent is not None else []


def _sweep(server: Server, experiment: str, record: RunRecord) -> dict[str, Any] | None:
    """Return the run that stands for the sweep of a run, made with the first of its runs; None for any other."""
    cell = record.experiment.cell
    if cell is None:
        return None
    mark = f"sweep-{cell.sweep}"
    if (found := _find(server, experiment, mark)) is not None:
        return found
    name = f"sweep {record.experiment.name or cell.sweep[:8]}"
    start = milliseconds(record.start)
    made = _create(server, experiment, {"name": name, "start": start}, mark)
    ended = {"run_id": made["info"]["run_id"], "status": "FINISHED", "end_time": start, "run_name": name}
    server.ask("POST", f"{_API}/runs/update", json=ended)
    return made


def _create(server: Server, experiment: str, contents: dict[str, Any], run_id: str) -> dict[str, Any]:
    wanted = {
        "experiment_id": experiment,
        "run_name": contents["name"],
        "start_time": contents["start"],
        "tags": [{"key": ID_TAG, "value": run_id}],
    }
    return dict(server.ask("POST", f"{_API}/runs/create", json=wanted).json()["run"])


def _log(server: Server, run_id: str, contents: dict[str, Any], there: dict[str, str]) -> None:
    """Log what is new. Params can't be changed there; of a run they never change here."""
    params = [one for one in contents["params"] if there.get(one["key"]) != one["value"]]
    batches = {"params": params, "metrics": contents["metrics"], "tags": contents["tags"]}
    for kind, values in batches.items():
        size = _BATCH[kind]
        for start in range(0, len(values), size):
            server.ask("POST", f"{_API}/runs/log-batch", json={"run_id": run_id, kind: values[start : start + size]})


def _upload(server: Server, info: dict[str, Any], files: list[dict[str, Any]], record: RunRecord) -> tuple[str, ...]:
    """Upload the files; return what could not be."""
    if not files:
        return ()
    kind, _, root = str(info.get("artifact_uri", "")).partition(":")
    if kind != "mlflow-artifacts":
        return ("files stay here: the server does not take artifacts (start it with --serve-artifacts)",)
    folder = re.sub(r"^//[^/]*", "", root).strip("/")
    left = []
    for one in files:
        attachment = Attachment.model_validate(one)
        try:
            data = read_attachment(record, attachment)
        except Unreadable as error:
            left.append(f"{attachment.name}: {error}")
            continue
        path = quote(f"{folder}/{attachment.name}")
        headers = {"Content-Type": attachment.media_type}
        server.ask("PUT", f"/api/2.0/mlflow-artifacts/artifacts/{path}", content=data, headers=headers)
    return tuple(left)


def _values(pairs: Any) -> dict[str, str]:
    return {str(one["key"]): str(one["value"]) for one in pairs}


def _param_text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _by_keys(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return values by the keys of their names; of names that would fall together the later ones have a mark."""
    keyed: dict[str, Any] = {}
    for name, value in values.items():
        key = _key(name)
        if key in keyed:
            key = f"{key[: _KEY_CHARS - 7]}-{sha256_text(name)[:6]}"
        keyed[key] = value
    return keyed


def _key(name: str) -> str:
    return _NAME.sub("_", name)[:_KEY_CHARS].strip("/") or "_"
