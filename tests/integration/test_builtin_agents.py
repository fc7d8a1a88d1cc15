"""A rehearsal of the built-in agents: each plays its part in one run, with the tools it has and no other."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from subagents_nb import launch, parallel, step
from subagents_nb.store import StoreHome

pytestmark = pytest.mark.timeout(120)

# One pixel: what draws figures takes seconds to import, and the notebook about data shows that.
PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
NOT_THERE = {"tool": "write", "args": {"path": "x"}, "refused": "'write' is not one of this step's tools."}
READ = {"tool": "read", "args": {"path": "sales.csv"}, "result": "region,amount"}
SCRIPTS: dict[str, list[dict[str, Any]]] = {
    "analyst": [
        READ,
        {"python": "import csv\nrows = list(csv.DictReader(open('sales.csv')))\nlen(rows)"},
        {"python": "print(sum(int(row['amount']) for row in rows))", "say": True},
    ],
    "plotter": [
        {"python": f"from IPython.display import Image\nImage({PNG!r})"},
        {"text": "Amounts rise (n=2)."},
    ],
    "researcher": [READ, NOT_THERE, {"text": "Two regions are named (sales.csv:2-3)."}],
    "evidence-auditor": [READ, NOT_THERE, {"text": "May be relied on."}],
    "oracle": [READ, NOT_THERE, {"text": "Go ahead, if the file is kept."}],
}


def test_each_has_its_tools_and_brings_back_what_its_page_says(shared_home: StoreHome) -> None:
    Path("sales.csv").write_text("region,amount\nnorth,40\nsouth,2\n", encoding="utf-8")
    scripts = Path(".subagents/scripts")
    scripts.mkdir(parents=True)
    for name, played in SCRIPTS.items():
        (scripts / f"{name}.json").write_text(json.dumps(played), encoding="utf-8")
    steps = [step(name, f"Do the work of the {name}.", model=f"scripted:{name}") for name in SCRIPTS]
    run = launch(parallel(*steps, concurrency=5))
    assert run.wait(100), run.status
    assert run.status.state == "complete", run.status.error
    plan = run.plan
    assert plan is not None
    assert {one.agent: "python" in one.tools for one in plan.steps} == {
        name: name in ("analyst", "plotter") for name in SCRIPTS
    }
    assert not any({"write", "edit", "bash"} & set(one.tools) for one in plan.steps)
    answers = {one.agent: run.steps[index].output for index, one in enumerate(plan.steps)}
    assert "42" in answers["analyst"]
    assert answers["oracle"] == "Go ahead, if the file is kept."
    assert [artifact.kind for artifact in run.artifacts] == ["figure"]
    assert Path("sales.csv").read_text(encoding="utf-8").endswith("south,2\n")
