"""A run goes on whatever happens to the cell and the kernel, and a fresh kernel finds it again."""

from __future__ import annotations

import json
import os
import re
import signal
from collections.abc import Callable
from typing import Any

import pytest
from kernels import Kernel, display_id_of
from support import alive, until

from subagents_nb.store import FileRuns

Start = Callable[..., Kernel]

SCRIPT = [
    {"text": "Working on it. "},
    {"sleep": 1.5},
    {"value": {"column": "unit_price", "rows": 14}},
]
FOUND = "from pydantic import BaseModel\nclass Found(BaseModel):\n    column: str\n    rows: int"


def begin(kernel: Kernel, name: str) -> None:
    """Launch a run that takes a second and a half and comes to a `Found`."""
    script = kernel.work / "script.json"
    if not script.exists():  # an earlier run may be reading it now
        script.write_text(json.dumps(SCRIPT))
    kernel.ok(FOUND)
    kernel.ok(f"%%subagent scout --model scripted:script.json --schema Found --name {name} -o found\nx")


def completes(kernel: Kernel, name: str) -> None:
    until(lambda: kernel.state(name) not in ("queued", "running"), 20, what="the end of the run")
    assert kernel.state(name) == "complete"


@pytest.mark.parametrize(
    ("name", "wait"),
    [
        ("in-wait", "found.wait()"),
        ("in-result", "found.result()"),
        ("in-await", "await found"),
        ("in-wait-magic", "%subagent_wait"),
        ("in-wait-magic-by-name", "%subagent_wait in-wait-magic-by-name"),
    ],
)
def test_interrupting_a_wait_ends_the_wait_and_not_the_run(kernel: Kernel, name: str, wait: str) -> None:
    begin(kernel, name)
    request = kernel.send(f"print('waiting')\n{wait}")
    kernel.until(lambda: any("waiting" in m["content"].get("text", "") for m in kernel.log), what="the wait")
    kernel.interrupt()
    cell = kernel.finish(request, deadline=10)
    goes_on = f"{name} ({kernel.run_id(name)}) goes on; see it again with %subagent_attach {kernel.run_id(name)}"
    assert cell.error == f"Interrupted: {goes_on}"
    assert kernel.state(name) in ("queued", "running")
    completes(kernel, name)


def test_interrupting_a_cell_that_launches_and_waits_leaves_its_run(kernel: Kernel) -> None:
    request = kernel.send("%%subagent --model scripted:slow --name launched-and-left --wait\nx")
    kernel.until(lambda: any(m["msg_type"] == "comm_msg" for m in kernel.log), what="the run on the page")
    kernel.interrupt()
    assert kernel.finish(request, deadline=10).error.startswith("Interrupted: launched-and-left (r-")
    assert kernel.state("launched-and-left") == "running"


@pytest.mark.parametrize("end", ["restart", "shut_down", "kill"])
def test_a_run_outlives_its_kernel_however_the_kernel_ends(new_kernel: Start, end: str) -> None:
    kernel = new_kernel()
    for spawn in ("cold", "warm"):
        kernel.ok(f"%env SUBAGENTS_NB_SPAWN={spawn}")
        begin(kernel, f"outlived-{spawn}")
        until(lambda spawn=spawn: kernel.state(f"outlived-{spawn}") in ("running", "complete"))
    getattr(kernel, end)()
    for spawn in ("cold", "warm"):
        completes(kernel, f"outlived-{spawn}")


def test_a_fresh_kernel_finds_the_run_by_name_and_by_id_and_gets_the_typed_result(new_kernel: Start) -> None:
    first = new_kernel()
    begin(first, "found-again")
    run_id = first.run_id("found-again")
    first.kill()
    second = new_kernel()
    second.ok(FOUND)
    second.ok("%subagent_attach found-again -o again")
    second.ok("value = await again")
    assert second.value("[type(value) is Found, value.column, value.rows]") == [True, "unit_price", 14]
    assert "unit_price" in second.ok("again").shown[-1]["text/html"]
    second.ok(f"%subagent_attach {run_id} -o by_id")
    assert second.value("by_id.output == value")
    second.ok(f"import subagents_nb\nplain = subagents_nb.attach('{run_id}', schema=Found).output")
    assert second.value("plain == value")


def test_a_run_whose_process_is_killed_is_shown_as_lost_with_its_last_lines(new_kernel: Start) -> None:
    kernel = new_kernel()
    place = display_id_of(kernel.ok("%%subagent --model scripted:slow --name killed -o work\nx"))

    def status() -> Any:
        return FileRuns(kernel.home).snapshot(kernel.run_id("killed")).status

    until(lambda: "tick 3" in status().steps[0].tail, what="the first lines")
    runner = status().runner
    os.kill(runner.pid, signal.SIGKILL)
    until(lambda: not alive(runner.pid, runner.start_ticks), 5)
    kernel.until(lambda: kernel.updates_of(place), 5, what="the card")
    card = kernel.updates_of(place)[-1]
    assert card["text/plain"].startswith("killed (delegate) lost: ")
    assert re.findall(r"tick \d+", status().steps[0].tail)[-1] in card["text/html"]  # it may have gone on till it died
    assert kernel.fails("await work").startswith("RunLost: Run killed (r-")
