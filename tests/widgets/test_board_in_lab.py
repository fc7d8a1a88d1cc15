"""Many runs in a real JupyterLab: the oldest question answered, runs stopped together, a call read, by keys alone."""

from __future__ import annotations

import re

from accessibility import can_be_read
from jupyterlab_page import Lab
from playwright.sync_api import expect
from support import script, until

from subagents_nb.domain.runs.states import RunState
from subagents_nb.launching import Run
from subagents_nb.store import FileRuns

LAUNCHES = """
from subagents_nb import launch
asks = [launch("worker", "rename", model="scripted:asks", name=f"rename-{n}") for n in range(2)]
bad = launch("scout", "port the tests", model="scripted:bad", name="port-tests")
works = [launch("worker", "mend", model="scripted:works", name=f"mend-{n}") for n in range(3)]
bad.wait(30)
None"""
FAILED = '.sa-row[data-need="failed"]:has-text("port-tests")'  # what other tests left unseen stands there too
SHOTS = (("JupyterLab Dark", "dark", 1400), ("JupyterLab Light", "light", 800))


def test_many_runs_are_answered_stopped_and_read_by_keys_alone(lab: Lab) -> None:
    import os

    here = os.getcwd()
    os.chdir(lab.work)  # where scripts are written
    try:
        script("asks", {"ask": "Keep the old name as an alias?", "choices": ["Yes", "No"]}, {"text": "done"})
        calls = [{"call": "list", "args": {"path": "."}}, {"call": "list", "args": {"path": "."}}]
        script("bad", *calls, {"call": "read", "args": {"path": "gone.txt"}}, {"fail": {"message": "it broke"}})
        script("works", {"text": "The table "}, {"await_steer": True})
    finally:
        os.chdir(here)
    book = lab.open("board", ["%load_ext subagents_nb", LAUNCHES, "%subagent_status", "1"])
    book.run(0, 1, 2)
    board = book.output(2).locator(".sa-board")
    expect(board.locator('.sa-row[data-need="asks"]')).to_have_count(2)
    expect(board.locator('.sa-row[data-need="working"]')).to_have_count(3)
    expect(lab.page).to_have_title(re.compile(r"^\(2 ask\) "))
    press = lab.page.keyboard.press
    asked = {run.name: run for run in (Run(lab.home, one) for one in FileRuns(lab.home).ids())}

    first = board.locator(".sa-row").first  # the oldest question
    oldest = first.locator(".sa-row-name").inner_text().strip()
    (other,) = {"rename-0", "rename-1"} - {oldest}
    first.focus()
    press("1")
    expect(board.locator('.sa-row[data-need="asks"]')).to_have_count(1, timeout=15_000)
    assert asked[oldest].wait(20)
    assert asked[other].status.questions

    board.locator(FAILED).focus()
    press("Enter")
    calls_seen = board.locator(".sa-call summary")
    expect(calls_seen).to_have_count(3)
    calls_seen.nth(2).focus()
    press("Enter")
    expect(board.locator(".sa-call").filter(has_text="gone.txt")).to_contain_text("File not found")
    press("Escape")
    expect(board.locator(".sa-opened")).to_have_count(0)
    expect(board.locator(FAILED)).to_have_count(0, timeout=15_000)  # it was read

    press("/")
    lab.page.keyboard.type("agent:worker working")
    expect(board.locator(".sa-row:visible")).to_have_count(3)
    for _ in range(3):
        press("ArrowDown")
        press("x")
    expect(board.locator(".sa-strip")).to_contain_text("3 selected")
    press("s")
    for number in range(3):
        assert asked[f"mend-{number}"].wait(20)
        assert asked[f"mend-{number}"].state is RunState.STOPPED
    board.locator("input[type=search]").first.fill("")
    for theme, scheme, width in SHOTS:
        lab.page.evaluate("(theme) => window.jupyterapp.commands.execute('apputils:change-theme', { theme })", theme)
        lab.page.set_viewport_size({"width": width, "height": 1000})
        expect(
            lab.page.locator(f'body[data-jp-theme-light="{"true" if scheme == "light" else "false"}"]')
        ).to_have_count(1)
        # Lab takes its splash away 200 ms after a theme is there, and trips over a theme that comes within.
        expect(lab.page.locator("#jupyterlab-splash")).to_have_count(0)
        row = board.locator('.sa-row[data-need="asks"]')
        can_be_read(board, *(f".sa-row[data-need=asks] {part}" for part in (".sa-row-name", ".sa-row-agent")))
        box, frame = row.bounding_box(), board.bounding_box()
        assert box is not None and frame is not None
        assert box["x"] + box["width"] <= frame["x"] + frame["width"] + 1
    lab.page.set_viewport_size({"width": 1180, "height": 1000})
    board.locator('.sa-row[data-need="asks"]').focus()
    saved = (lab.work / "board.ipynb").stat().st_mtime_ns
    press("Control+s")
    until(lambda: (lab.work / "board.ipynb").stat().st_mtime_ns != saved, 15, what="the notebook to be saved")
    book.run(3)  # a cell begins: the plain table says how they stand
    until(lambda: "stopped" in book.saved().cells[2].outputs[0].data["text/html"], 15, what="the table as it stands")
    (kept,) = book.saved().cells[2].outputs
    assert len(kept.data["text/html"]) <= 20_000
    assert "as of" in kept.data["text/html"]
    book.restart()
    expect(board).to_contain_text("The kernel was restarted", timeout=20_000)
    book.run(0)
    expect(board).not_to_contain_text("The kernel was restarted", timeout=20_000)
    expect(board.locator(".sa-row[data-need]")).not_to_have_count(0)
    assert lab.faults == []
