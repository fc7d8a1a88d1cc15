"""The wall clock, for people. Durations and order come from monotonic clocks and sequence numbers instead."""

from __future__ import annotations

import functools
import time
from datetime import UTC, datetime
from pathlib import Path

from subagents_nb.domain.kept.retention import Reading


def utc_now() -> str:
    """Return the time as UTC in ISO 8601 with milliseconds."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def moment(at: str | None) -> datetime | None:
    """Return a time as it is written in ISO 8601, in UTC if it names no zone; None if it is none."""
    try:
        parsed = datetime.fromisoformat(at or "")
    except ValueError:
        return None
    return parsed if parsed.tzinfo is not None else parsed.replace(tzinfo=UTC)


def age_s(at: str) -> float:
    """Return how many seconds ago an ISO 8601 moment was; 0 if it is no moment."""
    try:
        return (datetime.now(UTC) - datetime.fromisoformat(at)).total_seconds()
    except (ValueError, TypeError, OverflowError):  # TypeError: a moment without a zone
        return 0.0


def read_clocks() -> Reading:
    """Read the wall clock and, where there is one, the clock that counts from boot and that nobody sets."""
    boot = boot_id()
    try:
        since = time.clock_gettime(time.CLOCK_BOOTTIME)
    except (OSError, AttributeError):
        boot, since = None, 0.0
    return Reading(wall_s=time.time(), boot=boot, since_boot_s=since)


@functools.cache
def boot_id() -> str | None:
    """Return the kernel's random id of this boot, or None where there is none."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip() or None
    except OSError:
        return None
