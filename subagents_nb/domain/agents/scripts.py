"""Names of the deterministic twin's scripts: which are built in, and where the others are looked for."""

from __future__ import annotations

BUILTIN_SCRIPTS = frozenset(
    {"echo", "slow", "tools", "refused", "fail", "crash", "hang", "stubborn", "ask", "steerable"}
)
SCRIPT_FOLDER = ".subagents/scripts"


def script_paths(name: str) -> tuple[str, ...]:
    """Return where `scripted:NAME` is looked for, relative to the workspace, first match first; empty if built in."""
    if name in BUILTIN_SCRIPTS:
        return ()
    if name.endswith(".json"):
        return (name, f"{SCRIPT_FOLDER}/{name}")
    return (f"{SCRIPT_FOLDER}/{name}.json",)
