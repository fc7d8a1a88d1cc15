"""The whole thing in a real JupyterLab, looked at through a real browser."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import nbformat
from accessibility import can_be_read
from jupyterlab_page import Lab
from playwright.sync_api import expect

from subagents_nb.launching import Run
from subagents_nb.store import FileRuns

PARTS = (".sa-state", ".sa-title", ".sa-agent", ".sa-facts span", ".sa-tail", "button", ".sa-foot")
FOUND = """from pydantic import BaseModel
class Row(BaseModel):
    column: str
    problem: str
    rows: int
class Findings(BaseModel):
    columns: list[Row]"""

_NOTE_DISABLED = """(node) => {
    window.disabled = []; const { disabled } = window;
    const note = () => node.querySelectorAll("button:disabled").forEach((b) => disabled.push(b.innerText));
    new MutationObserver(note).observe(node, { subtree: true, childList: true, attributes: true, characterData: true });
}"""


def test_a_run_is_live_on_the_page_and_can_be_stopped_there(lab: Lab) -> None:
    book = lab.open("live", [
        "%load_ext subagents_nb",
        "%%subagent scout --model scripted:slow --name on-the-page -o work\nx",
        "import os, time\nend = time.monotonic() + 60\n"
        "while time.monotonic() < end and not os.path.exists('moved'): pass",
    ])  # fmt: skip
    book.run(0, 1)
    view = book.output(1).locator(".sa")
    tail = view.locator(".sa-tail")
    expect(tail).to_contain_text("tick 3", timeout=10_000)

    # The text follows its end when the box gets smaller and larger again.
    for height in ("58px", "90px"):
        tail.evaluate("(node, height) => { node.style.height = height; }", height)
        long = "(node) => node.scrollHeight > node.clientHeight + 40"
        lab.page.wait_for_function(long, arg=tail.element_handle(), timeout=20_000)
        assert tail.evaluate("(node) => Math.abs(node.scrollTop)") < 2  # laid out from the bottom

    # It goes on while a cell keeps the kernel busy.
    # (The kernel's own status says nothing of that: a message that a subshell answers sets it to idle meanwhile.)
    book.begin(2)
    expect(book.prompt(2)).to_have_text("[*]:", timeout=20_000)
    length = len(tail.inner_text())
    lab.page.wait_for_function(
        "([node, length]) => node.innerText.length > length + 60", arg=[tail.element_handle(), length], timeout=20_000
    )
    assert book.prompt(2).inner_text() == "[*]:", "the cell ended before anything moved"
    (lab.work / "moved").touch()

    # What a screen reader is told.
    expect(view).to_have_role("region")
    expect(view).to_have_accessible_name("Run on-the-page, running")
    stop = view.get_by_role("button", name="Stop", exact=True)
    expect(stop).to_be_visible()
    status = view.get_by_role("status")
    expect(status).to_have_attribute("aria-live", "polite")
    expect(tail).to_have_attribute("aria-label", "Text so far")
    for button in view.get_by_role("button").all():
        assert button.inner_text().strip()
    can_be_read(view, *PARTS)

    # Stop, while the kernel is still busy or not: the run ends and a card takes the view's place.
    view.evaluate(_NOTE_DISABLED)  # on a busy machine it is there for a moment only
    stop.focus()
    stop.press("Enter")
    card = book.output(1).locator("section[aria-label='Run on-the-page, stopped']")
    expect(card).to_be_visible(timeout=15_000)
    assert "Stop requested" in map(str.strip, lab.page.evaluate("window.disabled"))
    expect(book.output(1).locator(".sa")).to_have_count(0)
    assert str(Run(lab.home, FileRuns(lab.home).ids()[0]).state) == "stopped"
    assert lab.faults == []


def test_a_question_is_answered_by_keyboard_and_a_run_is_steered_from_the_page(lab: Lab, tmp_path: Path) -> None:
    pictures = Path(os.environ.get("SUBAGENTS_NB_PICTURES") or tmp_path)
    pictures.mkdir(parents=True, exist_ok=True)
    (lab.work / "asks.json").write_text(json.dumps([
        {"text": "I would rename the column. "},
        {"ask": "Keep the old name as an alias?", "choices": ["yes", "no", "for one release"]},
        {"text": ". Now I wait to be steered. "},
        {"await_steer": True},
        {"sleep": 600},
    ]))  # fmt: skip
    book = lab.open("talking", [
        "%load_ext subagents_nb",
        "%%subagent scout --model scripted:asks.json --name rename-api -o work\nx",
        "work.stop()",
    ])  # fmt: skip
    lab.page.emulate_media(reduced_motion="reduce")
    book.run(0, 1)
    view = book.output(1).locator(".sa")
    expect(view).to_have_accessible_name("Run rename-api, asks you", timeout=10_000)
    expect(view.get_by_role("status")).to_have_text("Run rename-api asks you: Keep the old name as an alias?")
    question = view.get_by_role("group", name="Question: Keep the old name as an alias?")
    field = question.get_by_label("Your answer")
    can_be_read(question, "p", ".sa-choice", "label span", "input")
    can_be_read(view, ".sa-state")
    view.screenshot(path=pictures / "asks.png")

    # By keyboard alone, from the text to the choices to the field.
    view.locator(".sa-tail").focus()
    for name in ("for one release", "no", "yes"):
        lab.page.keyboard.press("Shift+Tab") if name != "for one release" else _tab_back_to(lab, "for one release")
        expect(question.get_by_role("button", name=name, exact=True)).to_be_focused()
    field.focus()
    lab.page.keyboard.type("yes, db dd")  # b and d d are commands of the notebook's
    expect(field).to_have_value("yes, db dd")
    lab.page.keyboard.press("Escape")
    expect(field).to_have_value("yes, db dd")
    lab.page.keyboard.press("Enter")
    expect(view).to_have_accessible_name("Run rename-api, running", timeout=10_000)
    expect(view.locator(".sa-tail")).to_contain_text("yes, db dd. Now I wait to be steered.")
    expect(question).to_have_count(0)
    expect(view.locator(".sa-tail")).to_be_focused()
    expect(lab.page.locator(".jp-Notebook .jp-CodeCell")).to_have_count(3)

    steer = view.get_by_role("button", name="Steer…")
    steer.press("Enter")
    expect(steer).to_have_attribute("aria-expanded", "true")
    line = view.get_by_label("Say to the agent")
    expect(line).to_be_focused()
    lab.page.keyboard.type("look at region, too")
    view.screenshot(path=pictures / "steer.png")
    lab.page.keyboard.press("Enter")
    expect(view.locator(".sa-steer")).to_contain_text("The agent was told.", timeout=10_000)
    expect(view.locator(".sa-tail")).to_contain_text("look at region, too")
    can_be_read(view, ".sa-steer label span", ".sa-steer input", ".sa-steer .sa-said span")
    view.screenshot(path=pictures / "steered.png")
    lab.page.keyboard.press("Escape")
    expect(line).to_be_hidden()
    expect(steer).to_be_focused()
    book.run(2)
    card = book.output(1).locator("section[aria-label='Run rename-api, stopped']")
    expect(card).to_contain_text("%subagent_again r-", timeout=15_000)
    card.screenshot(path=pictures / "stopped.png")
    assert lab.faults == []


def _tab_back_to(lab: Lab, name: str) -> None:
    """Go back from the text to the choice of this name."""
    for _ in range(4):
        lab.page.keyboard.press("Shift+Tab")
        if lab.page.evaluate("() => document.activeElement.textContent") == name:
            return


def test_the_card_stays_when_kernel_and_page_are_gone(lab: Lab) -> None:
    (lab.work / "script.json").write_text(json.dumps([
        {"text": "Looking."},
        {"sleep": 2},  # a view that is gone before the page has loaded it leaves an error of anywidget's in the console
        {"value": {"columns": [{"column": "unit_price", "problem": "negative", "rows": 14},
                               {"column": "region", "problem": "two spellings", "rows": 211}]}},
    ]))  # fmt: skip
    book = lab.open("kept", [
        "%load_ext subagents_nb\n" + FOUND,
        "%%subagent scout --model scripted:script.json --name to-keep --schema Findings -o findings\nx",
        "await findings",
        "%%subagent --model scripted:slow --name left-alone\nx",
        "from subagents_nb import attach\nattach('left-alone').stop()\nattach('left-alone').wait()",
    ])  # fmt: skip
    book.run(0, 1, 2)
    card = book.output(1).locator("section[aria-label='Run to-keep, complete']")
    expect(card).to_be_visible()
    rows = card.get_by_role("table").get_by_role("row")
    expect(rows).to_have_text([r"columnproblemrows", "unit_pricenegative14", "regiontwo spellings211"])
    expect(card).to_contain_text("findings.output: Findings, 2 items")
    can_be_read(card, "strong", "th", "td", "code")
    book.run(3)
    expect(book.output(3).locator(".sa")).to_be_visible()

    book.restart()
    lab.page.wait_for_function(
        "() => window.jupyterapp.shell.currentWidget.context.sessionContext.session.kernel.status === 'idle'"
    )
    saved = book.saved()
    nbformat.validate(saved)
    assert not saved.metadata.get("widgets", {}).get("application/vnd.jupyter.widget-state+json", {}).get("state")
    assert "_esm" not in json.dumps(saved)
    assert len(json.dumps(saved.cells[1].outputs)) < 5_000

    lab.visit("kept")
    expect(book.output(1).locator("section[aria-label='Run to-keep, complete']")).to_be_visible()
    assert "unit_price" in book.output(1).inner_text()
    # A live view can't be drawn again without its kernel; the run's name and how to see it are in the file.
    assert "left-alone" in saved.cells[3].outputs[0].data["text/plain"]
    book.run(0, 4)
    assert lab.faults == []


def test_both_themes_can_be_read(lab: Lab) -> None:
    book = lab.open("themes", [
        "%load_ext subagents_nb",
        "%%subagent scout --model scripted:slow --name in-the-dark -o work\nx",
        "%%subagent scout --model scripted:fail --name failed-in-the-dark\nx",
        "work.stop(); asking.stop()",
        "%%subagent scout --model scripted:ask --name asks-in-the-dark -o asking\nx",
    ])  # fmt: skip
    book.run(0, 1, 2, 4)
    view = book.output(1).locator(".sa")
    card = book.output(2).locator("section:not(.sa)")  # its live view stands above it until the run has ended
    question = book.output(4).locator(".sa-question")
    expect(view).to_be_visible()
    expect(card).to_contain_text("failed", timeout=20_000)
    expect(question).to_be_visible()
    try:
        for theme, scheme in (("JupyterLab Dark", "dark"), ("JupyterLab Light", "light")):
            lab.page.evaluate("(theme) => window.jupyterapp.commands.execute('apputils:change-theme', {theme})", theme)
            lab.page.wait_for_function(
                "(light) => document.body.dataset.jpThemeLight === light", arg=str(scheme == "light").lower()
            )
            expect(view).to_have_css("color-scheme", scheme)
            can_be_read(view, *PARTS)
            can_be_read(question, "p", ".sa-choice", "label span", "input")
            can_be_read(card, "strong", "header span", "footer code", "footer span")
    finally:
        lab.page.evaluate(
            "() => window.jupyterapp.commands.execute('apputils:change-theme', {theme: 'JupyterLab Light'})"
        )
    book.run(3)


SCRIPT: list[dict[str, Any]] = [
    {"usage": {"input_tokens": 1_840, "requests": 1, "cost_usd": 0.006}},
    {"tool": "read", "args": {"path": "data/sales.csv"}, "result": "order_id,date,region,product", "seconds": 0.1},
    {"usage": {"input_tokens": 4_210, "requests": 1, "cost_usd": 0.014}},
    {"tool": "bash", "args": {"command": "cut -d, -f3 data/sales.csv | sort | uniq -c"}, "result": "", "seconds": 0.4},
    {"tool": "grep", "args": {"pattern": ",-[0-9.]+,", "path": "data/sales.csv"}, "result": "14", "seconds": 0.2},
    {"usage": {"input_tokens": 6_350, "output_tokens": 690, "requests": 1, "cost_usd": 0.031}},
    {"text": "Three columns of data/sales.csv look wrong.\n\n"},
    {"sleep": 0.3},
    {"text": "unit_price holds 14 negative values, all from one import on 3 May: the export flipped their sign. "},
    {"sleep": 0.3},
    {"text": "region has two spellings of one place, “North-East” in 211 rows and “Northeast” in 38. "},
    {"sleep": 0.3},
    {"text": "quantity has one value of 99,999, which looks like a sentinel for “unknown”"},
    {"sleep": 2},
    {"text": "."},
    {
        "value": {
            "columns": [
                {"column": "unit_price", "problem": "negative values", "rows": 14, "why": "one import, sign flipped"},
                {"column": "region", "problem": "two spellings", "rows": 211, "why": "“North-East” and “Northeast”"},
                {"column": "quantity", "problem": "sentinel", "rows": 1, "why": "99,999 stands for unknown"},
            ]
        }
    },
]  # fmt: skip


def test_the_pictures_for_the_documentation(lab: Lab, tmp_path: Path) -> None:
    folder = Path(os.environ.get("SUBAGENTS_NB_PICTURES") or tmp_path)
    folder.mkdir(parents=True, exist_ok=True)
    scripts = lab.work / ".subagents" / "scripts"
    scripts.mkdir(parents=True, exist_ok=True)
    (scripts / "data-check.json").write_text(json.dumps(SCRIPT))
    book = lab.open("pictures", [
        "%load_ext subagents_nb\n" + FOUND.replace("rows: int\n", "rows: int\n    why: str\n"),
        "%%subagent scout --model scripted:data-check --name find-outliers --schema Findings -o findings\n"
        "Which columns of data/sales.csv look wrong, and why?",
    ])  # fmt: skip
    lab.page.emulate_media(reduced_motion="reduce")  # nothing blinks or turns while the picture is taken
    book.run(0, 1)
    view = book.output(1).locator(".sa")
    expect(view.locator(".sa-tail")).to_contain_text("99,999", timeout=10_000)
    expect(view.locator(".sa-tools li")).to_have_count(3)
    view.screenshot(path=folder / "run.png")
    card = book.output(1).locator("section[aria-label='Run find-outliers, complete']")
    expect(card).to_be_visible(timeout=10_000)
    card.screenshot(path=folder / "card.png")
    for name in ("run.png", "card.png"):
        assert (folder / name).stat().st_size > 10_000
