"""Tell the person who is away: a command of their settings, with what happened on its standard input."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence

from subagents_nb.runner.children import CHILDREN


def notify(command: Sequence[str], *, environ: Mapping[str, str], run_id: str, name: str, text: str) -> None:
    """Start the command and go on; it gets one JSON object on its input and sees no key. A failure is only noted."""
    if not command:
        return
    try:
        process = subprocess.Popen(
            list(command),
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=dict(environ),
            start_new_session=True,
        )
        CHILDREN.began(process.pid, what="notice", poll=process.poll)
        if process.stdin is not None:
            process.stdin.write(json.dumps({"run_id": run_id, "name": name, "text": text}).encode())
            process.stdin.close()
    except OSError as error:
        print(f"the notify command could not be run: {error}", file=sys.stderr, flush=True)  # noqa: T201
