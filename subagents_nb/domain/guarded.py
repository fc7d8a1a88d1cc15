"""Which paths an agent's file tools never touch. A fence for the model, not for a shell: that has the user's rights."""

from __future__ import annotations

import fnmatch

# Patterns as the harness matches them: `*` crosses slashes, a leading `**/` also matches at the root.
NEVER_READ: tuple[str, ...] = (
    "**/.env",
    "**/.env.*",
    "**/.envrc",
    "*.pem",
    "*.key",
    "**/secrets*",
    "**/.git/config",
    "**/.git-credentials",
    "**/.netrc",
    "**/.pypirc",
    "**/.npmrc",
    "**/.ssh/*",
    "**/.aws/*",
    "**/id_rsa*",
    "**/id_ed25519*",
)
# Agents, settings and scripts of the project decide what later runs may do: no agent writes those.
NEVER_WRITTEN: tuple[str, ...] = (*NEVER_READ, "**/.git", "**/.git/*", "**/.subagents", "**/.subagents/*")


def is_secret(path: str) -> bool:
    """Say whether a path, relative to the workspace, is one that must not be read."""
    return _matches(path, NEVER_READ)


def is_protected(path: str) -> bool:
    """Say whether a path, relative to the workspace, is one that must not be written."""
    return _matches(path, NEVER_WRITTEN)


def _matches(path: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatch.fnmatchcase(path, p) or fnmatch.fnmatchcase(path, p.removeprefix("**/")) for p in patterns)
