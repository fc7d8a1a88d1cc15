"""The processes that this runner started, and how each ended: its candidate for the proof that nothing is left of it.

One account for the whole process. Whoever starts a process tells it here, and how it ended once that was seen.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable
from pathlib import Path

from subagents_nb.domain.records import Candidate, ChildEnd

KEPT = 200


class Children:
    """Whom we started. Rows of children that were seen to end are dropped beyond the last two hundred, and counted."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._open: dict[int, ChildEnd] = {}
        self._ended: list[ChildEnd] = []
        self._dropped = 0
        self._asked: dict[int, Callable[[], int | None]] = {}

    def began(self, pid: int, *, what: str, poll: Callable[[], int | None] | None = None) -> None:
        """Note a child that leads a session of its own. `poll`, without waiting, returns its exit code or None."""
        row = ChildEnd(pid=pid, start_ticks=_start_ticks(pid), group=pid, what=what)
        with self._guard:
            self._open[pid] = row
            self._asked.pop(pid, None)  # the pid of a child that ended may be another's now
            if poll is not None:
                self._asked[pid] = poll

    def ended(self, pid: int, code: int | None, *, group_empty: bool | None) -> None:
        """Note how a child ended: a code below zero is a signal, None means that it was not seen."""
        with self._guard:
            row = self._open.get(pid)
            if row is None or (code is None and group_empty is None):
                return
            del self._open[pid]
            self._asked.pop(pid, None)
            how = "unknown" if code is None else "exited" if code >= 0 else "killed"
            seen = {"how": how, "code": code, "seen_by": "nobody" if code is None else "runner"}
            self._ended.append(ChildEnd.model_validate({**row.model_dump(), **seen, "group_empty": group_empty}))
            if len(self._ended) > KEPT:
                del self._ended[0]
                self._dropped += 1

    def candidate(self, run_id: str, token: str) -> Candidate | None:
        """Return the account as it stands; None if there never was a child."""
        for pid, poll in list(self._asked.items()):
            code = poll()
            if code is not None:
                self.ended(pid, code, group_empty=None)
        with self._guard:
            rows = (*self._ended, *self._open.values())
            if not rows:
                return None
            return Candidate(
                run_id=run_id,
                token=token,
                pid=os.getpid(),
                group=os.getpgrp() if hasattr(os, "getpgrp") else None,
                group_empty=_is_alone(),
                children=rows,
                dropped=self._dropped,
            )


def _start_ticks(pid: int) -> int | None:
    fields = _stat(Path(f"/proc/{pid}/stat"))
    return int(fields[19]) if fields else None


def _is_alone() -> bool | None:
    """Say whether this process is the last of its group; None where that can't be seen."""
    try:
        stats = [*Path("/proc").glob("[0-9]*/stat")]
    except OSError:  # out of descriptors, say
        return None
    if not stats:
        return None
    own, group = str(os.getpid()), str(os.getpgrp())
    others = (_stat(path) for path in stats if path.parent.name != own)
    return not any(fields and fields[2] == group and fields[0] not in "ZX" for fields in others)


def _stat(path: Path) -> list[str]:
    with contextlib.suppress(OSError):
        # The name stands in parentheses and may hold anything; state, parent and group follow it.
        return path.read_bytes().rpartition(b")")[2].decode("ascii", "replace").split()
    return []


CHILDREN = Children()
