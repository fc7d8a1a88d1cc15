"""How figures are said to people, once for cards, widgets, tables and the terminal."""

from __future__ import annotations

from subagents_nb.domain.values.durations import MAX_TIMEOUT_S, parse_duration
from subagents_nb.domain.values.usage import Usage
from subagents_nb.plain_text import one_line, plain, visible

__all__ = [
    "MAX_TIMEOUT_S", "ago", "cost", "count", "duration", "elapsed", "one_line", "parse_duration", "plain", "tokens",
    "visible",
]  # fmt: skip


def elapsed(seconds: float) -> str:
    """Say a duration: `0:42`, `12:05`, `1:02:03`."""
    total_s = max(0, int(seconds))
    hours, rest = divmod(total_s, 3600)
    minutes, secs = divmod(rest, 60)
    return f"{hours}:{minutes:02d}:{secs:02d}" if hours else f"{minutes}:{secs:02d}"


def count(number: int) -> str:
    """Say a number of tokens in at most five characters: `861`, `12.4k`, `1.2M`."""
    if number < 1000:
        return str(number)
    for divisor, suffix in ((1000, "k"), (1_000_000, "M")):
        value = number / divisor
        if value < 99.95:
            return f"{value:.1f}{suffix}"
        if value < 999.5:
            return f"{value:.0f}{suffix}"
    return f"{number / 1_000_000_000:.1f}G"


def tokens(usage: Usage) -> str:
    """Say tokens in and out: `12.4k / 861`."""
    return f"{count(usage.input_tokens)} / {count(usage.output_tokens)}"


def cost(usd: float | None) -> str:
    """Say a cost, or nothing when it is not known."""
    if usd is None:
        return ""
    if usd == 0:
        return "$0"
    return f"${usd:.3f}" if usd >= 0.001 else "<$0.001"


def duration(seconds: float) -> str:
    """Say a length of time in words short enough for a sentence: `45 s`, `30 min`, `1.5 h`."""
    if seconds < 90:
        return f"{seconds:g} s"
    if seconds < 5400:
        return f"{seconds / 60:g} min" if seconds % 60 == 0 else f"{seconds / 60:.1f} min"
    return f"{seconds / 3600:.3g} h"


def ago(seconds: float) -> str:
    """Say how long ago something was, in one short phrase: `just now`, `5 min ago`, `3 h ago`, `12 days ago`."""
    for least, unit, word in ((172_800, 86_400, "days"), (5400, 3600, "h"), (90, 60, "min")):
        if seconds >= least:
            return f"{seconds / unit:.0f} {word} ago"
    return "just now" if seconds < 5 else f"{seconds:.0f} s ago"
