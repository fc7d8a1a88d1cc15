"""The whole thing in a real JupyterLab, looked at through a real browser."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat
import pytest
from playwright.sync_api import Browser, Locator, Page, expect, sync_playwright
from support import SECRET_PREFIXES, alive, processes_of, until

from subagents_nb.errors import RequestError
from subagents_nb.launching import Run
from subagents_nb.store import FileRuns, StoreHome

HERE = Path(__file__).parent
TOKEN = "only-on-loopback"
FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
).split()
SETTINGS = {
    "@jupyterlab/apputils-extension/notification": {"fetchNews": "false", "checkForUpdates": False, "doNotDisturbMode": True},
    "@jupyterlab/notebook-extension/tracker": {"windowingMode": "none"},
    "@jupyterlab/docmanager-extension/plugin": {"autosave": False},
}  # fmt: skip


class Lab:
    """A JupyterLab server on loopback with everything of its own, and a page that shows it."""

    def __init__(self, root: Path, browser: Browser) -> None:
        self.root = root
        self.work = root / "work"
        self.home = StoreHome(root / "store")
        self.work.mkdir(parents=True)
        self._settle()
        self.address = f"http://127.0.0.1:{_free_port()}"
        self._server = self._start()
        self.page = browser.new_page(viewport={"width": 1180, "height": 1000}, device_scale_factor=2)
        self.faults: list[str] = []
        self.page.on("pageerror", lambda error: self.faults.append(str(error)))

    def _settle(self) -> None:
        for name, content in SETTINGS.items():
            path = self.root / "settings" / f"{name}.jupyterlab-settings"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(content))

    def _start(self) -> subprocess.Popen[bytes]:
        kept = {n: v for n, v in os.environ.items() if not n.startswith((*SECRET_PREFIXES, "SUBAGENTS_NB_", "JUPYTER"))}
        places = {
            "HOME": "user", "IPYTHONDIR": "ipython", "SUBAGENTS_NB_HOME": "store", "JUPYTER_CONFIG_DIR": "config",
            "JUPYTER_DATA_DIR": "data", "JUPYTER_RUNTIME_DIR": "runtime", "JUPYTERLAB_SETTINGS_DIR": "settings",
            "JUPYTERLAB_WORKSPACES_DIR": "workspaces",
        }  # fmt: skip
        environ = kept | {name: str(self.root / folder) for name, folder in places.items()}
        argv = [
            sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", "--ServerApp.ip=127.0.0.1",
            f"--ServerApp.port={self.address.rpartition(':')[2]}", "--ServerApp.port_retries=0",
            f"--IdentityProvider.token={TOKEN}", f"--ServerApp.root_dir={self.work}",
            "--LabApp.extension_manager=readonly", "--LabApp.expose_app_in_browser=True",
        ]  # fmt: skip
        log = (self.root / "server.log").open("wb")
        server = subprocess.Popen(argv, env=environ, cwd=self.work, stdout=log, stderr=log, start_new_session=True)
        log.close()

        def answers() -> bool:
            assert server.poll() is None, (self.root / "server.log").read_text()
            with contextlib.suppress(OSError), urllib.request.urlopen(f"{self.address}/api?token={TOKEN}", timeout=2):
                return True
            return False

        until(answers, 60, what="the server")
        return server

    def open(self, name: str, cells: list[str]) -> Notebook:
        """Write a notebook, open it, and wait for its kernel."""
        notebook = nbformat.v4.new_notebook(
            cells=[nbformat.v4.new_code_cell(code) for code in cells],
            metadata={"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}},
        )
        nbformat.write(notebook, self.work / f"{name}.ipynb")
        self.visit(name)
        return Notebook(self, name)

    def visit(self, name: str) -> None:
        """Load the page anew with one notebook in it."""
        self.page.goto(f"{self.address}/lab/tree/{name}.ipynb?token={TOKEN}&reset")
        self.page.wait_for_function(
            "() => window.jupyterapp?.shell.currentWidget?.context?.sessionContext?.session?.kernel?.status === 'idle'",
            timeout=60_000,
        )

    def close(self) -> None:
        self.page.close()
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._server.pid, signal.SIGTERM)
        self._server.wait(20)
        end_all(self.home)


@dataclass
class Notebook:
    """One open notebook."""

    lab: Lab
    name: str

    def begin(self, index: int) -> None:
        """Begin a cell and return at once."""
        self.lab.page.evaluate(
            """(index) => {
                window.jupyterapp.shell.currentWidget.content.activeCellIndex = index;
                void window.jupyterapp.commands.execute('notebook:run-cell');
            }""",
            index,
        )

    def run(self, *indices: int) -> None:
        """Run cells and wait for their ends."""
        for index in indices:
            self.begin(index)
            self.lab.page.wait_for_function(
                """(index) => {
                    const cell = window.jupyterapp.shell.currentWidget.content.widgets[index];
                    return cell.model.executionCount !== null && cell.model.executionState !== 'running';
                }""",
                arg=index,
            )

    def output(self, index: int) -> Locator:
        return self.lab.page.locator(".jp-Notebook .jp-CodeCell").nth(index).locator(".jp-Cell-outputArea")

    def do(self, command: str) -> None:
        """Carry out one of Lab's commands."""
        self.lab.page.evaluate("(command) => window.jupyterapp.commands.execute(command)", command)

    def restart(self) -> None:
        self.lab.page.evaluate(
            "() => window.jupyterapp.shell.currentWidget.context.sessionContext.session.kernel.restart()"
        )

    def saved(self) -> nbformat.NotebookNode:
        """Save it and read what is on disk."""
        self.do("docmanager:save")
        return nbformat.read(self.lab.work / f"{self.name}.ipynb", as_version=4)


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def end_all(home: StoreHome) -> None:
    """Stop the runs of a store and its supervisors."""
    reader = FileRuns(home)
    for run_id in reader.ids() if home.runs.is_dir() else ():
        if not reader.snapshot(run_id).ended:
            with contextlib.suppress(RequestError):
                Run(home, run_id).stop("the test is over", asked_by="a test")
    until(lambda: not processes_of(home), 10, what="the end of the runs")
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            words = path.read_bytes().split(b"\0")
            if os.fsencode(home.root) in words and b"subagents_nb.supervisor.host" in words:
                os.kill(int(path.parent.name), signal.SIGTERM)
                until(lambda pid=int(path.parent.name): not alive(pid), 10, what="the end of the supervisor")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    assert path, "these tests need a browser; install one: apt-get install chromium"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory, browser: Browser) -> Iterator[Lab]:
    lab = Lab(tmp_path_factory.mktemp("lab"), browser)
    yield lab
    lab.close()


