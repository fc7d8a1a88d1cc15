"""A private store, home and model for one sitting, and everything started in it ended again."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from subagents_nb.store import StoreHome
from subagents_nb.supervisor.dismissal import dismiss


class Model:
    """The loopback model as seen from here."""

    def __init__(self, port: int) -> None:
        self.port = port

    def notes(self) -> dict[str, dict[str, Any]]:
        """Return what it noted, by task."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/log") as reply:
            return {note["task"]: note for note in json.loads(reply.read())}


@contextlib.contextmanager
def sitting() -> Iterator[Model]:
    """Yield the model; the environment points at a fresh store and at settings with the endpoint `loop`."""
    with tempfile.TemporaryDirectory(prefix="subagents-nb-bench-") as folder:
        root = Path(folder)
        serve = [sys.executable, "-m", "benchmarks.loopback"]
        peer = subprocess.Popen(serve, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert peer.stdin is not None
        assert peer.stdout is not None
        port = int(peer.stdout.readline())
        (root / ".subagents").mkdir()
        (root / ".subagents/settings.toml").write_text(
            f'[endpoints.loop]\nbase_url = "http://127.0.0.1:{port}/v1"\ndefault_model = "m"\n'
        )
        (root / "work").mkdir()
        os.environ.update(HOME=folder, SUBAGENTS_NB_HOME=str(root / "store"))
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        os.chdir(root / "work")
        try:
            yield Model(port)
        finally:
            dismiss(StoreHome(root / "store"))
            peer.stdin.close()
            peer.wait(10)
            os.chdir("/")
