"""Tell the person who is away of what a live run wants or came to; see `store.processes.notice`."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence

from subagents_nb.runner.processes.children import CHILDREN
from subagents_nb.store.processes.notice import send_notice


def notify(command: Sequence[str], *, environ: Mapping[str, str], run_id: str, name: str, text: str) -> None:
    """Start the command and account for it; it gets one JSON object and sees no key. A failure is only noted."""
    try:
        process = send_notice(command, run_id=run_id, name=name, text=text, environ=environ)
    except OSError as error:
        print(f"the notify command could not be run: {error}", file=sys.stderr, flush=True)  # noqa: T201
    else:
        if process is not None:
            CHILDREN.began(process.pid, what="notice", poll=process.poll)
