"""A real kernel, driven as a notebook page drives it, with the time at which each published message arrived."""

from __future__ import annotations

import ast
import os
import threading
import time
from pathlib import Path
from typing import Any

import psutil
from jupyter_client.manager import KernelManager

Message = dict[str, Any]


class Kernel:
    """One kernel with the extension loaded."""

    def __init__(self, root: Path, cwd: Path) -> None:
        self.heard: list[tuple[float, Message]] = []
        self._log = (root / "kernel.log").open("ab")  # what kernels print while they start is not about us
        self._manager = KernelManager(kernel_name="python3")
        environ = {**os.environ, "SUBAGENTS_NB_SPAWN": "warm", "PYDEVD_DISABLE_FILE_VALIDATION": "1"}
        self._manager.start_kernel(env=environ, cwd=str(cwd), stdout=self._log, stderr=self._log)
        self._client = self._manager.client()
        self._client.start_channels()
        self._client.wait_for_ready(timeout=60)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()
        self.process = psutil.Process(self._manager.provisioner.pid)
        self.run("%load_ext subagents_nb")

    def run(self, code: str, value: str = "None", *, within_s: float = 120.0) -> Any:
        """Run a cell as a page does, which says which cell it is, and return the plain value of an expression."""
        content = {
            "code": code, "silent": False, "store_history": True, "user_expressions": {"value": value},
            "allow_stdin": False, "stop_on_error": False,
        }  # fmt: skip
        message = self._client.session.msg("execute_request", content, metadata={"cellId": "the-cell"})
        self._client.shell_channel.send(message)
        deadline = time.monotonic() + within_s
        while True:
            reply = self._client.get_shell_msg(timeout=deadline - time.monotonic())
            if reply["parent_header"].get("msg_id") == message["header"]["msg_id"]:
                break
        said = reply["content"]
        if said["status"] != "ok":
            raise RuntimeError("\n".join(said.get("traceback", [str(said)])))
        return ast.literal_eval(said["user_expressions"]["value"]["data"]["text/plain"])

    def cpu_s(self) -> float:
        """Return the processor time that the kernel has used."""
        times = self.process.cpu_times()
        return times.user + times.system

    def close(self) -> None:
        """End it; runs go on."""
        self._over.set()
        self._thread.join()
        self._client.stop_channels()
        self._manager.shutdown_kernel(now=True)
        self._log.close()

    def _listen(self) -> None:
        channel = self._client.iopub_channel
        while not self._over.is_set():
            if channel.socket.poll(100):
                now = time.time()  # before the message is taken apart
                self.heard.append((now, channel.get_msg(timeout=1)))
