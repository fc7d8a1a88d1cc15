"""Runs brought elsewhere from cells."""

from __future__ import annotations

import json

import nbformat
import pytest
from kernels import Kernel

pytestmark = pytest.mark.timeout(120)


def test_a_cell_exports_a_run_and_writes_its_transcript_beside_the_notebook(kernel: Kernel) -> None:
    kernel.ok("%%subagent scout --model scripted:echo --name 'a run' -o run --wait\nSay <b>hi</b>")
    written = kernel.ok("%subagent_transcript run").plain
    assert written == "a run: written: a-run-transcript.ipynb"
    nbformat.validate(nbformat.read(kernel.work / "a-run-transcript.ipynb", as_version=4))

    sent = kernel.ok("%subagent_export run --to inspect --set folder=logs").plain
    assert sent.startswith("a run: created: logs/") and str(kernel.work) not in sent
    (log,) = (kernel.work / "logs").iterdir()
    assert json.loads(log.read_text())["samples"][0]["output"]["completion"] == "Say <b>hi</b>\n"
    assert kernel.ok("%subagent_export run --to inspect --set folder=logs").plain.startswith("a run: unchanged: ")


def test_a_cell_exports_a_sweep_a_comparison_and_a_list_by_their_variables(kernel: Kernel) -> None:
    kernel.ok("%%subagent scout --model scripted:echo --sweep word=a,b -o swept --wait -q\nSay {{word}}")
    kernel.ok("from subagents_nb import compare\nfound, some = compare(swept), [swept.runs[0], swept]")
    first = kernel.ok("%subagent_export swept --to inspect --set folder=many").plain.splitlines()
    assert [line.split(": ")[1] for line in first] == ["created", "created"]
    for words in ("found", "some", "swept found some"):
        again = kernel.ok(f"%subagent_export {words} --to inspect --set folder=many").plain.splitlines()
        assert [line.split(": ")[1] for line in again] == ["unchanged", "unchanged"]


def test_mistakes_are_one_line(kernel: Kernel) -> None:
    kernel.ok("%%subagent scout --model scripted:echo --name probe --wait\nhi")
    assert "say where to: --to NAME, which is one of inspect, mlflow" in kernel.fails("%subagent_export probe")
    assert "write --set NAME=VALUE" in kernel.fails("%subagent_export probe --to mlflow --set url")
    assert "There is no exporter 'nowhere'" in kernel.fails("%subagent_export probe --to nowhere")
    assert "Set MLFLOW_TRACKING_URI" in kernel.fails("%subagent_export probe --to mlflow --set url=")
    assert "has no steps[4]; its only one is steps[0]" in kernel.fails("%subagent_transcript probe --step 4")
