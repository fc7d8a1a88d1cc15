"""A comparison in a real JupyterLab: live on the page, plain in the file and without its kernel."""

from __future__ import annotations

import os
from pathlib import Path

import nbformat
from accessibility import can_be_read
from jupyterlab_page import Lab, Notebook
from playwright.sync_api import Locator, expect
from support import until

WORDS = ["thirteen", "three", "one"]  # as the table has them: the newest first
SWEEP = f"""%%subagent scout --model scripted:echo --experiment words --score length --wait -q --repeat 4 \
--sweep word={",".join(reversed(WORDS))}
Say {{{{word}}}} once more"""
CELLS = [
    "%load_ext subagents_nb\ndef length(run):\n    return len(run.text)",
    SWEEP,
    "%subagent_compare --experiment words --by word --baseline word=thirteen",
]
LIVE, PLAIN = ".sa-compare", "[class^=subagents-nb-compare] > table"
THEMES = (("JupyterLab Dark", "dark"), ("JupyterLab Light", "light"))


def firsts(table: Locator) -> list[str]:
    return table.locator("tbody tr td:first-child").all_inner_texts()


def is_plain(output: Locator) -> None:
    """Wait until the plain table stands there, as it was, and nothing live beside it."""
    expect(output.locator(PLAIN)).to_be_visible()
    expect(output.locator(LIVE)).to_have_count(0)
    assert firsts(output.locator(PLAIN)) == WORDS


def is_live(output: Locator) -> Locator:
    """Wait until a live table stands there instead of the plain one, once."""
    expect(output.locator(LIVE)).to_have_count(1)
    expect(output.locator(LIVE)).to_be_visible()
    expect(output.locator(PLAIN)).to_be_hidden()
    return output.locator(LIVE)


def saved_by_the_menu(lab: Lab, book: Notebook) -> nbformat.NotebookNode:
    """Save with File > Save Notebook, wait until the page says that it is done, and read the file."""
    path = lab.work / f"{book.name}.ipynb"
    before = path.stat().st_mtime_ns
    lab.page.locator(".lm-MenuBar-item", has_text="File").click()
    lab.page.locator(".lm-Menu-item", has_text="Save Notebook").first.click()
    until(lambda: path.stat().st_mtime_ns > before, 10, what="the file")
    lab.page.wait_for_function("() => !window.jupyterapp.shell.currentWidget.context.model.dirty")
    return nbformat.read(path, as_version=4)


def test_a_comparison_is_sorted_and_filtered_and_saved_as_a_plain_table(lab: Lab, tmp_path: Path) -> None:
    pictures = Path(os.environ.get("SUBAGENTS_NB_PICTURES") or tmp_path)
    pictures.mkdir(parents=True, exist_ok=True)
    book = lab.open("compare", CELLS)
    book.run(0, 1, 2)
    output = book.output(2)
    live = is_live(output)

    # By mouse, by keyboard, and for a screen reader.
    button = live.get_by_role("button", name="length", exact=True)
    heading = button.locator("..")
    expect(heading).to_have_role("columnheader")
    button.click()
    expect(heading).to_have_attribute("aria-sort", "descending")
    assert firsts(live) == ["thirteen", "three", "one"]
    expect(button).to_be_focused()
    lab.page.keyboard.press("Enter")
    expect(heading).to_have_attribute("aria-sort", "ascending")
    expect(button).to_be_focused()
    assert firsts(live) == ["one", "three", "thirteen"]
    field = live.get_by_label("Show the rows that hold these words")
    field.click()
    lab.page.keyboard.type("thi b")  # b is a command of the notebook's
    expect(field).to_have_value("thi b")
    expect(live.get_by_role("status")).to_have_text("1 of 3 rows")
    assert firsts(live) == ["thirteen"]
    expect(output.get_by_text("Worst cases")).to_be_visible()

    # Saved at once, by the menu, while it is live.
    saved = saved_by_the_menu(lab, book)
    nbformat.validate(saved)
    (kept,) = saved.cells[2].outputs
    assert set(kept.data) == {"text/html", "text/plain"}
    assert "Worst cases" in kept.data["text/html"] and "sa-compare" not in kept.data["text/html"]
    assert all(f"{word}</td>" in kept.data["text/html"] for word in WORDS)
    assert not saved.metadata.get("widgets", {}).get("application/vnd.jupyter.widget-state+json", {}).get("state")
    is_live(output)

    # Shown a second time, it is a second live table with an order of its own.
    book.do("notebook:create-output-view")
    second = is_live(lab.page.locator(".jp-LinkedOutputView"))
    assert firsts(second) == WORDS and firsts(live) == ["thirteen"]

    field.fill("")
    for theme, name in THEMES:
        lab.page.evaluate("(theme) => window.jupyterapp.commands.execute('apputils:change-theme', {theme})", theme)
        light = str(name == "light").lower()
        lab.page.wait_for_function("(light) => document.body.dataset.jpThemeLight === light", arg=light)
        can_be_read(live, "th button", "td", ".sa-best", ".sa-count", "input")
        output.screenshot(path=pictures / f"compare-live-{name}.png")
    assert lab.faults == []


def test_the_plain_table_is_back_when_the_kernel_restarts_and_live_when_the_page_is_loaded(lab: Lab) -> None:
    book = lab.open("compare-again", CELLS)
    book.run(0, 1, 2)
    output = book.output(2)
    is_live(output)
    book.restart()
    is_plain(output)

    book.run(0, 2)
    is_live(output)
    saved_by_the_menu(lab, book)
    lab.visit("compare-again")
    live = is_live(output)
    live.get_by_role("button", name="word", exact=True).click()
    live.get_by_role("button", name="word", exact=True).click()
    assert firsts(live) == ["three", "thirteen", "one"]

    # Closed and opened again in one page, which leaves the first model behind.
    lab.page.evaluate("() => window.jupyterapp.shell.currentWidget.close()")
    expect(lab.page.locator(LIVE)).to_have_count(0)
    lab.page.evaluate("() => window.jupyterapp.commands.execute('docmanager:open', {path: 'compare-again.ipynb'})")
    is_live(output)
    book.restart()
    is_plain(output)
    assert lab.faults == []


def test_unloading_the_extension_leaves_the_plain_table(lab: Lab) -> None:
    book = lab.open("compare-unloaded", [*CELLS, "%unload_ext subagents_nb"])
    book.run(0, 1, 2)
    is_live(book.output(2))
    book.run(3)
    is_plain(book.output(2))
    assert lab.faults == []
