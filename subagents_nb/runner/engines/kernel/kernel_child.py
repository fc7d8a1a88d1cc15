"""The kernel's process: `python -m …kernel.child CONNECTION_FILE MEMORY_BYTES`. Limited before anything is loaded."""

from __future__ import annotations

import sys
from typing import Any


def main() -> None:
    """Limit this process's memory and become an IPython kernel."""
    connection, memory = sys.argv[1:3]
    _limit_memory(int(memory))
    sys.argv = [sys.argv[0]]
    from ipykernel.kernelapp import IPKernelApp

    app: Any = IPKernelApp.instance()
    app.initialize(["-f", connection, "--HistoryManager.enabled=False", "--IPKernelApp.log_level=50"])
    app.start()


def _limit_memory(limit: int) -> None:
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return
    # Libraries reserve address space that they never touch; Linux can count what is writable alone: getrlimit(2).
    which = resource.RLIMIT_DATA if sys.platform == "linux" else resource.RLIMIT_AS
    try:
        resource.setrlimit(which, (limit, limit))
    except (ValueError, OSError) as error:
        print(f"the memory of this kernel could not be limited: {error}", file=sys.stderr)  # noqa: T201


if __name__ == "__main__":
    main()
