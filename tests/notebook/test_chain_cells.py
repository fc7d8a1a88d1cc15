"""Chains from cells: launched, appended to, one step stopped, and what a fault says."""

from __future__ import annotations

import json

from kernels import Kernel
from support import until

from subagents_nb.domain.agents.scripts import SCRIPT_FOLDER
from subagents_nb.store import FileRuns

FOUND = [{"value": {"files": [{"path": "a.py"}, {"path": "b.py"}, {"path": "c.py"}]}}]
TYPES = """from pydantic import BaseModel
class File(BaseModel):
    path: str
class Findings(BaseModel):
    files: list[File]"""


def script(kernel: Kernel, name: str, steps: list[dict[str, object]]) -> None:
    path = kernel.work / SCRIPT_FOLDER / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(steps))


def states(kernel: Kernel, name: str) -> list[str]:
    status = FileRuns(kernel.home).snapshot(kernel.run_id(name)).status
    return [str(step.state) for step in status.steps] if status is not None else []


def test_a_chain_is_written_in_a_cell_and_comes_back_typed(kernel: Kernel) -> None:
    script(kernel, "find", FOUND)
    kernel.ok(TYPES)
    cell = kernel.ok(
        """%%subagent_chain --model scripted:echo --name chained -o work --tag mine
task: the {data} of $HOME
steps:
- agent: scout
  model: scripted:find
  as: found
  schema: Findings
- expand: {from: {output: found, path: /files}, key: /path, max_items: 5}
  each: {reviewer: 'Check {item.path}'}
  collect: {as: reviews}
- writer: 'Sum up {outputs.reviews}'
  agent: delegate
""".replace("- writer: 'Sum up {outputs.reviews}'\n  agent: delegate", "- delegate: 'Sum up {outputs.reviews}'")
    )
    assert "chained" in cell.plain
    assert kernel.value("work.result(30)").startswith("Sum up")
    assert kernel.value("type(work.outputs['found']).__name__") == "Findings"
    assert kernel.value("[step.label for step in work.steps][2:]") == ["a.py", "b.py", "c.py"]
    assert kernel.value("work.plan.task") == "the {data} of $HOME"
    assert kernel.value("work.plan.tags") == ["mine"]
    # Got back by its name, with the types that are still there.
    shown = kernel.ok("%subagent_attach chained -o again")
    assert kernel.value("type(again.outputs['found']).__name__") == "Findings"
    assert "      complete  reviewer for each as reviews (for each of found, 3 of 3 steps)" in shown.plain
    assert "chain · 3 stages" in shown.shown[0]["text/html"]
    table = kernel.ok("%subagent_status").shown[0]
    assert "chain" in table["text/plain"]


def test_a_fault_is_told_with_the_line_of_the_cell_and_nothing_is_launched(kernel: Kernel) -> None:
    body = "- scout: a\n- scout:\n    tsak: b\n- nobody: c\n"
    both = kernel.fails(f"%%subagent_chain --model scripted:echo\n{body}")
    assert "line 3: a step has no key 'scout'" in both and "line 5: stage 3 (nobody): No agent is named" in both
    said = kernel.fails("%%subagent_chain --model scripted:echo\n\n- scout: a\n- reviewer: 'see {outputs.b}'")
    assert said.startswith(
        "LaunchRefused: Not launched: line 4: stage 2 (reviewer): {outputs.b} names no earlier output"
    )
    assert "Traceback" not in said
    assert "there is no flag --usage-bud; perhaps you mean --usage-budget" in kernel.fails(
        "%%subagent_chain --usage-bud 5\n- scout: a"
    )


def test_a_dry_run_starts_nothing_and_has_the_digest_of_the_functions(kernel: Kernel) -> None:
    kernel.ok("""%%subagent_chain --model scripted:echo --dry-run
- scout: Look
- reviewer:
""")
    assert kernel.value("_.digest").startswith(
        kernel.value(
            "__import__('subagents_nb').preflight(__import__('subagents_nb').chain("
            "__import__('subagents_nb').step('scout', 'Look'), __import__('subagents_nb').step('reviewer')),"
            "model='scripted:echo').digest"
        )
    )
    bad = kernel.ok("%%subagent_chain --model scripted:echo --dry-run\n- nobody: Look\n- scout:\n")
    assert "line 2: stage 1 (nobody)" in bad.plain


