"""A real JupyterLab with a browser before it, as a test uses them."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import urllib.request
from dataclasses import dataclass
from pathlib import Path

import nbformat
from playwright.sync_api import Browser, Error, Locator, Page
from support import SECRET_PREFIXES, alive, free_port, processes_of, until

from subagents_nb.errors import RequestError
from subagents_nb.launching import Run
from subagents_nb.store import FileRuns, StoreHome

TOKEN = "only-on-loopback"
FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip
SETTINGS = {
    "@jupyterlab/apputils-extension/notification": {"fetchNews": "false", "checkForUpdates": False},
    "@jupyterlab/notebook-extension/tracker": {"windowingMode": "none"},
    "@jupyterlab/docmanager-extension/plugin": {"autosave": False},
}  # fmt: skip
# The supervisor comes up while the server does: else the twelve runs of the first sweep all start cold beside it.
_WARM = """
from subagents_nb.store import open_home
from subagents_nb.supervisor.protocol.reaching import ensure_host, host_key
ensure_host(open_home(), host_key("warm"))
"""
_CLOSE_ALL = """async () => {
    for (const widget of [...window.jupyterapp.shell.widgets('main')]) {
        if (widget.context) widget.context.model.dirty = false;
        widget.dispose();
    }
    await window.jupyterapp.serviceManager.sessions.shutdownAll();
}"""


class Lab:
    """A JupyterLab server on loopback with everything of its own, and a page that shows it."""

    def __init__(self, root: Path, browser: Browser) -> None:
        self.root = root
        self.work = root / "work"
        self.home = StoreHome(root / "store")
        self.work.mkdir(parents=True)
        self._settle()
        self.address = f"http://127.0.0.1:{free_port()}"
        self._server = self._start()
        self.browser = browser
        self.page = browser.new_page(viewport={"width": 1180, "height": 1000}, device_scale_factor=2)
        self.faults: list[str] = []
        self.page.on("pageerror", self._fault)

    def _fault(self, error: Error) -> None:
        # JupyterLab's own words for a kernel that ends while the page waits for an answer of it.
        if "Canceled future for" not in str(error):
            self.faults.append(str(error))

    def _settle(self) -> None:
        profile = self.root / "ipython" / "profile_default"
        profile.mkdir(parents=True)
        (profile / "ipython_config.py").write_text("c.SubagentMagics.prewarm = False\n")
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
        environ["SUBAGENTS_NB_REUSE"] = "never"
        environ["PATH"] = f"{self._without_yarn()}{os.pathsep}{environ['PATH']}"
        argv = [
            sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", "--ServerApp.ip=127.0.0.1",
            f"--ServerApp.port={self.address.rpartition(':')[2]}", "--ServerApp.port_retries=0",
            f"--IdentityProvider.token={TOKEN}", f"--ServerApp.root_dir={self.work}",
            "--LabApp.extension_manager=readonly", "--LabApp.expose_app_in_browser=True",
            "--JupyterNotebookApp.expose_app_in_browser=True",
        ]  # fmt: skip
        log = (self.root / "server.log").open("wb")
        server = subprocess.Popen(argv, env=environ, cwd=self.work, stdout=log, stderr=log, start_new_session=True)
        log.close()
        subprocess.run([sys.executable, "-c", _WARM], env=environ, cwd=self.work, check=True)

        def answers() -> bool:
            assert server.poll() is None, (self.root / "server.log").read_text()
            with contextlib.suppress(OSError), urllib.request.urlopen(f"{self.address}/api?token={TOKEN}", timeout=2):
                return True
            return False

        until(answers, 60, what="the server")
        return server

    def _without_yarn(self) -> Path:
        """Return a folder with a `node` that does nothing: with each page the server asks it for yarn's settings."""
        folder = self.root / "bin"
        folder.mkdir()
        (folder / "node").write_text("#!/bin/sh\nexit 0\n")
        (folder / "node").chmod(0o755)
        return folder

    def open(self, name: str, cells: list[str]) -> Notebook:
        """Write a notebook, open it, and wait for its kernel."""
        notebook = nbformat.v4.new_notebook(
            cells=[nbformat.v4.new_code_cell(code) for code in cells],
            metadata={"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}},
        )
        nbformat.write(notebook, self.work / f"{name}.ipynb")
        if self.page.url.startswith(self.address):
            # Loading JupyterLab takes four seconds of work, and is no part of what is tested.
            self.page.evaluate(
                "(path) => window.jupyterapp.commands.execute('docmanager:open', {path, factory: 'Notebook'})",
                f"{name}.ipynb",
            )
            self._await_kernel()
        else:
            self.visit(name)
        return Notebook(self, name)

    def address_of(self, name: str, *, workspace: str = "") -> str:
        """Return where a notebook is shown; each tab needs a workspace of its own."""
        place = f"workspaces/{workspace}/tree" if workspace else "tree"
        return f"{self.address}/lab/{place}/{name}.ipynb?token={TOKEN}&reset"

    def visit(self, name: str) -> None:
        """Load the page anew with one notebook in it."""
        self.page.goto(self.address_of(name))
        self._await_kernel()

    def _await_kernel(self) -> None:
        await_kernel(self.page)

    def leave(self) -> None:
        """Close all notebooks, end all kernels and runs. A page that is at fault, or can't, is left for a new one."""
        self.page.emulate_media(reduced_motion="no-preference")
        try:
            self.page.evaluate(_CLOSE_ALL)
        except Error:
            self.faults.append("it could not close its notebooks")
        if self.faults:
            self.page.goto("about:blank")
        for session in json.loads(self._ask("sessions")):
            self._ask(f"sessions/{session['id']}", "DELETE")
        end_runs(self.home)

    def _ask(self, what: str, verb: str = "GET") -> bytes:
        head = {"Authorization": f"token {TOKEN}"}
        asked = urllib.request.Request(f"{self.address}/api/{what}", headers=head, method=verb)
        with urllib.request.urlopen(asked, timeout=30) as answer:
            return bytes(answer.read())

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

    def prompt(self, index: int) -> Locator:
        return self.lab.page.locator(".jp-Notebook .jp-CodeCell").nth(index).locator(".jp-InputPrompt")

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


def await_kernel(page: Page) -> None:
    """Wait until the notebook of a page, JupyterLab's or Notebook's, has a kernel that waits for cells."""
    page.wait_for_function(
        "() => window.jupyterapp?.shell.currentWidget?.context?.sessionContext?.session?.kernel?.status === 'idle'",
        timeout=60_000,
    )


def end_runs(home: StoreHome) -> None:
    """Stop the runs of a store."""
    reader = FileRuns(home)
    for run_id in reader.ids() if home.runs.is_dir() else ():
        if not reader.snapshot(run_id).ended:
            with contextlib.suppress(RequestError):
                Run(home, run_id).stop("the test is over", asked_by="a test")
    until(lambda: not processes_of(home), 10, what="the end of the runs")


def end_all(home: StoreHome) -> None:
    """Stop the runs of a store and its supervisors."""
    end_runs(home)
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            words = path.read_bytes().split(b"\0")
            if os.fsencode(home.root) in words and b"subagents_nb.supervisor.host" in words:
                os.kill(int(path.parent.name), signal.SIGTERM)
                until(lambda pid=int(path.parent.name): not alive(pid), 10, what="the end of the supervisor")
