"""A chain with a wide fan-out in a real JupyterLab: drawn, walked by keyboard, one step stopped, one steered."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import nbformat
from accessibility import can_be_read
from jupyterlab_page import Lab
from playwright.sync_api import expect
from support import until

from subagents_nb.domain.agents.scripts import SCRIPT_FOLDER

FOUND = [{"value": {"files": [{"path": f"pkg/module_{n}.py"} for n in range(64)]}}]
ITEM = [{"text": "Looking at it. "}, {"sleep": 0.4}, {"text": "The <b>retry</b> loop is fine."}]
BODY = """%%subagent_chain --model scripted:item --name review-release --max-children 80 -o work
task: the release
steps:
- agent: scout
  label: map files
  model: scripted:find
  as: found
  schema: {type: object, properties: {files: {type: array}}, required: [files]}
- expand: {from: {output: found, path: /files}, key: /path, max_items: 64}
  each: {reviewer: 'Review {item.path}'}
  collect: {as: reviews}
  concurrency: 16
  label: review each
- parallel:
  - {agent: worker, task: mend, label: mending, model: 'scripted:steerable'}
  - {agent: delegate, task: wait, label: waiting, model: 'scripted:slow'}
  on_failure: continue
- delegate: 'Sum up {outputs.reviews}'
  model: scripted:echo
"""
PARTS = (".sa-state", ".sa-title", ".sa-facts span", ".sa-stage-head b", ".sa-fact", ".sa-name", ".sa-panel-head b")


def test_a_wide_chain_is_drawn_walked_through_and_ends_as_a_card(lab: Lab, tmp_path: Path) -> None:
    pictures = Path(os.environ.get("SUBAGENTS_NB_PICTURES") or tmp_path)
    pictures.mkdir(parents=True, exist_ok=True)
    for name, script in (("find", FOUND), ("item", ITEM)):
        path = lab.work / SCRIPT_FOLDER / f"{name}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(script))
    book = lab.open("wide", ["%load_ext subagents_nb", BODY, "1 + 1"])
    book.run(0, 1)
    view = book.output(1).locator(".sa")
    stage = view.get_by_role("listitem", name="Stage review each")
    cells = stage.locator(".sa-step")
    expect(cells).to_have_count(64, timeout=20_000)
    beyond = "(node) => node.getBoundingClientRect().right - node.parentElement.getBoundingClientRect().right"
    # The page lays it out in its next frame.
    until(lambda: stage.evaluate(beyond) <= 0, 5, what="columns that shrink before anything is cut off")
    cells.first.evaluate("(node) => { node.kept = true; }")
    expect(view.get_by_role("status")).to_have_text("Stage review each is complete", timeout=30_000)
    assert cells.first.evaluate("(node) => node.kept"), "the nodes were made anew"
    expect(view.locator(".sa-head")).to_contain_text("65 of 68 steps")

    # The panel follows the step at work, and shows what it writes.
    panel = view.locator(".sa-panel")
    expect(panel).to_have_accessible_name(re.compile(r"steps\[\d+\], mending, running"), timeout=10_000)
    expect(panel.locator(".sa-tail")).to_contain_text("tick 1", timeout=10_000)
    can_be_read(view, *PARTS)
    view.screenshot(path=pictures / "chain.png")

    # By keyboard: from the step in the tab order to the stages; the notebook hears nothing of it.
    first = view.get_by_role("button", name="map files")
    first.focus()
    for key, name in (("ArrowRight", "module_0.py"), ("ArrowDown", "module_3.py"), ("ArrowRight", "module_4.py")):
        lab.page.keyboard.press(key)
        expect(cells.filter(has_text=name).first).to_be_focused()
    lab.page.keyboard.press("Enter")
    expect(panel).to_have_accessible_name(re.compile(r"steps\[\d+\], pkg/module_4\.py, complete"))
    expect(panel.locator(".sa-out")).to_have_text("Looking at it. The <b>retry</b> loop is fine.", timeout=10_000)
    expect(panel).to_contain_text("reviewer · ")
    view.screenshot(path=pictures / "chain-step.png")
    lab.page.keyboard.press("Escape")
    expect(panel).to_have_count(0)
    expect(cells.filter(has_text="module_4.py").first).to_be_focused()
    lab.page.keyboard.press("End")
    expect(view.locator(".sa-step").last).to_be_focused()
    expect(lab.page.locator(".jp-Notebook .jp-CodeCell")).to_have_count(3)

    # One step is stopped, the other one steered to its end; then the chain goes on and ends.
    view.get_by_role("button", name="waiting").click()
    panel.get_by_role("button", name="Stop step").press("Enter")
    expect(panel).to_have_accessible_name(re.compile(r"steps\[\d+\], waiting, stopped"), timeout=10_000)
    view.get_by_role("button", name="mending").click()
    panel.get_by_role("button", name="Steer step…").press("Enter")
    lab.page.keyboard.type("finish")
    lab.page.keyboard.press("Enter")
    card = book.output(1).locator("section[aria-label='Run review-release, partial']")
    expect(card).to_be_visible(timeout=20_000)
    expect(card).to_contain_text("1 of 68 steps did not complete")
    expect(card).to_contain_text("more complete")
    expect(card).to_contain_text("outputs: found, reviews")
    expect(card).to_contain_text("Sum up [{")
    expect(book.output(1).locator(".sa")).to_have_count(0)
    card.screenshot(path=pictures / "chain-card.png")
    assert lab.faults == []

    lab.page.evaluate("() => window.jupyterapp.commands.execute('docmanager:save')")
    saved = nbformat.read(lab.work / "wide.ipynb", as_version=4)
    text = json.dumps(saved.cells[1].outputs)
    assert "widget-view" not in text
    assert len(text) < 24_000
