"""A sweep in a real JupyterLab: its grid is watched and opened by keys and by mouse, and a plain table is saved."""

from __future__ import annotations

import os
from pathlib import Path

from accessibility import can_be_read
from jupyterlab_page import Lab
from playwright.sync_api import expect
from support import script

THEMES = (("JupyterLab Light", "light"), ("JupyterLab Dark", "dark"))
LAUNCH = """
from subagents_nb import sweep
swept = sweep("scout", "say {{tone}}", grid={"model": ["scripted:echo", "scripted:bad"], "tone": ["dry", "warm"]},
              name="tones", repeat=2, score=lambda run: {"right": "dry" in run.text})
swept"""
DASHBOARD = """
from ipywidgets import HBox, Output, VBox
from subagents_nb import board, launch
out, view = Output(), launch("scout", "x", model="scripted:slow", name="slow").widget()
view.observe(lambda change: out.append_stdout("now " + change["new"]), "state")
VBox([HBox([view, view]), swept.widget(), board().widget(), out])"""


def test_a_grid_opens_its_runs_in_place_says_why_some_failed_and_is_saved_as_a_table(lab: Lab, tmp_path: Path) -> None:
    pictures = Path(os.environ.get("SUBAGENTS_NB_PICTURES") or tmp_path)
    pictures.mkdir(parents=True, exist_ok=True)
    here = os.getcwd()
    os.chdir(lab.work)  # where scripts are written
    try:
        script("bad", {"fail": {"message": "it broke"}})
    finally:
        os.chdir(here)
    book = lab.open("swept", ["%load_ext subagents_nb", LAUNCH, "swept.wait(60)", DASHBOARD])
    book.run(0, 1)
    view = book.output(1).locator(".sa-sweep")
    expect(view).to_be_visible(timeout=20_000)
    book.run(2)
    expect(view.locator(".sa-state")).to_contain_text("ended, some failed", timeout=20_000)
    expect(view).to_contain_text("4 of 8 done")
    expect(view.locator(".sa-sweep-failures")).to_contain_text("scripted:bad, dry: 2 failed")
    first = view.get_by_role("gridcell").first.get_by_role("button")
    expect(first).to_have_accessible_name("scripted:echo, dry, 1.00 (0.34 to 1.00), 2 of 2, $0", timeout=20_000)

    first.focus()
    lab.page.keyboard.press("ArrowRight")
    lab.page.keyboard.press("Enter")
    chips = view.locator(".sa-sweep-run")
    expect(chips).to_have_count(2)
    expect(chips.first).to_be_focused()
    lab.page.keyboard.press("Enter")
    expect(view.locator(".sa-opened")).to_contain_text("say warm", timeout=20_000)
    lab.page.keyboard.press("Escape")
    expect(view.locator(".sa-opened")).to_have_count(0)
    lab.page.keyboard.press("Escape")
    expect(view.get_by_role("gridcell").nth(1).get_by_role("button")).to_be_focused()
    view.get_by_role("button", name="Open a failed run of scripted:bad, dry").click()
    expect(view.locator(".sa-opened")).to_contain_text("it broke", timeout=20_000)

    lab.page.set_viewport_size({"width": 800, "height": 1000})
    for theme, name in THEMES:
        lab.page.evaluate("(theme) => window.jupyterapp.commands.execute('apputils:change-theme', {theme})", theme)
        light = str(name == "light").lower()
        lab.page.wait_for_function("(light) => document.body.dataset.jpThemeLight === light", arg=light)
        can_be_read(view, ".sa-fact", ".sa-sweep-counts span", "th", ".sa-note")
        view.screenshot(path=pictures / f"sweep-{name}.png")
    assert view.evaluate("(one) => one.scrollWidth <= one.clientWidth")
    html = book.saved().cells[1].outputs[0].data["text/html"]
    assert "4 of 8 done, 4 failed" in html
    assert "it broke" in html
    assert "sa-sweep" not in html

    book.run(3)  # the same in a layout of one's own, one of them twice
    held = book.output(3)
    expect(held.locator(".sa-sweep")).to_contain_text("4 of 8 done", timeout=20_000)
    expect(held.locator('.sa-board .sa-row[data-need="working"]')).to_contain_text("slow")
    runs = held.locator(".sa:not(.sa-board):not(.sa-sweep)")
    expect(runs).to_have_count(2)
    runs.first.get_by_role("button", name="Stop").click()
    expect(runs.last.locator(".sa-state")).to_contain_text("stopped", timeout=20_000)
    expect(held.locator(".jp-OutputArea-output pre").last).to_contain_text("now stopped")
    held.locator(".sa-sweep").get_by_role("button", name="Open a failed run of scripted:bad, dry").click()
    expect(held.locator(".sa-sweep .sa-opened")).to_contain_text("it broke", timeout=20_000)
    assert lab.faults == []
