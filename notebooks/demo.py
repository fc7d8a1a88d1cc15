"""Execute the quickstart without a browser, say how each cell went, and leave the result as a notebook and as HTML.

The runs go into a store of the demo's own, which is removed at the end: they never mix with yours. Nothing is left
running. Exit code: 0 well, 1 a cell failed, 130 interrupted.
"""

# ruff: noqa: T201 - it talks to a person

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
from nbconvert import HTMLExporter
from traitlets.config import Config

HERE = Path(__file__).resolve().parent
NOTEBOOK = HERE / "01_quickstart.ipynb"
BUILD = HERE.parent / "build" / "demo"
CELL_TIMEOUT_S = 300
LEAVE_S = 15.0


class Progress:
    """One line for each code cell: its number, its first line, its seconds."""

    def __init__(self, cells: list[Any]) -> None:
        code = [index for index, cell in enumerate(cells) if cell.cell_type == "code"]
        self._numbers = {index: number for number, index in enumerate(code, 1)}
        self._began = 0.0
        self.cell = ""
        self.interrupted = False

    def start(self, *, cell: Any, cell_index: int) -> None:
        """Say that a cell begins; from now on an interrupt ends the execution and with it the kernel."""
        task = asyncio.current_task()
        if task is not None and sys.platform != "win32":
            # nbclient's own handler ends the kernel under the execution's feet.
            asyncio.get_running_loop().add_signal_handler(signal.SIGINT, self._interrupt, task)
        if cell.cell_type != "code":
            return
        first = next(line for line in cell.source.splitlines() if line.strip())
        shown = first if len(first) <= 68 else first[:67] + "…"
        self.cell = f"{self._numbers[cell_index]:>3}  {shown:<68}"
        self._began = time.monotonic()
        print(self.cell, end=" ", flush=True)

    def _interrupt(self, task: asyncio.Task[Any]) -> None:
        self.interrupted = True
        task.cancel()

    def end(self, **_: Any) -> None:
        """Say how long it took."""
        print(f"{time.monotonic() - self._began:6.2f} s", flush=True)


def main(notebook: Path = NOTEBOOK, build: Path = BUILD) -> int:
    """Run the demo in a store of its own and tidy up behind it."""
    began = time.monotonic()
    home = Path(tempfile.mkdtemp(prefix="subagents-nb-demo-"))
    os.environ["SUBAGENTS_NB_HOME"] = str(home)
    try:
        failed = execute(notebook, build, home)
        print()
        report()
    except KeyboardInterrupt:
        print("\ninterrupted")
        return 130
    finally:
        tidy(home)
    for suffix in (".ipynb", ".html"):
        print(os.path.relpath((build / notebook.name).with_suffix(suffix)))
    print(f"{'FAILED' if failed else 'done'} in {time.monotonic() - began:.1f} s")
    return 1 if failed else 0


def execute(notebook: Path, build: Path, home: Path) -> bool:
    """Execute the notebook, write what came of it, and say whether a cell failed."""
    document = nbformat.read(notebook, as_version=4)
    progress = Progress(document.cells)
    # In files: of free ports another program may take one before the kernel does, jupyter/jupyter_client#487.
    sockets = {"transport": "ipc", "ip": str(home / "k")} if os.name == "posix" else {}
    client = NotebookClient(
        document,
        timeout=CELL_TIMEOUT_S,
        kernel_name="python3",
        extra_arguments=["--IPKernelApp.log_level=50"],
        # The cards in the outputs are plain HTML by then.
        store_widget_state=False,
        resources={"metadata": {"path": str(notebook.parent)}},
        on_cell_start=progress.start,
        on_cell_executed=progress.end,
        config=Config(KernelManager=sockets),
    )
    failed = False
    try:
        client.execute()
    except (CellExecutionError, CellTimeoutError, DeadKernelError, asyncio.CancelledError) as error:
        if progress.interrupted:
            raise KeyboardInterrupt from None
        failed = True
        print(f"\n\nThis cell failed: {progress.cell.strip()}\n\n{error}", file=sys.stderr)
    write(document, build / notebook.name)
    return failed


def write(document: Any, target: Path) -> None:
    """Leave the executed notebook and, beside it, its HTML, which loads nothing from the network."""
    target.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(document, target)
    nowhere = {name: "" for name in HTMLExporter.class_trait_names() if name.endswith("_url")}
    exporter = HTMLExporter(**nowhere)
    html, _ = exporter.from_notebook_node(document)
    target.with_suffix(".html").write_text(html, encoding="utf-8")


def report() -> None:
    """Print what the runs came to, read back from their files."""
    import subagents_nb

    for run in reversed(subagents_nb.runs()):
        answer = run.output if run.state == "complete" else run.error or ""
        print(f"{run.name:<14} {run.state:<9} {answer}")
    print()


def tidy(home: Path) -> None:
    """Stop what still runs, ask supervisor and model server to leave, and remove the demo's store."""
    import subagents_nb
    from subagents_nb import local_model
    from subagents_nb.errors import SubagentsError
    from subagents_nb.store import StoreHome
    from subagents_nb.supervisor.protocol.dismissal import dismiss

    for run in subagents_nb.runs(state="live"):
        with contextlib.suppress(SubagentsError):
            run.stop("the demo is over", asked_by="demo")
        run.wait(LEAVE_S)
    if not dismiss(StoreHome(home), within_s=LEAVE_S):
        print("a supervisor of the demo did not leave; it will when it has been idle", file=sys.stderr)
    with contextlib.suppress(local_model.LocalModelError):
        local_model.stop(home)
    deadline = time.monotonic() + LEAVE_S
    while home.exists() and time.monotonic() < deadline:  # whoever watched a run may be writing down how it ended
        shutil.rmtree(home, ignore_errors=True)
        time.sleep(0.01)


if __name__ == "__main__":
    sys.exit(main())
