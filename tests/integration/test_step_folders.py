"""A step of a chain that works in a folder of its own: its tools, gate, files and account are there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from subagents_nb import chain, launch, preflight, step
from subagents_nb.notebook.bodies.chain_cell import parse
from subagents_nb.store import StoreHome

pytestmark = pytest.mark.timeout(90)
ECHO = "scripted:echo"


@pytest.fixture(autouse=True)
def warm(shared_home: StoreHome, monkeypatch: pytest.MonkeyPatch) -> StoreHome:
    monkeypatch.delenv("SUBAGENTS_NB_SPAWN")
    Path("sub/deep").mkdir(parents=True)
    Path("sub/data.csv").write_text("a\n1\n")
    return shared_home


def test_tools_gate_output_and_reads_are_those_of_the_folder_and_later_steps_find_what_it_left() -> None:
    scripts = Path(".subagents/scripts")
    scripts.mkdir(parents=True)
    (scripts / "here.json").write_text('[{"python": "import os; print(os.path.basename(os.getcwd()))", "say": true}]')
    inside = step("worker", "in {chain_dir}", cwd="sub", model="scripted:here", output="out.md", reads=["data.csv"],
                  gate="test -f data.csv && touch made-by-gate")  # fmt: skip
    run = launch(chain(inside, step("scout", "{previous}")), model=ECHO)
    assert run.wait(60) and run.state == "complete", run.error
    assert "sub" in run.steps[0].text
    assert Path("sub/out.md").exists() and Path("sub/made-by-gate").exists()
    first = run.steps[0].status
    assert first.saved is not None and first.saved.path == "sub/out.md"  # type: ignore[union-attr]
    assert "[Saved to sub/out.md" in run.steps[1].text
    assert run.plan.steps[0].cwd == "sub"


def test_a_run_is_reused_while_the_files_of_the_folder_are_as_the_step_saw_them() -> None:
    def again() -> Any:
        return launch(chain(step("scout", "look", cwd="sub/", model="scripted:tools")), model=ECHO, reuse="tracked")

    run = again()
    assert run.wait(30), run.error
    reads = run.status.result.reads
    assert "sub/data.csv" in [one.path for one in reads.files]
    second = again()
    assert second.reused, (second.reuse_note, reads)
    Path("sub/data.csv").write_text("a\n2\n")
    assert not (third := again()).reused
    assert third.wait(30)


@pytest.mark.parametrize(
    ("folder", "why"),
    [
        ("nowhere", "'nowhere' does not exist in the run's directory"),
        ("sub/data.csv", "'sub/data.csv' is no folder"),
        ("../..", "lies outside the run's directory"),
        ("out", "lies outside the run's directory"),
        (".subagents", "hidden folder"),
        ("\t", "names no folder"),
    ],
)
def test_a_folder_that_no_step_can_work_in_is_refused_with_all_other_reasons(folder: str, why: str) -> None:
    Path(".subagents").mkdir(exist_ok=True)
    Path("out").symlink_to(Path.cwd().parent)
    told = json.dumps(folder)
    found = preflight(parse(f"- scout: a\n  cwd: {told}\n- nobody: b\n", {}).chain, model=ECHO)
    assert len(found.reasons) == 2
    assert found.reasons[0].startswith("stage 1 (scout): cwd: ") and why in found.reasons[0]


def test_a_folder_is_part_of_the_contract_only_where_it_is_said() -> None:
    def digest(**more: Any) -> str | None:
        return preflight(chain(step("scout", "a", **more), step("scout", "b")), model=ECHO).digest

    assert digest() == digest(cwd=".") != digest(cwd="sub") == digest(cwd="./sub/deep/..")


def test_a_folder_that_is_gone_when_its_turn_comes_fails_the_step_and_nothing_else_is_touched() -> None:
    gone = step("worker", "b", cwd="sub/deep", model=ECHO)
    run = launch(chain(step("worker", "a", gate="rmdir sub/deep"), gone), model=ECHO)
    assert run.wait(30)
    assert run.error is not None and "Its folder sub/deep is not there any more" in run.error
