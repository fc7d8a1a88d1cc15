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
from subagents_nb.supervisor.protocol.dismissal import dismiss

# The default of the settings; some figures are about another number.
USUAL_LIMIT = 16


class Model:
    """The loopback model as seen from here, and the settings that lead to it."""

    def __init__(self, port: int, root: Path) -> None:
        self.port = port
        self.root = root
        self.store = StoreHome(root / "store")
        self.work = root / "work"

    def notes(self) -> dict[str, dict[str, Any]]:
        """Return what it noted, by task."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/log") as reply:
            return {note["task"]: note for note in json.loads(reply.read())}

    def allow(self, live_runs: int = USUAL_LIMIT) -> None:
        """Write the settings with this many live runs; a launch reads them anew."""
        (self.root / ".subagents/settings.toml").write_text(
            f"max_live_runs = {live_runs}\n\n"
            f'[endpoints.loop]\nbase_url = "http://127.0.0.1:{self.port}/v1"\ndefault_model = "m"\n'
        )

    def script(self, name: str, steps: list[dict[str, Any]]) -> str:
        """Write a script of the deterministic twin and return the name of its model."""
        (self.work / ".subagents/scripts" / f"{name}.json").write_text(json.dumps(steps))
        return f"scripted:{name}"


@contextlib.contextmanager
def sitting() -> Iterator[Model]:
    """Yield the model; the environment points at a fresh store and at settings with the endpoint `loop`."""
    before = dict(os.environ), Path.cwd()
    with tempfile.TemporaryDirectory(prefix="subagents-nb-bench-") as folder:
        root = Path(folder)
        serve = [sys.executable, "-m", "benchmarks.loopback"]
        peer = subprocess.Popen(serve, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert peer.stdin is not None
        assert peer.stdout is not None
        model = Model(int(peer.stdout.readline()), root)
        for below in (".subagents", "work/.subagents/scripts", "ipython"):
            (root / below).mkdir(parents=True)
        model.allow()
        # The package is found from any directory; IPython warns of a home without a directory of its own.
        path = os.pathsep.join([str(before[1]), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
        os.environ.update(HOME=folder, IPYTHONDIR=str(root / "ipython"), PYTHONPATH=path)
        os.environ["SUBAGENTS_NB_HOME"] = str(model.store.root)
        os.environ["SUBAGENTS_NB_REUSE"] = "never"  # each launch that is measured is one
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        os.chdir(model.work)
        try:
            yield model
        finally:
            dismiss(model.store)
            peer.stdin.close()
            peer.wait(10)
            os.environ.clear()
            os.environ.update(before[0])
            os.chdir(before[1])


@contextlib.contextmanager
def pointed_at(store: Path) -> Iterator[None]:
    """Let the package use another store for a while."""
    before = os.environ["SUBAGENTS_NB_HOME"]
    os.environ["SUBAGENTS_NB_HOME"] = str(store)
    try:
        yield
    finally:
        os.environ["SUBAGENTS_NB_HOME"] = before
