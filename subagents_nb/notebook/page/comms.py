"""What this kernel's comms need besides, so that what a page sends always arrives."""

from __future__ import annotations

from typing import Any


def heed_the_sender(comm: Any) -> Any:
    """Let each message of a page be handled where the page sent it, and return the comm.

    A page names the subshell that shall handle its message, jupyterlab/jupyterlab#17363. ipykernel 7.4 prefers the one
    whose message was being handled when the kernel last sent on the comm. What a thread of ours sends belongs to none,
    and takes the last of anybody: often that of a second tab, which is gone a moment later. From then on all that any
    page sends here ends in "Unknown subshell_id", ipython/ipykernel#1557. Our comms wait for no reply: nothing is lost.
    """
    if hasattr(comm, "_reply_subshell_for"):
        comm._reply_subshell_for = _where_sent
    return comm


def _where_sent(_data: object, subshell: str | None) -> str | None:
    return subshell
