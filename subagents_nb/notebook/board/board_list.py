"""Which runs a board lists: the arguments of `runs`, kept so that they can be listed again, by a later kernel too."""

from __future__ import annotations

import base64
import binascii
import inspect
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from subagents_nb.domain.runs.snapshot import Snapshot
from subagents_nb.launching import Runs, runs
from subagents_nb.launching.listing import about, fits
from subagents_nb.notebook.board.board_rows import WENT_WRONG
from subagents_nb.store import FileRuns, StoreHome

_KINDS = frozenset(inspect.signature(runs).parameters)
_OF_THE_RUN = frozenset({"state", "agent", "name", "limit"})  # the others are of its plan
_MOST_ENDED, _MOST_CHARS = 10_000, 200
_LOOKED_AT = 2_000  # runs, the newest first: more are hardly launched while one is at work
_WORD = re.compile(r"[A-Za-z0-9_-]{2,4000}")


@dataclass(frozen=True, slots=True)
class BoardList:
    """The arguments of `runs`."""

    which: Mapping[str, Any]

    def list(self, found: Runs | None = None) -> Runs:
        """List them as they are now, or as they were `found`: all that live, and those that have ended last.

        `runs` knows when a run was launched; what was launched long ago and ended just now is news on a board.
        """
        found = runs(**self.which) if found is None else found
        limit = self.which.get("limit")
        if limit is None or not found.hidden:
            return found
        reader, is_one = FileRuns(found.home), self.fits(found.home)
        known = {one.run_id: one for one in found.snapshots}
        live = [one for one in found.snapshots if not one.ended]
        newest = reader.ids()[:_LOOKED_AT]
        below = {*newest, *known}.difference(one.run_id for one in live)
        ends = {run_id: at for run_id in below if (at := reader.end_written_ns(run_id))}
        ended: list[Snapshot] = []
        for run_id in sorted(ends, key=lambda one: (ends[one], one), reverse=True):
            if len(ended) >= limit:
                break
            if is_one(snapshot := known.get(run_id) or reader.snapshot(run_id)) and snapshot.ended:
                ended.append(snapshot)
        shown = sorted([*live, *ended], key=lambda one: one.run_id, reverse=True)
        hidden = found.hidden + len(found) - len(live) - len(ended)
        return Runs(found.home, shown, hidden=max(0, hidden))

    @property
    def by_state(self) -> bool:
        """Whether a run enters and leaves as it goes on, and not only when it is launched."""
        return self.which.get("state") is not None

    @property
    def may_hide_failures(self) -> bool:
        """Whether a run that went wrong can be one of them and yet not be listed."""
        return self.which.get("limit") is not None and self.which.get("state") in (None, *WENT_WRONG)

    def fits(self, home: StoreHome) -> Callable[[Snapshot], bool]:
        """Return what says whether a run is one of them, however old it is."""
        of_plan = about(home, **{name: value for name, value in self.which.items() if name not in _OF_THE_RUN})
        state, agent, name = (self.which.get(one) for one in ("state", "agent", "name"))

        def is_one(snapshot: Snapshot) -> bool:
            said = fits(snapshot, state=state, agent=agent, name=name)
            return said and (of_plan is None or of_plan(snapshot.run_id))

        return is_one

    @property
    def word(self) -> str:
        """Return it as one word that may stand among the classes of an element."""
        told = {name: value for name, value in self.which.items() if value is not None}
        return base64.urlsafe_b64encode(json.dumps(told).encode()).decode().rstrip("=")


def parse_word(word: object) -> BoardList | None:
    """Return what such a word of a page says, checked: a saved page may be a stranger's."""
    if not isinstance(word, str) or _WORD.fullmatch(word) is None:
        return None
    try:
        told = json.loads(base64.urlsafe_b64decode(word + "=" * (-len(word) % 4)))
    except (binascii.Error, ValueError, RecursionError):
        return None
    if not isinstance(told, dict) or not told.keys() <= _KINDS:
        return None
    limit = told.pop("limit", None)
    if limit is not None and not (type(limit) is int and 0 <= limit <= _MOST_ENDED):
        return None
    if not all(isinstance(one, str) and len(one) <= _MOST_CHARS for one in told.values()):
        return None
    return BoardList({**told, "limit": 20 if limit is None else limit})
