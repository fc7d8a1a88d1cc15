"""A run in full in a real JupyterLab: from a board, a card and a step, by keys and by mouse; nothing of it is saved."""

from __future__ import annotations

import os

from accessibility import can_be_read
from jupyterlab_page import Lab
from playwright.sync_api import expect
from support import script

LAUNCHES = """
from subagents_nb import chain, launch, step
bad = launch("scout", "port the tests", model="scripted:bad", name="port-in-full")
steps = step("scout", "look", model="scripted:echo"), step("worker", "mend", model="scripted:works")
both = launch(chain(*steps), name="both")
bad.wait(30)
None"""
SIDEWAYS = (
    "[...document.querySelectorAll('.sa-opened, .sa-did')].filter((one) => one.scrollWidth > one.clientWidth).length"
)


def test_the_third_call_of_a_failed_run_is_read_from_a_board_a_card_and_a_step(lab: Lab) -> None:
    here = os.getcwd()
    os.chdir(lab.work)  # where scripts are written
    try:
        calls = [{"call": "list", "args": {"path": "."}}, {"text": "hm"}, {"call": "list", "args": {"path": "."}}]
        script("bad", *calls, {"call": "read", "args": {"path": "gone.txt"}}, {"fail": {"message": "it broke"}})
        script("works", {"call": "list", "args": {"path": "."}}, {"text": "The table "}, {"await_steer": True})
    finally:
        os.chdir(here)
    book = lab.open("full", ["%load_ext subagents_nb", LAUNCHES, "%subagent_status", "bad", "both"])
    book.run(0, 1, 2)
    board = book.output(2).locator(".sa-board")
    board.locator('.sa-row[data-need="failed"]:has-text("port-in-full")').focus()
    lab.page.keyboard.press("Enter")  # one
    expect(board.locator(".sa-opened")).to_be_focused()
    lab.page.keyboard.press("3")  # two
    expect(board.locator(".sa-call[open]")).to_contain_text("File not found")
    lab.page.keyboard.press("Escape")
    expect(board.locator(".sa-opened")).to_have_count(0)

    book.run(3, 4)
    card, chain = book.output(3), book.output(4)
    card.get_by_role("button", name="In full").click()
    card.locator(".sa-opened summary", has_text="read").click()
    expect(card.locator(".sa-call[open]")).to_contain_text("File not found")
    card.locator(".sa-opened input").fill("gone")
    expect(card.locator(".sa-opened mark").first).to_have_text("gone")
    panel = chain.locator(".sa-panel")
    panel.get_by_role("button", name="In full").click()
    expect(panel.locator(".sa-opened .sa-opened-head .sa-title")).to_contain_text("steps[1] · worker")
    expect(panel.locator(".sa-opened")).to_contain_text("of CPU")

    lab.page.evaluate("() => window.jupyterapp.commands.execute('apputils:change-theme', { theme: 'JupyterLab Dark' })")
    expect(lab.page.locator('body[data-jp-theme-light="false"]')).to_have_count(1)
    expect(lab.page.locator("#jupyterlab-splash")).to_have_count(0)
    lab.page.set_viewport_size({"width": 800, "height": 1000})
    can_be_read(card.locator(".sa-opened"), ".sa-opened-task", ".sa-fact", ".sa-aside")
    assert lab.page.evaluate(SIDEWAYS) == 0
    html = book.saved().cells[3].outputs[0].data["text/html"]
    assert "port-in-full" in html
    assert "failed" in html
    assert "sa-opened" not in html
    assert lab.faults == []