FOUND = """from pydantic import BaseModel
class Row(BaseModel):
    column: str
    problem: str
    rows: int
class Findings(BaseModel):
    columns: list[Row]"""


def luminance(page: Page, element: Locator, style: str) -> float:
    """Return how light a colour of an element is, 0 to 1, as the browser paints it."""
    return float(
        element.evaluate(
            """(node, style) => {
                const canvas = new OffscreenCanvas(1, 1).getContext('2d');
                for (; node; node = node.parentElement) {
                    canvas.clearRect(0, 0, 1, 1);
                    canvas.fillStyle = getComputedStyle(node)[style];
                    canvas.fillRect(0, 0, 1, 1);
                    const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
                    if (a > 250) {
                        const part = (c) => (c / 255 <= .04045 ? c / 255 / 12.92 : ((c / 255 + .055) / 1.055) ** 2.4);
                        return .2126 * part(r) + .7152 * part(g) + .0722 * part(b);
                    }
                }
                return 1;
            }""",
            style,
        )
    )


def contrast(page: Page, element: Locator) -> float:
    """Return the contrast of an element's text with what lies behind it, 1 to 21."""
    pair = sorted([luminance(page, element, "color"), luminance(page, element, "backgroundColor")])
    return (pair[1] + 0.05) / (pair[0] + 0.05)


def test_a_run_is_live_on_the_page_and_can_be_stopped_there(lab: Lab) -> None:
    book = lab.open("live", [
        "%load_ext subagents_nb",
        "%%subagent scout --model scripted:slow --name on-the-page -o work\nx",
        "import time\nend = time.monotonic() + 4\nwhile time.monotonic() < end: pass",
    ])  # fmt: skip
    book.run(0, 1)
    view = book.output(1).locator(".sa")
    tail = view.locator(".sa-tail")
    expect(tail).to_contain_text("tick 3", timeout=10_000)

    # It goes on while a cell keeps the kernel busy.
    book.begin(2)
    length = len(tail.inner_text())
    lab.page.wait_for_function(
        "([node, length]) => node.innerText.length > length + 60", arg=[tail.element_handle(), length], timeout=3_500
    )
    busy = "() => window.jupyterapp.shell.currentWidget.context.sessionContext.session.kernel.status === 'busy'"
    assert lab.page.evaluate(busy), "the cell ended before anything moved"

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
    for part in (".sa-state", ".sa-title", ".sa-agent", ".sa-tail", "button", ".sa-foot"):
        assert contrast(lab.page, view.locator(part).first) >= 4.5, part

    # Stop, while the kernel is still busy or not: the run ends and a card takes the view's place.
    stop.focus()
    stop.press("Enter")
    expect(view.get_by_role("button", name="Stop requested")).to_be_disabled()
    card = book.output(1).locator("section[aria-label='Run on-the-page, stopped']")
    expect(card).to_be_visible(timeout=15_000)
    expect(book.output(1).locator(".sa")).to_have_count(0)
    assert str(Run(lab.home, FileRuns(lab.home).ids()[0]).state) == "stopped"
    assert lab.faults == []


