"""Which of many runs may be live, without a look into each: one that has ended stays so.

`<store>/unended.json` says of the runs up to one of them which had not ended when it was written. Whoever lists runs
writes it anew; it may be thrown away. Runs that came in between, by an archive or by a clock that was set back, and
runs that were deleted change how many there are, and then each is looked into once more.
"""

from __future__ import annotations

import bisect
import contextlib
import time
from collections.abc import Callable, Sequence

from pydantic import BaseModel, ValidationError

from subagents_nb.domain.values.ids import make_run_id
from subagents_nb.errors import Unreadable
from subagents_nb.store.files.disk import DISK
from subagents_nb.store.layout import StoreHome

_NAME = "unended.json"
_WORTH_WRITING = 200  # runs that need not be looked into again; 25 cost a quarter of a millisecond
_SETTLED_MS = 60_000  # between an id and the directory of its run, another run may come and be listed


class _Known(BaseModel, frozen=True):
    newest: str
    count: int  # of the runs up to this one
    unended: tuple[str, ...]


def unended(home: StoreHome, ids: Sequence[str], has_ended: Callable[[str], bool]) -> list[str]:
    """Return those of all runs that have no end yet, in their order; `ids` are all of the store, newest first."""
    known = _read(home)
    seen = _up_to(known.newest, ids) if known is not None else []
    before: set[str] = set()
    if known is not None and len(seen) == known.count:
        before = set(known.unended).intersection(seen)
    else:
        seen = []
    fresh = ids[: len(ids) - len(seen)]
    found = [run_id for run_id in (*fresh, *sorted(before, reverse=True)) if not has_ended(run_id)]
    settled = _up_to(make_run_id(int(time.time() * 1000) - _SETTLED_MS, 0), ids)
    if len(settled) >= len(seen) + _WORTH_WRITING:
        open_ones = tuple(run_id for run_id in found if run_id <= settled[0])
        made = _Known(newest=settled[0], count=len(settled), unended=open_ones)
        with contextlib.suppress(OSError):  # a store that can only be read is looked through each time
            DISK.replace(home.root / _NAME, made.model_dump_json().encode(), durable=False)
    return found


def _up_to(run_id: str, ids: Sequence[str]) -> Sequence[str]:
    """Return the runs up to this one, of a list that begins with the newest."""
    return ids[len(ids) - bisect.bisect_right(ids[::-1], run_id) :]


def _read(home: StoreHome) -> _Known | None:
    try:
        return _Known.model_validate_json(DISK.read(home.root / _NAME))
    except (Unreadable, ValidationError):
        return None
