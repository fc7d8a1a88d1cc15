"""A real kernel as a test uses it: run a cell, read what came back, wait for what comes later."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import re
import shutil
import signal
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jupyter_client.manager import KernelManager
from nbclient import NotebookClient
from nbformat import NotebookNode
from support import SECRET_PREFIXES, alive, processes_of, until
from traitlets.config import Config

from subagents_nb.errors import RequestError
from subagents_nb.launching import Run
from subagents_nb.store import FileRuns, StoreHome
from subagents_nb.store.runs.lookup import find_run

Message = dict[str, Any]
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_SHOWN = ("display_data", "execute_result")


@dataclass
class Cell:
    """What came back from one cell up to the moment when the kernel was idle again."""

    id: str
    messages: list[Message] = field(default_factory=list)
    reply: dict[str, Any] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        return bool(self.reply["status"] == "ok")

    @property
    def stdout(self) -> str:
        return self._streamed("stdout")

    @property
    def error(self) -> str:
        """What a person reads when the cell failed: a traceback, or what a usage error writes."""
        shown = ["\n".join(m["content"]["traceback"]) for m in self.messages if m["msg_type"] == "error"]
        return _COLOURS.sub("", "\n".join([*shown, self._streamed("stderr")])).strip()

    @property
    def shown(self) -> list[dict[str, Any]]:
        """The bundles of everything that was displayed or returned; what was shown before may be updated besides."""
        return [m["content"]["data"] for m in self.messages if m["msg_type"] in _SHOWN]

    @property
    def plain(self) -> str:
        return "\n".join(bundle.get("text/plain", "") for bundle in self.shown)

    @property
    def updated(self) -> str:
        """What was shown before and is shown anew, in plain text."""
        updates = [m["content"]["data"] for m in self.messages if m["msg_type"] == "update_display_data"]
        return "\n".join(bundle.get("text/plain", "") for bundle in updates)

    @property
    def stands(self) -> list[dict[str, Any]]:
        """The bundles that stand below the cell when it has ended: what was shown anew took the place of the first."""
        standing: dict[str, dict[str, Any]] = {}
        for message in self.messages:
            content, kind = message["content"], message["msg_type"]
            place = content.get("transient", {}).get("display_id") or str(len(standing))
            if kind in _SHOWN or (kind == "update_display_data" and place in standing):
                standing[place] = content["data"]
        return list(standing.values())

    @property
    def html(self) -> str:
        return "\n".join(bundle.get("text/html", "") for bundle in self.shown)

    def _streamed(self, name: str) -> str:
        streams = [m["content"] for m in self.messages if m["msg_type"] == "stream"]
        return "".join(content["text"] for content in streams if content["name"] == name)


# What IPython and jedi call what they offer; ours say what a word means.
_NOT_OURS = {
    "class",
    "function",
    "instance",
    "keyword",
    "magic",
    "module",
    "param",
    "path",
    "property",
    "statement",
} | {
    "<unknown>",
    "",
}


class Kernel:
    """One kernel with a home, a working directory and, unless it is given one, a store of its own."""

    def __init__(self, root: Path, *, store: Path | None = None, **environ: str) -> None:
        self.home = StoreHome(store or root / "store")
        self.user_home = root / "user"
        self.work = self.user_home / "work"
        self.work.mkdir(parents=True, exist_ok=True)
        self.log: list[Message] = []
        self._sockets = Path(tempfile.mkdtemp(prefix="k"))
        self._manager = KernelManager(**own_sockets(self._sockets))
        clean = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith((*SECRET_PREFIXES, "SUBAGENTS_NB_", "JPY_", "PYTEST_"))
        }
        ours = {
            "HOME": str(self.user_home),
            "IPYTHONDIR": str(root / "ipython"),
            "SUBAGENTS_NB_HOME": str(self.home.root),
            "SUBAGENTS_NB_REUSE": "never",  # most tests launch the same work again and mean another run
        }
        leave_cold(root / "ipython")
        self._manager.start_kernel(env=clean | ours | environ, cwd=str(self.work))
        self._client = self._manager.client()
        self._client.start_channels()
        self._client.wait_for_ready(timeout=60)

    # -- one cell

    def run(self, code: str, *, deadline: float = 30.0, cell_id: str | None = "the-cell") -> Cell:
        """Run a cell as a notebook page does, which says which cell it is. `cell_id=None`: as a program does."""
        return self.finish(self.send(code, cell_id=cell_id), deadline=deadline)

    def send(self, code: str, *, cell_id: str | None = "the-cell") -> str:
        """Begin a cell and return the id of its request."""
        content = {
            "code": code, "silent": False, "store_history": True, "user_expressions": {},
            "allow_stdin": cell_id is not None, "stop_on_error": False,
        }  # fmt: skip
        metadata = {"cellId": cell_id} if cell_id is not None else {}
        message = self._client.session.msg("execute_request", content, metadata=metadata)
        self._client.shell_channel.send(message)
        return str(message["header"]["msg_id"])

    def finish(self, request: str, *, deadline: float = 30.0) -> Cell:
        """Wait until a cell is over."""
        self.until(lambda: self.is_idle(request), deadline, what="the end of the cell")
        reply = self._reply(request, deadline)
        messages = [m for m in self.log if m["parent_header"].get("msg_id") == request]
        return Cell(request, messages, reply)

    def is_idle(self, request: str) -> bool:
        return any(
            m["msg_type"] == "status"
            and m["content"]["execution_state"] == "idle"
            and m["parent_header"].get("msg_id") == request
            for m in reversed(self.log)
        )

    def ok(self, code: str, **how: Any) -> Cell:
        """Run a cell that must succeed."""
        cell = self.run(code, **how)
        assert cell.ok, cell.error
        return cell

    def fails(self, code: str, **how: Any) -> str:
        """Run a cell that must fail, and return what a person reads."""
        cell = self.run(code, **how)
        assert not cell.ok, f"it did not fail: {code!r}"
        return cell.error

    def value(self, expression: str) -> Any:
        """Return the value of an expression in the kernel, by way of JSON."""
        said = self.ok(f"import json as _json\nprint('=>' + _json.dumps({expression}))").stdout
        return json.loads(said.partition("=>")[2])

    def complete(self, code: str) -> tuple[list[str], str]:
        """Return what the kernel offers at the end of `code`, ours only, and the text that it would replace."""
        self._client.complete(code, len(code))
        content = self._client.get_shell_msg(timeout=30)["content"]
        types = content["metadata"].get("_jupyter_types_experimental", [])
        ours = [one["text"] for one in types if one["type"] not in _NOT_OURS]
        return ours, code[content["cursor_start"] : content["cursor_end"]]

    def comm_of(self, name: str, *, last: bool = False) -> str:
        """Return over which comm a run's live view is fed, its first or last one."""
        opened = [m["content"] for m in self.log if m["msg_type"] == "comm_open"]
        opened = opened[::-1] if last else opened
        return next(str(c["comm_id"]) for c in opened if c["data"]["state"].get("name") == name)

    def told(self, comm_id: str) -> list[dict[str, Any]]:
        """Return the acknowledgements that a page was sent, and what its traits became."""
        data = [
            m["content"]["data"] for m in self.log if m["msg_type"] == "comm_msg" and m["content"]["comm_id"] == comm_id
        ]
        return [d.get("content") or d.get("state") or {} for d in data]

    def say(self, comm_id: str, content: Any, *, subshell: str | None = None) -> None:
        """Send a widget's custom message, as a page does: JupyterLab gives each tab a subshell of its own for them."""
        data = {"comm_id": comm_id, "data": {"method": "custom", "content": content}}
        message = self._client.session.msg("comm_msg", data)
        message["header"]["subshell_id"] = subshell
        self._client.shell_channel.send(message)

    def ask_state(self, comm_id: str) -> None:
        """Ask for the whole state of a widget, as a page does that was loaded anew."""
        data = {"comm_id": comm_id, "data": {"method": "request_state"}}
        self._client.shell_channel.send(self._client.session.msg("comm_msg", data))

    def control(self, kind: str, **content: Any) -> dict[str, Any]:
        """Ask something of the kernel's control channel and return what it answers."""
        self._client.control_channel.send(self._client.session.msg(f"{kind}_request", content))
        return dict(self._client.control_channel.get_msg(timeout=20)["content"])

    # -- what comes later

    def until(self, condition: Callable[[], Any], deadline: float = 20.0, *, what: str = "the condition") -> Any:
        """Read what the kernel publishes until the condition holds."""
        end = time.monotonic() + deadline
        while True:
            self.drain()
            if answer := condition():
                return answer
            assert time.monotonic() < end, f"{what} did not come within {deadline:g} s"
            self.drain(0.05)

    def drain(self, wait: float = 0.0) -> None:
        """Take what has been published so far."""
        while True:
            try:
                self.log.append(self._client.get_iopub_msg(timeout=wait))
            except queue.Empty:
                return
            wait = 0.0

    def updates_of(self, display_id: str) -> list[dict[str, Any]]:
        """Return the bundles that replaced what was shown under a display id."""
        return [
            m["content"]["data"]
            for m in self.log
            if m["msg_type"] == "update_display_data" and m["content"]["transient"].get("display_id") == display_id
        ]

    # -- runs, from outside

    def run_id(self, name: str) -> str:
        return find_run(name, FileRuns(self.home))

    def state(self, name: str) -> str:
        """Return a run's state as the files say it, without asking the kernel."""
        return str(FileRuns(self.home).snapshot(self.run_id(name)).state)

    # -- its life

    def interrupt(self) -> None:
        self._manager.interrupt_kernel()

    def restart(self) -> None:
        self._manager.restart_kernel(now=False)
        self._client.wait_for_ready(timeout=60)
        self.log.clear()

    def shut_down(self) -> None:
        self._client.stop_channels()
        self._manager.shutdown_kernel(now=False)

    def kill(self) -> None:
        """End the kernel as the system does when memory runs out."""
        os.kill(int(self._manager.provisioner.pid), signal.SIGKILL)  # type: ignore[union-attr]
        self._client.stop_channels()
        self._manager.shutdown_kernel(now=True)

    def close(self) -> None:
        self._client.stop_channels()
        self._manager.shutdown_kernel(now=True)
        self._manager.cleanup_resources()
        shutil.rmtree(self._sockets)

    def _reply(self, request: str, deadline: float) -> dict[str, Any]:
        end = time.monotonic() + deadline
        while True:
            message = self._client.get_shell_msg(timeout=max(0.1, end - time.monotonic()))
            if message["parent_header"].get("msg_id") == request:
                content: dict[str, Any] = message["content"]
                return content