def test_the_card_stays_when_kernel_and_page_are_gone(lab: Lab) -> None:
    (lab.work / "script.json").write_text(json.dumps([
        {"text": "Looking."},
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
    for part in ("strong", "th", "td", "code"):
        assert contrast(lab.page, card.locator(part).first) >= 4.5, part
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
        "work.stop()",
    ])  # fmt: skip
    book.run(0, 1, 2)
    view = book.output(1).locator(".sa")
    card = book.output(2).locator("section")
    expect(view).to_be_visible()
    expect(card).to_contain_text("failed")
    try:
        for theme, scheme in (("JupyterLab Dark", "dark"), ("JupyterLab Light", "light")):
            lab.page.evaluate("(theme) => window.jupyterapp.commands.execute('apputils:change-theme', {theme})", theme)
            lab.page.wait_for_function(
                "(light) => document.body.dataset.jpThemeLight === light", arg=str(scheme == "light").lower()
            )
            expect(view).to_have_css("color-scheme", scheme)
            for part in (".sa-state", ".sa-title", ".sa-agent", ".sa-tail", "button", ".sa-foot"):
                assert contrast(lab.page, view.locator(part).first) >= 4.5, (theme, part)
            for part in ("strong", "header span", "footer code"):
                assert contrast(lab.page, card.locator(part).first) >= 4.5, (theme, part)
    finally:
        lab.page.evaluate(
            "() => window.jupyterapp.commands.execute('apputils:change-theme', {theme: 'JupyterLab Light'})"
        )
    book.run(3)


SCRIPT: list[dict[str, Any]] = [
    {"usage": {"input_tokens": 1_840, "requests": 1, "cost_usd": 0.006}},
    {"tool": "read", "args": {"path": "data/sales.csv"}, "result": "order_id,date,region,product", "seconds": 0.1},
    {"usage": {"input_tokens": 4_210, "requests": 1, "cost_usd": 0.014}},
    {"tool": "bash", "args": {"command": "cut -d, -f3 data/sales.csv | sort | uniq -c"}, "result": "", "seconds": 0.3},
    {"tool": "grep", "args": {"pattern": ",-[0-9.]+,", "path": "data/sales.csv"}, "result": "14", "seconds": 0.2},
    {"usage": {"input_tokens": 6_350, "requests": 1, "cost_usd": 0.021}},
    {"text": "Three columns of data/sales.csv look wrong.\n\n"},
    {"text": "unit_price holds 14 negative values, all from one import on 3 May: the export flipped their sign. "},
    {"text": "region has two spellings of one place, “North-East” in 211 rows and “Northeast” in 38. "},
    {"text": "quantity has one value of 99,999, which looks like a sentinel for “unknown”"},
    {"sleep": 2.5},
    {"text": "."},
    {"value": {"columns": [
        {"column": "unit_price", "problem": "negative values", "rows": 14, "why": "one import on 3 May; the export flipped the sign"},
        {"column": "region", "problem": "two spellings", "rows": 211, "why": "“North-East” and “Northeast”"},
        {"column": "quantity", "problem": "sentinel", "rows": 1, "why": "99,999 stands for unknown"},
    ]}},
]  # fmt: skip


def test_the_pictures_for_the_documentation(lab: Lab, tmp_path: Path) -> None:
    folder = Path(os.environ.get("SUBAGENTS_NB_PICTURES") or tmp_path)
    folder.mkdir(parents=True, exist_ok=True)
    (lab.work / "claude-sonnet.json").write_text(json.dumps(SCRIPT))
    book = lab.open("pictures", [
        "%load_ext subagents_nb\n" + FOUND.replace("rows: int\n", "rows: int\n    why: str\n"),
        "%%subagent scout --model scripted:claude-sonnet.json --name find-outliers --schema Findings -o findings\n"
        "Which columns of data/sales.csv look wrong, and why?",
    ])  # fmt: skip
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