def test_a_live_chain_is_appended_to_and_refuses_what_does_not_fit(kernel: Kernel) -> None:
    kernel.ok(
        """%%subagent_chain --name growing -o work -q --model scripted:steerable
- scout: Wait
  as: first
"""
        + "- delegate: 'after {previous}'\n  model: scripted:echo\n"
    )
    until(lambda: states(kernel, "growing")[:1] == ["running"], what="the first step at work")
    said = kernel.fails("%%subagent_append work\n- delegate: 'see {outputs.frist}'\n  model: scripted:echo")
    assert said.startswith("AppendRefused: Not appended: line 2: stage 1 (delegate): {outputs.frist} names no earlier")
    assert "did you mean 'first'?" in said
    body = "- agent: delegate\n  task: 'last of {outputs.first}'\n  model: scripted:echo\n  as: last\n"
    assert kernel.ok(f"%%subagent_append work\n{body}").plain == "growing: appended: 1 appended"
    assert "there is an output 'last' already" in kernel.fails(f"%%subagent_append work\n{body}")
    kernel.ok("%subagent_steer work --step 0 -- finish")
    assert kernel.value("work.result(30)").startswith("last of")
    assert kernel.value("len(work.steps)") == 3
    assert "complete already; there is nothing to append to" in kernel.fails(f"%%subagent_append work\n{body}")


def test_a_run_of_one_step_can_not_be_appended_to(kernel: Kernel) -> None:
    kernel.ok("%%subagent --model scripted:slow --name alone -q\nx")
    assert "Run alone has one step; only a chain can be appended to." in kernel.fails(
        "%%subagent_append alone\n- scout: y"
    )


def test_one_step_is_stopped_and_the_others_go_on(kernel: Kernel) -> None:
    kernel.ok("""%%subagent_chain --name abreast -o work -q --model scripted:steerable
- parallel:
  - scout: a
  - reviewer: b
  on_failure: continue
""")
    until(lambda: states(kernel, "abreast") == ["running", "running"], what="both steps at work")
    assert "steps[0], steps[1] are at work; say which one is meant" in kernel.fails("%subagent_steer work -- hello")
    assert kernel.ok("%subagent_stop work --step 0").plain == "abreast: stop requested: steps[0]; the others go on"
    until(lambda: states(kernel, "abreast") == ["stopped", "running"], what="the end of one step")
    assert kernel.ok("%subagent_retune work --concurrency 2 --tokens 200k").plain.startswith("abreast: retuned: ")
    assert "no steps[7]" in kernel.fails("%subagent_steer work --step 7 -- hello")
    kernel.ok("%subagent_steer work --step 1 -- finish")
    assert kernel.value("work.wait(20)")
    assert kernel.state("abreast") == "partial"


def test_the_page_opens_a_step_follows_it_and_stops_it_alone(kernel: Kernel) -> None:
    kernel.ok("""%%subagent_chain --model scripted:steerable --name on-a-page -o work
- parallel:
  - scout: a
  - {agent: reviewer, task: b, label: second}
  on_failure: continue
""")
    until(lambda: states(kernel, "on-a-page") == ["running", "running"], what="both steps at work")
    comm = kernel.comm_of("on-a-page")

    def told(kind: str) -> list[dict[str, object]]:
        kernel.drain()
        return [one for one in kernel.told(comm) if one.get("kind") == kind]

    kernel.say(comm, {"kind": "open", "step": 1})
    first = kernel.until(lambda: told("step"), what="what there is of the step")[0]
    assert (first["n"], first["agent"], first["model"]) == (1, "reviewer", "scripted:steerable")
    kernel.until(lambda: any("fresh" in one for one in told("step")), what="what is new of its text")
    for nonsense in ({"kind": "stop", "step": "1"}, {"kind": "open", "step": -1}, {"kind": "stop", "step": True}):
        kernel.say(comm, nonsense)
    kernel.say(comm, {"kind": "open", "step": 9})
    kernel.until(lambda: any(one.get("step") == 9 and not one["ok"] for one in told("ack")), what="the refusal")
    kernel.say(comm, {"kind": "stop", "step": 1})
    until(lambda: states(kernel, "on-a-page") == ["running", "stopped"], what="the end of that step alone")
    kernel.until(lambda: told("graph"), what="the change of the graph")
    kernel.say(comm, {"kind": "open", "step": 1})
    kernel.until(lambda: any("output" in one for one in told("step")), what="what it came to")
    kernel.say(comm, {"kind": "steer", "step": 0, "text": "finish"})
    until(lambda: kernel.state("on-a-page") == "partial", what="the end of the run")
