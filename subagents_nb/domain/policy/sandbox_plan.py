"""The sandbox of a step: what the operating system keeps from the processes of its tools."""

from __future__ import annotations

from typing import Literal

from subagents_nb.domain.values.base import Value

Sandbox = Literal["workspace"]
SANDBOXES = ("workspace", "none")  # as people write it
SANDBOX_MARK = "SUBAGENTS_NB_SANDBOX"  # in the environment of each process in one
# The tools that start no process, by what rules call them. Any other works in the sandbox.
WITHOUT_PROCESS = frozenset(
    ("read", "list", "find", "grep", "write", "edit", "ask", "delegate", "skill", "memory")
)  # fmt: skip


class SandboxPlan(Value):
    """In a sandbox of this kind processes write into the workspace alone, and see no home folder."""

    kind: Sandbox = "workspace"
    network: bool = False  # that of this machine, with what listens on it