def own_sockets(folder: Path) -> dict[str, str]:
    """Return where a kernel listens, in files: of free ports another program may take one before the kernel does."""
    # jupyter/jupyter_client#487: of eight kernels that start at once, one in seventy did not come up.
    return {"transport": "ipc", "ip": str(folder / "k")} if os.name == "posix" else {}


def execute(notebook: NotebookNode, folder: Path, *, timeout: int = 60) -> None:
    """Execute a notebook in a folder as nbclient does by itself."""
    with tempfile.TemporaryDirectory(prefix="k") as sockets:
        config = Config(KernelManager=own_sockets(Path(sockets)))
        NotebookClient(
            notebook, timeout=timeout, resources={"metadata": {"path": str(folder)}}, config=config
        ).execute()


def leave_cold(ipython: Path) -> None:
    """Let kernels start no supervisor ahead: each would cost a second of processor time, and most launch nothing."""
    profile = ipython / "profile_default"
    profile.mkdir(parents=True, exist_ok=True)
    (profile / "ipython_config.py").write_text("c.SubagentMagics.prewarm = False\n")


def display_id_of(cell: Cell) -> str:
    """Return the display id under which a cell showed a run."""
    found = [m["content"]["transient"].get("display_id") for m in cell.messages if m["msg_type"] == "display_data"]
    assert len(found) == 1, f"the cell showed {len(found)} things"
    return str(found[0])


def end_runs(home: StoreHome) -> None:
    """Stop every live run of a store; fail, after having ended it, if a process of one stays."""
    reader = FileRuns(home)
    for run_id in reader.ids() if home.runs.is_dir() else ():
        if not reader.snapshot(run_id).ended:
            with contextlib.suppress(RequestError):
                Run(home, run_id).stop("the test is over", asked_by="a test")
    try:
        until(lambda: not processes_of(home), 10, what="the end of the runs")
    except AssertionError:
        for pid in processes_of(home):
            os.kill(pid, signal.SIGKILL)
        raise


def dismiss_supervisors(home: StoreHome) -> None:
    """Ask the supervisors of a store to leave, as the system does at its end, and wait until they have."""
    root = os.fsencode(home.root)
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().split(b"\0")
        except OSError:
            continue
        if root in words and b"subagents_nb.supervisor.host" in words:
            pid = int(path.parent.name)
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
            until(lambda pid=pid: not alive(pid), 10, what=f"the end of supervisor {pid}")
