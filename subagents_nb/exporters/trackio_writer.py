"""Write one run into trackio's local store; run as a program by an interpreter that has trackio, with nothing of ours.

Standard input: a JSON object with project, run_id, name, group, config, logs, files. Standard output: one with name.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import tempfile
from pathlib import Path, PurePosixPath
from typing import Any

_ID = "subagents_nb.run_id"


def main() -> None:
    """Read what is to be written, write it, say what the run is called there."""
    message: dict[str, Any] = json.load(sys.stdin)
    with contextlib.redirect_stdout(sys.stderr):  # trackio talks to people
        name = _write(message)
    sys.stdout.write(json.dumps({"name": name}))


def _write(message: dict[str, Any]) -> str:
    import trackio

    project, run_id = message["project"], message["run_id"]
    with contextlib.suppress(ValueError):  # there is no such project yet
        for earlier in list(trackio.Api().runs(project)):
            if (earlier.config or {}).get(_ID) == run_id:
                earlier.delete()
    name = message["name"] if run_id[-4:] in message["name"] else f"{message['name']}-{run_id[-4:]}"
    run = trackio.init(
        project=project,
        name=name,
        group=message["group"],
        config={**message["config"], _ID: run_id},
        resume="never",
        embed=False,
        auto_log_gpu=False,
        auto_log_cpu=False,
    )
    for entry in message["logs"]:
        trackio.log({k: float(v) for k, v in entry["values"].items()}, step=entry["step"])
    _files(run, message["files"], run_id)
    trackio.finish()
    return str(run.name)


def _files(run: Any, files: list[dict[str, str]], run_id: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for one in files:
            path = Path(folder, PurePosixPath(one["name"]).name)
            path.write_bytes(bytes.fromhex(one["hex"]))
            word = "".join(c if c.isalnum() or c in "-_." else "-" for c in one["name"])
            run.log_artifact(path, name=f"{run_id}-{word}"[:120], type="subagents-nb")
            os.unlink(path)


if __name__ == "__main__":
    main()
