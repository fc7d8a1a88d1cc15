"""The stored conversations that steps go on from: read from the run that had them, checked, copied into the new run."""

from __future__ import annotations

import hashlib
from pathlib import Path

from subagents_nb.domain.plans.plan import everything
from subagents_nb.errors import LaunchRefused, Unreadable
from subagents_nb.launching.gathering.prices import Planned
from subagents_nb.store import StoreHome
from subagents_nb.store.files.disk import DISK

MAX_SESSION_BYTES = 64 * 1024 * 1024


def read_session(path: Path) -> bytes | None:
    """Return a session; None if there is none that can be read."""
    try:
        return DISK.read(path, MAX_SESSION_BYTES) or None
    except Unreadable:
        return None


def sessions_for(home: StoreHome, draft: Planned, earlier: str | None = None) -> dict[str, bytes]:
    """Return the sessions that the steps of a draft begin with, or of what is appended, by their hashes.

    Raises:
        LaunchRefused: one is gone, or is no longer what was planned with.
    """
    found: dict[str, bytes] = {}
    reasons: dict[str, None] = {}
    for step in everything(draft.steps, draft.items):
        wanted = step.session
        if wanted is None or wanted.sha256 in found:
            continue
        places = [home.run(wanted.run_id).step(wanted.step) / "session.json"]
        if earlier is not None:
            places.insert(0, home.run(earlier).session(wanted.sha256))
        contents = (read_session(place) for place in places)
        data = next((one for one in contents if one and hashlib.sha256(one).hexdigest() == wanted.sha256), None)
        if data is None:
            reasons[f"the session of steps[{wanted.step}] of {wanted.run_id} is gone, or was changed meanwhile"] = None
        else:
            found[wanted.sha256] = data
    if reasons:
        raise LaunchRefused(list(reasons))
    return found
