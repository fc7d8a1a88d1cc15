"""Pages other than JupyterLab's, of the same server: Notebook 7 and Voila."""

from __future__ import annotations

from collections.abc import Iterator

import nbformat
import pytest
from jupyterlab_page import TOKEN, Lab, await_kernel
from playwright.sync_api import Error, Page, expect
from support import until

from subagents_nb.store import FileRuns

DASHBOARD = """
from ipywidgets import HBox, Output, VBox
from subagents_nb import board, launch
out, view = Output(), launch("scout", "x", model="scripted:slow", name="slow").widget()
view.observe(lambda change: out.append_stdout("now " + change["new"]), "state")
VBox([HBox([view, view]), board(limit=3).widget(), out])"""
RUN = ".sa:not(.sa-board)"


@pytest.fixture
def page(lab: Lab) -> Iterator[Page]:
    """A page of its own: JupyterLab's stays as it is."""
    page = lab.browser.new_page(viewport={"width": 1180, "height": 1000})
    faults: list[str] = []

    def fault(error: Error) -> None:
        if "blob:" in str(error.stack):  # from where our modules are loaded; Notebook has faults of its own
            faults.append(str(error.stack))

    page.on("pageerror", fault)
    yield page
    page.close()
    assert faults == []


def write(lab: Lab, name: str, *cells: str) -> None:
    notebook = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(code) for code in cells],
        metadata={"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}},
    )
    nbformat.write(notebook, lab.work / f"{name}.ipynb")


@pytest.mark.host(
    "Notebook 7", magics="yes", live="yes", buttons="yes", reload="live again, if it was saved", saved="a card"
)
def test_notebook_7_shows_a_run_stops_it_and_has_it_back_when_it_is_loaded_anew(lab: Lab, page: Page) -> None:
    write(lab, "seven", "%load_ext subagents_nb", "%%subagent --model scripted:slow --name seven\nx")
    page.goto(f"{lab.address}/notebooks/seven.ipynb?token={TOKEN}")
    await_kernel(page)
    page.locator(".jp-CodeCell .cm-content").first.click()
    page.keyboard.press("Shift+Enter")
    page.keyboard.press("Shift+Enter")
    view = page.locator(f".jp-OutputArea {RUN}")
    expect(view.locator(".sa-state")).to_contain_text("running", timeout=20_000)
    path = lab.work / "seven.ipynb"
    before = path.stat().st_mtime_ns
    page.keyboard.press("Control+s")
    until(lambda: path.stat().st_mtime_ns != before, 15, what="the notebook to be saved")
    page.reload()
    expect(view.locator(".sa-state")).to_contain_text("running", timeout=60_000)
    view.get_by_role("button", name="Stop").click()
    expect(page.locator(".subagents-nb-card")).to_contain_text("stopped", timeout=20_000)


@pytest.mark.host(
    "Voila",
    magics="yes",
    live="widgets: `run.widget()`; a run by itself as a card",
    buttons="yes",
    reload="the notebook runs anew; its runs go on",
    saved="",
)
def test_voila_shows_a_dashboard_that_moves(lab: Lab, page: Page) -> None:
    write(lab, "dashboard", DASHBOARD)
    page.goto(f"{lab.address}/voila/render/dashboard.ipynb?token={TOKEN}")
    runs = page.locator(RUN)
    expect(runs).to_have_count(2, timeout=60_000)
    expect(page.locator('.sa-board .sa-row[data-need="working"]')).to_contain_text("slow", timeout=20_000)
    runs.first.get_by_role("button", name="Stop").click()
    expect(runs.last.locator(".sa-state")).to_contain_text("stopped", timeout=20_000)
    expect(page.locator(".jp-OutputArea-output pre").last).to_contain_text("now stopped")
    assert [str(one.state) for one in FileRuns(lab.home).all() if one.name == "slow"][:1] == ["stopped"]
