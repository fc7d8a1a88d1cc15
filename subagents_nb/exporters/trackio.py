"""Runs to trackio's local store.

trackio works in a process of its own, so that neither its threads nor the run that a notebook has open there come in
touch with an export. `python` names the interpreter that has trackio, if it is another one than this.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from subagents_nb.domain.plans.experiments import number_or_word
from subagents_nb.domain.values.words import one_line
from subagents_nb.errors import ExportError, Unreadable
from subagents_nb.exporters.protocol import Exporter, Link
from subagents_nb.exporters.run_record import RunRecord
from subagents_nb.exporters.sent_files import Attachment, attachments, read_attachment

DEFAULT_PROJECT = "subagents"
_WRITER = Path(__file__).with_name("trackio_writer.py")
_PATIENCE_S = 180.0
# These would send the run to a server; what goes there is the user's to decide with trackio's own tools.
_ELSEWHERE = (
    "TRACKIO_SPACE_ID",
    "TRACKIO_SERVER_URL",
    "TRACKIO_BUCKET_ID",
    "TRACKIO_DATASET_ID",
    "TRACKIO_WEBHOOK_URL",
)


@dataclass(frozen=True, kw_only=True)
class TrackioExporter(Exporter):
    """One folder of trackio's; `folder` is TRACKIO_DIR if it is not given, else trackio's own choice."""

    name: ClassVar[str] = "trackio"
    project: str | None = None  # the run's experiment if None, else `subagents`
    folder: str | None = field(default_factory=lambda: os.environ.get("TRACKIO_DIR"))
    prompts: bool = False
    python: str = sys.executable

    @property
    def target(self) -> str:
        """Return the folder and what the project was called, if it was."""
        return f"{self.folder or 'local'}" + (f"#{self.project}" if self.project else "")

    def available(self) -> str | None:
        """Return why trackio can't be used."""
        here = self.python == sys.executable
        there = importlib.util.find_spec("trackio") is not None if here else self._has_it()
        return None if there else "trackio is not installed. Run: pip install 'subagents-nb[trackio]'."

    def contents(self, record: RunRecord) -> dict[str, Any]:
        """Return project, configuration, figures, and files by their digests."""
        cell = record.experiment.cell
        return {
            "project": self.project or record.experiment.name or DEFAULT_PROJECT,
            "run_id": record.run_id,
            "name": record.name,
            "group": cell.sweep[:12] if cell is not None else None,
            "config": {**record.params(), **{f"subagents_nb.{k}": v for k, v in record.labels().items()}},
            "logs": _logs(record),
            "files": [one.model_dump(mode="json") for one in attachments(record, prompts=self.prompts)],
        }

    def send(self, contents: dict[str, Any], record: RunRecord) -> Link:
        """Write the run in the place of an earlier copy of it."""
        notes = []
        files = []
        for one in contents["files"]:
            attachment = Attachment.model_validate(one)
            try:
                data = read_attachment(record, attachment)
            except Unreadable as error:
                notes.append(f"{attachment.name}: {error}")
                continue
            files.append({"name": attachment.name, "hex": data.hex()})
        answer = self._write({**contents, "files": files})
        return Link(target=self.target, remote_id=f"{contents['project']}/{answer['name']}", notes=tuple(notes))

    def _write(self, message: dict[str, Any]) -> dict[str, Any]:
        environ = {name: value for name, value in os.environ.items() if name not in _ELSEWHERE}
        if self.folder:
            environ["TRACKIO_DIR"] = self.folder
        try:
            done = subprocess.run(
                [self.python, "-I", str(_WRITER)],
                input=json.dumps(message).encode(),
                capture_output=True,
                timeout=_PATIENCE_S,
                env=environ,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise ExportError(f"trackio took longer than {_PATIENCE_S:.0f} s") from error
        except OSError as error:
            raise ExportError(f"{os.path.basename(self.python)} could not be started: {error.strerror}") from error
        try:
            answer: dict[str, Any] = json.loads(done.stdout)
        except ValueError:
            last = (done.stderr.decode("utf-8", "replace").strip().splitlines() or ["it said nothing"])[-1]
            raise ExportError(f"trackio failed: {one_line(last, 300)}") from None
        return answer

    def _has_it(self) -> bool:
        code = "import importlib.util, sys; sys.exit(importlib.util.find_spec('trackio') is None)"
        try:
            return subprocess.run([self.python, "-I", "-c", code], check=False, timeout=60).returncode == 0
        except (OSError, subprocess.TimeoutExpired):
            return False


def _logs(record: RunRecord) -> list[dict[str, Any]]:
    """Return what is logged, by step: the run's figures and scores, and of a chain each step's figures."""
    at: dict[int, dict[str, float]] = {}
    if len(record.steps) > 1:
        for step in record.steps:
            usage = step.result.usage
            figures = {"step/input_tokens": usage.input_tokens, "step/output_tokens": usage.output_tokens}
            at.setdefault(step.result.index, {}).update({name: float(value) for name, value in figures.items()})
    for score in record.scores:
        name = score.name if score.case is None else f"{score.name}/{score.case}"
        at.setdefault(score.step or 0, {})[name] = score.number
    last = max(at, default=0)
    at.setdefault(last, {}).update(record.metrics())
    return [
        {"step": step, "values": {k: number_or_word(v) for k, v in values.items()}}
        for step, values in sorted(at.items())
    ]
