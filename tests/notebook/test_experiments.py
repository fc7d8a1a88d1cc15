"""Experiments from cells: a sweep, its scores, a comparison, a retry, and what is said about mistakes."""

from __future__ import annotations

import json

import pytest
from kernels import Kernel

from subagents_nb.domain.agents.scripts import SCRIPT_FOLDER
from subagents_nb.store import FileRuns

pytestmark = pytest.mark.timeout(180)
SWEEP = (
    "%%subagent scout --model scripted:echo --name pair --experiment words "
    "--sweep 'word=one,<img onerror>' --sweep temperature=0,1 --repeat 2 "
)
EVIL = "<img onerror>"
LEAVE = "from subagents_nb.notebook.comparing.compare_show import leave_all\nleave_all()"
TASK = "\nSay {{word}} to $HOME and {{other}}"


def script(kernel: Kernel, name: str, *steps: dict[str, object]) -> None:
    path = kernel.work / SCRIPT_FOLDER / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(steps))


def test_a_sweep_is_written_in_a_cell_judged_and_compared(kernel: Kernel) -> None:
    kernel.ok("def length(run):\n    return len(run.text)")
    cell = kernel.ok(f"{SWEEP} -o swept --score length --wait{TASK}")

    assert "8 of 8 done" in cell.updated
    shown = [data["text/html"] for data in cell.stands if "Sweep" in data["text/plain"]][-1]
    assert "<img" not in shown and "&lt;img onerror&gt;" in shown and shown.count("complete") == 8
    assert kernel.value("swept.runs[4].text") == "Say <img onerror> to $HOME and {{other}}\n"
    assert kernel.value("swept.runs[4].plan.experiment.params") == {"word": "<img onerror>", "temperature": 0.0}
    assert kernel.value("[r.plan.experiment.name for r in swept.runs]") == ["words"] * 8
    assert len(kernel.value("swept.runs[0].plan.experiment.lineage.source_sha256")) == 64

    compared = kernel.ok("%subagent_compare swept --baseline word=one --by word", cell_id=None)
    assert "+10" in compared.plain and "Baseline: word=one." in compared.plain
    html = compared.shown[-1]["text/html"]
    assert "<img" not in html and "baseline" in html
    assert len(html) < 8000

    live = kernel.ok("%subagent_compare swept --by word")
    # Only the plain table is an output; the page finds it by its class. A notice of another cell may stand before it.
    opened = [m["content"] for m in live.messages if m["msg_type"] == "comm_open"]
    ((comm, state),) = ((one["comm_id"], one["data"]["state"]) for one in opened if "token" in one["data"]["state"])
    (output,) = (data for data in live.shown if state["token"] in data.get("text/html", ""))
    assert set(output) == {"text/html", "text/plain"}
    assert output["text/plain"].startswith("2 settings, each on 2 cases × 2 repeats")
    assert "&lt;img" in output["text/html"] and [row["keys"][0] for row in state["table"]["rows"]] == ["one", EVIL]
    closed = kernel.ok(LEAVE).messages
    assert comm in [m["content"]["comm_id"] for m in closed if m["msg_type"] == "comm_close"]

    again = kernel.ok(f"{SWEEP} --reuse tracked -o again{TASK}")
    assert "8 of 8 done; 8 found, 0 launched" in again.plain and kernel.value("again.ids == swept.ids") is True
    assert "8 of 8 done · 8 found, 0 launched" in again.shown[-1]["text/html"]
    held = kernel.ok("%subagent_compare swept --by temperature --baseline temperature=0").plain
    assert "Baseline: temperature=0.0." in held
    kernel.ok(LEAVE)
    for flag in ("--reuse never", ""):  # the default of this kernel is never
        kernel.ok(f"{SWEEP} {flag} -o anew --wait{TASK}")
        assert kernel.value("sorted(set(anew.ids) & set(swept.ids))") == []
    foreseen = kernel.ok(f"{SWEEP} --reuse tracked --dry-run{TASK}").stdout
    assert foreseen == "A sweep of 8 runs, of which 8 are there. The plan of the first:\n"


def test_the_default_of_the_magics_says_which_runs_a_sweep_may_find(kernel: Kernel) -> None:
    cell = "%%subagent scout -o {} --model scripted:echo --sweep word=a,b --wait -q\nfind {{{{word}}}}"
    kernel.ok("%config SubagentMagics.reuse = 'tracked'\nfirst = None")
    kernel.ok(cell.format("first"))
    kernel.ok(cell.format("again"))
    kernel.ok("%config SubagentMagics.reuse = 'never'")
    kernel.ok(cell.format("anew"))
    kernel.ok("%config SubagentMagics.reuse = ''")

    assert kernel.value("[again.ids == first.ids, sorted(set(anew.ids) & set(first.ids))]") == [True, []]


def test_the_experiment_of_a_kernel_holds_for_its_launches(kernel: Kernel) -> None:
    assert "first look: experiment" in kernel.ok("%subagent_experiment 'first look'").plain
    kernel.ok(
        "%%subagent scout -o run --model scripted:echo --param k=3 --note mine --tag quick --wait -q --fresh\nnamed"
    )
    kernel.ok(
        "from subagents_nb import launch, runs\nplain = launch('scout', 'named too', model='scripted:echo', wait=True)"
    )

    assert kernel.value("[run.plan.experiment.name, plain.plan.experiment.name]") == ["first look", "first look"]
    assert kernel.value("[run.plan.experiment.params, run.plan.experiment.notes]") == [{"k": 3}, "mine"]
    assert kernel.value("sorted(runs(experiment='first look').ids) == sorted([run.id, plain.id])") is True
    assert kernel.value("run.id in runs(tag='quick').ids and plain.id not in runs(tag='quick').ids") is True
    assert "first look: current" in kernel.ok("%subagent_experiment").plain
    assert "plain" not in kernel.ok("%subagent_compare").plain  # by parameters, not by variables
    kernel.ok(LEAVE)
    assert "off" in kernel.ok("%subagent_experiment --off").plain
    assert "none" in kernel.ok("%subagent_experiment").plain


def test_a_failed_run_is_launched_again_from_a_cell(kernel: Kernel) -> None:
    script(kernel, "moody", {"fail": {"message": "not now"}})
    kernel.ok("%%subagent scout -o moody --model scripted:moody -q\ntry")
    kernel.ok("%subagent_wait moody")
    script(kernel, "moody", {"text": "now"})

    kernel.ok("%subagent_retry moody")
    kernel.ok("fresh = _\nassert fresh[0].result(30) == 'now'")

    assert "so there is nothing to launch again" in kernel.fails("%subagent_retry fresh")


def test_mistakes_in_a_sweep_are_told_in_one_line_and_launch_nothing(kernel: Kernel) -> None:
    before = FileRuns(kernel.home).ids()
    head = "%%subagent scout --model scripted:echo "

    assert "is no NAME=VALUE" in kernel.fails(head + "--sweep words\nx")
    assert "has an empty value" in kernel.fails(head + "--sweep word=a,,b\n{{word}}")
    assert "'hot' is no value for temperature" in kernel.fails(head + "--sweep temperature=hot\nx")
    assert "does not stand in the task" in kernel.fails(head + "--sweep word=a,b\nx")
    planned = kernel.ok(head + "--sweep word=a,b --repeat 3 --dry-run\nsay {{word}}")
    assert "A sweep of 6 runs." in planned.stdout and "say a" in planned.plain
    assert "there is no variable of this name" in kernel.fails(head + "--score nothing\nx")
    assert "say which runs" in kernel.fails("%subagent_compare")
    assert FileRuns(kernel.home).ids() == before
