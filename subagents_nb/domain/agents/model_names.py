"""Whether the model that answered is the one that was asked: by names alone, which is all that a provider says.

Providers answer a pointer with the snapshot behind it, and servers in between answer with names of their own. So only
two names that can't mean the same are called different; what can't be told apart is said, and nothing more.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Literal

Sameness = Literal["same", "unclear", "other"]

# They serve their own models, by names that they keep. Whoever else answers may call a model as he likes.
NAMES_ITS_OWN = frozenset({"anthropic", "openai", "google"})
# What follows a name and tells which snapshot of it, or how it is served: 2026-01-01, 20260101, 0613, 2411, 001, v2:0.
_STAMP = re.compile(
    r"-(?:(?:19|20)\d\d-?[01]\d-?[0-3]\d|[01]\d-[0-3]\d|[01]\d-20\d\d|\d{3,4}|0|latest|preview|exp|experimental|stable)\Z"
)
_VARIANT = re.compile(r"[:@].*\Z")
# Words that make another model of a name, smaller or larger.
_SIZES = frozenset((
    "mini", "nano", "lite", "micro", "tiny", "small", "medium", "large", "flash", "pro", "ultra", "max", "turbo",
    "instant", "air", "haiku", "sonnet", "opus", "fable", "chat", "codex", "image", "audio", "realtime",
))  # fmt: skip


def sameness(asked: str, answered: str, aliases: Collection[str] = ()) -> Sameness:
    """Say whether `answered` names the model that was `asked`; a name among `aliases` does."""
    if answered in aliases:
        return "same"
    ours, mine, theirs = _bare(asked), _core(asked), _core(answered)
    if not theirs or ours == _bare(answered) or sorted(mine.split("-")) == sorted(theirs.split("-")):
        return "same"
    if ours.endswith(("latest", "preview")) or not any(char.isdigit() for char in mine):
        return "unclear"  # a pointer to whatever stands behind it today
    shorter, longer = sorted((mine, theirs), key=len)
    if not longer.startswith(f"{shorter}-"):
        return "other"
    more = longer[len(shorter) + 1 :].split("-")
    return "other" if more[0].isdigit() or _SIZES.intersection(more) else "unclear"  # another version, or another size


def aliases_of(table: dict[str, tuple[str, ...]], provider: str, name: str) -> tuple[str, ...]:
    """Return the names that the settings let a model answer by; it may be written `provider:name`, `/` or alone."""
    aliases: dict[str, None] = {}
    for key in (f"{provider}:{name}", f"{provider}/{name}", name):
        aliases |= dict.fromkeys(table.get(key, ()))
    return tuple(aliases)


def _bare(name: str) -> str:
    """Return a name without who serves it and how: `models/`, `openai/`, `:free`, `@2026`."""
    last = _VARIANT.sub("", name.strip().lower()).rstrip("/").rsplit("/", 1)[-1]
    return re.sub(r"[._\s]+", "-", last)


def _core(name: str) -> str:
    """Return a name without the stamps at its end, of which there may be several."""
    core = _bare(name)
    while (cut := _STAMP.sub("", core)) != core and cut:
        core = cut
    return core
