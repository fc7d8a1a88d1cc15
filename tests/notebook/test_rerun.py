"""Restart and run all: a notebook executed again starts nothing, pays nothing, and each card says so."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from kernels import Kernel
from support import until

from subagents_nb.store import FileRuns

pytestmark = pytest.mark.timeout(180)

NUMBER = 12


def notebook(kernel: Kernel) -> list[str]:
    """Write the files of a notebook, and return its cells: twelve launches, each about a file of its own."""
    folder = kernel.work / ".subagents" / "scripts"
    folder.mkdir(parents=True)
    cells = []
    for number in range(NUMBER):
        part = kernel.work / f"part{number}"
        part.mkdir()
        (part / "data.csv").write_text(f"rows\n{number}\n")
        cells.append(f"%%subagent -o run{number} --cwd part{number} --model scripted:tools\nLook at part {number}.")
    return cells


def ids(kernel: Kernel) -> list[str]:
    return FileRuns(kernel.home).ids()


def cards(kernel: Kernel, cells: list[str]) -> list[str]:
    shown = []
    for code in cells:
        cell = kernel.ok(code, cell_id=None)
        data = [m["content"]["data"] for m in cell.messages if m["msg_type"] in ("display_data", "execute_result")]
        shown.append(data[0]["text/plain"])
    return shown


def all_ended(kernel: Kernel) -> bool:
    reader = FileRuns(kernel.home)
    snapshots = [reader.snapshot(run_id) for run_id in reader.ids()]
    # What a launcher left half begun when it was killed never works; it gets its verdict after a minute.
    return all(snapshot.ended or snapshot.status is None for snapshot in snapshots)


def ended_well(kernel: Kernel) -> None:
    until(lambda: all_ended(kernel), 60, what="the end of all runs", pause=0.05)
    reader = FileRuns(kernel.home)
    assert {str(reader.snapshot(run_id).state) for run_id in reader.ids()} == {"complete"}


def told_under(kernel: Kernel, request: str) -> str:
    """Return what was shown under a cell, also after it had ended."""
    shown = [m for m in kernel.log if m["msg_type"] == "display_data" and m["parent_header"].get("msg_id") == request]
    return "\n".join(m["content"]["data"]["text/plain"] for m in shown)


def cpu_s(kernel: Kernel) -> float:
    return float(kernel.value("__import__('time').process_time()"))


def test_a_second_pass_starts_nothing_and_says_so(new_kernel: Callable[..., Kernel]) -> None:
    kernel = new_kernel(SUBAGENTS_NB_REUSE="tracked")
    cells = notebook(kernel)
    cards(kernel, cells)
    ended_well(kernel)
    first = ids(kernel)
    assert len(first) == NUMBER

    kernel.restart()
    kernel.ok("%load_ext subagents_nb")
    kernel.ok("import subagents_nb.launching.front")
    began = cpu_s(kernel)
    shown = cards(kernel, cells)
    assert cpu_s(kernel) - began < 2.0  # of the kernel alone, so that no neighbour counts
    assert ids(kernel) == first
    assert all("reused: nothing was spent (ran " in text for text in shown), shown
    assert kernel.value("run7.output").startswith("The workspace has 1 entries. data.csv has 2 lines.")
    # Nobody is told of the end of a run that ended long ago.
    assert "ended" not in kernel.ok("1").stdout

    # One byte in one file: exactly the run that read it is launched again.
    (kernel.work / "part3" / "data.csv").write_text("rows\n4\n")
    shown = cards(kernel, cells)
    ended_well(kernel)
    assert len(ids(kernel)) == NUMBER + 1
    assert [number for number, text in enumerate(shown) if "reused: nothing was spent" not in text] == [3]
    said = kernel.value("run3.status.notes")
    assert len(said) == 1
    assert said[0].startswith("Launched anew: data.csv changed since delegate-")


def test_a_kernel_killed_in_the_first_pass_leaves_each_contract_to_run_once(new_kernel: Callable[..., Kernel]) -> None:
    kernel = new_kernel(SUBAGENTS_NB_REUSE="tracked", SUBAGENTS_NB_SPAWN="warm")
    cells = notebook(kernel)
    everything = "\n".join(
        f"get_ipython().run_cell_magic('subagent', {head[10:]!r}, {body + chr(10)!r})"
        for head, _, body in (code.partition("\n") for code in cells)
    )
    kernel.send(everything)
    until(lambda: kernel.home.runs.is_dir() and len(ids(kernel)) >= 4, 90, what="the first launches")
    kernel.kill()

    again = new_kernel(SUBAGENTS_NB_REUSE="tracked", SUBAGENTS_NB_SPAWN="warm")
    cards(again, cells)
    until(lambda: all_ended(again), 60, what="the end of all runs", pause=0.05)
    reader = FileRuns(again.home)
    worked: dict[str, int] = {}
    for run_id in reader.ids():
        snapshot = reader.snapshot(run_id, whole=True)
        if snapshot.plan is None:
            continue  # its launcher was killed before it was written
        events = again.home.run(run_id).events
        began = events.exists() and '"run-started"' in events.read_text()
        worked[snapshot.plan.cwd] = worked.get(snapshot.plan.cwd, 0) + began
    assert sorted(worked.values()) == [1] * NUMBER


def test_flags_and_defaults_choose_what_may_stand_in(new_kernel: Callable[..., Kernel]) -> None:
    kernel = new_kernel(SUBAGENTS_NB_REUSE="tracked")
    cell = "%%subagent --model scripted:echo -o run {flags}\nSay this back."

    def launch(flags: str = "") -> str:
        kernel.ok(cell.format(flags=flags))
        kernel.ok("run.wait()")
        return str(kernel.value("run.id"))

    first = launch()
    assert launch() == first
    second = launch("--fresh")
    assert second != first
    assert launch("--reuse never") != second
    kernel.ok("%config SubagentMagics.reuse = 'never'")
    third = launch()
    assert launch() != third
    assert "there is no reuse 'now'" in kernel.fails(cell.format(flags="--reuse now"))
    assert json.loads(json.dumps(kernel.value("run.reused"))) is False


def test_a_launch_that_finds_its_run_at_work_says_so_on_the_live_view(new_kernel: Callable[..., Kernel]) -> None:
    kernel = new_kernel(SUBAGENTS_NB_REUSE="tracked")
    cell = "%%subagent --model scripted:slow -o run\nGo on for a while."
    said = "reused: it was at work already (launched "
    assert said not in kernel.ok(cell).html
    again = kernel.ok(cell)
    assert kernel.value("run.reused") is True
    assert said in again.shown[-1]["text/html"]
    name = kernel.value("run.name")
    beside = kernel.ok(cell.replace("-o run", "-o other --name elsewhere")).html
    assert f"; its name is {name}, not elsewhere" in beside
    assert "other = subagents_nb.attach(" in beside
    opened = [m["content"]["data"]["state"] for m in kernel.log if m["msg_type"] == "comm_open"]
    views = [state["reused"] for state in opened if "reused" in state]
    assert [bool(view) for view in views] == [False, True, True]
    assert views[1].startswith(said)
    card = kernel.ok(cell, cell_id=None).shown[0]
    assert all(said in text for text in card.values()), card
    kernel.ok("run.stop(); run.wait()")


def test_a_dry_run_says_what_would_be_found(new_kernel: Callable[..., Kernel]) -> None:
    kernel = new_kernel(SUBAGENTS_NB_REUSE="tracked")
    cell = "%%subagent --model scripted:echo -o run {flags}\nSay this back."
    kernel.ok(cell.format(flags=""))
    kernel.ok("run.wait()")
    dry = kernel.ok(cell.format(flags="--dry-run"))
    data = next(m["content"]["data"] for m in dry.messages if m["msg_type"] == "execute_result")
    assert f"It would find {kernel.value('run.id')}, which did the same, and start nothing." in data["text/plain"]


def test_a_second_pass_over_a_notebook_with_a_tree_starts_no_run_of_it(new_kernel: Callable[..., Kernel]) -> None:
    kernel = new_kernel(SUBAGENTS_NB_REUSE="tracked", JPY_SESSION_NAME="look.ipynb")
    team = {"lead": ([{"delegate": [{"agent": "kid", "task": one} for one in "ab"], "say": True}], "agents: kid\n")}
    team["kid"] = ([{"text": "found"}], "")
    for name, (steps, more) in team.items():
        for kind, text in (
            ("scripts/{}.json", json.dumps(steps)),
            (
                "agents/{}.md",
                f"---\nname: {name}\ndescription: d\ntools: read\nmodel: scripted:{name}\n{more}---\nWork.\n",
            ),
        ):
            path = kernel.work / ".subagents" / kind.format(name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
    cells = ["%%subagent lead -o tree\nGo.", "tree.result(60)"]
    cards(kernel, cells)
    ended_well(kernel)
    first = ids(kernel)
    assert len(first) == 3, "the lead and two that it had work"
    kernel.restart()
    loading = kernel.ok("%load_ext subagents_nb").id
    kernel.until(
        lambda: "Runs of this notebook's kernel before, as of 20" in told_under(kernel, loading), what="what was left"
    )
    shown = cards(kernel, cells)
    assert ids(kernel) == first and "reused: nothing was spent" in shown[0] and "found\\nfound" in shown[1]
