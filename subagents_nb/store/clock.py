"""The wall clock, for people. Durations and order come from monotonic clocks and sequence numbers instead."""

from __future__ import annotations

from datetime import UTC, datetime


def utc_now() -> str:
    """Return the time as UTC in ISO 8601 with milliseconds."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def age_s(moment: str) -> float:
    """Return how many seconds ago an ISO 8601 moment was; 0 if it is no moment."""
    try:
        return (datetime.now(UTC) - datetime.fromisoformat(moment.replace("Z", "+00:00"))).total_seconds()
    except (ValueError, TypeError, OverflowError):  # TypeError: a moment without a zone
        return 0.0
