"""A page that is loaded anew, and a second one beside it: no end is lost, and what is said arrives once.

With each change one round, with `make soak` twenty, at moments of chance.
"""

from __future__ import annotations

import json
import os
import random
import time

import nbformat
import pytest
from jupyterlab_page import Lab
from playwright.sync_api import Page, expect

from subagents_nb.launching import Run
from subagents_nb.store import FileRuns

SOAK = os.environ.get("SOAK") == "1"
RELOADS, ANSWERS = (20, 20) if SOAK else (1, 4)
LASTS_S = 3.0
WORKS = [{"text": "I begin. "}, {"sleep": LASTS_S}, {"text": "That was all."}]


def write(lab: Lab, name: str, steps: list[dict[str, object]]) -> None:
    (lab.work / f"{name}.json").write_text(json.dumps(steps))


def plain(book: nbformat.NotebookNode, cell: int) -> str:
    return "\n".join(output["data"].get("text/plain", "") for output in book.cells[cell].outputs)


@pytest.mark.host(
    "JupyterLab", magics="yes", live="yes", buttons="yes", reload="live again, also in a new kernel", saved="a card"
)
@pytest.mark.parametrize("number", range(RELOADS))
def test_the_end_is_on_the_page_and_in_the_file_whenever_the_page_is_loaded_anew(lab: Lab, number: int) -> None:
    write(lab, "works", WORKS)
    name = f"anew{number}"
    book = lab.open(name, [
        "%load_ext subagents_nb",
        f"%%subagent delegate --model scripted:works.json --name {name}-run\nx",
        f"%%subagent_chain --name {name}-chain\n- delegate: a\n  model: scripted:works.json\n"
        "- delegate: b\n  model: scripted:echo",
        "import subagents_nb\nsubagents_nb.sweep('delegate', 'w {{i}}', grid={'i': ['1', '2']}, "
        f"model='scripted:works.json', name='{name}-sweep')",
    ])  # fmt: skip
    book.run(0, 1, 2, 3)
    book.saved()
    moment = random.uniform(0, LASTS_S + 1)
    lab.page.wait_for_timeout(1000 * moment)
    lab.visit(name)
    seen = {1: "complete", 2: "complete", 3: "2 of 2 done"}
    for cell, said in seen.items():
        expect(book.output(cell), f"loaded anew after {moment:.2f} s").to_contain_text(said, timeout=20_000)
        # A sweep's grid stays, for its runs are opened from it; before the plain table, which is what was saved.
        views = 1 if cell == 3 else 0
        expect(book.output(cell).locator(".sa:not(.sa-more)")).to_have_count(views, timeout=20_000)
    saved = book.saved()
    for cell, said in seen.items():
        assert said in plain(saved, cell), f"loaded anew after {moment:.2f} s: {plain(saved, cell)}"
        assert said in str(saved.cells[cell].outputs[0]["data"]["text/html"])
    assert lab.faults == []


def test_answers_from_either_of_two_tabs_arrive_once_each_also_after_a_reload(lab: Lab) -> None:
    asks = [{"ask": f"Question {number}?"} for number in range(ANSWERS)]
    write(lab, "asks", [step for ask in asks for step in (ask, {"text": "; "})])
    book = lab.open("tabs", [
        "%load_ext subagents_nb", "%%subagent delegate --model scripted:asks.json --name two-tabs -o work\nx", "1",
    ])  # fmt: skip
    book.run(0, 1)
    expect(book.output(1).locator(".sa")).to_contain_text("Question 0?", timeout=20_000)
    book.saved()
    second = lab.browser.new_page()
    second.goto(lab.address_of("tabs", workspace="other"))
    tabs = [lab.page, second]
    for number in range(ANSWERS):
        if number == ANSWERS // 2:
            lab.visit("tabs")
        _answer(tabs[random.randrange(2)], number)
    run = Run(lab.home, FileRuns(lab.home).ids()[0])
    assert run.wait(20)
    said = str(run.result())
    assert [said.count(f"answer-{number};") for number in range(ANSWERS)] == [1] * ANSWERS, said
    second.close()


def _answer(tab: Page, number: int) -> None:
    tab.bring_to_front()
    view = tab.locator(".jp-Notebook .sa")
    question = view.get_by_role("group", name=f"Question: Question {number}?")
    field = question.get_by_label("Your answer")
    expect(field).to_be_editable(timeout=30_000)
    began = time.monotonic()
    field.fill(f"answer-{number}")
    field.press("Enter")
    expect(question).to_have_count(0, timeout=6_000)
    assert time.monotonic() - began < 6


def test_a_new_kernel_goes_on_with_the_views_of_the_old_one(lab: Lab) -> None:
    write(lab, "twice", [{"ask": "Question 0?"}, {"text": "; "}, {"ask": "Question 1?"}, {"text": "; "}])
    book = lab.open("restarted", [
        "%load_ext subagents_nb", "%%subagent delegate --model scripted:twice.json --name restarted-run\nx",
    ])  # fmt: skip
    book.run(0, 1)
    view = book.output(1).locator(".sa")
    expect(view).to_contain_text("Question 0?", timeout=20_000)

    # The page stays open: the old view says what holds, and goes on once the extension is loaded.
    book.restart()
    expect(view).to_contain_text("The kernel was restarted", timeout=20_000)
    book.run(0)
    expect(view).not_to_contain_text("The kernel was restarted", timeout=20_000)
    _answer(lab.page, 0)
    expect(view).to_contain_text("Question 1?", timeout=20_000)

    # The notebook was saved with a live view and is opened again with a new kernel.
    saved = str(book.saved().cells[1].outputs)
    for said in ("restarted-run", "as of ", "%subagent_attach"):
        assert said in saved
    book.restart()
    lab.visit("restarted")
    expect(book.output(1)).to_contain_text("as of ", timeout=20_000)
    expect(view).to_have_count(0)
    book.run(0)
    _answer(lab.page, 1)
    expect(view).to_have_count(0, timeout=20_000)
    expect(book.output(1)).to_contain_text("complete")
    assert "answer-0; answer-1;" in plain(book.saved(), 1)
